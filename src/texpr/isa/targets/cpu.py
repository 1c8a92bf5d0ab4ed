"""Any 64-bit CPU with a C++17 compiler."""

from texpr.isa.levels import Level
from texpr.isa.memories import HOST
from texpr.isa.target import Reductions, Target

TARGET = Target(
    name="cpu",
    family="cpu",
    backend="cpu",
    title="a CPU: OpenMP over its cores, SIMD in each",
    levels=(Level.CORE, Level.THREAD, Level.LANE),
    align=64,  # a cache line, and the widest vector there is (AVX-512, SVE at 512 bits)
    global_memory=HOST,
    reductions=Reductions(chunk=65536, lanes=32),
    vector=32,  # AVX2; with 32 vectors of 16 bytes, NEON has as many bytes in registers
    vectors=16,
    refined=("__AVX512F__", "cpu_avx512"),
    caches=(32 * 1024, 512 * 1024),  # the least of server and desktop cores of the last ten years, with few exceptions
)
