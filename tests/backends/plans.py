"""Plans built by hand: small kernels that use every form of statement, for a GPU's levels and for a CPU's."""

from __future__ import annotations

from texpr.affine.expr import Expr, IntoExpr, Sym, expr, minimum
from texpr.ir.kernel import (
    Array,
    Assign,
    Atomic,
    Axis,
    Barrier,
    Covered,
    Declare,
    Exchange,
    For,
    HostLoop,
    If,
    Kernel,
    Launch,
    Plan,
    Stmt,
    Store,
)  # fmt: skip
from texpr.ir.program import Assume, Compare
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL, F32, I32, DType
from texpr.isa.levels import Level, Space
from texpr.support.span import NOWHERE, Source, Span

ZERO, ONE = expr(0), expr(1)
N, M, K = expr(Sym("N")), expr(Sym("M")), expr(Sym("K"))


def syms(names: str) -> tuple[Sym, ...]:
    """Symbols, by their names."""
    return tuple(Sym(name) for name in names.split())


def array(name: str, dtype: DType, *shape: IntoExpr, role: str = "input", **more: object) -> Buffer:
    """A buffer of that shape."""
    return Buffer(name, dtype, tuple(map(expr, shape)), role, **more)  # pyright: ignore


def at(buffer: Buffer, *index: IntoExpr) -> Load:
    """An element."""
    return Load(buffer, tuple(map(expr, index)))


def op(name: str, *args: Value) -> Op:
    """An operation; comparisons give bool."""
    return Op(name, args, BOOL if name in {"lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"} else args[-1].dtype)


def below(left: IntoExpr, right: IntoExpr) -> Op:
    """left < right, of index expressions."""
    return op("lt", Index(expr(left), I32), Index(expr(right), I32))


def count(sym: Sym, hi: IntoExpr, *body: Stmt, lo: IntoExpr = 0, kind: str = "serial", **more: object) -> For:
    """A loop by ones."""
    return For(sym, expr(lo), expr(hi), body, ONE, kind, **more)  # pyright: ignore


def kernel(
    name: str,
    axes: list[Axis],
    buffers: list[Buffer],
    body: list[Stmt],
    *,
    sizes: str = "",
    arrays: tuple[Array, ...] = (),
    span: Span = NOWHERE,
) -> Kernel:
    """A kernel of these buffers; what is not an input is written."""
    pointers = tuple(b for b in buffers if b.rank or b.role != "input")
    scalars = tuple(b for b in buffers if not b.rank and b.role == "input")
    written = frozenset(b.name for b in pointers if b.role != "input")
    return Kernel(name, tuple(axes), pointers, scalars, syms(sizes), arrays, tuple(body), written, span)


def plan(
    name: str,
    given: list[Buffer],
    *steps: Kernel | HostLoop,
    sizes: str = "",
    workspace: tuple[Buffer, ...] = (),
    requires: tuple[Compare, ...] = (),
    assumes: tuple[Assume, ...] = (),
    span: Span = NOWHERE,
) -> Plan:
    """A plan of these kernels, in order."""
    params = tuple(b for b in given if b.role in ("input", "inout"))
    results = tuple(b for b in given if b.role == "result")
    launched = tuple(Launch(s) if isinstance(s, Kernel) else s for s in steps)
    return Plan(name, params, results, syms(sizes), (), workspace, requires, assumes, launched, span)


def grid(sym: Sym, extent: IntoExpr, dim: str = "x", base: Sym | None = None) -> Axis:
    """An axis over blocks."""
    return Axis(sym, Level.GRID, expr(extent), dim, base)


def block(sym: Sym, extent: int, dim: str = "x") -> Axis:
    """An axis over the threads of a block."""
    return Axis(sym, Level.BLOCK, expr(extent), dim)


def core(sym: Sym, extent: IntoExpr) -> Axis:
    """An axis over cores."""
    return Axis(sym, Level.CORE, expr(extent))


TEXT = Source(
    "plans.te",
    """-- Each kernel of these tests stands for one line.
fn saxpy(a: f32, x: f32[N], y: f32[N]): f32[N] { par N |i| { z[i] = a * x[i] + y[i] } }
fn transpose(A: f32[M, N]): f32[N, M] {
    par M |i| { par N |j| { tile[i, j] = A[i, j] } }
    par N |j| { par M |i| { B[j, i] = tile[i, j] } }
}
fn rows(A: f32[M, N]): f32[M] {
    par N |j| reduce(s) { s += A[i, j] }  \\
}
fn histogram(x: i32[N]): i32[16] { par N |i| reduce(h) { h[x[i]] += 1 } }
fn matmul(A: bf16[M, K], B: bf16[K, N]): f32[M, N] {
    seq K |k| reduce(C) { C[i, j] += A[i, k] * B[k, j] }
}
""",
)


def line(number: int) -> Span:
    """The span of a line of `TEXT`."""
    start = sum(len(text) + 1 for text in TEXT.text.split("\n")[: number - 1])
    return Span(TEXT, start, start + 1)


def saxpy(on: str = "cuda") -> Plan:
    """One element a thread; on a CPU, tiles of 4096 and lanes."""
    a, x, y = array("a", F32), array("x", F32, N), array("y", F32, N)
    z = array("z", F32, N, role="result")
    b, t, i = syms("b t i")

    def one(place: IntoExpr) -> Store:
        return Store(at(z, place), op("add", op("mul", at(a), at(x, place)), at(y, place)), span=line(2))

    if on == "cpu":
        start = expr(b) * 4096
        body: list[Stmt] = [count(i, minimum(N, start + 4096), one(i), lo=start, kind="simd", span=line(2))]
        made = kernel("saxpy_0", [core(b, (N + 4095) // 4096)], [a, x, y, z], body, sizes="N", span=line(2))
    else:
        place = Declare(i, I32, Index(expr(b) * 256 + t, I32), span=line(2))
        body = [place, If(below(i, N), (one(i),), span=line(2))]
        made = kernel("saxpy_0", [grid(b, (N + 255) // 256), block(t, 256)], [a, x, y, z], body, sizes="N", span=line(2))
    return plan("saxpy", [a, x, y, z], made, sizes="N", span=line(2))


def transpose() -> Plan:
    """Tiles of 16 by 16 through shared memory."""
    A, B = array("A", F32, M, N), array("B", F32, N, M, role="result")
    tile = Array(array("tile", F32, 16, 17, role="local"), Space.SHARED, "threads of one block touch each element")
    bi, bj, ti, tj = syms("bi bj ti tj")
    i, j = expr(bi) * 16 + ti, expr(bj) * 16 + tj
    i2, j2 = expr(bi) * 16 + tj, expr(bj) * 16 + ti
    wait = Barrier(Level.BLOCK, (Covered("RAW", "tile", line(4), line(5)),), span=line(4))
    body: list[Stmt] = [
        If(op("and", below(i, M), below(j, N)), (Store(at(tile.buffer, ti, tj), at(A, i, j), span=line(4)),), span=line(4)),
        wait,
        If(op("and", below(i2, M), below(j2, N)), (Store(at(B, j2, i2), at(tile.buffer, tj, ti), span=line(5)),), span=line(5)),
    ]
    axes = [grid(bj, (N + 15) // 16), grid(bi, (M + 15) // 16, "y"), block(tj, 16), block(ti, 16, "y")]
    made = kernel("transpose_0", axes, [A, B], body, sizes="M N", arrays=(tile,), span=line(3))
    return plan("transpose", [A, B], made, sizes="M N", span=line(3))


def rows(on: str = "cuda") -> Plan:
    """The sum of each row: a block's threads, then lanes by exchange, then warps through shared memory."""
    A, s = array("A", F32, M, N), array("s", F32, M, role="result")
    i, j, t, w, acc, total = syms("i j t w acc total")
    ref = Ref(acc, F32)
    start = Declare(acc, F32, Literal(0, F32), span=line(8))
    add = Assign(acc, op("add", ref, at(A, i, j)), span=line(8))
    if on == "cpu":
        loop = count(j, N, add, kind="simd", reductions=((acc, "add"),), span=line(8))
        made = kernel(
            "rows_0", [core(i, M)], [A, s], [start, loop, Store(at(s, i), ref, span=line(8))], sizes="M N", span=line(7)
        )
        return plan("rows", [A, s], made, sizes="M N", span=line(7))
    warps = Array(array("warps", F32, 4, role="local"), Space.SHARED)
    other = Sym("other")
    body: list[Stmt] = [start, For(j, expr(t), N, (add,), expr(128), span=line(8))]
    for mask in (16, 8, 4, 2, 1):
        moved = Sym(f"{other.name}'{mask}")
        body += [Exchange(moved, ref, mask, span=line(8)), Assign(acc, op("add", ref, Ref(moved, F32)), span=line(8))]
    first = op("eq", Index(expr(t) % 32, I32), Index(ZERO, I32))
    body += [
        If(first, (Store(at(warps.buffer, expr(t) // 32), ref, span=line(8)),), span=line(8)),
        Barrier(Level.BLOCK, (Covered("RAW", "partial sums", line(8), line(8)),), span=line(8)),
        Declare(total, F32, Literal(0.0, F32), span=line(8)),
        count(w, 4, Assign(total, op("add", Ref(total, F32), at(warps.buffer, w)), span=line(8)), kind="unroll", span=line(8)),
        If(op("eq", Index(expr(t), I32), Index(ZERO, I32)), (Store(at(s, i), Ref(total, F32), span=line(8)),), span=line(8)),
    ]
    made = kernel("rows_0", [grid(i, M), block(t, 128)], [A, s], body, sizes="M N", arrays=(warps,), span=line(7))
    return plan("rows", [A, s], made, sizes="M N", span=line(7))


def histogram(on: str = "cuda") -> Plan:
    """Atomic additions at places that data decide."""
    x, h = array("x", I32, N), array("h", I32, 16, role="inout")
    b, t, d, i = syms("b t d i")
    place = expr(i) if on == "cpu" else expr(b) * 64 + t
    target = Load(h, (expr(d),), ((d, at(x, place)),))
    add = Atomic(target, "add", Literal(1, I32), span=line(10))
    if on == "cpu":
        made = kernel("histogram_0", [core(i, N)], [x, h], [add], sizes="N", span=line(10))
    else:
        guarded = If(below(place, N), (add,), span=line(10))
        made = kernel("histogram_0", [grid(b, (N + 63) // 64), block(t, 64)], [x, h], [guarded], sizes="N", span=line(10))
    return plan("histogram", [x, h], made, sizes="N", span=line(10))


def matmul(dtype: DType, on: str = "cuda") -> Plan:
    """One element a thread; on a CPU, tiles of 4 by 16 in registers, for sizes that they divide."""
    A, B, C = array("A", dtype, M, K), array("B", dtype, K, N), array("C", F32, M, N, role="result")
    bi, bj, ti, tj, k, acc = syms("bi bj ti tj k acc")

    def product(i: Expr, j: Expr) -> Op:
        return op("mul", Cast(at(A, i, k), F32), Cast(at(B, k, j), F32))

    if on == "cuda":
        i, j = expr(bi) * 8 + ti, expr(bj) * 32 + tj
        step = Assign(acc, op("add", Ref(acc, F32), product(i, j)), span=line(12))
        whole = (
            Declare(acc, F32, Literal(0, F32), span=line(12)),
            count(k, K, step, span=line(12)),
            Store(at(C, i, j), Ref(acc, F32), span=line(12)),
        )
        body: list[Stmt] = [If(op("and", below(i, M), below(j, N)), whole, span=line(12))]
        axes = [grid(bj, (N + 31) // 32), grid(bi, (M + 7) // 8, "y"), block(tj, 32), block(ti, 8, "y")]
        made = kernel("matmul_0", axes, [A, B, C], body, sizes="M N K", span=line(11))
        return plan("matmul", [A, B, C], made, sizes="M N K", span=line(11))
    tile = Array(array("tile", F32, 4, 16, role="local"), Space.LOCAL, "one core touches it")
    kept = at(tile.buffer, ti, tj)
    i, j = expr(bi) * 4 + ti, expr(bj) * 16 + tj

    def each(*body: Stmt) -> For:
        return count(ti, 4, count(tj, 16, *body, kind="simd", span=line(12)), kind="unroll", span=line(12))

    body = [
        each(Store(kept, Literal(0, F32), span=line(12))),
        count(k, K, each(Store(kept, op("add", kept, product(i, j)), span=line(12))), span=line(12)),
        each(Store(at(C, i, j), kept, span=line(12))),
    ]
    made = kernel(
        "matmul_0", [core(bi, M // 4), core(bj, N // 16)], [A, B, C], body, sizes="M N K", arrays=(tile,), span=line(11)
    )
    needs = tuple(Compare("==", size % by, ZERO) for size, by in ((M, 4), (N, 16)))
    return plan("matmul", [A, B, C], made, sizes="M N K", requires=needs, span=line(11))


def heat() -> Plan:
    """Two sweeps a time step between a result and a workspace, under the host's loop."""
    A, now, next_ = array("A", F32, M, N), array("now", F32, M, N, role="result"), array("next", F32, M, N, role="local")
    i, j, t = syms("i j t")

    def kernel_of(name: str, source: Buffer, target: Buffer) -> Kernel:
        total = at(source, expr(i), expr(j) + 1)
        for di, dj in ((2, 1), (1, 0), (1, 2)):
            total = op("add", total, at(source, expr(i) + di, expr(j) + dj))
        put = Store(at(target, expr(i) + 1, expr(j) + 1), op("mul", Literal(0.25, F32), total))
        return kernel(name, [core(i, M - 2)], [source, target], [count(j, N - 2, put, kind="simd")], sizes="M N")

    def copy_of(name: str, target: Buffer) -> Kernel:
        return kernel(
            name, [core(i, M)], [A, target], [count(j, N, Store(at(target, i, j), at(A, i, j)), kind="simd")], sizes="M N"
        )

    steps = (Launch(kernel_of("heat_there", now, next_)), Launch(kernel_of("heat_back", next_, now)))
    loop = HostLoop(t, expr(Sym("T")), steps)
    wide = (Compare(">=", M, expr(2)), Compare(">=", N, expr(2)))
    return plan(
        "heat",
        [A, now],
        copy_of("copy_now", now),
        copy_of("copy_next", next_),
        loop,
        sizes="M N T",
        workspace=(next_,),
        requires=wide,
    )
