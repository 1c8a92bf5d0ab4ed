"""Which statement of the program an event of a kernel is an instance of, and of which indices.

A guess is made from the text: values are built alike, indices of the same elements are equal, symbols have kept their names.
All of it is then proved: for every instance of the event the indices are some of the statement's, and each index expression in
it means the same number on both sides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

from texpr.affine.expr import Expr, Min, Sym, combination, expr, term
from texpr.ir.structure import same
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value
from texpr.presburger.formula import Eq, Formula, negate, rename
from texpr.verifier.actions import Action, Program, Spot, indices
from texpr.verifier.events import Event, Launch, Reading, Site, Variable
from texpr.verifier.logic import holds, test


@dataclass(frozen=True, slots=True, eq=False)
class Operand:
    """What an event reads, and what the statement reads there: an element or a variable, at a place and at a time."""

    read: Load | Ref
    site: Site
    meant: Load | Ref
    spot: Spot


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """An event as instances of an action: `indices` gives those of the loops around it. `operands`: what is read."""

    event: Event
    action: Action
    indices: Mapping[Sym, Expr]
    operands: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """That memory of a kernel holds, at `index`, the element `meant` of the program's `stored`, its copies' indices first."""

    home: Buffer | Sym
    index: tuple[Expr, ...]
    stored: Buffer | Sym
    meant: tuple[Expr, ...]

    def applied(self, given: Load | Ref, meant: Load | Ref, around: Sequence[Sym]) -> Iterator[tuple[Expr, Expr]]:
        """The equations which that suggests of another element there."""
        if home_of(given) != self.home or not isinstance(meant, Load) or meant.buffer != self.stored:
            return
        values: dict[Sym, Expr] = {}
        for own, other in zip(self.index, given.index if isinstance(given, Load) else (), strict=True):
            sym = own.as_sym
            if sym is not None and sym not in values:
                values[sym] = other
        element = (*map(expr, around), *meant.index)
        yield from ((theirs, mine.substitute(values)) for theirs, mine in zip(element, self.meant, strict=True))


class _Unlike(Exception):
    pass


@dataclass(slots=True)
class Matcher:
    """Matches events of one plan with actions of one program."""

    program: Program
    reading: Reading
    premises: Formula
    turns: dict[Launch, list[tuple[Sym, Expr]]] = field(default_factory=dict["Launch", "list[tuple[Sym, Expr]]"])
    """Indices of the program's loops, as other events of a launch have them."""

    def match(self, event: Event, candidates: Sequence[Action], known: Sequence[Kept] = ()) -> Match | None:
        """The first of `candidates` that `event` provably does. `known`: which elements its target keeps, by other events."""
        for action in candidates:
            found = self.attempt(event, action, known)
            if found is not None:
                return found
        return None

    def attempt(self, event: Event, action: Action, known: Sequence[Kept] = ()) -> Match | None:
        """`event` as instances of `action`, None where it surely is not, or it cannot be proved."""
        pairing = _Pairing(self, event.site, action.spot)
        try:
            pairing.run(event, action)
        except _Unlike:
            return None
        around = indices(action.spot)[: self.program.scopes[action.stored]]
        pairing.hints += [pair for kept in known for pair in kept.applied(event.target, action.target, around)]
        wanted = indices(action.spot)
        solved = (pairing.solve(wanted, names_first) for names_first in (None, True, False))
        for solution in chain(solved, pairing.counted(wanted, event.target)):
            if solution is not None and self._proved(event, action, pairing.equations, solution):
                return Match(event, action, solution, tuple(pairing.operands))
        return None

    def outer(self, event: Event, place: Load | Ref, action: Action, loops: Sequence[Sym]) -> Mapping[Sym, Expr] | None:
        """The indices of some of the loops around `action`, where `event` has the element `place`. To be proved by who asks."""
        pairing = _Pairing(self, event.site, action.spot)
        try:
            pairing.place(place, action.target, event.site, action.spot, reading=False)
        except _Unlike:
            return None
        for names_first in (True, False, None):
            found = pairing.solve(loops, names_first)
            if found is not None and all(
                meant.substitute(found) is given
                for meant, given in pairing.equations
                if meant.syms() <= {*found, *event.site.dims}
            ):
                return found
        return None

    def _proved(self, event: Event, action: Action, equations: Sequence[tuple[Expr, Expr]], found: Mapping[Sym, Expr]) -> bool:
        where = event.site.where
        for meant, given in equations:
            difference = meant.substitute(found) - given
            if not (difference.is_constant and difference.constant == 0) and not holds(where, Eq(difference), self.premises):
                return False
        for fact in action.spot.domain:
            wanted = rename(fact, found)
            if wanted not in where and not holds(where, wanted, self.premises):
                return False
        return True


@dataclass(slots=True)
class _Pairing:
    """Equations that indices must satisfy, collected while two values are compared."""

    matcher: Matcher
    site: Site
    spot: Spot
    equations: list[tuple[Expr, Expr]] = field(default_factory=list[tuple[Expr, Expr]])
    hints: list[tuple[Expr, Expr]] = field(default_factory=list[tuple[Expr, Expr]])
    operands: list[Operand] = field(default_factory=list[Operand])
    data: dict[Sym, Sym] = field(default_factory=dict[Sym, Sym])

    def run(self, event: Event, action: Action) -> None:
        """Compares targets, tests and values."""
        tests = list(event.site.tests)
        wanted = action.spot.tests
        value = event.value
        while len(tests) > len(wanted):  # what is stored under a test of data is chosen by it
            condition, _ = tests.pop()
            value = Op("select", (condition, value, event.target), event.target.dtype)
        if len(tests) != len(wanted):
            raise _Unlike
        self.place(event.target, action.target, event.site, action.spot, reading=False)
        for (given, site), (meant, spot) in zip(tests, wanted, strict=True):
            self.value(given, meant, site, spot)
        self.value(value, action.value, event.site, action.spot)

    def place(self, given: Load | Ref, meant: Load | Ref, site: Site, spot: Spot, *, reading: bool = True) -> None:
        """An element or a variable on both sides."""
        if given.dtype != meant.dtype:
            raise _Unlike
        if reading:
            self.operands.append(Operand(given, site, meant, spot))
        if isinstance(meant, Load) and meant.buffer.role == "input" and _name(given) != meant.buffer.name:
            raise _Unlike  # what is only read stays where it is
        if isinstance(given, Load) and given.buffer.role != "local" and given.buffer != home_of(meant):
            raise _Unlike  # and memory of the program is nothing else
        if not isinstance(given, Load) or not isinstance(meant, Load):
            return
        if len(given.data) != len(meant.data):
            raise _Unlike
        for (mine, value), (theirs, other) in zip(given.data, meant.data, strict=True):
            self.value(value, other, site, spot)
            self.data[theirs] = mine
        if given.buffer.name == meant.buffer.name and len(given.index) == len(meant.index):
            into = self.equations if given.buffer is meant.buffer or given.buffer.role != "local" else self.hints
            into.extend(zip(meant.index, given.index, strict=True))

    def value(self, given: Value, meant: Value, site: Site, spot: Spot) -> None:
        """A value on both sides."""
        match given, meant:
            case Literal(), Literal():
                if not same(given, meant) and not _same_number(given, meant):
                    raise _Unlike
            case Index(), Index() if given.dtype == meant.dtype:
                self.equations.append((meant.expr, given.expr))
            case Op("select", (mine, *arms)), Op("select", (theirs, *others)):
                self.value(mine, theirs, site, spot)
                fact = test(mine)
                for arm, other, taken in zip(arms, others, (fact, fact and negate(fact)), strict=True):
                    inside = site if taken is None else replace(site, domain=(*site.domain, taken))
                    self.value(arm, other, inside, spot)
            case Op(), Op() if given.name == meant.name and given.dtype == meant.dtype and len(given.args) == len(meant.args):
                for mine, theirs in zip(given.args, meant.args, strict=True):
                    self.value(mine, theirs, site, spot)
            case Cast(), Cast() if given.dtype == meant.dtype:
                self.value(given.arg, meant.arg, site, spot)
            case _:
                self.indirect(given, meant, site, spot)

    def indirect(self, given: Value, meant: Value, site: Site, spot: Spot) -> None:
        """Where one side has a name for what the other writes out, or both name memory."""
        variable = self.matcher.reading.variables.get(given.sym) if isinstance(given, Ref) else None
        let = self.matcher.program.lets.get(meant.sym) if isinstance(meant, Ref) else None
        if let is not None and variable is not None and variable.name == let.stored and not isinstance(variable.value, Load):
            self.place(_ref(given), _ref(meant), site, spot)
            return
        if variable is not None and variable.value is not None:
            self.written_out(given, variable, meant, site, spot)
        elif isinstance(given, Load | Ref) and isinstance(meant, Load | Ref):
            self.place(given, meant, site, spot)
        elif let is not None:
            self.value(given, let.value, site, let.spot)
        else:
            raise _Unlike

    def written_out(self, given: Value, variable: Variable, meant: Value, site: Site, spot: Spot) -> None:
        """A register that never changes: what it holds is compared, or the register itself stands for memory."""
        kept = len(self.equations), len(self.hints), len(self.operands), dict(self.data)
        value = variable.value
        assert value is not None
        try:
            self.value(value, meant, replace(variable.site, domain=site.domain), spot)
        except _Unlike:
            if not isinstance(given, Ref) or not isinstance(meant, Load) or meant.buffer.rank:
                raise
            del self.equations[kept[0] :], self.hints[kept[1] :], self.operands[kept[2] :]
            self.data = kept[3]
            self.place(given, meant, site, spot)

    def solve(self, wanted: Sequence[Sym], names_first: bool | None) -> Mapping[Sym, Expr] | None:
        """What the indices are: by name, or by equations with one unknown; with None, of loops that were cut, by their ends."""
        known = {sym for dim in (self.site.dims,) for sym in dim}
        data: dict[Sym, Expr] = {theirs: expr(mine) for theirs, mine in self.data.items()}
        found = dict(data)
        names = {sym: Sym(f"{sym.name}●") for sym in wanted}  # the kernel may have the same names for something else
        if names_first:
            found |= {sym: expr(sym) for sym in wanted if sym in known}
            found |= {sym: meaning for sym, meaning in self.named().items() if sym in wanted and sym not in found}
        if names_first is None:
            found |= self.cut()
        for equations in (self.equations, (), self.equations, self.hints):
            for _ in wanted:
                for meant, given in equations:
                    theirs = meant.substitute({sym: found.get(sym, expr(own)) for sym, own in names.items()} | data)
                    _solve_one(theirs - given, {own: sym for sym, own in names.items() if sym not in found}, found)
            if not equations:
                found |= {sym: expr(sym) for sym in wanted if sym not in found and sym in known}
                found |= {sym: meaning for sym, meaning in self.named().items() if sym in wanted and sym not in found}
        for sym, meaning in self.matcher.turns.get(self.site.launch, ()):
            if sym in wanted and sym not in found and meaning.syms() <= known:
                found[sym] = meaning
        for loop in self.spot.loops:
            if loop.sym not in found and loop.extent.is_constant and loop.extent.constant == 1:
                found[loop.sym] = expr(0)
        return found if all(sym in found for sym in wanted) else None

    def counted(self, wanted: Sequence[Sym], target: Load | Ref) -> Iterator[Mapping[Sym, Expr]]:
        """The innermost index, where no expression names it and lanes take turns: the lane and the turns before are counted."""
        if not self.spot.loops or not isinstance(target, Load) or target.buffer.rank != 1 or target.buffer.role != "local":
            return
        loop, (lane,) = self.spot.loops[-1], target.index
        for names_first in (None, True, False):
            rest = self.solve([sym for sym in wanted if sym != loop.sym], names_first)
            if rest is None:
                continue
            used = {sym for e in (lane, *rest.values()) for sym in e.syms()}
            for width in (
                target.buffer.shape[0],
                *(hi for mine, (_, hi) in self.site.bounds.items() if mine.sym in lane.syms()),
            ):
                total, stride = lane, width
                for mine in reversed([each for each in self.site.loops if each.sym not in used]):
                    total, stride = total + stride * mine.sym, stride * self.site.bounds[mine][1]
                yield {**rest, loop.sym: total}

    def cut(self) -> dict[Sym, Expr]:
        """Indices of loops over a part of the program's, which ends where that does: i < n and i' < n - c say i = i' + c."""
        found: dict[Sym, Expr] = {}
        for mine in self.site.loops:
            hi = self.site.bounds[mine][1]
            ends = atom.args if isinstance(atom := hi.as_atom, Min) else (hi,)
            for theirs in self.spot.loops:
                for end in ends if theirs.sym == mine.sym else ():
                    if theirs.extent.syms() & end.syms():
                        found[mine.sym] = expr(mine.sym) + theirs.extent - end
        return found

    def named(self) -> Mapping[Sym, Expr]:
        """Constants of the thread in scope, by name."""
        return self.site.names


def _solve_one(difference: Expr, unknown: Mapping[Sym, Sym], found: dict[Sym, Expr]) -> None:
    inside = difference.syms() & unknown.keys()
    if len(inside) != 1:
        return
    (sym,) = inside
    for monomial, coefficient in difference.terms:
        if monomial == (sym,):
            rest = difference - term(monomial, coefficient)
            whole = all(number % coefficient == 0 for number in (rest.constant, *(c for _, c in rest.terms)))
            if sym not in rest.syms() and whole:
                found[unknown[sym]] = combination(
                    -rest.constant // coefficient, [(m, -c // coefficient) for m, c in rest.terms]
                )
            return


def _same_number(a: Literal, b: Literal) -> bool:
    if a.dtype != b.dtype or not a.dtype.is_float:
        return False
    x, y = float(a.value), float(b.value)
    return x.hex() == y.hex() or (x != x and y != y)


def _name(place: Load | Ref) -> str:
    return place.buffer.name if isinstance(place, Load) else ""


def _ref(value: Value) -> Load | Ref:
    assert isinstance(value, Load | Ref)
    return value


def memory_of(value: Value) -> Load | Ref | None:
    """The place that a value is, if it is no more than that."""
    return value if isinstance(value, Load | Ref) else None


def home_of(place: Load | Ref) -> Buffer | Sym:
    """The memory that a place is in."""
    return place.buffer if isinstance(place, Load) else place.sym


def operand_loads(value: Value) -> Iterator[Load | Ref]:
    """Memory that a value reads."""
    match value:
        case Load():
            yield value
            for _, meaning in value.data:
                yield from operand_loads(meaning)
        case Ref():
            yield value
        case Op():
            for arg in value.args:
                yield from operand_loads(arg)
        case Cast():
            yield from operand_loads(value.arg)
        case Literal() | Index():
            return


__all__ = ["Buffer", "Match", "Matcher", "Operand", "operand_loads"]
