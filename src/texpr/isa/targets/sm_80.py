"""A100: compute capability 8.0."""

from texpr.isa.cuda import AMPERE, KIB, device

TARGET = device(
    "sm_80",
    "Ampere (A100, A30)",
    capability=(8, 0),
    shared=163 * KIB,
    resident_threads=2048,
    resident_blocks=32,
    ptx=(7, 0),
    features=AMPERE,
)
