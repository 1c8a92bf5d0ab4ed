"""Overflow: no integer that the code of a plan computes leaves its width; each node of each expression tree has a proof.

Of a tree only the operations, operands and widths are trusted, not its ranges. A node fits by one of these arguments, in this
order:

1. intervals, from the ranges of sizes, coordinates, loop indices and data, and from tests;
2. for the offset of an element: the element is in bounds (an obligation of its own), and the launcher checked the array's
bytes,
   an extent of 0 counted as 1; so each partial sum of the offset is at most that, less the remaining terms;
3. a polynomial of sizes as its upper bound, which is at most one that the launcher checked;
4. the solver finds no point at which it is too large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from math import inf
from operator import add, mul
from typing import TypeAlias

from texpr.affine.expr import Expr, FloorDiv, Min, Sym, Xor, combination, expr, maximum, minimum, term
from texpr.affine.typed import Typed, joined
from texpr.ir.kernel import HostStep, Plan, kernels
from texpr.ir.kernel.arithmetic import Around, Computed, Datum, Named, Test, Turn, computed
from texpr.ir.kernel.knowledge import promised
from texpr.ir.program import Compare
from texpr.ir.proof import Obligation, Verdict
from texpr.ir.value import Index, Op, Value, conjuncts
from texpr.ir.value.types import Kind
from texpr.presburger.formula import Formula, Ge, compare, conj, disj
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.linear import NotAffine
from texpr.presburger.questions import witness
from texpr.proof.plan import spans
from texpr.proof.plan.spans import Ends, Spans
from texpr.proof.read.conditions import test
from texpr.support.limits import LARGEST_INT, LARGEST_SIZE, LAST_BLOCK, MOST_BYTES, Width
from texpr.support.record import Record

_OPERATIONS = {"+": spans.plus, "-": spans.minus, "*": spans.times, "/": spans.divided, "%": spans.remainder}
_FUNCTIONS = {"floordiv": spans.divided, "mod": spans.remainder, "min": spans.least, "max": spans.greatest}

Polynomial: TypeAlias = tuple[Expr, int]
"""An expression of sizes with a constant upper bound that launchers check."""


def overflows(plan: Plan) -> tuple[Obligation, ...]:
    """An obligation for each kind of integer of a kernel, or of the host."""
    places, groups = _Places(plan), dict[tuple[str, str], list[Computed]]()
    for each in computed(plan):
        groups.setdefault((each.kernel, each.what), []).append(each)
    return tuple([_obligation(kernel, group, places) for (kernel, _), group in groups.items()])


def _obligation(kernel: str, group: list[Computed], places: _Places) -> Obligation:
    ways, count = set[str](), 0
    about = group[0].what
    for each in group:
        here = places.at(each)
        for node in each.tree.nodes():
            count += 1
            try:
                ways.add(here.shown(node, *_limits(each, node)))
            except _Open as why:
                return Obligation(kernel, "no overflow", about, why.verdict, str(why), each.span)
    how = f"{count} integers, by {', '.join(sorted(ways))}"
    return Obligation(kernel, "no overflow", about, Verdict.PROVED, how, group[0].span)


_ANY = expr(MOST_BYTES)
"""An upper bound of all offsets in an array."""


class _Open(Exception):
    """A node that may not fit."""

    def __init__(self, message: str, verdict: Verdict):
        super().__init__(message)
        self.verdict = verdict


class _Places:
    """The knowledge at each program point, computed once for equal contexts."""

    def __init__(self, plan: Plan):
        self.plan = plan
        self.numbers = dict(_numbers(plan.steps))
        self.ranges = promised(plan)
        self.found: dict[tuple[tuple[Around, ...], bool], _Known] = {}

    def at(self, computed: Computed) -> _Here:
        """The knowledge where an integer is computed."""
        return _Here(self._known(computed.around, computed.checked), _targets(computed))

    def _known(self, around: tuple[Around, ...], checked: bool) -> _Known:
        key = around, checked
        if key not in self.found:
            self.found[key] = self._inside(around, checked) if around else self._begin(checked)
        return self.found[key]

    def _begin(self, checked: bool) -> _Known:
        """The knowledge without a context."""
        plan, spans = self.plan, Spans()
        for number, most in self.numbers.items():
            spans.learn(number, (0, most), (expr(most), 1))
        for size in plan.sizes:
            spans.learn(size, (0, LARGEST_SIZE), (expr(size), 1))
        bounds = tuple((bound.left, bound.right.constant) for bound in plan.bounds)
        given = tuple(Ge(most - bound) for bound, most in bounds if bound.is_linear)
        if not checked:
            return _Known(spans, bounds, given)
        spans.narrow(fact for require in plan.requires for fact in _facts(require))
        given += tuple(compare(c.op, c.left, c.right) for c in plan.requires)
        for bound, most in (bounds := (*bounds, *_spans(plan))):
            _learn_quotient(spans, bound, most)
        return _Known(spans, bounds, given)

    def _inside(self, around: tuple[Around, ...], checked: bool) -> _Known:
        """The knowledge with the innermost part of the context."""
        outer, each = self._known(around[:-1], checked), around[-1]
        spans, given, bounds = outer.spans.copy(), list(outer.given), list(outer.bounds)
        _enter(each, spans, given, bounds)
        if isinstance(each, Datum):
            self._promised(each, spans, given)
        return _Known(spans, tuple(bounds), tuple(given))

    def _promised(self, datum: Datum, spans: Spans, given: list[Formula]) -> None:
        """The assumed range of the elements of an array that is never written, or that only holds such elements."""
        if datum.source is not None and (promise := self.ranges.get(datum.source)) is not None:
            lo, hi = promise
            spans.narrow([expr(datum.sym) - lo, hi - 1 - datum.sym])
            given += [Ge(expr(datum.sym) - lo), Ge(hi - 1 - datum.sym)]
            spans.learn(datum.sym, spans.ends[datum.sym], spans.top_of(hi - 1))


class _Known(Record, eq=False, dict=True):
    """Intervals, polynomials and formulas that hold at a program point."""

    spans: Spans
    bounds: tuple[Polynomial, ...]
    given: tuple[Formula, ...]

    @cached_property
    def premises(self) -> Formula:
        """The intervals, as a formula."""
        return conj([fact for sym, ends in self.spans.ends.items() if isinstance(sym, Sym) for fact in _between(sym, ends)])

    @cached_property
    def coarse(self) -> Spans:
        """Intervals and polynomials with fewer terms."""
        return self.spans.coarse()


class _Here(Record, eq=False):
    """A program point; for the offset of an element, also expressions that are non-negative, with their upper bound."""

    known: _Known
    targets: tuple[tuple[Expr, Expr], ...]

    def shown(self, node: Typed, lowest: int | float, highest: int) -> str:
        """The argument by which a node is between two numbers. Raises `_Open`."""
        self._meaning(node)
        if node.op in ("/", "%", "^"):
            self._operands(node)
        ends = self._ends(node)
        if lowest <= ends[0] and ends[1] <= highest:
            return "ranges"
        of = self.known.spans.ends_of
        for target, count in self.targets:
            if _is_part(node.value, target):
                rest, top = of(target - node.value), min(of(count)[1], MOST_BYTES)
                ends = spans.meet(ends, (0 - rest[1], top - rest[0]))
        if lowest <= ends[0] and ends[1] <= highest:
            return "elements in bounds"
        ends = spans.meet(ends, (-inf, self._part(node.value)))
        for way in (self.known.spans, self.known.coarse):
            low, high = way.above(-node.value), way.above(node.value)
            if node.op == "product":
                high = _product([way.above(arg.value) for arg in node.args])
            ends = spans.meet(spans.meet(ends, (-self._most(low), self._most(high))), self._apart(node.value, way))
            if lowest <= ends[0] and ends[1] <= highest:
                return "bounds on sizes"
        if self._signs(node.value):
            return self.shown(node, lowest, highest)
        told = f"{node.value} fits {highest.bit_length()} bits"
        under = [] if isinstance(lowest, float) else [Ge(lowest - 1 - node.value)]
        self._none(disj((Ge(node.value - highest - 1), *under)), told)
        return "the solver"

    def _apart(self, value: Expr, way: Spans) -> Ends:
        """The products of a sum by bounds on sizes, and its other terms, which are small, by intervals."""
        products = combination(0, ((monomial, c) for monomial, c in value.terms if len(monomial) > 1))
        least, most = way.ends_of(value - products)
        return least - self._most(way.above(-products)), most + self._most(way.above(products))

    def _signs(self, value: Expr) -> bool:
        """Whether the solver proves that a minimum in a product is never negative, if no interval did."""
        new = False
        for atom in dict.fromkeys(atom for monomial, _ in value.terms if len(monomial) > 1 for atom in monomial):
            if isinstance(atom, Min) and self.known.spans.ends_of(term((atom,)))[0] < 0:
                try:
                    below = witness((*self.known.given, disj([Ge(-1 - arg) for arg in atom.args])), self.known.premises)
                except (Undecided, NotAffine, ValueError, LookupError):
                    continue
                if below is None:
                    self.known.spans.learn(atom, (0, self.known.spans.ends_of(term((atom,)))[1]))
                    new = True
        return new

    def _part(self, value: Expr) -> int | float:
        """A bound of an expression by one that launchers check for it, or for a multiple."""
        found = [most // times for bound, most in self.known.bounds if (times := _multiple(bound, value)) is not None]
        return min(found, default=inf)

    def _most(self, top: Expr | None) -> int | float:
        """The least checked upper bound of a polynomial of sizes, infinite if there is none."""
        if top is None:
            return inf
        found = [most for bound, most in self.known.bounds if spans.keeps_to(top, bound, most)]
        return min([*found, top.constant] if top.is_constant else found, default=inf)

    def _ends(self, node: Typed) -> Ends:
        """The interval of a node, by its printed expression and by its value."""
        own = self.known.spans.ends_of(node.value)
        args = [self.known.spans.ends_of(arg.value) for arg in node.args]
        match node.op:
            case "+" | "-" | "*" | "/" | "%":
                return spans.meet(own, _OPERATIONS[node.op](*args))
            case "floordiv" | "mod" | "min" | "max":
                return spans.meet(own, _FUNCTIONS[node.op](*args))
            case _:
                return own

    def _meaning(self, node: Typed) -> None:
        """The node's value is the result of its operation on the values of its operands."""
        if not _is_meant(node):
            raise _Open(f"{node.value} is not computed by `{node.op}`", Verdict.REFUSED)

    def _operands(self, node: Typed) -> None:
        """C's `/` and `%` have a non-negative dividend and a positive divisor; `^` only changes the bits that it should."""
        left, right = (arg.value for arg in node.args)
        (low, _), (least, most) = (self.known.spans.ends_of(arg) for arg in (left, right))
        if node.op == "^":
            atom = node.value.as_atom
            size = 1 << atom.bits if isinstance(atom, Xor) else 0
            if not (least >= 0 and most < size) and node.args[1].op != "&":
                self._none(disj((Ge(-1 - right), Ge(right - size))), f"0 <= {right} < {size}")
        elif low < 0 or least < 1:
            self._none(disj((Ge(-1 - left), Ge(-right))), f"{left} >= 0 and {right} > 0")

    def _none(self, question: Formula, told: str) -> None:
        """The solver proves that `question` holds at no point."""
        try:
            point = witness((*self.known.given, question), self.known.premises)
        except (Undecided, NotAffine, ValueError, LookupError) as why:
            raise _Open(f"not shown that {told}: {why}", Verdict.UNDECIDED) from None
        if point is not None:
            values = ", ".join(f"{sym.name} = {value}" for sym, value in point.items() if not sym.name.startswith("⟪"))
            raise _Open(f"not {told} at {values}", Verdict.REFUSED)


def _limits(each: Computed, node: Typed) -> tuple[int | float, int]:
    """The valid range of a node: that of its width; of a whole tree also that of its value's type, or of an `int` argument. The
    trip count of a host loop is no `int`, but is compared with its variable."""
    lowest, highest = -(1 << node.width.value), node.width.most
    if node is each.tree and each.most is not None:
        least = -(1 << Width.INT.value) if each.most <= LARGEST_INT and not each.turns else lowest
        lowest, highest = max(lowest, least if each.least is None else each.least), min(highest, each.most)
    return -inf if node.op == "product" else lowest, highest  # its factors are extents, all greater than 0


def _is_part(value: Expr, target: Expr) -> bool:
    """Whether each term of a sum occurs in the target, with the same sign; only then does the rest of the target bound it."""
    whole = dict(target.terms)
    return all(coefficient * whole.get(monomial, 0) > 0 for monomial, coefficient in value.terms)


def _multiple(bound: Expr, value: Expr) -> int | None:
    """The c ≥ 1 for which `bound` is c · value, if there is one."""
    if not value.terms or not bound.terms:
        return None
    times = bound.terms[0][1] // value.terms[0][1]
    return times if times >= 1 and bound is value * times else None


def _product(factors: list[Expr | None]) -> Expr | None:
    """The product of upper bounds of non-negative factors, if all are known."""
    total: Expr | None = expr(1)
    for factor in factors:
        total = None if total is None or factor is None else total * factor
    return total


def _is_meant(node: Typed) -> bool:
    args = [arg.value for arg in node.args]
    match node.op:
        case "number" | "name" | "variable":
            return not args
        case "product":
            return node.value is reduce(mul, args)
        case "cast":
            return args == [node.value]
        case "neg":
            return node.value is -args[0]
        case "+":
            return node.value is args[0] + args[1]
        case "-":
            return node.value is args[0] - args[1]
        case "*":
            return node.value is args[0] * args[1]
        case "^":
            atom = node.value.as_atom
            masks = () if not isinstance(atom, Xor) else (atom.mask, atom.mask % (1 << atom.bits))
            return isinstance(atom, Xor) and atom.value is args[0] and args[1] in masks
        case _:
            return node.value is _function(node.op, *args)


def _function(op: str, left: Expr, right: Expr) -> Expr | None:
    match op:
        case "/" | "floordiv":
            return left // right
        case "%" | "mod":
            return left % right
        case "&":
            return left % (right + 1)
        case "min":
            return minimum(left, right)
        case "max":
            return maximum(left, right)
        case _:
            return None


def _targets(computed: Computed) -> tuple[tuple[Expr, Expr], ...]:
    """For the offset of an element: its indices, extents, and partial sums, each with an upper bound."""
    load = computed.load
    if load is None:
        return ()
    shape, strides = load.buffer.shape, load.buffer.strides
    found = [each for index, extent in zip(load.index, shape, strict=True) for each in ((index, extent - 1), (extent, extent))]
    if strides is not None:
        terms = [index * stride for index, stride in zip(load.index, strides, strict=True)]
        sums = [reduce(add, terms[: at + 1]) for at in range(len(terms))]
        return tuple(dict.fromkeys((*found, *((each, _ANY) for each in (*strides, *terms, *sums)))))
    total, count = expr(0), expr(1)
    for index, extent in joined(load.index, shape):
        count = count * extent
        found += [(index, extent - 1), (extent, extent), (total * extent, count - 1), (total * extent + index, count - 1)]
        total = total * extent + index
    return tuple(dict.fromkeys(found))


def _enter(each: Around, known: Spans, given: list[Formula], bounds: list[Polynomial]) -> None:
    """Adds the facts of one part of the context."""
    match each:
        case Turn(sym, lo, hi, blocks, host):
            low, high = known.ends_of(lo)[0], known.ends_of(hi)[1] - 1
            if blocks:
                high = min(high, LAST_BLOCK)
                bounds.append(_shared_out(hi))
            elif host:
                high = min(high, LARGEST_SIZE - 1)
            known.learn(sym, (low, high), known.top_of(hi - 1))
            given += [Ge(expr(sym) - lo), Ge(hi - 1 - sym)]
            factors = (expr(factor) for factor in _factors(hi - lo))
            known.narrow([hi - 1 - lo, *(factor - 1 for factor in factors if known.ends_of(factor)[0] >= 0)])
        case Test(condition):
            facts = [fact for part in conjuncts(condition) for fact in _less(part)]
            known.narrow(facts)
            known.lower(facts)
            found = test(condition)
            given += [] if found is None else [found]
        case Datum(sym, dtype):
            signed = dtype.kind is Kind.INT
            known.learn(sym, (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if signed else (0, (1 << dtype.bits) - 1))
        case Named(sym, value):
            known.learn(sym, known.ends_of(value), known.top_of(value))
            given += [Ge(expr(sym) - value), Ge(value - sym)]


def _factors(extent: Expr) -> Iterator[Sym]:
    """The symbols of an extent that is a product: if it is not empty, none of them is 0."""
    if len(extent.terms) == 1 and extent.constant == 0 and extent.terms[0][1] > 0:
        yield from (atom for atom in extent.terms[0][0] if isinstance(atom, Sym))


def _less(condition: Value) -> Iterator[Expr]:
    """Expressions that are at least 0 where a comparison of indices holds."""
    match condition:
        case Op("lt" | "le" as name, (Index(left), Index(right))):
            yield right - left - (name == "lt")
        case Op("gt" | "ge" as name, (Index(left), Index(right))):
            yield left - right - (name == "gt")
        case _:
            pass


def _facts(require: Compare) -> Iterator[Expr]:
    difference = require.left - require.right
    if require.op in (">", ">=", "=="):
        yield difference - (require.op == ">")
    if require.op in ("<", "<=", "=="):
        yield -difference - (require.op == "<")


def _between(sym: Sym, ends: Ends) -> Iterable[Formula]:
    low, high = ends
    return [
        *([Ge(expr(sym) - low)] if isinstance(low, int) else []),
        *([Ge(high - expr(sym))] if isinstance(high, int) else []),
    ]


def _spans(plan: Plan) -> Iterator[Polynomial]:
    """The bytes of dense arrays, as launchers check them."""
    for buffer in dict.fromkeys((*plan.params, *plan.results, *plan.workspace)):
        if buffer.strides is None:
            yield reduce(mul, buffer.shape, expr(buffer.dtype.bytes)), MOST_BYTES


def _learn_quotient(known: Spans, bound: Expr, most: int) -> None:
    """Records a bound of a quotient that a launcher checked by itself, as an array's extent."""
    atom = bound.terms[0][0][0] if len(bound.terms) == 1 and len(bound.terms[0][0]) == 1 else None
    if isinstance(atom, FloorDiv) and bound.terms[0][1] > 0 and bound.constant >= 0:
        low, high = known.ends_of(term((atom,)))
        known.learn(atom, (low, min(high, (most - bound.constant) // bound.terms[0][1])))


def _shared_out(extent: Expr) -> Polynomial:
    """The number of iterations distributed over a grid axis: x for ⌊x / d⌋ blocks, as a launch is limited by an `int`."""
    atom = extent.as_atom
    if isinstance(atom, FloorDiv) and atom.den.is_constant and atom.den.constant > 0:
        return atom.num, (LAST_BLOCK + 2) * atom.den.constant - 1
    return extent, LAST_BLOCK + 1


def _numbers(steps: Iterable[HostStep]) -> Iterator[tuple[Sym, int]]:
    """Arguments of kernels beside sizes, with their greatest value: host loop indices and slab bases."""
    for kernel in kernels(tuple(steps)):
        bases = {axis.base for axis in kernel.axes}
        yield from ((size, LAST_BLOCK if size in bases else LARGEST_SIZE) for size in kernel.sizes)
