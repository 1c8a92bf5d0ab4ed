"""H100, H200: compute capability 9.0 with the features of this generation only."""

from texpr.isa.cuda import HOPPER, KIB, SETMAXNREG, WGMMA, device

TARGET = device(
    "sm_90a",
    "Hopper (H100, H200), with instructions of this generation alone",
    capability=(9, 0),
    exact=True,
    shared=227 * KIB,
    resident_threads=2048,
    resident_blocks=32,
    ptx=(8, 0),
    features=HOPPER | {SETMAXNREG, WGMMA},
)
