"""GeForce RTX 30, A40, A10: compute capability 8.6."""

from texpr.isa.cuda import AMPERE, KIB, device

TARGET = device(
    "sm_86",
    "Ampere (GeForce RTX 30, A40, A10)",
    capability=(8, 6),
    shared=99 * KIB,
    resident_threads=1536,
    resident_blocks=16,
    ptx=(7, 1),
    features=AMPERE,
)
