"""An event of a kernel as an instance of a statement of the program, with indices that its tag claims.

Values are compared recursively: operations are equal, index expressions are equal numbers, and each load of one side is of
memory that corresponds to that of the other. For every instance of the event the indices are in the statement's domain, and
each index expression has the same value on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value
from texpr.isa.levels import Space
from texpr.presburger.existential import is_plain
from texpr.presburger.formula import FALSE, Eq, Formula, between, conj, negate, rename, syms
from texpr.presburger.solve.relaxed import flat
from texpr.proof.common.asked import Claim
from texpr.proof.common.values import Unlike, parts
from texpr.proof.read.actions import Action, Program, Spot, frees, indices, named_by
from texpr.proof.read.conditions import test
from texpr.proof.read.events import Event, Reading, Site, Variable, ranged
from texpr.support.record import Mutable, Record, field, replace


class Operand(Record, eq=False):
    """A read of an event and the corresponding read of the statement: an element or a variable, with its position and time."""

    read: Load | Ref
    site: Site
    meant: Load | Ref
    spot: Spot


class Match(Record, eq=False):
    """An event as instances of an action: `indices` are those of the loops around it. `operands`: its reads.

    `inverse`: the event's coordinates over the program's loops, as claimed. `partial`: whether it also writes holes. `tested`:
    pairs of numbers that are equal wherever a test of data corresponds to the program's.
    """

    event: Event
    action: Action
    indices: Mapping[Sym, Expr]
    operands: tuple[Operand, ...]
    inverse: tuple[Expr, ...] = ()
    partial: bool = False
    tested: tuple[tuple[Expr, Expr], ...] = ()


def number(value: Index | Literal) -> Expr:
    """An integer as an index expression."""
    return value.expr if isinstance(value, Index) else expr(int(value.value))


class Pairing(Mutable):
    """The equations of indices, collected by the comparison of an event and a statement."""

    program: Program
    reading: Reading
    event: Event
    action: Action
    equations: list[tuple[Expr, Expr]] = field(default_factory=list[tuple[Expr, Expr]])
    operands: list[Operand] = field(default_factory=list[Operand])
    data: dict[Sym, Sym] = field(default_factory=dict[Sym, Sym])
    partial: bool = False
    tested: tuple[tuple[Expr, Expr], ...] = ()

    def run(self) -> None:
        """Compares targets, tests and values. Raises Unlike."""
        event, action = self.event, self.action
        tests, wanted, value = event.site.tests, action.spot.tests, action.value
        # with a free order, rounding is free too; otherwise a product is rounded before the sum
        freed = frees(action) and isinstance(action.update, str)  # a combiner defines its rounding
        if len(tests) < len(wanted) or (getattr(event.stmt, "fused", False) and not freed):
            raise Unlike
        self.place(event.target, action.target, event.site, action.spot, reading=False)
        if (named := self.reading.named.get(home_of(event.target))) is not None:  # by the integer that its name claims
            self.equations.append((named_by(action, map(expr, indices(action.spot)), self.program.tables), named))
        before = len(self.equations)
        for (given, site), (meant, spot) in zip(tests, wanted, strict=False):
            self.value(given, meant, site, spot)
        self.tested = tuple(self.equations[before:])
        for given, site in tests[len(wanted) :]:  # a value stored under a test of data is selected by it
            if not isinstance(value, Op) or value.name != "select":
                raise Unlike
            asked, value, kept = value.args
            self.value(given, asked, site, action.spot)
            self.value(event.target, kept, event.site, action.spot)
        self.value(event.value, value, event.site, action.spot)

    def place(self, given: Load | Ref, meant: Load | Ref, site: Site, spot: Spot, *, reading: bool = True) -> None:
        """Compares two elements or variables."""
        if given.dtype != meant.dtype:
            raise Unlike
        if reading:
            self.operands.append(Operand(given, site, meant, spot))
        home = home_of(given)
        if isinstance(meant, Load) and meant.buffer.role == "input" and home.name != meant.buffer.name:
            raise Unlike  # a buffer that is only read is not replaced
        if isinstance(home, Buffer) and home.role != "local" and home != home_of(meant):
            raise Unlike  # program memory corresponds to itself only
        if len(given.data if isinstance(given, Load) else ()) != len(meant.data if isinstance(meant, Load) else ()):
            raise Unlike
        if not isinstance(given, Load) or not isinstance(meant, Load):
            return
        for (mine, value), (theirs, other) in zip(given.data, meant.data, strict=True):
            self.value(value, other, site, spot)
            self.data[theirs] = mine
        if given.buffer.name == meant.buffer.name and (given.buffer is meant.buffer or given.buffer.role != "local"):
            self.equations.extend(zip(meant.index, given.index, strict=True))

    def value(self, given: Value, meant: Value, site: Site, spot: Spot) -> None:
        """Compares two values."""
        alike = parts(given, meant, site)
        for mine, theirs, where in alike or ():
            self.value(mine, theirs, where, spot)
        if alike is not None:
            return
        match given, meant:
            case Literal(), Literal():
                raise Unlike
            case Literal() | Index(), Literal() | Index() if given.dtype == meant.dtype and given.dtype.is_integer:
                self.equations.append((number(meant), number(given)))  # a fixed size is a number in the text
            case Op("select", (mine, *arms)), Load():  # for either result of the test
                fact = test(mine)
                for arm, taken in zip(arms, (fact, fact and negate(fact)), strict=True):
                    self.value(arm, meant, site if taken is None else replace(site, domain=(*site.domain, taken)), spot)
            case _:
                self.indirect(given, meant, site, spot)

    def indirect(self, given: Value, meant: Value, site: Site, spot: Spot) -> None:
        """Compares a name on one side with the value on the other, or two places in memory."""
        variable = self.reading.variables.get(given.sym) if isinstance(given, Ref) else None
        let = self.program.lets.get(meant.sym) if isinstance(meant, Ref) else None
        name = None if variable is None or isinstance(variable.value, Load) else variable.name
        named = let is not None and name == let.stored
        alias = None if let is None else let.value  # a `let` of an element is that element
        written = isinstance(given, Load) and isinstance(alias, Load) and given.buffer.name == alias.buffer.name
        if named and isinstance(given, Ref) and isinstance(meant, Ref):
            self.place(given, meant, site, spot)
        elif variable is not None and variable.value is not None:
            self.written_out(given, variable.value, variable, meant, site, spot)
        elif isinstance(given, Load | Ref) and isinstance(meant, Load | Ref) and not written:
            self.place(given, meant, site, spot)
        elif let is not None:
            self.value(given, let.value, site, let.spot)
        else:
            raise Unlike

    def written_out(self, given: Value, value: Value, variable: Variable, meant: Value, site: Site, spot: Spot) -> None:
        """Compares the value of a register that is never reassigned, or takes the register as memory of the program."""
        kept = len(self.equations), len(self.operands), dict(self.data)
        try:
            if isinstance(meant, Load) and meant.buffer.role == "local" and meant.buffer.name == variable.name.name:
                raise Unlike  # it is not only equal to the `let`, but is it
            self.value(value, meant, replace(variable.site, domain=site.domain), spot)
        except Unlike:
            if not isinstance(given, Ref) or not isinstance(meant, Load) or meant.buffer.role != "local":
                raise
            del self.equations[kept[0] :], self.operands[kept[1] :]
            self.data = kept[2]
            self.place(given, meant, site, spot)

    def idle(self, indices: Mapping[Sym, Expr]) -> tuple[Formula, ...]:
        """The condition that an event executes the statement. Its other instances write holes, which is to be proved.

        The engine also writes for surplus blocks of a cluster, and elements that the statement executes partially; so does what
        is launched for both blocks of a pair, of which the second one may be such, to its tensor memory. Likewise a
        thread may write a constant, which neither reads nor traps, to a register of its own. A hole gets a time in the program,
        and is treated like a write of another element: it is ordered with all accesses to the place, and no read is between it
        and the write of the read element. So holes are never read, whatever their time.
        """
        site, home, spot = self.event.site, home_of(self.event.target), self.action.spot
        inward = self.event.engine and isinstance(home, Buffer) and self.reading.spaces.get(home) is Space.SHARED
        inward |= self.event.of_pair
        own = isinstance(home, Sym) and isinstance(self.event.value, Literal) and home not in self.reading.named
        if not (self.partial and (inward or own)) and (not inward or site.launch.kernel.cluster == (1, 1, 1)):
            return ()
        others, known = {*site.dims} - {*site.launch.blocks}, {*flat(site.where)}
        if self.partial:
            return tuple(f for f in flat(rename(fact, indices) for fact in spot.domain) if f not in known)
        wanted = flat(rename(between(0, loop.sym, loop.extent), indices) for loop in spot.loops)
        return tuple(f for f in wanted if syms(f) & {*site.launch.blocks} and not syms(f) & others)

    def doubts(self, indices: Mapping[Sym, Expr]) -> tuple[Formula, ...]:
        """The conditions of an instance whose indices are out of the statement's domain, or for which the two sides differ."""
        where, ranges = (*flat((*self.event.site.where, *self.idle(indices))),), ranged(self.event.site).known
        off = (meant.substitute(indices) - given for meant, given in self.equations)
        goals: list[Formula] = [Eq(difference) for difference in off if difference is not ZERO]
        wanted = flat(rename(fact, indices) for fact in self.action.spot.domain)
        goals += [fact for fact in wanted if fact not in where and not is_plain(fact, ranges)]
        return (*where, negate(conj(goals))) if goals else (FALSE,)

    def named(self, indices: Sequence[Expr]) -> dict[Sym, Expr]:
        """The indices by loop, and the data-dependent integers that follow."""
        loops = zip(self.action.spot.loops, indices, strict=False)
        return {**{theirs: expr(mine) for theirs, mine in self.data.items()}, **{loop.sym: e for loop, e in loops}}

    def matched(self, indices: Mapping[Sym, Expr], inverse: tuple[Expr, ...] = ()) -> Match:
        """The event as these instances."""
        event, site, idle, operands = self.event, self.event.site, self.idle(indices), tuple(self.operands)
        if idle:
            event = replace(event, site=replace(site, domain=(*site.domain, *idle)))
        if idle and event.of_pair:  # what others read is in holes at most
            operands = tuple(replace(each, site=event.site) if each.site is site else each for each in operands)
        return Match(event, self.action, indices, operands, inverse, self.partial, self.tested)


def home_of(place: Load | Ref) -> Buffer | Sym:
    """The memory of a place."""
    return place.buffer if isinstance(place, Load) else place.sym


def subscripts(place: Value) -> tuple[Expr, ...]:
    """The subscripts of a place; empty for a register."""
    return place.index if isinstance(place, Load) else ()


def claim(event: Event, what: str, how: str, about: str | None = None) -> Claim:
    """A claim about an event."""
    place = element(home_of(event.target), subscripts(event.target)) if about is None else about
    return Claim(what, place, how, event.span, event.site.launch.kernel.name)


def element(home: Buffer | Sym, index: Sequence[Expr]) -> str:
    """The text of a place: an element of an array, or a register."""
    return f"{home.name}[{', '.join(map(str, index))}]" if isinstance(home, Buffer) else home.name.split("#")[0]
