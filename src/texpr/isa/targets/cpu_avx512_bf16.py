"""An x86 processor with AVX-512 and products of bfloat16 and of bytes: Cooper Lake, Sapphire Rapids, Zen 4, and later ones."""

from texpr.isa.targets.cpu_avx512 import TARGET as AVX512
from texpr.support.record import replace

TARGET = replace(
    AVX512,
    name="cpu_avx512_bf16",
    title="an x86 CPU with AVX-512, BF16 and VNNI: OpenMP over its cores, SIMD in each",
    march="cooperlake",  # the first that has both; what else it has, the others have, too
    macros=("__AVX512BF16__", "__AVX512VNNI__"),
    refined=None,
)
