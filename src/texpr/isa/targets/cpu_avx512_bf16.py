"""An x86 processor with AVX-512 and products of bfloat16 and of bytes: Cooper Lake, Sapphire Rapids, Zen 4, and later ones."""

from texpr.isa.levels import Level
from texpr.isa.memories import HOST
from texpr.isa.target import Reductions, Target

TARGET = Target(
    name="cpu_avx512_bf16",
    family="cpu",
    backend="cpu",
    title="an x86 CPU with AVX-512, BF16 and VNNI: OpenMP over its cores, SIMD in each",
    levels=(Level.CORE, Level.THREAD, Level.LANE),
    align=64,
    global_memory=HOST,
    reductions=Reductions(chunk=65536, lanes=32),
    vector=64,
    vectors=32,
    caches=(32 * 1024, 1024 * 1024),
    march="cooperlake",  # the first that has both; what else it has, the others have, too
    macros=("__AVX512BF16__", "__AVX512VNNI__"),
)
