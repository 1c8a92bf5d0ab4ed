"""Unguarded holes: proved to change nothing, as the values that they read are fills.

    seq 32 |ki| { if ki + 32 * ko < K { acc += As[ti, ki] * Bs[ki, tj] } }        As, Bs filled with zero
    seq 32 |ki| {                       acc += As[ti, ki] * Bs[ki, tj] }          acc += 0 · 0 in holes

Where a dropped comparison fails, each load must be of a staged buffer, at an element that its copy fills, and the value
computed from fills must be neutral for the update ("The neutral fill", docs/theory/correctness.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.domain.correctness.holes import same_fill
from texpr.ir import program as ir
from texpr.ir.program.rewrite import substitute_value
from texpr.ir.program.updates import SUMS, neutral
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value, walk
from texpr.ir.value.types import DType
from texpr.presburger.formula import TRUE, Formula, Ge, conj, disj, negate
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine, without_products
from texpr.presburger.points import Points
from texpr.relation.conditions import condition
from texpr.schedule.holes.fills import can_fill, required
from texpr.schedule.state import State
from texpr.support.record import Record

EXACT = (0, 1, math.inf, -math.inf)
"""Numbers with which arithmetic is exact in every type."""


_HELP = "let the split of that loop divide: then no hole lies inside of a box"


class Filling(Record):
    """A staged buffer's copy: its `target`, the `source`, the test of an element, the loops around it, and the fill."""

    target: Load
    source: Load
    test: Value | None
    around: tuple[ir.Loop, ...]
    fill: float


def is_freed(stmt: ir.Stmt, path: Iterable[ir.Loop]) -> bool:
    """Whether a `reduce` frees the inner arithmetic of a sum, and with it the sign of one that is 0."""
    buffers = {target.buffer for target in stmt.targets} if isinstance(stmt, ir.Bind) else set[Buffer]()
    return any(not loop.ieee and not buffers.isdisjoint(loop.reduce) for loop in path)


class Matters(Exception):
    """A hole would or may change a result; the text is the reason, `help` a remedy."""

    def __init__(self, reason: str, help: str | None = None):
        super().__init__(reason)
        self.help = help


def fillings(state: State) -> dict[str, Filling]:
    """The copies that fill, by the buffer's name."""
    fills = {staged.name: staged.fill for staged in state.staged if staged.fill is not None}

    def visit(body: Iterable[ir.Stmt], around: tuple[ir.Loop, ...]) -> Iterator[Filling]:
        for stmt in body:
            bind = stmt.then[0] if isinstance(stmt, ir.If) and len(stmt.then) == 1 else stmt
            if isinstance(bind, ir.Bind) and (fill := fills.get(bind.targets[0].buffer.name)) is not None:
                assert isinstance(bind.values[0], Load)
                yield Filling(
                    bind.targets[0], bind.values[0], stmt.condition if isinstance(stmt, ir.If) else None, around, fill
                )
                continue
            deeper = (*around, stmt) if isinstance(stmt, ir.Par | ir.Seq) else around
            for block in ir.blocks(stmt):
                yield from visit(block, deeper)

    return {each.target.buffer.name: each for each in visit(state.function.body, ())}


class Holes(Record):
    """The iterations of a statement that a comparison excludes: `formula`. `indices`: IterDomains over the actual loops.

    `ends`: for each unguarded loop the upper bound of the guarded index.
    """

    state: State
    formula: Formula
    indices: Mapping[Sym, Expr]
    ends: Mapping[Sym, Expr]

    def require_neutral(
        self, stmt: ir.Stmt, copies: Mapping[str, Filling], outer: Mapping[str, Formula], unsigned: bool = False
    ) -> None:
        """Raises Matters where `stmt` may change a result there. `outer`: the condition under which a copy's iteration is no
        hole, by buffer. `unsigned`: whether the sign of a sum that is 0 is free."""
        if not isinstance(stmt, ir.Bind) or not isinstance(stmt.update, str) or len(stmt.targets) != 1:
            reason = "a hole would be computed by a statement that is no update, such as `acc += …`"
            raise Matters(reason, "unguard a loop inside of which there are updates alone")
        (target,), (value,) = stmt.targets, stmt.values
        self._require_inside(target)
        for load in (part for part in walk(value) if isinstance(part, Load)):
            copy = copies.get(load.buffer.name)
            if copy is None:
                raise Matters(f"`{load.buffer.name}` is read in holes, where nothing fills it", self._fill_for(stmt, load))
            self._require_inside(load)
            self.require_filled(load, copy, outer[load.buffer.name])
        needed = neutral(stmt.update, target.dtype)
        found = _at_holes(value, {name: copy.fill for name, copy in copies.items()})
        if needed is None or found is None or not same_fill(found, needed):
            told = "is not seen to be neutral" if found is None else f"is {found}, and {needed} would change nothing"
            raise Matters(f"what holes hold makes a value that {told}", "fill what is read with the neutral value")
        if (
            stmt.update == "add"
            and target.dtype.is_float
            and not unsigned
            and not _is_never_minus_zero(self.state, target.buffer)
        ):
            raise Matters(f"`{target.buffer.name}` may hold −0, and −0 + 0 is 0", "begin the sum at 0.0")

    def require_inside(self, stmt: ir.Stmt) -> None:
        """Raises Matters where `stmt` may touch what lies outside of its memory there."""
        for target in stmt.targets if isinstance(stmt, ir.Bind) else ():
            self._require_inside(target)
        for value in ir.values(stmt):
            for load, where in self._read(value):
                self._require_inside(load, where)

    def are_inside(self, binds: Iterable[ir.Stmt]) -> bool:
        """Whether no statement touches what lies outside of its memory there."""
        try:
            for stmt in binds:
                self.require_inside(stmt)
        except Matters:
            return False
        return True

    def _fill_for(self, stmt: ir.Stmt, load: Load) -> str:
        """The fill that a buffer should be staged with."""
        value, name = required(stmt, load), load.buffer.name
        told = "zero" if value is None or value == 0 else str(value)
        via = next((staged.via for staged in self.state.staged if staged.name == name), None)
        able = value is None or via is None or can_fill(via, value)
        return f"stage `{name}` with `fill={told}`" + ("" if able else " and `via=ld`: the engine fills with zero or nan")

    def _read(self, value: Value, where: Formula = TRUE) -> Iterator[tuple[Load, Formula]]:
        """What a value reads, and where: of a `select` one arm."""
        match value:
            case Op("select", (test, *arms)):
                yield from self._read(test, where)
                for arm, holds in zip(arms, (True, False), strict=True):
                    tested = condition(substitute_value(test, self.indices), holds=holds)
                    yield from self._read(arm, conj((where, tested.formula)))
            case Load():
                yield value, where
            case Op(_, args):
                for arg in args:
                    yield from self._read(arg, where)
            case Cast(arg):
                yield from self._read(arg, where)
            case _:
                pass

    def _require_inside(self, load: Load, where: Formula = TRUE) -> None:
        index = self._index(load)
        outside = [negate(Ge(e)) for at, size in zip(index, load.buffer.shape, strict=True) for e in (at, size - 1 - at)]
        if load.data or not self._never(conj((where, disj(outside)))):
            raise Matters(f"a hole may lie outside of `{load.buffer.name}`")

    def require_filled(self, load: Load, copy: Filling, outer: Formula) -> None:
        """Requires that the element read is one that the copy fills."""
        at = {sym: i for e, i in zip(copy.target.index, load.index, strict=True) if (sym := e.as_sym) is not None}
        parts = [outer]
        if copy.test is not None:
            tested = substitute_value(substitute_value(copy.test, at), self.indices)
            meant = condition(tested)
            parts.append(meant.formula)
        if not self._never(conj(parts)):
            reason = f"in a hole `{load.buffer.name}` may hold an element of the tensor, and not its fill"
            if told := " and ".join(self._dims(load, copy)):
                raise Matters(f"{reason}: {told}", _HELP)
            ends = " or ".join(f"{sym} < {end}" for sym, end in sorted(self.ends.items(), key=str))
            raise Matters(
                f"{reason}, as it is copied where {ends} fails", "stage it with `fill=`, so that its copy tests that, too"
            )

    def _dims(self, load: Load, copy: Filling) -> Iterator[str]:
        """The dimensions of the tensor along which a box is read in holes, with size S, box B, element stride e (Theorem 6)."""
        own = {sym: i for e, i in zip(copy.target.index, self._index(load), strict=True) if (sym := e.as_sym) is not None}
        extents = {e.as_sym: size for e, size in zip(copy.target.index, copy.target.buffer.shape, strict=True)}
        for dim, (e, size) in enumerate(zip(copy.source.index, copy.source.buffer.shape, strict=True)):
            for sym in (sym for sym in own if sym in e.syms()):
                step = e.substitute({sym: expr(sym) + 1}) - e
                for each in sorted(own[sym].syms() & self.ends.keys(), key=str):
                    box = self.ends[each] if self.ends[each].is_constant else extents[sym] * step
                    step = step * (own[sym].substitute({each: expr(each) + 1}) - own[sym])  # the reader's stride
                    yield f"dimension {dim}, of size S = {size}, box B = {box}, element stride e = {step}"

    def _index(self, load: Load) -> tuple[Expr, ...]:
        return tuple(e.substitute(self.indices) for e in load.index)

    def _never(self, formula: Formula) -> bool:
        """Whether `formula` holds in none of these iterations."""
        both = without_products(conj((self.formula, formula)))
        try:
            return Points(both, sorted(self.state.function.sizes, key=str)).is_empty()
        except (NotAffine, Undecided):
            return False


def _is_never_minus_zero(state: State, buffer: Buffer) -> bool:
    """Whether no element is ever −0: only other constants are bound to the buffer, and to those that are copied to it, and all
    updates of these are sums. A sum of two numbers is −0 only where the first one is."""
    binds = [s for s in ir.walk(state.function.body) if isinstance(s, ir.Bind)]
    found, left = {buffer}, [buffer]
    while left:
        each = left.pop()
        if each.role not in ("local", "result"):
            return False
        for bind in binds:
            for target, value in zip(bind.targets, bind.values, strict=True):
                if target.buffer is not each:
                    continue
                if bind.update is not None:
                    if bind.update not in SUMS:
                        return False
                elif isinstance(value, Load):
                    left += {value.buffer} - found
                    found.add(value.buffer)
                elif not isinstance(value, Literal) or same_fill(value.value, -0.0):
                    return False
    return True


def _at_holes(value: Value, fills: Mapping[str, float]) -> float | None:
    """The value with every load replaced by its fill, if it is known."""
    match value:
        case Literal():
            return value.value
        case Load():
            return fills.get(value.buffer.name)
        case Cast():
            inner = _at_holes(value.arg, fills)
            return inner if inner in (0, 1) else None
        case Op(name, args):
            known = [_at_holes(each, fills) for each in args]
            numbers = [n for n, each in zip(known, args, strict=True) if n is not None and _is_exact(n, each.dtype)]
            return _applied(name, numbers, value.dtype) if len(numbers) == len(known) else None
        case _:
            return None


def _is_exact(number: float, dtype: DType) -> bool:
    """Whether arithmetic with a number is exact in a type."""
    return number in EXACT or (dtype.is_integer and dtype.limits[0] <= number <= dtype.limits[1])


def _applied(name: str, args: Sequence[float], dtype: DType) -> float | None:
    match name, args:
        case "mul", [a, b]:
            return a * b
        case "add", [a, b]:
            return a + b
        case "sub", [a, b]:
            return a - b
        case "fma", [a, b, c]:
            return a * b + c
        case "max", [a, b]:
            return max(a, b)
        case "min", [a, b]:
            return min(a, b)
        case "div", [a, b] if dtype.is_integer and b > 0:
            return a // b
        case "mod", [a, b] if dtype.is_integer and b > 0:
            return a % b
        case _:
            return None
