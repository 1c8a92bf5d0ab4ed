"""GeForce RTX 50, RTX PRO Blackwell: compute capability 12.0 with what only this generation has."""

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
