"""Comparison of a statement of the scheduled program with a statement of the written one, with given indices.

Values are compared recursively: the operations are equal, index expressions are equal numbers, and each load of one side
corresponds to a load of the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.structure import same, same_constant
from texpr.presburger.formula import Eq, Formula, rename
from texpr.presburger.solve.turned import solved
from texpr.proof.common.values import Unlike, parts
from texpr.proof.read.actions import Action, Program, Spot, indices
from texpr.proof.read.conditions import test
from texpr.proof.schedule.accesses import place_of
from texpr.proof.schedule.holes import folded
from texpr.support.record import Mutable, Record, field, replace


class Operand(Record, eq=False):
    """A load of a scheduled statement, and the corresponding load of the written one, each with its position in its program.

    `inner`: for a load in a substituted statement, the indices of that statement. `only`: where it reads an element, over the
    indices of the written statement; it reads a fill elsewhere.
    """

    given: Load | Ref
    site: Spot
    meant: Load | Ref
    spot: Spot
    inner: Mapping[Sym, Expr]
    only: tuple[Formula, ...] = ()


class Comparison(Mutable):
    """`given`, a statement of the scheduled program `laid`, compared with `meant`, a statement of the program `written`.

    A load of an element that only one statement writes may be substituted by that statement's value. `inner`: the indices of
    that statement, over those of the load. `made`: the substituted statements; `sure`: conditions for them to be the writer of
    the element, over the indices at the load, with its position.
    """

    laid: Program
    written: Program
    given: Action
    meant: Action
    fills: Mapping[Buffer, Literal]
    equations: list[tuple[Expr, Expr]] = field(default_factory=list[tuple[Expr, Expr]])
    operands: list[Operand] = field(default_factory=list[Operand])
    data: dict[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    inner: Mapping[Sym, Expr] = field(default_factory=dict[Sym, Expr])
    made: list[Action] = field(default_factory=list[Action])
    sure: list[tuple[Formula, Spot]] = field(default_factory=list[tuple[Formula, Spot]])

    def run(self) -> None:
        """Compares tests and values. Raises Unlike."""
        given, meant = self.given, self.meant
        tests, wanted = given.spot.tests, meant.spot.tests
        if len(tests) != len(wanted) or not same(given.update, meant.update) or given.target.dtype != meant.target.dtype:
            raise Unlike
        for (mine, site), (theirs, spot) in zip(tests, wanted, strict=True):
            self.value(mine, theirs, site, spot)
        self.subscripts(given.target, meant.target, given.spot, meant.spot)
        self.value(given.value, meant.value, given.spot, meant.spot)

    def value(self, given: Value, meant: Value, site: Spot, spot: Spot) -> None:
        """Compares two values."""
        alike = parts(given, meant, site)
        for mine, theirs, where in alike or ():
            self.value(mine, theirs, where, spot)
        if alike is None:
            self.named(given, meant, site, spot)

    def named(self, given: Value, meant: Value, site: Spot, spot: Spot) -> None:
        """Compares indices, loads, and names that the other side substitutes."""
        match given, meant:
            case Index(), Index() if given.dtype == meant.dtype:
                self.equations.append((given.expr, meant.expr.substitute(self.inner)))
            case Ref(), Ref() if _is_test(given) and _is_test(meant):
                mine, theirs = self.laid.lets[given.sym], self.written.lets[meant.sym]
                self.value(mine.value, theirs.value, mine.spot, theirs.spot)
            case Load() | Ref(), Load() | Ref() if given.dtype == meant.dtype and not _is_other(given, meant):
                self.operands.append(Operand(given, site, meant, spot, self.inner))
                self.subscripts(given, meant, site, spot)
            case _, Op("select", (asked, arm, Literal() as other)) if fact := test(asked):
                at = len(self.operands)
                self.value(given, arm, site, spot)
                found = folded(given, self.fills)
                filled = found is not None and same_constant(Literal(found, other.dtype), other)
                self.sure += () if filled else ((rename(fact, self.inner), site),)
                self.operands[at:] = [replace(o, only=(*o.only, rename(fact, self.inner))) for o in self.operands[at:]]
            case _, Load():
                self.written_out(given, meant, site, spot)
            case _:
                raise Unlike

    def written_out(self, given: Value, meant: Load, site: Spot, spot: Spot) -> None:
        """Compares a value with an element: with the value of the one statement that writes it."""
        element = [e.substitute(self.inner) for e in place_of(meant, spot, self.written)]
        action, at = writer(self.written, meant.buffer, element)
        place = (e.substitute(at) for e in place_of(action.target, action.spot, self.written))
        facts = [*(Eq(a - b) for a, b in zip(place, element, strict=True)), *(rename(f, at) for f in action.spot.domain)]
        self.sure += ((fact, site) for fact in facts)
        self.made.append(action)
        outer, self.inner = self.inner, at
        self.value(given, action.value, site, action.spot)
        self.inner = outer

    def subscripts(self, given: Load | Ref, meant: Load | Ref, site: Spot, spot: Spot) -> None:
        """Compares the data-dependent subscripts of two places."""
        mine, theirs = (each.data if isinstance(each, Load) else () for each in (given, meant))
        if len(mine) != len(theirs):
            raise Unlike
        for (own, value), (other, wanted) in zip(mine, theirs, strict=True):
            self.value(value, wanted, site, spot)
            self.data[other] = expr(own)


def writer(program: Program, stored: Buffer, element: Sequence[Expr]) -> tuple[Action, Mapping[Sym, Expr]]:
    """The only statement that writes an element of a local, with its indices, to be proved. Raises Unlike."""
    writes = [action for action in program.actions if action.stored is stored]
    if len(writes) != 1 or stored.role != "local" or writes[0].update is not None or writes[0].spot.tests:
        raise Unlike
    (action,) = writes
    own = {sym: Sym(f"{sym.name}○") for sym in indices(action.spot)}
    place = [e.substitute(own) for e in place_of(action.target, action.spot, program)]
    found = solved([*zip(place, element, strict=True)], dict.fromkeys(own.values()))
    if found.keys() != {*own.values()}:  # the instance is not determined
        raise Unlike
    return action, {sym: found[name] for sym, name in own.items()}


def _is_other(given: Load | Ref, meant: Load | Ref) -> bool:
    """Whether a load cannot correspond to one of a local: it is of memory that callers access."""
    return isinstance(given, Load) and isinstance(meant, Load) and given.buffer.role != "local" == meant.buffer.role


def _is_test(value: Ref) -> bool:
    return value.sym.name.startswith("test ")
