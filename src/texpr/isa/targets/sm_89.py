"""GeForce RTX 40, L40, L4: compute capability 8.9."""

from texpr.isa.cuda import ADA, KIB, device

TARGET = device(
    "sm_89",
    "Ada Lovelace (GeForce RTX 40, L40, L4)",
    capability=(8, 9),
    shared=99 * KIB,
    resident_threads=1536,
    resident_blocks=24,
    ptx=(7, 8),
    features=ADA,
)
