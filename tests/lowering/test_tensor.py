"""Copies by the tensor memory accelerator: results in every order, and no bug that stays unseen."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.lowering import machine
from tests.lowering.mutants import mutants
from tests.lowering.tiled import BLUR, BLURRING, COPY, MATMUL, SLABS, SLICING, TURN, TURNING, copying, multiplying
from tests.schedule.laid import Laid, binary, counts, integers, laid, lowered, refusal, wrong

from texpr.emulator import LOCKSTEP
from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.ir import kernel as k
from texpr.isa.registry import resolve
from texpr.schedule.apply import apply_schedule
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace

FOLDER = Path(__file__).parents[2] / "examples" / "tma"
Arrays = Mapping[str, NDArray[Any]]


def by_machine(made: Laid, arrays: Arrays, sizes: Mapping[str, int], orders: int = 2) -> bool:
    """Whether the kernel form means what the program does, copies landing when they like: shares no code with the emulator."""
    want = interpret(made.original, arrays, sizes)
    found = (machine.run(made.function, made.plan, arrays, sizes, order) for order in range(orders))
    return all(np.array_equal(got[name], want[name]) for got in found for name in want)


def kinds(made: Laid, kind: type[Any]) -> list[Any]:
    return [s for s in made.statements if isinstance(s, kind)]


def only(made: Laid) -> k.Kernel:
    (kernel,) = k.kernels(made.plan.steps)
    return kernel


@pytest.mark.parametrize(
    ("words", "boxes"),
    [
        ("fill=zero", 1),
        ("fill=weak, box=(16, 8)", 4),
        ("fill=zero, box=(8, 16)", 4),
        ("fill=zero, box=(8, 8), swizzle=32B", 8),
        ("fill=zero, box=(16, 16), swizzle=64B", 2),
        ("fill=zero, box=(16, 32), swizzle=128B", 1),
        ("fill=zero, box=(24, 32), swizzle=128B", 1),
    ],
)
def test_copy(words: str, boxes: int) -> None:
    """Sizes that no box divides; boxes that part the region, or are larger than it."""
    made = laid(COPY, copying(words))
    assert wrong(made, {"A": integers(19, 44)}, {"M": 19, "K": 44}) is None
    assert len(kinds(made, k.CopyTensor)) == boxes
    (expect,) = kinds(made, k.BarrierExpect)
    assert expect.bytes == (24 if "24" in words else 16) * 32 * 4


def test_bytes_of_boxes_outside_of_the_tensor_are_expected() -> None:
    made = laid(COPY, copying("fill=zero, box=(8, 8)"))
    assert wrong(made, {"A": integers(1, 4)}, {"M": 1, "K": 4}) is None


@pytest.mark.parametrize("sizes", [(19, 20, 36), (3, 0, 4), (16, 4, 32)])
def test_matmul(sizes: tuple[int, int, int]) -> None:
    m, depth, n = sizes
    made = laid(MATMUL, multiplying())
    assert wrong(made, {"A": integers(m, depth), "B": integers(depth, n, seed=1)}, {"M": m, "K": depth, "N": n}) is None


def test_neighbours_share_a_barrier_and_one_wait_is_for_both() -> None:
    made = laid(MATMUL, multiplying())
    (expect,) = kinds(made, k.BarrierExpect)
    assert expect.bytes == (16 * 8 + 8 * 32) * 4
    (wait,) = kinds(made, k.BarrierWait)
    assert str(wait.parity) == "(ko % 2)"
    assert {(c.kind, c.buffer) for c in wait.covers} >= {("RAW", "As"), ("RAW", "Bs")}
    # One for the barriers that were made, one before the next copies: none for what has landed.
    assert len(kinds(made, k.Barrier)) == 2


def test_every_map_is_asked_for_before_it_is_used() -> None:
    made = laid(MATMUL, multiplying(out="stage(C, at=bj, in=shared, via=tma) -> Cs"))
    used = [s for s in made.statements if isinstance(s, k.PrefetchMap | k.CopyTensor | k.StoreTensor)]
    asked = [s.map for s in used if isinstance(s, k.PrefetchMap)]
    assert sorted(asked) == sorted(map.name for map in only(made).maps) and len(asked) == 3
    assert all(isinstance(s, k.PrefetchMap) for s in used[: len(asked)])


def test_arrays_begin_where_swizzles_repeat() -> None:
    kernel = only(laid(MATMUL, multiplying()))
    assert {a.buffer.name: a.align for a in kernel.arrays if not a.barrier} == {"As": 256, "Bs": 1024}


def test_phases_of_two_loops() -> None:
    """The parity is that of all iterations so far."""
    schedule = multiplying().replace("bind(bj, grid.x)", "")
    made = laid(MATMUL, schedule)
    (wait,) = kinds(made, k.BarrierWait)
    assert {s.base for s in wait.parity.syms()} == {"bj", "ko", "K"}
    assert wrong(made, {"A": integers(16, 20), "B": integers(20, 100, seed=1)}, {"M": 16, "K": 20, "N": 100}) is None


def test_a_halo_is_filled_outside_of_the_tensor() -> None:
    """The box begins 3 columns before the halo, at a multiple of 16 bytes."""
    made = laid(BLUR, BLURRING)
    (copy,) = kinds(made, k.CopyTensor)
    assert [str(e) for e in copy.at] == ["32 * bj - 4", "8 * bi - 1"]
    assert wrong(made, {"x": integers(13, 44)}, {"M": 13, "N": 44}) is None


SHIFTED = """
fn shifted(x: T[n] align(16)): T[n]
    where n % 16 == 0
{
    new y: T[n]
    par n |i| { if i + OFF >= 0 and i + OFF < n { y[i] = x[i + OFF] } else { y[i] = ONE } }
    return y
}"""


@pytest.mark.parametrize("dtype", ["u8", "f16", "f32", "f64"])
@pytest.mark.parametrize("off", [-17, -1, 3, 16])
def test_a_box_begins_at_a_multiple_of_16_bytes(dtype: str, off: int) -> None:
    """Whatever the accesses: it is begun earlier, and threads read from within."""
    size = {"u8": 1, "f16": 2, "f32": 4, "f64": 8}[dtype]
    program = SHIFTED.replace("T[", f"{dtype}[").replace("OFF", str(off)).replace("ONE", "1" if size == 1 else "1.0")
    early = off % (16 // size)
    box = -(-(64 + early) * size // 16) * 16 // size
    made = laid(program, f"split(i, 64) -> (b, t)  bind(b, grid.x)  stage(x, at=b, in=shared, via=tma, box=({box})) -> xs")
    (copy,) = kinds(made, k.CopyTensor)
    assert str(copy.at[0]) == "64 * b" + (f" {'-' if off - early < 0 else '+'} {abs(off - early)}" if off != early else "")
    numbers = integers(208, dtype={"u8": "uint8", "f16": "float16", "f32": "float32", "f64": "float64"}[dtype])
    assert wrong(made, {"x": numbers}, {"n": 208}) is None


def test_transpose() -> None:
    made = laid(TURN, TURNING.format(", swizzle=128B"))
    assert wrong(made, {"A": integers(37, 44)}, {"M": 37, "N": 44}) is None


@pytest.mark.parametrize("words", ["box=(4, 4, 32)", "box=(2, 2, 32)", "box=(2, 4, 32), swizzle=64B", "box=(1, 4, 16)"])
def test_three_dimensions(words: str) -> None:
    made = laid(SLABS, SLICING.format(words))
    assert wrong(made, {"A": integers(7, 4, 32, dtype="float16")}, {"P": 7}) is None


OUT = "stage(C, at=bk, in=shared, via=tma, {}) -> Cs"


@pytest.mark.parametrize("words", ["swizzle=128B", "box=(8, 16), swizzle=64B", "box=(16, 32)"])
def test_store(words: str) -> None:
    """Threads pass a fence and a barrier before one of them stores."""
    made = laid(COPY, copying("fill=zero", out=OUT.format(words)))
    assert wrong(made, {"A": integers(19, 44)}, {"M": 19, "K": 44}) is None
    assert only(made).written == {"C"}
    assert [f.kind for f in kinds(made, k.Fence)] == ["init", "async"]
    assert [(w.pending, w.read) for w in kinds(made, k.WaitBulk)] == [(0, False)]


def test_store_of_an_accumulator() -> None:
    made = laid(MATMUL, multiplying(out="stage(C, at=bj, in=shared, via=tma) -> Cs"))
    assert wrong(made, {"A": integers(19, 12), "B": integers(12, 36, seed=1)}, {"M": 19, "K": 12, "N": 36}) is None


AGAIN = """
    split(i, 16) -> (bi, ti)  split(k, 32) -> (bk, tk)
    reorder(bi, bk, ti, tk)
    bind(bi, grid.y)  bind(ti, block.y)  bind(tk, block.x)
    stage(C, at=bk, in=shared, via=tma) -> Cs"""


def test_a_tile_is_read_before_it_is_written_again() -> None:
    made = laid(COPY, AGAIN)
    assert [(w.pending, w.read) for w in kinds(made, k.WaitBulk)] == [(0, True), (0, False)]
    assert wrong(made, {"A": integers(19, 76)}, {"M": 19, "K": 76}) is None


CASES: dict[str, tuple[str, str, Arrays, Mapping[str, int]]] = {
    "matmul": (
        MATMUL,
        multiplying(out="stage(C, at=bj, in=shared, via=tma) -> Cs"),
        {"A": integers(16, 24) + 1, "B": integers(24, 32, seed=1)},
        {"M": 16, "K": 24, "N": 32},
    ),
    "again": (COPY, AGAIN, {"A": integers(16, 96)}, {"M": 16, "K": 96}),
}


def is_found(made: Laid, arrays: Arrays, sizes: Mapping[str, int]) -> bool:
    """By the emulator, or, for a kernel that ends before its stores do, by the machine."""
    try:
        return wrong(made, arrays, sizes, (None, 0, 1, 2)) is not None or not by_machine(made, arrays, sizes)
    except machine.Fault:
        return True


@pytest.mark.parametrize("name", CASES)
def test_planted_bugs_are_found(name: str) -> None:
    """Fewer bytes, another parity, another coordinate, what is dropped: a fault or another result, in some order.

    Some make a difference only where a loop never runs.
    """
    text, schedule, arrays, sizes = CASES[name]
    made = laid(text, schedule)
    none = {"A": integers(16, 0), "B": integers(0, 32)} if name == "matmul" else {"A": integers(16, 0)}
    tried: set[str] = set()
    for mutant in mutants(only(made)):
        if mutant.kind not in ("guard", "loop", "placement"):
            tried.add(mutant.kind)
            planted = replace(made, plan=replace(made.plan, steps=(k.Launch(mutant.kernel),)))
            assert is_found(planted, arrays, sizes) or is_found(planted, none, {**sizes, "K": 0}), mutant.what
    assert tried >= {"barrier", "wait", "fence", "commit", "coordinate"} | (
        {"bytes", "made"} if name == "matmul" else set[str]()
    )


@pytest.mark.parametrize("name", CASES)
def test_kernel_form(name: str) -> None:
    text, schedule, arrays, sizes = CASES[name]
    assert by_machine(laid(text, schedule), arrays, sizes)


def test_a_swizzle_leaves_no_bank_conflicts() -> None:
    arrays, sizes = {"A": integers(64, 64)}, {"M": 64, "N": 64}
    moved, plain = (counts(laid(TURN, TURNING.format(words)), arrays, sizes) for words in (", swizzle=128B", ""))
    assert moved.bank_conflicts == 0
    assert plain.bank_conflicts > 0
    assert moved.tile_bytes == plain.tile_bytes == 64 * 64 * 4


TRIANGLE = """
fn triangle(A: f32[n, 32] align(16)): f32[1, 32] {
    new y: f32[1, 32]
    par 1 |b| {
        par 32 |j| { y[b, j] = 0.0 }
        seq n |s| { seq s + 1 |t| { par 32 |j| 'sum { y[b, j] += A[t, j] } } }
    }
    return y
}"""


def test_unknown_counts_of_phases_are_refused() -> None:
    said = refusal(TRIANGLE, "bind(b, grid.x)  stage(A, at=t, in=shared, via=tma) -> As")
    reason = "how often `As` was copied before is not a function of the loops around: how often `t` runs depends on `s`"
    assert said.startswith(f"error[E0916]: {reason}\n")


def test_what_a_split_leaves_out_is_copied_all_the_same() -> None:
    """Iterations of a loop that has none left load what nobody reads, so that phases are counted."""
    schedule = multiplying().replace("(ko, ki)", "(kk, ki)  split(kk, 3) -> (k1, ko)").replace("bj, ko,", "bj, k1, ko,")
    made = laid(MATMUL, schedule)
    assert wrong(made, {"A": integers(16, 20), "B": integers(20, 36, seed=1)}, {"M": 16, "K": 20, "N": 36}) is None


EXAMPLES: dict[str, tuple[Arrays, Mapping[str, int]]] = {
    "cluster": ({"A": integers(70, 36), "B": integers(36, 136, seed=1)}, {"M": 70, "K": 36, "N": 136}),
    "copy": ({"A": integers(37, 68), "a": np.array(3, np.float32)}, {"M": 37, "K": 68}),
    "matmul": ({"A": integers(70, 36), "B": integers(36, 72, seed=1)}, {"M": 70, "K": 36, "N": 72}),
    "matmul_ring": ({"A": integers(70, 180), "B": integers(180, 72, seed=1)}, {"M": 70, "K": 180, "N": 72}),
    "transpose": ({"A": integers(37, 44)}, {"M": 37, "N": 44}),
    "stencil": ({"x": integers(13, 44)}, {"M": 13, "N": 44}),
    "strided_copy": ({"X": integers(19, 33, 40, dtype="float16")}, {"H": 19, "W": 33, "C": 40}),
    "im2col_conv": (
        {"X": integers(1, 28, 28, 4), "K": integers(3, 3, 4, 20, seed=1)},
        {"B": 1, "C": 4, "F": 20},
    ),
    "reduce_add": (
        {"A": integers(19, 150), "B": integers(150, 36, seed=1), "C": integers(19, 36, seed=2)},
        {"M": 19, "K": 150, "N": 36},
    ),
    "scatter": (
        {
            "Y": integers(37, 100),
            "weight": integers(37, seed=1),
            "X": integers(20, 100, seed=2),
            "token": np.random.default_rng(0).integers(0, 20, 37).astype(np.int32),
        },
        {"n": 37, "D": 100, "T": 20},
    ),
    "permuted": (
        {
            "X": integers(37, 100),
            "place": np.random.default_rng(0).permutation(37).astype(np.int32),
            "Y": integers(37, 100, seed=1),
        },
        {"n": 37, "D": 100},
    ),
    "padded_batch": (
        {"A": integers(3, 37, 40), "rows": np.array([37, 0, 20], np.int32), "W": integers(40, 36, seed=1)},
        {"B": 3, "M": 37, "K": 40, "N": 36},
    ),
    "figure_tiles": ({"x": integers(16, 12, dtype="float64")}, {}),
    "figure_partitioning": ({"x": integers(16, 12, dtype="float64")}, {}),
    "figure_strided": ({"x": integers(16, 12, dtype="float64")}, {}),
    "figure_compositing": ({"x": integers(1024, 2, 4, 8, dtype="float64")}, {}),
    "figure_both": (
        {"x": integers(3, 2, 5, 2, 3, 2, 2, 2, 4)},
        {"n1": 3, "n3": 5, "n4": 2, "n7": 2, "s": 100},
    ),
    "figure_weak": ({"x": integers(12, dtype="float64")}, {}),
    "figure_strong": ({"x": integers(6, 6, dtype="float64")}, {}),
    "figure_strong_too": ({"x": integers(6, 6, dtype="float64")}, {}),
    "figure_not_strong": ({"x": integers(8, 2, dtype="float64")}, {}),
}


def example(name: str) -> Laid:
    (function,) = parse((FOLDER / f"{name}.te").read_text(encoding="utf-8"), name).functions
    made = apply_schedule(function, function.schedules[0], resolve("sm_90a"))
    assert made is not None
    return lowered(function, made.function)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    assert wrong(example(name), *EXAMPLES[name], (None, LOCKSTEP, 0, 1)) is None


def test_every_example_is_tried() -> None:
    assert {path.stem for path in FOLDER.glob("*.te")} == EXAMPLES.keys()


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_nvcc_makes_copies_of_tiles(target: str) -> None:
    made = laid(MATMUL, multiplying(out="stage(C, at=bj, in=shared, via=tma) -> Cs"), target)
    ptx = binary(made, target).ptx.decode()
    assert "cp.async.bulk.tensor.2d.shared::cluster.global" in ptx and "mbarrier.try_wait" in ptx
    assert "cp.async.bulk.tensor.2d.global.shared::cta" in ptx and "fence.proxy.async" in ptx


def marked(body: str) -> str:
    """What is said of loops that carry the mark of a copy without a schedule having proved it."""
    head = "fn f(A: f32[n, 64] align(16)): (f32[n, 64], f32[n, 64]) { new B: f32[n, 64] new C: f32[n, 64]"
    text = f"{head}\n{body}\nreturn (B, C) }}"
    (function,) = parse(text, "t.te").functions
    with pytest.raises(TexprError) as found:
        lowered(function, function)
    return str(found.value)


TILE = "new s: f32[1, 64] par 64 |k| #tma(0, 1, 64) {{ s[0, k] = {} }} par 64 |c| {{ C[i, c] = s[0, 63 - c] }}"
GRID = "par n |i| #bind(grid.x)"
FIRST = "par 64 |j| { B[i, j] = A[i, j] }"


REFUSED = {
    "written": (f"{GRID} {{ {FIRST} {TILE.format('B[i, k]')} }}", "`B` is written in the kernel whose copies load it"),
    "decided anew": (
        f"{GRID} {{ {FIRST} seq 4 |t| {{ if t % 2 == 0 {{ {TILE.format('A[i, k]')} }} "
        "else { par 64 |d| { C[i, d] = 0.0 } } } }",
        "whether it runs is decided anew in each iteration of `t`",
    ),
    "a block's own": (
        f"{GRID} {{ {FIRST} par 64 |c| {{ C[i, c] = 0.0 }} new s: f32[1, 64] par 64 |j| {{ s[0, j] = A[i, j] }} "
        "new big: f32[300, 64] par 64 |k| #tma(0, 1, 64) { big[7, k] = s[0, k] } }",
        "`big` is not one tensor in global memory, but what a block keeps",
    ),
    "changed": (
        f"{GRID} {{ {FIRST} {TILE.format('A[i, k]').replace('#tma(0, 1, 64)', '#tma(0, 1, 64) #unroll')} }}",
        "the tensor memory accelerator runs the loops over `k`, which another directive has changed",
    ),
    "read again": (
        f"{GRID} {{ new s: f32[1, 64] par 64 |j| {{ s[0, j] = A[i, j] }} par 64 |k| #tma(0, 1, 64) {{ B[i, k] = s[0, k] }} "
        "par 64 |c| { C[i, c] = B[i, 63 - c] } }",
        "`B` is touched again in the kernel whose copies store it",
    ),
    "tested": (
        f"{GRID} {{ par 64 |c| {{ B[i, c] = 0.0 C[i, c] = 0.0 }} new s: f32[1, 64] par 64 |j| {{ s[0, j] = A[i, j] }} "
        "par 64 |k| #tma(0, 1, 64) { if k < 7 { B[i, k] = s[0, k] } } }",
        "a tile of `s` is part data and part holes inside of `B` that must not be stored",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_lowering(name: str) -> None:
    body, reason = REFUSED[name]
    assert reason in marked(body)
