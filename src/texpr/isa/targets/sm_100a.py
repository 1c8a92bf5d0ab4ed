"""B200, GB200: compute capability 10.0 with the features of this generation only."""

from texpr.isa.cuda import HOPPER, KIB, SETMAXNREG, TCGEN05, TMA_ROWS, device

TARGET = device(
    "sm_100a",
    "Blackwell (B200, GB200), with instructions of this generation alone",
    capability=(10, 0),
    exact=True,
    shared=227 * KIB,
    resident_threads=2048,
    resident_blocks=32,
    ptx=(8, 6),
    features=HOPPER | {SETMAXNREG, TCGEN05, TMA_ROWS},
)
