"""How far a result may be from the exact one: a program beside the program, which the interpreter runs in f64.

Each floating-point buffer has three shadows of its shape. `m`: the magnitude, a bound of Σ |terms| of what is in an element;
`g` and `n`: what roundings may have made of it. The error of an element is at most expm1(g + n) · m.

    y[i] = b[i]                      m = m(b)        g = g(b) + n(b)             n = 0
    seq K |k| reduce(y) {
        y[i] += A[i, k] * x[k]       m += m(A) m(x)  g = max(g, g(A) + g(x) + ε)  n += step
    }

`step` is what one term of a sum loses: one addition, or its share of a step of the instruction that does it. Subnormal factors
count as the least normal number, and 0 as 2^−126 (docs/theory/rounding.md, where this is proved). There is no shadow of what is
not built of sums, products, extrema, conversions, and choices that do not depend on floating-point data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import ceil, log1p, prod

import numpy as np

from texpr.affine.expr import Sym
from texpr.interp.dtypes import Array
from texpr.ir import program as ir
from texpr.ir.instr import Instr
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, walk
from texpr.ir.value.types import BF16, F8E4M3, F8E5M2, F8E8M0, F16, F32, F64, TF32, DType
from texpr.support.record import Mutable, field, replace

FRACTION = {F64: 52, F32: 23, TF32: 10, F16: 10, BF16: 7, F8E4M3: 3, F8E5M2: 2, F8E8M0: 0}
"""Mantissa bits of each floating type."""

LEAST = {F64: -1022, F32: -126, TF32: -126, F16: -14, BF16: -126, F8E4M3: -6, F8E5M2: -14, F8E8M0: -127}
"""The exponent of the least normal number of each."""

SHADOWS = ("m", "g", "n")

ZERO = 2.0**-126
"""What a factor 0 counts as."""

_SAME = ("max", "min")
_ZERO = Literal(0.0, F64)


class Unbounded(Exception):
    """What a program does of which no bound is known, as words."""


def unit(dtype: DType) -> float:
    """What one operation of the type loses, relatively: narrow types compute in f32, and round once more."""
    own = 2.0 ** -(FRACTION[dtype] + 1)
    return own if dtype in (F64, F32) else own + 2.0**-24


def shadow(
    function: ir.Function, sizes: Mapping[str, int], instrs: Sequence[Instr], terms: Mapping[str, int] | None = None
) -> ir.Function:
    """The program beside `function`, whose sums may be done by `instrs`. `terms`: by instruction, the most that it adds up
    before a part of a sum is added by itself. Raises Unbounded."""
    maker = _Maker(function, {Sym(name): value for name, value in sizes.items()}, instrs, terms or {})
    body = tuple(maker.block(function.body, ()))
    results = tuple(each for buffer in function.results for each in maker.of(buffer))
    params = tuple(each for buffer in function.params for each in maker.of(buffer))
    return replace(function, params=params, results=results, body=body, directives=(), schedules=(), instrs=())


def shadowed(function: ir.Function, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arguments of the program beside, from those of `function`."""
    found: dict[str, Array] = {}
    for buffer in function.params:
        array = arrays[buffer.name]
        if not buffer.dtype.is_float:
            found[buffer.name] = array
            continue
        size = np.abs(np.asarray(array).astype(np.float64))
        m, g, n = (f"{buffer.name}'{which}" for which in SHADOWS)
        found[m] = np.where(size == 0, ZERO, np.maximum(size, 2.0 ** LEAST[buffer.dtype]))
        found[g] = found[n] = np.zeros_like(found[m])
    return found


class _Maker(Mutable, eq=False):
    """Makes the statements of the program beside."""

    function: ir.Function
    sizes: Mapping[Sym, int]
    instrs: Sequence[Instr]
    terms: Mapping[str, int]
    made: dict[Buffer, tuple[Buffer, ...]] = field(default_factory=dict[Buffer, tuple[Buffer, ...]])

    def of(self, buffer: Buffer) -> tuple[Buffer, ...]:
        """The shadows of a buffer; itself if it has none."""
        if not buffer.dtype.is_float:
            return (buffer,)
        if buffer not in self.made:
            names = (f"{buffer.name}'{which}" for which in SHADOWS)
            self.made[buffer] = tuple(replace(buffer, name=name, dtype=F64, strides=None, align=None) for name in names)
        return self.made[buffer]

    def block(self, body: Sequence[ir.Stmt], around: tuple[ir.Loop, ...]) -> Iterator[ir.Stmt]:
        """The statements beside those of `body`, in these loops."""
        for stmt in body:
            match stmt:
                case ir.Par() | ir.Seq():
                    inside = tuple(self.block(stmt.body, (*around, stmt)))
                    reduce = tuple(each for buffer in stmt.reduce for each in self.of(buffer))
                    made = replace(stmt, body=inside, reduce=reduce, directives=())
                    yield replace(made, scan=()) if isinstance(made, ir.Seq) and made.scan else made
                case ir.If():
                    then, orelse = (tuple(self.block(each, around)) for each in (stmt.then, stmt.orelse))
                    yield replace(stmt, condition=_sure(stmt.condition), then=then, orelse=orelse)
                case ir.New():
                    yield from (replace(stmt, buffer=each) for each in self.of(stmt.buffer))
                case ir.Let() if stmt.value.dtype.is_float:
                    yield ir.Let(_named(stmt.sym, "m"), self.magnitude(stmt.value), stmt.span)
                    yield ir.Let(_named(stmt.sym, "g"), self.growth(stmt.value), stmt.span)
                case ir.Let():
                    yield replace(stmt, value=_sure(stmt.value))
                case ir.Anchor():
                    pass
                case ir.Instruction():
                    yield from self.block(stmt.body, around)
                case ir.Bind():
                    yield from self.bind(stmt, around)

    def bind(self, stmt: ir.Bind, around: tuple[ir.Loop, ...]) -> Iterator[ir.Stmt]:
        """The statements beside a bind."""
        if not any(target.dtype.is_float for target in stmt.targets):
            yield replace(stmt, values=tuple(map(_sure, stmt.values)))
            return
        match stmt:
            case ir.Bind((target,), (value,), None | str() as update):
                yield from self._bind(stmt, target, value, update, around)
            case _:
                raise Unbounded("several targets of one bind, or a combiner,")

    def _bind(
        self, stmt: ir.Bind, target: Load, value: Value, update: str | None, around: tuple[ir.Loop, ...]
    ) -> Iterator[ir.Stmt]:
        m, g, n = (replace(target, buffer=each) for each in self.of(target.buffer))
        size, more = self.magnitude(value), self.growth(value)
        if update is None:
            made = ((m, size, None), (g, more, None), (n, _ZERO, None))
        elif update in _SAME:
            made = ((m, size, "max"), (g, more, "max"))
        elif update in ("add", "sub"):
            least = Literal(2.0 ** LEAST[target.dtype], F64)
            step = Literal(self.step(target, around), F64)
            made = ((m, _op("add", size, least), "add"), (g, more, "max"), (n, step, "add"))
        else:
            raise Unbounded(f"the update `{update}`")
        yield from (ir.Bind((to,), (what,), how, stmt.span) for to, what, how in made)

    def step(self, target: Load, around: tuple[ir.Loop, ...]) -> float:
        """What one term of a sum loses at most, however it is summed up."""
        extents = [loop.extent.substitute(self.sizes) for loop in around if target.buffer in loop.reduce]
        lost = log1p(unit(target.dtype))
        for instr in self.instrs:
            rounds = instr.rounding
            if rounds is None:
                raise Unbounded(f"`{instr.name}`, of which nothing is known,")
            kinds = (target.dtype, F32) if target.dtype.bits < F32.bits else (target.dtype,)  # a narrow sum may be kept in f32
            if not any(operand.is_written and operand.dtype in kinds for operand in instr.operands):
                continue
            counts = [max(e.constant, 1) if e.is_constant else 1 for e in extents]
            fill = max((_filled(count, rounds.products) for count in counts), default=1.0)
            if instr.name in self.terms:
                fill = min(fill, (ceil(self.terms[instr.name] / rounds.products) + 1) / prod(counts))
            lost = max(lost, log1p(unit(target.dtype)) + fill * log1p(rounds.step))
        return lost

    def magnitude(self, value: Value) -> Value:
        """The magnitude of a value."""
        match value:
            case Load() if value.dtype.is_float:
                return replace(value, buffer=self.of(value.buffer)[0])
            case Ref() if value.dtype.is_float:
                return Ref(_named(value.sym, "m"), F64)
            case Literal():
                size, least = abs(float(value.value)), 2.0 ** LEAST.get(value.dtype, -126)
                return Literal(max(size, least) if size else ZERO, F64)
            case Cast(arg) if arg.dtype.is_float and value.dtype.is_float:
                return self._least(self.magnitude(arg), value.dtype, FRACTION[value.dtype] < FRACTION[arg.dtype])
            case Cast() | Index() | Load() | Ref():
                return _op("max", _op("abs", Cast(_sure(value), F64)), Literal(ZERO, F64))
            case Op("add" | "sub", (a, b)):
                return _op("add", self.magnitude(a), self.magnitude(b))
            case Op("mul", (a, b)):
                return self._least(_op("mul", self.magnitude(a), self.magnitude(b)), value.dtype)
            case Op("fma", (a, b, c)):
                product = _op("mul", self.magnitude(a), self.magnitude(b))
                return self._least(_op("add", product, self.magnitude(c)), value.dtype)
            case Op("max" | "min", (a, b)):
                return _op("max", self.magnitude(a), self.magnitude(b))
            case Op("neg" | "abs", (a,)):
                return self.magnitude(a)
            case Op("select", (test, a, b)):
                return _op("select", _sure(test), self.magnitude(a), self.magnitude(b))
            case Op(name):
                raise Unbounded(f"`{name}`")

    def growth(self, value: Value) -> Value:
        """What roundings may have made of a value."""
        match value:
            case Load() if value.dtype.is_float:
                _, g, n = (replace(value, buffer=each) for each in self.of(value.buffer))
                return _op("add", g, n)
            case Ref() if value.dtype.is_float:
                return Ref(_named(value.sym, "g"), F64)
            case Cast(arg) if arg.dtype.is_float and value.dtype.is_float:
                return self._lost(self.growth(arg), value.dtype, FRACTION[value.dtype] < FRACTION[arg.dtype])
            case Literal() | Cast() | Index() | Load() | Ref():
                return _ZERO
            case Op("add" | "sub", (a, b)):
                return self._lost(_op("max", self.growth(a), self.growth(b)), value.dtype)
            case Op("mul", (a, b)):
                return self._lost(_op("add", self.growth(a), self.growth(b)), value.dtype)
            case Op("fma", (a, b, c)):
                product = _op("add", self.growth(a), self.growth(b))
                return self._lost(_op("max", product, self.growth(c)), value.dtype)
            case Op("max" | "min", (a, b)):
                return _op("max", self.growth(a), self.growth(b))
            case Op("neg" | "abs", (a,)):
                return self.growth(a)
            case Op("select", (test, a, b)):
                return _op("select", _sure(test), self.growth(a), self.growth(b))
            case Op(name):
                raise Unbounded(f"`{name}`")

    def _least(self, value: Value, dtype: DType, is_rounded: bool = True) -> Value:
        return _op("add", value, Literal(2.0 ** LEAST[dtype], F64)) if is_rounded else value

    def _lost(self, value: Value, dtype: DType, is_rounded: bool = True) -> Value:
        return _op("add", value, Literal(log1p(unit(dtype)), F64)) if is_rounded else value


def _filled(extent: int, products: int) -> float:
    """Steps of `products` products, for each of `extent` products, the first and the last step perhaps of fewer."""
    return min(1.0, (ceil(max(extent, 1) / products) + 1) / max(extent, 1))


def _op(name: str, *args: Value) -> Op:
    return Op(name, args, F64)


def _named(sym: Sym, which: str) -> Sym:
    return Sym(f"{sym.name}'{which}")


def _sure(value: Value) -> Value:
    """A value that does not depend on floating-point data, which a program beside has not."""
    for node in walk(value):
        if node.dtype.is_float and isinstance(node, Load | Ref):
            raise Unbounded("a choice, or an integer, by floating-point data")
    return value
