"""B300, GB300: compute capability 10.3 with the features of this generation only."""

from texpr.isa.cuda import HOPPER, KIB, SETMAXNREG, TCGEN05, TMA_ROWS, device

TARGET = device(
    "sm_103a",
    "Blackwell Ultra (B300, GB300), with instructions of this generation alone",
    capability=(10, 3),
    exact=True,
    shared=227 * KIB,
    resident_threads=2048,
    resident_blocks=32,
    ptx=(8, 8),
    features=HOPPER | {SETMAXNREG, TCGEN05, TMA_ROWS},
)
