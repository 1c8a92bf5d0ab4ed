"""GeForce RTX 50, RTX PRO Blackwell: compute capability 12.0 with the features of this generation only."""

from texpr.isa.cuda import HOPPER, KIB, device

TARGET = device(
    "sm_120a",
    "Blackwell (GeForce RTX 50, RTX PRO), with instructions of this generation alone",
    capability=(12, 0),
    exact=True,
    shared=99 * KIB,
    resident_threads=1536,
    resident_blocks=24,
    ptx=(8, 7),
    features=HOPPER,
)
