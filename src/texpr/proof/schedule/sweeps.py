"""Maxima and the sums that need them in one sweep: what a scheduled program that was made by `online` is compared with.

Let f(x), x < E, be terms of a maximum m, and S = Σ g(x) · e^(w · (f(x) − m)), where neither g, f nor w depends on m, and the
order of the sum is free. Then, over the reals, with blocks of any number of x, in order,

    m = −∞   S = 0
    for each block {  m' = max(m, f(x) of the block)
                      S = S · e^(w · (m − m')) + Σ g(x) · e^(w · (f(x) − m')) of the block
                      m = m'  }

computes the same. *Proof.* Behind each block m is the maximum of the f(x) so far, and S the sum of their terms with that m: for
e^(w · (f − m)) · e^(w · (m − m')) = e^(w · (f − m')). At the end these are all. ∎

That a sum has such terms is decided, not seen: its terms with m' are those with m times the factor, as sums of products of
exponentials (`ir.value.exponentials`). Where no f(x) so far is a number, m' is −∞, and 0 is subtracted instead: terms are 0
then (w > 0), as at any later maximum, and the factor is that from m' to m', 1. Where none of all is a number, S is none at the
end, as −∞ − −∞ is. Keys behind the last one, in the last block, have −∞ as f, and terms 0.

The loops of the program come in one form first (`ir.program.rows.keyed`), which is another order of statements; that it
computes the same is proved as of any schedule (`prove.faithful`). Factors are searched for by the directive, and decided here.
Terms that keys divide by another sum s are divided at the end: Σ t / s = (Σ t) / s.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.marks import Online
from texpr.ir.program.rewrite import Rewriter, map_value, replace_loads, substitute_block
from texpr.ir.program.rows.factors import NEW, OLD, factors
from texpr.ir.program.rows.keyed import Fault, Row, Turn, row_of
from texpr.ir.program.uses import loads, touched, written
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, conjunction, walk
from texpr.ir.value.exponentials import Sum, atom, meaning, names, plus, scaled, slope, times
from texpr.ir.value.structure import same
from texpr.ir.value.types import BOOL, I64, DType
from texpr.presburger.formula import Eq, Formula, Ge, between, conj, disj
from texpr.presburger.questions import witness
from texpr.support.record import Mutable, field, replace

KEY = Sym("key◆")
LEAST, NONE = float("-inf"), float("nan")


class Unswept(Exception):
    """Why a program has no such sweep."""


def in_one_sweep(written: ir.Function, mark: Online, premises: Formula) -> tuple[ir.Function, ir.Function, list[str]]:
    """`written` in one form, that in a sweep, and what was decided of its sums. Raises Unswept."""
    try:
        row = row_of(written, mark.loop)
    except (Fault, StopIteration) as why:
        raise Unswept(str(why)) from None
    sweep = _Sweep(row, mark, premises)
    return row.canonical, row.having(sweep.body()), sweep.told


def need(holds: object, why: str) -> None:
    """Raises Unswept unless something holds."""
    if not holds:
        raise Unswept(why)


class _Sweep(Mutable):
    row: Row
    mark: Online
    premises: Formula
    told: list[str] = field(default_factory=list[str])
    sums: dict[Turn, Value | None] = field(default_factory=dict[Turn, Value | None])
    """The factor of each sum, from OLD to NEW; None for one that needs none."""
    scaled: set[Turn] = field(default_factory=set[Turn])
    zero: set[Buffer] = field(default_factory=set[Buffer])
    """Elements that are 0 for keys that there are not."""
    made: dict[Buffer, Buffer] = field(default_factory=dict[Buffer, Buffer])
    numbers: count[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.undivide()
        row, top, own = self.row, self.row.top, {new.buffer for new in self.row.news}
        if top is not None:
            need(top in own and not top.shape and top.dtype.is_float, "the maximum is no local of the row")
            self.begins(top, LEAST)
        for turn in row.turns:
            loop, around = turn.loop, turn.around
            need(loop.extent is row.extent and not loop.directives, "loops over keys differ")
            need(not any(p.reduce or p.fully or p.directives for p in around), "loops around keys are no plain ones")
            need(not (isinstance(loop, ir.Par) and loop.fully), "keys are lanes")
            for buffer in written((turn.stmt,)) - _inside(turn.stmt):
                need(buffer in own, f"{buffer.name} is no local of the row")
        for stream, at in row.streams.items():
            need(stream in own and at < stream.rank, f"{stream.name} has no element for each key")
            need(stream not in touched((*row.before, *row.after)), f"{stream.name} is not of keys alone")
            need(all(self.is_along(turn, stream, at) for turn in row.turns), f"{stream.name} has elements of other keys")
        need(not self.mark.whole or self.is_whole(), "the last block has fewer keys")
        for turn in (each for each in row.turns if _is_sum(each, row)):
            self.is_sum(turn, _innermost_of(turn))
        old, new = _terms(row, OLD), _terms(row, NEW)
        self.scaled = {turn for turn, term in old.items() if term != new[turn]} - self.sums.keys()
        for turn in self.sums if row.at is not None else ():
            self.sums[turn] = self.factor(turn, old[turn], new[turn], old[row.turns[row.at or 0]])
        if row.at is None:
            self.scaled = {turn for turn in old.keys() - self.sums.keys() if self.is_added_last(turn)}
            self.told += (f"{_innermost_of(turn).targets[0].buffer.name}: its terms need no maximum" for turn in self.sums)

    def is_added_last(self, turn: Turn) -> bool:
        """Whether no turn behind this one writes the elements that it writes, and sums read them."""
        made, behind = written((turn.stmt,)), self.row.turns[self.row.turns.index(turn) + 1 :]
        read = {load.buffer for each in self.sums for value in _innermost_of(each).values for load in walk(value)
                if isinstance(load, Load)}  # fmt: skip
        return made <= read and not any(made & written((each.stmt,)) for each in behind)

    def undivide(self) -> None:
        """Has sums divided by another one behind all keys, where keys divide their terms by it: Σ t / s = (Σ t) / s."""
        old, totals, turns = self.row, dict[Buffer, Load](), list[Turn]()

        def value(node: Value) -> Value:
            return map_value(node, leaf)

        def leaf(node: Value) -> Value | None:
            match node:
                case Op("div", (arg, Load() as total)) if total.buffer in totals:
                    return value(arg)
                case _:
                    return None

        for turn in old.turns:  # divided by sums of turns before
            turns.append(replace(turn, stmt=Rewriter(value=value).stmt(turn.stmt)))
            if _is_sum(turn, old) and not (target := _innermost_of(turn).targets[0]).index:
                totals[target.buffer] = target
        made = replace(old, turns=tuple(turns))
        before, behind, ends = _terms(old, OLD), _terms(made, OLD), list[ir.Stmt]()
        for one, other in zip(old.turns, turns, strict=True):
            if _is_sum(one, old) and before[one] != behind[other]:
                inverse = ((t, Op("div", (Literal(1.0, t.dtype), t), t.dtype)) for t in totals.values())
                found = next((t for t, by in inverse if before[one] == behind[other] * meaning(by, lambda _: None)), None)
                need(found is not None, "terms are divided by more than one sum")
                assert found is not None
                self.told.append(
                    f"{_innermost_of(one).targets[0].buffer.name}: terms are divided by {found.buffer.name} at the end"
                )
                ends.append(self.elements(other, lambda load, by=found: Op("div", (load, by), load.dtype)))
        self.row = replace(made, after=(*ends, *old.after))

    def begins(self, buffer: Buffer, value: float) -> None:
        """Requires that a local has a number before the turns."""
        binds = [s for s in ir.walk(self.row.before) if isinstance(s, ir.Bind) and any(t.buffer is buffer for t in s.targets)]
        need(binds, f"{buffer.name} has no value before the keys")
        for bind in binds:
            is_it = len(bind.values) == 1 and isinstance(bind.values[0], Literal) and bind.values[0].value == value
            need(is_it and bind.update is None, f"{buffer.name} does not begin with {value}")

    def is_along(self, turn: Turn, stream: Buffer, at: int) -> bool:
        """Whether a turn touches elements of its own key only."""
        own = turn.loop.sym
        of = [load for s in ir.walk((turn.stmt,)) for load in loads(s) if load.buffer is stream]
        keys = (sum(own in each.syms() for each in load.index) for load in of)
        return all(load.index[at] is expr(own) and not load.data and n == 1 for load, n in zip(of, keys, strict=True))

    def is_whole(self) -> bool:
        """Whether all blocks have as many keys, for all sizes, and iterations around."""
        quotient, rest = Sym("quotient◆"), Sym("rest◆")
        around = [s for s in ir.walk(self.row.function.body) if isinstance(s, ir.Par | ir.Seq)]
        inside = [between(0, expr(s.sym), s.extent) for s in around if s.sym in self.row.extent.syms()]
        left = self.row.extent - expr(quotient) * self.mark.size - expr(rest)
        return witness((*inside, Eq(left), between(1, expr(rest), self.mark.size)), self.premises) is None

    def is_sum(self, turn: Turn, bind: ir.Bind) -> None:
        """Requires that a sum begins with 0, is free in its order, and has elements of its own."""
        target, row, loop = bind.targets[0], self.row, turn.loop
        buffer, inner = target.buffer, _loops(turn)
        self.begins(buffer, 0)
        need(buffer in loop.reduce and not any(each.ieee for each in (loop, *inner)), f"the order of {buffer.name} is not free")
        others = [*(value for value in bind.values), *(meaning for _, meaning in target.data)]
        need(
            not any(isinstance(n, Load) and n.buffer is buffer for v in others for n in walk(v)), f"{buffer.name} reads itself"
        )
        need(not any(buffer in touched((t.stmt,)) for t in row.turns if t is not turn), f"{buffer.name} is of several turns")
        said = {s for e in target.index for s in e.syms()}
        own = [each for each in inner if each.sym in said]
        need(loop.sym not in said and not target.data, f"keys say elements of {buffer.name}")
        need(all(expr(each.sym) in target.index for each in own), f"iterations share elements of {buffer.name}")
        need(not any({s.sym for s in (loop, *inner)} & each.extent.syms() for each in own), f"{buffer.name} has no shape")
        self.sums.setdefault(turn, None)

    def factor(self, turn: Turn, old: Sum, new: Sum, highest: Sum) -> Value | None:
        """The factor of a sum, which is decided to be one."""
        if old == new:
            return None
        buffer, top = _innermost_of(turn).targets[0].buffer, self.row.top
        assert top is not None, "as it has a maximum"
        m, f = (each.plain for each in (atom(OLD.name), highest))
        need(m is not None and f is not None and not highest.mentions(OLD.name), "the maximum is of exponentials")
        assert m is not None and f is not None
        for exponent, poly in old.terms:
            weight = scaled(slope(exponent, OLD.name) or frozenset(), -1)
            is_it = weight and exponent == times(weight, plus(f, scaled(m, -1)))
            need(is_it, f"{buffer.name} has no terms with e^(w · (f − m))")
            need(not any(OLD.name in each for each in names(poly)), f"{buffer.name} has terms that the maximum is a factor of")
        known = {OLD: atom(OLD.name), NEW: atom(NEW.name)}
        tried = (
            (each, meaning(each, lambda node: known.get(node.sym) if isinstance(node, Ref) else None))
            for each in factors(self.row)
        )
        found = next((each for each, by in tried if new == old * by and each.dtype == buffer.dtype == top.dtype), None)
        need(found is not None, f"no factor leads from terms of {buffer.name} at one maximum to those at another")
        self.told.append(f"{buffer.name}: its terms {new} are {old} times the factor")
        return found

    def body(self) -> tuple[ir.Stmt, ...]:
        """The statements of the row, in one sweep."""
        row, block = self.row, Sym(self.fresh("b"))
        for stream, at in row.streams.items():
            shape = (*stream.shape[:at], expr(self.mark.size), *stream.shape[at + 1 :])
            self.made[stream] = replace(stream, name=self.fresh(stream.name), shape=shape)
        if row.top is None or row.at is None:
            inside, end = [self.turn(turn, block, None) for turn in row.turns], list[ir.Stmt]()
        else:
            inside, end = self.peaked(row.top, row.at, block)
        many = (row.extent + (self.mark.size - 1)) // self.mark.size
        sweep = ir.Seq(block, many, (*map(ir.New, self.made.values()), *inside))
        rest = (new for new in row.news if new.buffer not in row.streams)
        return (*rest, *row.before, sweep, *end, *row.after)

    def peaked(self, buffer: Buffer, at: int, block: Sym) -> tuple[list[ir.Stmt], list[ir.Stmt]]:
        """The turns of a block, with what a greater maximum does to sums; and what is done behind all keys."""
        row, top, dtype = self.row, Load(buffer, ()), buffer.dtype
        peak, now = (Load(replace(buffer, name=self.fresh(n)), ()) for n in ("peak", "now"))
        least = Literal(LEAST, dtype)
        before = _select(Op("eq", (top, least), BOOL), now, top)
        keeps = list[tuple[Load, Value]]()
        scale, end = list[ir.Stmt](), list[ir.Stmt]()
        for turn, factor in self.sums.items():
            if factor is None:
                continue
            value = map_value(factor, lambda n: {OLD: before, NEW: now}.get(n.sym) if isinstance(n, Ref) else None)
            if not any(same(value, other) for _, other in keeps):
                keeps.append((Load(replace(buffer, name=self.fresh("keep")), ()), value))
            keep = next(load for load, other in keeps if same(value, other))
            scale.append(self.elements(turn, lambda old, keep=keep: Op("mul", (old, keep), old.dtype)))
            end.append(self.elements(turn, lambda old: _select(Op("eq", (top, least), BOOL), self.none(old, dtype), old)))
        turns = [self.turn(turn, block, peak if n == at else now) for n, turn in enumerate(row.turns)]
        zero = _select(Op("eq", (peak, least), BOOL), Literal(0.0, dtype), peak)
        binds = [ir.Bind((target,), (value,)) for target, value in ((peak, top), (now, zero), *keeps, (top, peak))]
        local = [load.buffer for load in (peak, now, *(keep for keep, _ in keeps))]
        return [*map(ir.New, local), *turns[:at], binds[0], turns[at], *binds[1:], *scale, *turns[at + 1 :]], end

    def fresh(self, name: str) -> str:
        """A name that no text has."""
        return f"{name}◆{self.mark.loop}.{next(self.numbers)}"

    def none(self, old: Load, dtype: DType) -> Value:
        """What a sum of no number is, where there are keys."""
        none = Literal(NONE, dtype)
        if self.row.extent.is_constant and self.row.extent.constant > 0:
            return none
        return _select(_compare("lt", expr(0), self.row.extent), none, old)

    def elements(self, turn: Turn, change: Callable[[Load], Value]) -> ir.Stmt:
        """Each element of a sum, changed."""
        target = _innermost_of(turn).targets[0]
        own = [loop for loop in _loops(turn) if any(loop.sym in e.syms() for e in target.index)]
        names = {loop.sym: Sym(self.fresh(loop.sym.name)) for loop in own}
        at = replace(target, index=tuple(e.substitute(names) for e in target.index))
        stmt: ir.Stmt = ir.Bind((at,), (change(at),))
        for loop in reversed(own):
            stmt = ir.Par(names[loop.sym], loop.extent.substitute(names), (stmt,))
        return stmt

    def turn(self, turn: Turn, block: Sym, top: Load | None) -> ir.Stmt:
        """A turn of the keys of a block, with another place for the maximum, if there is one."""
        row, loop, own = self.row, turn.loop, expr(turn.loop.sym)
        key = expr(block) * self.mark.size + own
        is_key = _compare("lt", key, row.extent)

        def place(old: Load) -> Load | None:
            if old.buffer is row.top:
                return top
            at = row.streams.get(old.buffer)
            index = old.index if at is None else (*old.index[:at], own, *old.index[at + 1 :])
            return None if at is None else replace(old, buffer=self.made[old.buffer], index=index)

        def value(old: Value) -> Value:
            named = replace_loads(old, lambda load: self.named(load, loop.sym) if load.data else None)
            return replace_loads(named if self.mark.whole else map_value(named, lambda n: self.padded(n, loop.sym)), place)

        def target(old: Load) -> Load:
            return place(old) or old

        def buffer(old: Buffer) -> Buffer:
            return top.buffer if top is not None and old is row.top else self.made.get(old, old)

        (stmt,) = substitute_block((turn.stmt,), {loop.sym: key})
        bind = None if self.mark.whole else _innermost(stmt)
        if bind is not None and (turn in self.sums or turn in self.scaled or row.top in written((stmt,))):
            neutral = LEAST if row.top in written((stmt,)) else 0.0
            (old,) = bind.values
            if neutral != 0.0 or not self.is_zero(old):
                stmt = _having(stmt, _select(is_key, old, Literal(neutral, old.dtype)))
        self.zero -= written((turn.stmt,))
        if bind is not None and turn in self.scaled:
            self.zero.add(bind.targets[0].buffer)
        made: ir.Stmt = Rewriter(value=value, target=target, buffer=buffer).stmt(stmt)
        made = replace(loop, extent=expr(self.mark.size), body=(made,), reduce=tuple(map(buffer, loop.reduce)))
        for each in reversed(turn.around):
            made = replace(each, body=(made,))
        return made

    def is_zero(self, value: Value) -> bool:
        """Whether a value is 0 for keys that there are not."""
        match value:
            case Load():
                return value.buffer in self.zero
            case Cast(arg) | Op("neg", (arg,)):
                return self.is_zero(arg)
            case Op("mul", args):
                return any(map(self.is_zero, args))
            case Op("add" | "sub", args) | Op("select", (_, *args)):
                return all(map(self.is_zero, args))
            case _:
                return False

    def named(self, load: Load, key: Sym) -> Load:
        """An element whose place data say: what all keys of a block have in common is said of the first one, where that is
        decided to be the same number; and so is what is that of the first one, and the number of the key."""

        def same_for_all(index: Expr) -> Expr:
            first = index.substitute({key: expr(0)})
            inside = between(0, expr(key), expr(self.mark.size))
            for each in (first, first + expr(key)) if key in index.syms() else ():
                if self.never(conj((inside, disj((Ge(index - each - 1), Ge(each - index - 1)))))):
                    return each
            return index

        data = tuple((sym, replace_loads(meant, lambda found: self.named(found, key))) for sym, meant in load.data)
        return replace(load, index=tuple(map(same_for_all, load.index)), data=data)

    def never(self, formula: Formula) -> bool:
        """Whether something holds nowhere."""
        return witness((formula,), self.premises) is None

    def padded(self, node: Value, key: Sym) -> Value | None:
        """0 in place of an element that there is not."""
        load = node.arg if isinstance(node, Cast) else node
        if not isinstance(load, Load) or load.buffer in self.row.streams:
            return None
        said = {s for _, meant in load.data for n in walk(meant) if isinstance(n, Load) for e in n.index for s in e.syms()}
        need(key not in said, "data say what keys read")
        tests = list[Value]()
        for index, size in zip(load.index, load.buffer.shape, strict=True):
            if load.data and index is expr(key) and self.never(Ge(expr(self.mark.size - 1) - size)):
                continue
            steps = [factor for monomial, factor in index.terms if monomial == (key,)]
            step = steps[0] if steps and key not in (index - expr(key) * steps[0]).syms() else 0
            if key in index.syms() and step <= 0:
                tests.append(_compare("le", expr(0), index))
            if key in index.syms() and step >= 0:
                tests.append(_compare("lt", index, size))
        test = conjunction(tests)
        return None if test is None else _select(test, node, Literal(0.0 if node.dtype.is_float else 0, node.dtype))


def _terms(row: Row, top: Sym) -> dict[Turn, Sum]:
    """What a key has of each turn that is a single value, with a name for the maximum: terms, elements, and f itself."""
    kept, found = dict[Buffer, Sum](), dict[Turn, Sum]()

    def meant(load: Load | Ref) -> Sum | None:
        if isinstance(load, Load) and load.buffer is row.top:
            return atom(top.name)
        known = kept.get(load.buffer) if isinstance(load, Load) else None
        rest = [str(e) for e in load.index if e is not expr(KEY)] if isinstance(load, Load) else []
        return atom(f"({known})[{', '.join(rest)}]") if known is not None and rest else known

    for number, turn in enumerate(row.turns):
        (stmt,) = substitute_block((turn.stmt,), {turn.loop.sym: expr(KEY)})
        bind = _innermost(stmt)
        targets = [] if bind is None else [target.buffer for target in bind.targets]
        if number == row.at:
            need(isinstance(stmt, ir.Bind) and stmt.update == "max" and targets == [row.top], "no maximum of a key's value")
            need(number == 0 or not any(row.top in touched((t.stmt,)) for t in row.turns[:number]), "the maximum comes late")
            assert isinstance(stmt, ir.Bind)
            found[turn] = meaning(stmt.values[0], meant)
        elif _is_sum(turn, row):
            assert bind is not None
            found[turn] = meaning(bind.values[0], meant)
        else:
            need(written((stmt,)) <= {*row.streams, *_inside(stmt)}, "a turn writes what is no sum, and of no key")
            is_one = isinstance(stmt, ir.Bind) and stmt.update is None and stmt.targets[0].index == (expr(KEY),)
            if isinstance(stmt, ir.Bind) and is_one and len(targets) == 1:
                found[turn] = kept[targets[0]] = meaning(stmt.values[0], meant)
                continue
            need(row.top not in touched((stmt,)), "more than a value of a key depends on the maximum")
            need(not any(kept[b].mentions(top.name) for b in touched((stmt,)) & kept.keys()), "a turn depends on the maximum")
            kept |= {b: atom(f"{b.name} of {number}") for b in written((stmt,))}
    return found


def _is_sum(turn: Turn, row: Row) -> bool:
    """Whether a turn adds to what no key has for itself."""
    bind = _innermost(turn.stmt)
    return bind is not None and bind.update == "add" and len(bind.targets) == 1 and bind.targets[0].buffer not in row.streams


def _compare(name: str, first: Expr, second: Expr) -> Value:
    return Op(name, (Index(first, I64), Index(second, I64)), BOOL)


def _select(test: Value, first: Value, second: Value) -> Value:
    return Op("select", (test, first, second), second.dtype)


def _inside(stmt: ir.Stmt) -> set[Buffer]:
    return {s.buffer for s in ir.walk((stmt,)) if isinstance(s, ir.New)}


def _innermost(stmt: ir.Stmt) -> ir.Bind | None:
    while isinstance(stmt, ir.Par | ir.Seq) and len(stmt.body) == 1:
        (stmt,) = stmt.body
    return stmt if isinstance(stmt, ir.Bind) else None


def _innermost_of(turn: Turn) -> ir.Bind:
    bind = _innermost(turn.stmt)
    assert bind is not None
    return bind


def _loops(turn: Turn) -> list[ir.Loop]:
    """The loops around the statement of a sum, but that over keys."""
    found, stmt = list[ir.Loop](turn.around), turn.stmt
    while isinstance(stmt, ir.Par | ir.Seq):
        found.append(stmt)
        (stmt,) = stmt.body
    return found


def _having(stmt: ir.Stmt, value: Value) -> ir.Stmt:
    if isinstance(stmt, ir.Bind):
        return replace(stmt, values=(value,))
    assert isinstance(stmt, ir.Par | ir.Seq)
    return replace(stmt, body=(_having(stmt.body[0], value),))
