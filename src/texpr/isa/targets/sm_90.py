"""H100, H200: compute capability 9.0, without the features of this generation only."""

from texpr.isa.cuda import HOPPER, KIB, device

TARGET = device(
    "sm_90",
    "Hopper (H100, H200), code that later devices run too",
    capability=(9, 0),
    shared=227 * KIB,
    resident_threads=2048,
    resident_blocks=32,
    ptx=(7, 8),
    features=HOPPER,
)
