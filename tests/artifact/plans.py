"""Small plans built by hand, one for each thing a launcher does."""

from __future__ import annotations

from texpr.affine.expr import Expr, Sym, expr, sym
from texpr.ir.kernel import Axis, For, HostIf, HostLoop, HostStep, If, Kernel, Launch, Level, Plan, Store
from texpr.ir.program import Assume, Compare, Injective, InRange
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.ir.value.types import BOOL, F32, I32
from texpr.support.record import replace

N = Sym("n")
BLOCK = 256


def one(name: str, n: Expr, target: Buffer, value: Value, read: tuple[Buffer, ...], **more: object) -> Kernel:
    """A kernel that stores `value`, which may mention `block * BLOCK + thread`, into a vector of n elements."""
    block, thread = Sym("block"), Sym("thread")
    at = element()
    condition = Op("lt", (Index(at, I32), Index(n, I32)), BOOL)
    base = more.get("base")
    assert base is None or isinstance(base, Sym)
    scalars = tuple(b for b in read if b.rank == 0)
    buffers = tuple(dict.fromkeys((*(b for b in read if b.rank), target)))
    return Kernel(
        name,
        (Axis(block, Level.GRID, (n + (BLOCK - 1)) // BLOCK, base=base), Axis(thread, Level.BLOCK, expr(BLOCK))),
        buffers,
        scalars,
        tuple(sorted(n.syms(), key=str)) + (() if base is None else (base,)),
        (),
        (If(condition, (Store(Load(target, (at,)), value),)),),
        frozenset({target.name}),
    )


def element() -> Expr:
    """The element that a thread of `one` writes."""
    return sym("block") * BLOCK + sym("thread")


def plan(
    name: str, params: tuple[Buffer, ...], results: tuple[Buffer, ...], steps: tuple[HostStep, ...], **more: object
) -> Plan:
    """A plan with the size n."""
    parts: dict[str, object] = {"sizes": (N,), "fixed": (), "workspace": (), "requires": (), "assumes": (), **more}
    return Plan(name=name, params=params, results=results, steps=steps, **parts)  # pyright: ignore[reportArgumentType]


def saxpy(base: Sym | None = None, factor: int = 1) -> Plan:
    """z = a x + y, with `factor` to tell variants apart."""
    n = sym("n") * factor if factor != 1 else sym("n")
    a = Buffer("a", F32, (), "input")
    x, y = (Buffer(name, F32, (n,), "input") for name in "xy")
    z = Buffer("z", F32, (n,), "result")
    at = (element(),)
    value = Op("add", (Op("mul", (Load(a, ()), Load(x, at)), F32), Load(y, at)), F32)
    return plan("saxpy", (a, x, y), (z,), (Launch(one("saxpy_0", n, z, value, (a, x, y), base=base)),))


def sweep() -> Plan:
    """T times: w = u + u, and where n > 1 also u = w + w. `w` is workspace; another of odd size lies before it."""
    u = Buffer("u", F32, (sym("n"),), "inout")
    odd, w = Buffer("odd", F32, (sym("n") + 1,), "local"), Buffer("w", F32, (sym("n"),), "local")
    at = (element(),)
    there = one("sweep_0", sym("n"), w, Op("add", (Load(u, at), Load(u, at)), F32), (u,))
    back = one("sweep_1", sym("n"), u, Op("add", (Load(w, at), Load(w, at)), F32), (w,))
    steps = HostLoop(Sym("t"), sym("T"), (Launch(there), HostIf((Compare(">", sym("n"), expr(1)),), (Launch(back),))))
    requires = (Compare("==", sym("n") % 4, expr(0)),)
    return plan("sweep", (u,), (u,), (steps,), sizes=(N, Sym("T")), workspace=(odd, w), requires=requires)


def gather() -> Plan:
    """z[i] = x[i], with promises about the indices `at`, whose stride the caller gives."""
    index = Buffer("at", I32, (sym("n"),), "input", strides=(sym("step"),))
    z = Buffer("z", F32, (sym("n"),), "result", align=16)
    x = Buffer("x", F32, (sym("n"),), "input")
    assumes: tuple[Assume, ...] = (InRange(index, expr(0), sym("n")), Injective(index))
    kernel = one("gather_0", sym("n"), z, Load(x, (element(),)), (x,))
    return plan("gather", (x, index), (z,), (Launch(kernel),), sizes=(N, Sym("step")), assumes=assumes)


def named(*names: str) -> Plan:
    """A copy whose arguments have these names, which mean something in C, C++ or Rust, or to a launcher."""
    fn, n, x, z, size = names
    source, target = Buffer(x, F32, (sym(n), sym(size)), "input"), Buffer(z, F32, (sym(n), sym(size)), "result")
    kernel = one(f"{fn}_0", sym(n), Buffer("unused", F32, (sym(n),), "local"), Load(source, (element(), expr(0))), (source,))
    kernel = replace(
        kernel,
        buffers=(source, target),
        sizes=(Sym(n), Sym(size)),
        written=frozenset({z}),
        body=(If(Op("lt", (Index(element(), I32), Index(sym(n), I32)), BOOL), (_copy(source, target, sym(size)),)),),
    )
    return plan(fn, (source,), (target,), (Launch(kernel),), sizes=(Sym(n), Sym(size)))


def _copy(source: Buffer, target: Buffer, size: Expr) -> For:
    at = (element(), sym("j"))
    return For(Sym("j"), expr(0), size, (Store(Load(target, at), Load(source, at)),), expr(1))
