"""An x86 processor with AVX-512: most servers since 2017."""

from texpr.isa.levels import Level
from texpr.isa.memories import HOST
from texpr.isa.target import Reductions, Target

TARGET = Target(
    name="cpu_avx512",
    family="cpu",
    backend="cpu",
    title="an x86 CPU with AVX-512: OpenMP over its cores, SIMD in each",
    levels=(Level.CORE, Level.THREAD, Level.LANE),
    align=64,
    global_memory=HOST,
    reductions=Reductions(chunk=65536, lanes=32),
    vector=64,
    vectors=32,
    caches=(32 * 1024, 1024 * 1024),  # the least of Skylake-SP to Emerald Rapids, and of Zen 4 and 5
    march="x86-64-v4",
    refined=("__AVX512BF16__", "cpu_avx512_bf16"),
)
