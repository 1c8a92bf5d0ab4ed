"""What is summed up by a maximum, e^(w · (f(x) − m)) · g(x), and the factor for another maximum (`directives.online`).

With m' for m each term is e^(w · (m − m')) times as large, so the sum of some terms is, too, and need not wait for the maximum
of all. The factor is read off the exponents: they are linear in m. That it is right is decided by `ir.value.exponentials`, and
again in the proof.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, map_value, substitute_block
from texpr.ir.program.rows.factors import NEW, OLD, factors
from texpr.ir.program.rows.keyed import Fault, Row, Turn
from texpr.ir.program.uses import touched, written
from texpr.ir.value import Buffer, Literal, Load, Op, Ref, Value, walk
from texpr.ir.value.exponentials import Meant, Poly, Sum, atom, meaning, names, plus, scaled, slope, times
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import Span

KEY = Sym("⟨key⟩")


class Added(Record, eq=False):
    """A sum of a turn, inside of loops `inner` of its statement. `factor`: what it is multiplied with when the maximum goes
    from OLD to NEW; None where it does not depend on that."""

    turn: Turn
    bind: ir.Bind
    inner: tuple[ir.Loop, ...]
    factor: Value | None

    @property
    def target(self) -> Load:
        """The element."""
        return self.bind.targets[0]

    @property
    def elements(self) -> tuple[ir.Loop, ...]:
        """The loops over elements."""
        said = {s for e in self.target.index for s in e.syms()}
        return tuple(loop for loop in (*self.turn.around, *self.inner) if loop.sym in said)


class Terms(Mutable):
    """What turns of a row write, with a name for the maximum. `kept`: what elements of streams are; `sums`: terms, by turns."""

    row: Row
    top: str
    kept: dict[Buffer, Sum] = field(default_factory=dict[Buffer, Sum])
    sums: dict[Turn, Sum] = field(default_factory=dict[Turn, Sum])
    streams: dict[Turn, Sum] = field(default_factory=dict[Turn, Sum])
    highest: Poly = frozenset()

    def __post_init__(self) -> None:
        for number, turn in enumerate(self.row.turns):
            (stmt,) = substitute_block((turn.stmt,), {turn.loop.sym: expr(KEY)})
            self.turn(number, turn, stmt)

    def turn(self, number: int, turn: Turn, stmt: ir.Stmt) -> None:
        """What one turn does."""
        bind = innermost(stmt)[1]
        if number == self.row.at:
            if bind is not stmt or bind is None:
                raise Fault("something else than the maximum is computed in its loop", turn.loop)
            found = meaning(bind.values[0], self.meant).plain
            if found is None:
                raise Fault("the maximum is of exponentials", turn.loop)
            self.highest = found
        elif is_sum(bind, self.row):
            assert bind is not None
            self.sums[turn] = meaning(bind.values[0], self.meant)
        else:
            self._stream(number, turn, stmt)

    def _stream(self, number: int, turn: Turn, stmt: ir.Stmt) -> None:
        is_plain = isinstance(stmt, ir.Bind) and stmt.update is None and stmt.targets[0].index == (expr(KEY),)
        if is_plain and isinstance(stmt, ir.Bind) and len(stmt.targets) == 1:
            self.streams[turn] = self.kept[stmt.targets[0].buffer] = meaning(stmt.values[0], self.meant)
            return
        if not written((stmt,)) <= {*self.row.streams, *(s.buffer for s in ir.walk((stmt,)) if isinstance(s, ir.New))}:
            raise Fault("what is made of keys is no sum, and no element for each key", turn.loop)
        read = touched((stmt,))
        if self.row.top in read or any(self.kept[b].mentions(self.top) for b in read & self.kept.keys()):
            raise Fault("what depends on the maximum is no sum, and no element for each key", turn.loop)
        for buffer in written((stmt,)):
            self.kept[buffer] = atom(f"{buffer.name} of turn {number}")

    @property
    def meant(self) -> Meant:
        """What elements are."""

        def of(load: Load | Ref) -> Sum | None:
            if isinstance(load, Load) and load.buffer is self.row.top:
                return atom(self.top)
            known = self.kept.get(load.buffer) if isinstance(load, Load) else None
            if known is None or not isinstance(load, Load):
                return None
            rest = ", ".join(str(e) for e in load.index if e is not expr(KEY))
            return known if not rest else atom(f"({known})[{rest}]")

        return of


def innermost(stmt: ir.Stmt) -> tuple[tuple[ir.Loop, ...], ir.Bind | None]:
    """The loops of a perfect nest, and its statement."""
    around = list[ir.Loop]()
    while isinstance(stmt, ir.Par | ir.Seq) and len(stmt.body) == 1:
        around.append(stmt)
        stmt = stmt.body[0]
    return tuple(around), stmt if isinstance(stmt, ir.Bind) else None


def is_sum(bind: ir.Bind | None, row: Row) -> bool:
    """Whether a statement adds to what no key has for itself."""
    if bind is None or bind.update != "add" or len(bind.targets) != 1:
        return False
    return bind.targets[0].buffer not in row.streams


def added(row: Row) -> tuple[Added, ...]:
    """The sums of a row, each with its factor. Raises Fault."""
    old, new = Terms(row, OLD.name), Terms(row, NEW.name)
    tried = tuple(factors(row))
    found = list[Added]()
    for turn, term in old.sums.items():
        inner, bind = innermost(turn.stmt)
        assert bind is not None
        factor = None
        if term != new.sums[turn]:
            _require_exponential(turn, term, old.highest)
            factor = next((each for each in tried if new.sums[turn] == term * meaning(each, _named)), None)
            if factor is None:
                raise Fault("no factor leads from its terms at one maximum to those at another", turn.loop)
        found.append(Added(turn, bind, inner, factor))
    if row.top is not None:
        _require_start(row, row.top, float("-inf"))
    for each in found:
        _require_sum(row, each)
    return tuple(found)


def read_by_sums(row: Row, sums: tuple[Added, ...], terms: Terms) -> frozenset[Turn]:
    """The turns that write elements of keys last, single values, which sums read."""
    read = {load.buffer for each in sums for value in each.bind.values for load in walk(value) if isinstance(load, Load)}
    last = {buffer: turn for turn in row.turns for buffer in written((turn.stmt,))}
    return frozenset(turn for buffer, turn in last.items() if buffer in read and turn in terms.streams)


def undivided(row: Row, fresh: Callable[[str], str]) -> Row:
    """The row with sums divided by another sum behind all keys, where keys divide their terms by that. Raises Fault."""
    by, turns = set[Buffer](), list[Turn]()
    for turn in row.turns:
        turns.append(replace(turn, stmt=_stripped(turn.stmt, by)))
        bind = innermost(turn.stmt)[1]
        if bind is not None and is_sum(bind, row) and not bind.targets[0].index:
            by.add(bind.targets[0].buffer)
    made = replace(row, turns=tuple(turns))
    before, behind = Terms(row, OLD.name).sums, Terms(made, OLD.name).sums
    ends = list[ir.Stmt]()
    for old, new in zip(row.turns, turns, strict=True):
        if old in before and before[old] != behind[new]:
            inner, bind = innermost(new.stmt)
            assert bind is not None
            part = next((part for part in by if before[old] == behind[new] * _inverse(part)), None)
            if part is None:
                raise Fault("its terms are divided by more than one sum", old.loop)
            quotient = partial(_quotient, part)
            ends.append(of_elements(Added(new, bind, inner, None), quotient, fresh, old.loop.span))
    return replace(made, after=(*ends, *row.after))


def _quotient(part: Buffer, old: Load) -> Value:
    return Op("div", (old, Load(part, ())), old.dtype)


def _inverse(part: Buffer) -> Sum:
    one = Literal(1.0, part.dtype)
    return meaning(Op("div", (one, Load(part, ())), one.dtype), lambda _: None)


def _stripped(stmt: ir.Stmt, by: set[Buffer]) -> ir.Stmt:
    """A statement that does not divide by sums."""

    def leaf(node: Value) -> Value | None:
        match node:
            case Op("div", (arg, Load() as load)) if load.buffer in by:
                return map_value(arg, leaf)
            case _:
                return None

    changed = any(map_value(value, leaf) is not value for s in ir.walk((stmt,)) for value in ir.values(s))
    return Rewriter(value=lambda value: map_value(value, leaf)).stmt(stmt) if changed else stmt


def of_elements(found: Added, change: Callable[[Load], Value], fresh: Callable[[str], str], span: Span) -> ir.Stmt:
    """Each element of a sum, changed."""
    stmt: ir.Stmt = ir.Bind((found.target,), (change(found.target),), span=span)
    for loop in reversed(found.elements):
        sym = Sym(fresh(loop.sym.name))
        (moved,) = substitute_block((stmt,), {loop.sym: expr(sym)})
        stmt = ir.Par(sym, loop.extent, (moved,), span=loop.span)
    return stmt


def _named(load: Load | Ref) -> Sum | None:
    return atom(load.sym.name) if isinstance(load, Ref) and load.sym in (OLD, NEW) else None


def _require_exponential(turn: Turn, term: Sum, highest: Poly) -> None:
    """Raises Fault unless a term is g · e^(w · (f − m)) with one f, that of the maximum."""
    for exponent, poly in term.terms:
        found = slope(exponent, OLD.name)
        m = atom(OLD.name).plain
        assert m is not None
        wanted = None if not found else times(scaled(found, -1), plus(highest, scaled(m, -1)))
        if exponent != wanted or any(OLD.name in name for name in names(poly)):
            reason = "its terms have no factor e^(w · (f − m)), where the maximum m is that of f over the same iterations"
            raise Fault(reason, turn.loop)


def _require_sum(row: Row, found: Added) -> None:
    """Raises Fault unless a sum begins with zeros, may be summed up in any order, and is read behind all keys only."""
    buffer, loop = found.target.buffer, found.turn.loop
    own = {new.buffer for new in row.news}
    if buffer not in own or buffer not in loop.reduce:
        reason = f"the terms of `{buffer.name}` are added in order: `reduce({buffer.name})` on the loop would free it"
        raise Fault(reason if buffer in own else f"`{buffer.name}` is no `new` of the row", loop)
    if any(each.ieee for each in (loop, *found.inner, *found.turn.around)):
        raise Fault(f"`{buffer.name}` is summed up as IEEE 754 says (`#ieee`)", loop)
    _require_start(row, buffer, 0)
    if found.factor is not None and not found.factor.dtype == buffer.dtype == (row.top or buffer).dtype:
        raise Fault(f"`{buffer.name}` has another type than the maximum", loop)
    others = any(turn is not found.turn and buffer in touched((turn.stmt,)) for turn in row.turns)
    if others or any(load.buffer is buffer for value in found.bind.values for load in walk(value) if isinstance(load, Load)):
        raise Fault(f"`{buffer.name}` is touched in several loops over keys", loop)


def _require_start(row: Row, buffer: Buffer, value: float) -> None:
    """Raises Fault unless a local begins with a number."""
    starts = [s for s in ir.walk(row.before) if isinstance(s, ir.Bind) and buffer in {t.buffer for t in s.targets}]
    alike = all(isinstance(v, Literal) and v.value == value and s.update is None for s in starts for v in s.values)
    if not starts or not alike:
        raise Fault(f"`{buffer.name}` does not begin with {value}", row.lead)
