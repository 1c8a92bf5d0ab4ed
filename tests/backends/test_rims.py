"""Vectors that end before their last lane: right to the bit, nothing behind an array is touched, at each level of x86."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from texpr.backends.cpu import headers
from texpr.driver import lower, parse
from texpr.interp.dtypes import numpy_dtype
from texpr.ir.program.selection import AUTO
from texpr.ir.value.types import DTYPES
from texpr.toolchain import this_machine

from .compiled import build

PRODUCT = """
fn mm(A: TYPE[M, K], B: TYPE[K, N]): SUM[M, N] {
    new C: SUM[M, N]
    par M |i| { par N |j| {
        C[i, j] = 0.0
        seq K |k| reduce(C) { C[i, j] SIGN= A[i, k] * B[k, j] }
    } }
    return C
}
"""
SIZES = [
    (1, 1, 1),
    (3, 15, 2),
    (5, 16, 3),
    (9, 17, 1),
    (2, 63, 4),
    (4, 64, 3),
    (7, 65, 5),
    (261, 129, 7),
    (6, 200, 515),
    (0, 3, 2),
]
PAGE = mmap.PAGESIZE


def at_the_end_of_a_page(values: NDArray[np.generic]) -> NDArray[np.generic]:
    """A copy of `values` behind which no memory may be touched."""
    size = -(-max(values.nbytes, 1) // PAGE) * PAGE
    held = mmap.mmap(-1, size + PAGE)
    place = ctypes.addressof(ctypes.c_char.from_buffer(held))
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(place + size), PAGE, mmap.PROT_READ & 0) == 0  # pyright: ignore
    found = np.frombuffer(held, values.dtype, values.size, size - values.nbytes).reshape(values.shape)
    found[...] = values
    return found


def levels() -> Iterator[tuple[str, ...]]:
    """Flags for each level of vectors that the processor has."""
    if this_machine().architecture not in ("x86_64", "AMD64"):
        yield ()
        return
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8") if Path("/proc/cpuinfo").exists() else ""
    for name, word in (("", ""), ("-v3", "avx2"), ("-v4", "avx512vl")):
        if word in flags:
            yield (f"-march=x86-64{name}",)


def product_of(dtype: str, sign: str = "+") -> str:
    """C++ of a product of matrices."""
    total = dtype if dtype in ("f32", "f64") else "f32"
    (function,) = parse(PRODUCT.replace("TYPE", dtype).replace("SUM", total).replace("SIGN", sign)).functions
    return lower(function, "cpu", schedule=AUTO).source


@pytest.mark.parametrize(
    ("dtype", "sign"),
    [
        ("f32", "+"),
        ("bf16", "-"),
        *(pytest.param(each, "+", marks=pytest.mark.long) for each in ("f64", "f16")),
    ],
)
def test_rims(dtype: str, sign: str, tmp_path: Path) -> None:
    source = product_of(dtype, sign)
    assert "tx_store_some(" in source
    assert "tx_choose(" in source
    rng = np.random.default_rng(1)
    for number, flags in enumerate(levels()):
        folder = tmp_path / str(number)
        path, _ = build(folder, {**headers(), "mm.cpp": source}, flags=("-fopenmp-simd", *flags))
        call = ctypes.CDLL(str(path)).texpr_mm  # pyright: ignore
        for m, n, k in SIZES:
            a, b = (rng.integers(-4, 5, shape).astype(numpy_dtype(DTYPES[dtype])) for shape in ((m, k), (k, n)))
            c = np.full((m, n), np.nan, np.float64 if dtype == "f64" else np.float32)
            given = [at_the_end_of_a_page(each) for each in (a, b, c)]
            a, b = a.astype(c.dtype), b.astype(c.dtype)
            places = [ctypes.c_void_p(each.ctypes.data) for each in given]
            assert call(None, None, *places, *(ctypes.c_int64(size) for size in (m, k, n))) == 0
            assert np.array_equal(given[2], a @ b if sign == "+" else -(a @ b)), (flags, m, n, k)


def test_every_count_of_lanes(tmp_path: Path) -> None:
    """`tx_some`, `tx_store_some` and `tx_choose` for each number of lanes, and more than there are."""
    text = """#include "texpr_cpu.h"
    TX_PUBLIC int lanes(void) { return TX_LANES(TYPE); }
    TX_PUBLIC void some(TYPE const *from, TYPE *to, int count) { tx_row(*to) = tx_some(*from, count); }
    TX_PUBLIC void store(TYPE const *from, TYPE *to, int count) { tx_store_some(*to, tx_row(*from), count); }
    TX_PUBLIC void choose(TYPE const *yes, TYPE *no, int count) { tx_row(*no) = tx_choose(count, tx_row(*yes), tx_row(*no)); }
    """
    for number, (flags, dtype) in enumerate(product(levels(), ("float", "double"))):
        path, _ = build(tmp_path / str(number), {**headers(), "f.cpp": text.replace("TYPE", dtype)}, flags=flags)
        library = ctypes.CDLL(str(path))  # pyright: ignore
        lanes: int = library.lanes()
        for count in range(1, lanes + 3):
            few = min(count, lanes)
            source = np.arange(1, lanes + 1, dtype="f4" if dtype == "float" else "f8")
            old = -source
            wanted = {"some": 0 * source, "store": old.copy(), "choose": old.copy()}
            for name, want in wanted.items():
                want[:few] = source[:few]
                given = at_the_end_of_a_page(source[:few] if name == "some" else source)
                found = at_the_end_of_a_page(old[:few] if name == "store" else old)
                getattr(library, name)(*(ctypes.c_void_p(x.ctypes.data) for x in (given, found)), count)
                assert np.array_equal(found, want[: len(found)]), (flags, dtype, name, count)


def test_a_processor_that_lacks_what_the_code_uses_is_told_so(tmp_path: Path) -> None:
    """A status, not a signal: here a processor is asked that says no to everything."""
    source = product_of("f32")
    for number, flags in enumerate(levels()):
        expected = 0 if not flags or flags[0].endswith("-64") else -2
        flags = ("-fopenmp-simd", *flags, "-D__builtin_cpu_supports(feature)=0")
        library = ctypes.CDLL(str(build(tmp_path / str(number), {**headers(), "mm.cpp": source}, flags=flags)[0]))  # pyright: ignore
        sizes = [ctypes.c_int64(0)] * 3
        assert library.texpr_mm(None, None, None, None, None, *sizes) == expected
        assert library.texpr_mm_load(0) == library.texpr_mm_supported(0) == expected


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_every_number_of_16_bits_is_widened(name: str, tmp_path: Path) -> None:
    text = f"""#include "texpr_cpu.h"
    TX_PUBLIC int widen(tx_{name} const *from, float *to, int length) {{
        for (int at = 0; at < length; at += TX_LANES(float)) tx_row(to[at]) = tx_wide(from[at]);
        return TX_LANES(float);
    }}
    TX_PUBLIC void some(tx_{name} const *from, float *to, int count) {{ tx_row(*to) = tx_wide_some(*from, count); }}
    """
    every = np.arange(1 << 16, dtype=np.uint16).view(numpy_dtype(DTYPES[name]))
    for number, flags in enumerate(levels()):
        path, _ = build(tmp_path / str(number), {**headers(), "f.cpp": text}, flags=flags)
        library = ctypes.CDLL(str(path))  # pyright: ignore
        found = np.empty(every.shape, np.float32)
        lanes: int = library.widen(*(ctypes.c_void_p(x.ctypes.data) for x in (every, found)), len(every))
        assert np.array_equal(found, every.astype(np.float32), equal_nan=True)
        for count in range(1, lanes + 2):
            few, row = at_the_end_of_a_page(every[500 : 500 + min(count, lanes)]), np.empty(lanes, np.float32)
            library.some(*(ctypes.c_void_p(x.ctypes.data) for x in (few, row)), count)
            assert np.array_equal(row[: len(few)], few.astype(np.float32)) and not row[len(few) :].any()
