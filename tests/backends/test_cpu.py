"""C++ for a CPU: goldens, results against NumPy with OpenMP and without, what is vectorised, and every status."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from texpr.affine.expr import Sym, expr
from texpr.backends.c import status
from texpr.backends.cpu import headers, print_cpu
from texpr.ir.kernel import Array, Assign, Atomic, Declare, Exchange, HostIf, Launch, Plan, Shuffle, Space, Store
from texpr.ir.program import Compare, Injective, InRange, Monotone
from texpr.ir.value import Literal, Ref
from texpr.ir.value.types import BF16, DTYPES, F16, F32, I32, TF32
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace

from . import plans
from .compiled import build, host

GOLDEN = Path(__file__).parent / "golden"
PLANS: dict[str, Callable[[], Plan]] = {
    "saxpy": lambda: plans.saxpy("cpu"),
    "rows": lambda: plans.rows("cpu"),
    "histogram": lambda: plans.histogram("cpu"),
    "matmul": lambda: plans.matmul(F32, "cpu"),
    "heat": plans.heat,
}


@pytest.mark.parametrize("name", ["saxpy", "matmul", "heat"])
def test_golden(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{name}.cpp", print_cpu(PLANS[name]()))


class Built:
    """A plan's library; a call takes the arguments after the workspace."""

    def __init__(self, plan: Plan, folder: Path, flags: Sequence[str] = ("-fopenmp-simd",)):
        path, self.said = build(folder, {**headers(), "f.cpp": print_cpu(plan)}, flags=flags)
        self.library, self.name = ctypes.CDLL(str(path)), plan.name

    def __call__(self, *args: object, verb: str = "", workspace: int | None = None) -> int:
        return getattr(self.library, f"texpr_{self.name}{verb}")(None, ctypes.c_void_p(workspace), *map(_given, args))

    def bytes(self, *sizes: int) -> tuple[int, int]:
        """The status and the bytes of workspace for these sizes."""
        found = ctypes.c_uint64(99)
        code = getattr(self.library, f"texpr_{self.name}_workspace_bytes")(*map(_given, sizes), ctypes.byref(found))
        return code, found.value


def _given(arg: object) -> object:
    match arg:
        case np.ndarray():
            return ctypes.c_void_p(arg.ctypes.data)
        case float():
            return ctypes.c_float(arg)
        case int():
            return ctypes.c_int64(arg)
        case _:
            return arg


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Built]:
    flags = ("-fopenmp",) if host().openmp else ("-fopenmp-simd",)
    flags += ("-fopt-info-vec-optimized",) if host().kind == "gnu" else ()
    return {name: Built(make(), tmp_path_factory.mktemp(name), flags) for name, make in PLANS.items()}


def _floats(*shape: int, seed: int = 1) -> NDArray[np.float32]:
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def _aligned(count: int) -> NDArray[np.uint8]:
    memory = np.zeros(count + 256, np.uint8)
    return memory[-memory.ctypes.data % 256 :][:count]


@pytest.mark.parametrize("size", [0, 1, 4096, 10007])
def test_saxpy(built: dict[str, Built], size: int) -> None:
    x, y, z = _floats(size), _floats(size, seed=2), np.zeros(size, np.float32)
    assert built["saxpy"](3.0, x, y, z, size) == 0
    assert np.array_equal(z, 3 * x + y)


def test_every_pointer_may_be_null(built: dict[str, Built]) -> None:
    x, y, z = (_floats(10) for _ in range(3))
    for verb in ("", "_validate"):
        for given in ((None, y, z), (x, None, z), (x, y, None)):
            assert built["saxpy"](3.0, *given, 10, verb=verb) == status.NULL_POINTER.code
        assert built["saxpy"](3.0, None, None, None, 0, verb=verb) == 0
    for name, sizes in (("saxpy", (10,)), ("heat", (10, 10, 3))):
        entry = getattr(built[name].library, f"texpr_{name}_workspace_bytes")
        assert entry(*map(_given, sizes), None) == status.NULL_POINTER.code


def test_rows(built: dict[str, Built]) -> None:
    A, s = _floats(7, 1003), np.ones(7, np.float32)
    assert built["rows"](A, s, 7, 1003) == 0
    assert np.array_equal(s, A.sum(axis=1))


def test_histogram(built: dict[str, Built]) -> None:
    x, h = np.random.default_rng(3).integers(0, 16, 50000).astype(np.int32), np.ones(16, np.int32)
    assert built["histogram"](x, h, 50000) == 0
    assert np.array_equal(h, 1 + np.bincount(x, minlength=16))


def test_matmul(built: dict[str, Built]) -> None:
    A, B, C = _floats(12, 9), _floats(9, 32, seed=2), np.zeros((12, 32), np.float32)
    assert built["matmul"](A, B, C, 12, 32, 9) == 0
    assert np.array_equal(C, A @ B)


def _heat(A: NDArray[np.float32], steps: int) -> NDArray[np.float32]:
    for _ in range(2 * steps):
        B = A.copy()
        B[1:-1, 1:-1] = 0.25 * (A[:-2, 1:-1] + A[2:, 1:-1] + A[1:-1, :-2] + A[1:-1, 2:])
        A = B
    return A


def test_heat_with_workspace(built: dict[str, Built]) -> None:
    A, out = _floats(33, 65) * 1024, np.zeros((33, 65), np.float32)
    need = (33 * 65 * 4 + 255) // 256 * 256
    assert built["heat"].bytes(33, 65, 3) == (0, need)
    memory = _aligned(need + 256)
    assert built["heat"](A, out, 33, 65, 3, workspace=memory.ctypes.data) == 0
    assert np.array_equal(out, _heat(A, 3))
    assert not memory[need:].any()
    assert built["heat"](A, out, 33, 65, 3) == status.NO_WORKSPACE.code
    assert built["heat"](A, out, 33, 65, 3, workspace=memory.ctypes.data + 4) == status.MISALIGNED.code
    assert built["heat"](A, out, 1, 65, 3) == status.WHERE_FAILS.code
    assert built["heat"].bytes(1, 65, 3)[0] == status.WHERE_FAILS.code


def test_inner_loops_are_vectorised(built: dict[str, Built]) -> None:
    """The statement in each loop over lanes, in a register tile in each copy of the unrolled loop; or it is a vector already.

    Only g++ tells; it is the compiler of the tests.
    """
    if host().kind != "gnu":
        return
    for name, copies in {"saxpy": (1,), "rows": (1,), "matmul": (4,), "heat": (1, 1, 1, 1)}.items():
        lines = print_cpu(PLANS[name]()).split("\n")
        lanes = [number + 2 for number, text in enumerate(lines, 1) if "#pragma omp simd" in text]
        said = [text.split(":") for text in built[name].said.split("\n") if "loop vectorized using 32 byte vectors" in text]
        told = [int(words[1]) for words in said if words[0] == "f.cpp"]
        assert all(told.count(line) >= count for line, count in zip(lanes, copies, strict=True)), (name, built[name].said)
    assert print_cpu(PLANS["matmul"]()).count("tx_row(tile[") == 2


@pytest.mark.parametrize("flags", [("-fopenmp-simd",), ("-O0",)])
def test_without_openmp(tmp_path: Path, flags: tuple[str, ...]) -> None:
    made = Built(plans.rows("cpu"), tmp_path / "plain", flags)
    A, s = _floats(3, 17), np.zeros(3, np.float32)
    assert made(A, s, 3, 17) == 0
    assert np.array_equal(s, A.sum(axis=1))


def test_statuses_of_arguments(built: dict[str, Built]) -> None:
    x = np.zeros(8, np.float32)
    saxpy, null, odd = built["saxpy"], ctypes.c_void_p(0), ctypes.c_void_p(x.ctypes.data + 2)
    assert saxpy(1.0, x, x, null, 8) == status.NULL_POINTER.code
    assert saxpy(1.0, null, null, null, 0) == 0
    assert saxpy(1.0, x, odd, x, 8) == status.MISALIGNED.code
    for size in (-1, 2**31, 2**40, -(2**63)):
        assert saxpy(1.0, x, x, x, size) == status.BAD_SIZE.code
    assert built["matmul"](x, x, x, 5, 16, 1) == status.WHERE_FAILS.code
    most = 2**31 - 2**16
    assert built["matmul"](x, x, x, most, most, most) == status.BAD_SIZE.code  # 2^64 bytes
    assert built["matmul"](x, x, null, most, 16, 0) == status.NULL_POINTER.code
    for verb in ("load", "supported"):
        assert getattr(saxpy.library, f"texpr_saxpy_{verb}")(0) == 0
    assert saxpy.library.texpr_saxpy_unload() == 0


def test_strides_and_shapes_are_checked(tmp_path: Path) -> None:
    n, m, lda = (expr(Sym(name)) for name in ("n", "m", "lda"))
    out = plans.array("out", F32, n, m, role="inout", strides=(lda, expr(1)), align=16)
    shorter = plans.array("shorter", F32, n - 3)
    deep = plans.array("deep", F32, n, n, n, n * m)
    i, j = plans.syms("i j")
    fill = plans.count(j, m, Store(plans.at(out, i, j), Literal(1, F32)), kind="simd")
    kernel = plans.kernel("fill", [plans.core(i, n)], [out], [fill], sizes="n m lda")
    made = Built(plans.plan("fill", [out, shorter, deep], kernel, sizes="n m lda"), tmp_path / "fill")
    memory = _aligned(4096).view(np.float32)
    assert made(memory, memory, memory, 3, 2, 5) == 0
    assert np.flatnonzero(memory).tolist() == [0, 1, 5, 6, 10, 11]
    assert made(memory, memory, memory, 3, 2, 1) == status.BAD_SIZE.code  # rows overlap
    assert made(memory, memory, memory, 2, 2, 2) == status.BAD_SIZE.code  # an extent below 0
    assert made(memory, memory, memory, 2**20, 2, 2) == status.BAD_SIZE.code  # more bytes than there are
    assert made(memory[1:], memory, memory, 3, 2, 5) == status.MISALIGNED.code


def test_assumptions_are_validated(tmp_path: Path) -> None:
    n = expr(Sym("n"))
    place, other = plans.array("I", I32, n), plans.array("J", DTYPES["u64"], n, expr(2))
    kernel = plans.kernel("nothing", [plans.core(Sym("i"), n)], [place], [], sizes="n")
    assumes = (InRange(place, expr(0), n), Injective(place), Injective(other))
    made = Built(plans.plan("f", [place, other], kernel, sizes="n", assumes=assumes), tmp_path / "f")
    good, apart = np.array([3, 0, 2, 1], np.int32), np.arange(8, dtype=np.uint64) + 2**63
    assert made(good, apart, 4, verb="_validate") == 0
    assert made(good, apart, 0, verb="_validate") == 0
    for bad in ([3, 0, 2, 4], [-1, 0, 1, 2], [3, 0, 3, 1]):
        assert made(np.array(bad, np.int32), apart, 4, verb="_validate") == status.ASSUMPTION_FAILS.code
    apart[7] = apart[0]
    assert made(good, apart, 4, verb="_validate") == status.ASSUMPTION_FAILS.code
    assert made(good, None, 4, verb="_validate") == status.NULL_POINTER.code
    assert made(good, apart, 4) == 0


def test_orders_are_validated(tmp_path: Path) -> None:
    n = expr(Sym("n"))
    place, other = plans.array("I", I32, n), plans.array("J", DTYPES["u64"], n)
    kernel = plans.kernel("nothing", [plans.core(Sym("i"), n)], [place], [], sizes="n")
    assumes = (Monotone(place), Monotone(other))
    made = Built(plans.plan("f", [place, other], kernel, sizes="n", assumes=assumes), tmp_path / "f")
    high = np.array([0, 2**63, 2**64 - 1], np.uint64)
    for good in ([-3, 0, 0], [5, 5, 5], [-(2**31), 0, 2**31 - 1]):
        assert made(np.array(good, np.int32), high, 3, verb="_validate") == 0
        assert made(np.array(good, np.int32), high, 0, verb="_validate") == 0
    for bad in ([0, 1, 0], [1, 0, 2], [0, 0, -1]):
        assert made(np.array(bad, np.int32), high, 3, verb="_validate") == status.ASSUMPTION_FAILS.code
    high[2] = 0
    assert made(np.zeros(3, np.int32), high, 3, verb="_validate") == status.ASSUMPTION_FAILS.code


def test_scalars_of_small_types_and_host_conditions(tmp_path: Path) -> None:
    a, b, n = plans.array("a", F16), plans.array("b", TF32), expr(Sym("n"))
    x, y = plans.array("x", BF16, n), plans.array("y", F32, n, role="result")
    i = Sym("i")
    whole = plans.op(
        "mul", plans.Cast(plans.at(a), F32), plans.op("add", plans.Cast(plans.at(x, i), F32), plans.Cast(plans.at(b), F32))
    )
    kernel = plans.kernel("k", [plans.core(i, n)], [a, b, x, y], [Store(plans.at(y, i), whole)], sizes="n")
    plan = plans.plan("f", [a, b, x, y], kernel, sizes="n")
    plan = replace(plan, steps=(HostIf((Compare(">", n, expr(2)), Compare("!=", n, expr(5))), plan.steps),))
    made = Built(plan, tmp_path / "f")
    bits = int(np.float16(1.5).view(np.uint16))
    data = np.arange(6).astype(ml_dtypes.bfloat16)
    for size, runs in ((4, True), (2, False), (5, False)):
        y_ = np.zeros(6, np.float32)
        assert made(ctypes.c_uint16(bits), 1.0 + 2**-20, data, y_, size) == 0  # a tf32 has ten bits
        assert np.array_equal(y_[:size], 1.5 * (np.arange(size) + 1) * runs)


def test_reductions_of_every_kind(tmp_path: Path) -> None:
    """Each over lanes, for types that OpenMP knows and for those it does not; nan goes through max."""
    cases = [
        ("add", "i32"),
        ("add", "u64"),
        ("mul", "f64"),
        ("max", "f32"),
        ("min", "i8"),
        ("and", "bool"),
        ("or", "bool"),
        ("add", "f16"),
    ]
    n, i = expr(Sym("n")), Sym("i")
    given, kernels = [], []
    for name, type_ in cases:
        x, y = (
            plans.array(f"x_{name}_{type_}", DTYPES[type_], n),
            plans.array(f"y_{name}_{type_}", DTYPES[type_], role="result"),
        )
        acc = Sym("acc")
        start = {"mul": 1, "and": 1, "max": -np.inf, "min": 127}.get(name, 0)
        step = Assign(acc, plans.op(name, Ref(acc, x.dtype), plans.at(x, i)))
        step = replace(step, value=replace(step.value, dtype=x.dtype))  # pyright: ignore
        body = [Declare(acc, x.dtype, Literal(start, x.dtype)), plans.count(i, n, step, kind="simd", reductions=((acc, name),))]
        kernels.append(plans.kernel(f"{name}_{type_}", [], [x, y], [*body, Store(plans.at(y), Ref(acc, x.dtype))], sizes="n"))
        given += [x, y]
    made = Built(plans.plan("all", given, *kernels, sizes="n"), tmp_path / "all")
    types = {
        "f32": np.float32,
        "f64": np.float64,
        "i32": np.int32,
        "u64": np.uint64,
        "i8": np.int8,
        "bool": np.bool_,
        "f16": np.float16,
    }
    data = {case: np.random.default_rng(4).integers(0, 3, 1001).astype(types[case[1]]) for case in cases}
    data["mul", "f64"] = np.where(np.arange(1001) % 100, 1.0, 3.0)
    data["add", "i32"][:] = 2**30
    out = {case: np.zeros(1, types[case[1]]) for case in cases}
    order = [array for case in cases for array in (data[case],)]
    assert made(*order, *(out[case] for case in cases), 1001) == 0
    wanted = {
        "add": np.add,
        "mul": np.multiply,
        "max": np.maximum,
        "min": np.minimum,
        "and": np.logical_and,
        "or": np.logical_or,
    }
    for case in cases:
        assert out[case][0] == wanted[case[0]].reduce(data[case], dtype=types[case[1]]), case
    data["max", "f32"][500] = np.nan
    assert made(*order, *(out[case] for case in cases), 1001) == 0
    assert np.isnan(out["max", "f32"][0])


def test_atomics_of_every_kind(tmp_path: Path) -> None:
    n, i = expr(Sym("n")), Sym("i")
    cases = [(name, type_) for type_ in ("f32", "f16", "i8", "i64", "f64") for name in ("add", "min", "max")] + [
        ("or", "bool"),
        ("and", "u8"),
    ]
    given, body = [], []
    for name, type_ in cases:
        y = plans.array(f"y_{name}_{type_}", DTYPES[type_], role="inout")
        given.append(y)
        body.append(Atomic(plans.at(y), name, Literal(1, DTYPES[type_])))
    made = Built(
        plans.plan("f", given, plans.kernel("k", [plans.core(i, n)], given, body, sizes="n"), sizes="n"), tmp_path / "f"
    )
    types = {
        "f32": np.float32,
        "f64": np.float64,
        "i64": np.int64,
        "i8": np.int8,
        "bool": np.bool_,
        "f16": np.float16,
        "u8": np.uint8,
    }
    out = [np.full(1, 0 if name == "or" else 3, types[type_]) for name, type_ in cases]
    assert made(*out, 100) == 0
    wanted = {"add": 103, "min": 1, "max": 3, "or": 1, "and": 1}
    assert [int(a[0]) for a in out] == [wanted[name] for name, _ in cases]


def test_what_lowering_must_not_give_is_a_bug() -> None:
    x = plans.array("x", F32, 64, role="inout")
    t, i = plans.syms("t i")
    wait = plans.kernel("a", [], [x], [plans.Barrier(plans.Level.BLOCK)])
    lanes = plans.kernel("a", [], [x], [Declare(i, F32, Literal(0, F32)), Exchange(t, Ref(i, F32), 1)])
    blocks = plans.kernel("a", [plans.grid(t, 4)], [x], [])
    kept = plans.array("kept", F32, 1, role="local")
    other = Shuffle(t, plans.at(kept, 0), expr(1))
    fetched = plans.kernel("a", [], [x], [other], arrays=(Array(kept, Space.LOCAL),))
    for kernel in (wait, lanes, blocks, fetched):
        with pytest.raises(CompilerBug):
            print_cpu(plans.plan("f", [x], kernel))


def test_a_kernel_launched_twice_is_printed_once() -> None:
    plan = plans.saxpy("cpu")
    twice = replace(plan, steps=(*plan.steps, *plan.steps))
    assert print_cpu(twice).count("static void saxpy_0(") == 1 and isinstance(plan.steps[0], Launch)
