"""Index-set splitting: loops split into the iterations whose predicates all hold and the rest.

A predicate `left < right` in a loop's body holds in every inner iteration where it holds for the greatest `left`. Where that
is invariant in the loop, it is tested once, before it; where it grows with a `seq`, the loop ends where it first fails:

    seq 16 |ki| { if 16 * ko + ki < K { par 4 |r| { if 4 * t + r < M { … } } } }

    if 4 * t + 3 < M { seq min(16, K - 16 * ko) |ki| { par 4 |r| { … } } }
    else             { seq min(16, K - 16 * ko) |ki| { par 4 |r| { if 4 * t + r < M { … } } } }

If iterations after that end do something, they run in a second loop, and the other copy is unchanged. A `par` without a level
of the machine ends where no later iteration does anything; one that only copies, and fills what there is not, has a copy that
fills nothing.

Loops that a schedule names are split, and others where it pays: an innermost `seq` of one thread that repeats its tests. Of
what lanes do on registers the conditions of `select` are such tests, too, and the loop over lanes has a copy without them:

    fully par 256 |lane| { seq 64 |r| { s[lane, r] = select(64 * kb + … <= 128 * i + …, s[lane, r], -inf) } }

    if 64 * kb + 63 <= 128 * i { fully par 256 |lane| { seq 64 |r| { s[lane, r] = s[lane, r] } } } else { … }
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import count

from texpr.affine.expr import ONE, ZERO, Expr, Min, Sym, combination, expr, maximum, minimum, term
from texpr.affine.ranges import bounds
from texpr.ir import program as ir
from texpr.ir.program.copies import copied
from texpr.ir.program.marked import level_of, mark, unmarked
from texpr.ir.program.marks import Partition, Unroll, Vector
from texpr.ir.program.rewrite import map_value, substitute_block, with_blocks
from texpr.ir.value import Index, Op, Value, conjunction, conjuncts, walk
from texpr.ir.value.types import BOOL, I64
from texpr.relation.facts import in_loop, known
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.tree import Body
from texpr.support.record import Mutable, Record, replace

LEAST_TRIPS, MOST_COPIED = 4, 256
"""A loop is split by default with at least this trip count, and at most so many statements, unrolled, in the second copy."""

LEAST_MASKED = 8
"""Elements of a lane, of which each is tested, for which a test of all is worth it."""


def partitioned(function: ir.Function) -> ir.Function:
    """`function` with marked loops, and those where it pays, split; the marks are removed."""
    taken = {b.name for b in ir.buffers(function)} | {s.name for s in function.sizes}
    taken |= {s.sym.name for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq | ir.Let)}
    return replace(function, body=_Parter(taken, tuple(given(function))).block(function.body, ()))


class _Test(Record):
    """margin ≥ 0, as part of a condition."""

    value: Value
    margin: Expr


class _Parter(Mutable):
    taken: set[str]
    given: tuple[Expr, ...]

    def block(self, body: Body, around: tuple[ir.Loop, ...]) -> Body:
        """Every loop of `body` that is to be split, innermost first."""
        found: list[ir.Stmt] = []
        for stmt in body:
            path = (*around, stmt) if isinstance(stmt, ir.Par | ir.Seq) else around
            made = with_blocks(stmt, tuple(self.block(block, path) for block in ir.blocks(stmt)))
            if isinstance(made, ir.Par) and made.fully and _masks_much(made):
                found.extend(self._unmasked(made))
            elif isinstance(made, ir.Par | ir.Seq):
                asked = mark(made, Partition)
                made = unmarked(made, Partition) if asked else made
                wanted = _pays(made, around) if asked is None else asked.on
                found.extend(self._part(made, around) if wanted else (made,))
            else:
                found.append(made)
        return tuple(found)

    def _unmasked(self, loop: ir.Par) -> Body:
        """What lanes do, and the same where no `select` in it decides anything."""
        inner = {s.sym: s.extent for s in ir.walk((loop,)) if isinstance(s, ir.Par | ir.Seq)}
        least = [(test, low) for test in dict.fromkeys(_masks(loop.body)) if (low := _least(test.margin, inner)) is not None]
        if not least:
            return (loop,)
        plain = replace(loop, body=_unselected(loop.body, {test.value for test, _ in least}))
        return self._either(tuple(low for _, low in least), (plain,), (loop,))

    def _part(self, loop: ir.Loop, around: tuple[ir.Loop, ...]) -> Body:
        said = {s.sym for s in ir.walk(loop.body) if isinstance(s, ir.Let)}  # data, read in each iteration
        tests = tuple(test for test in dict.fromkeys(tests_of(loop.body)) if said.isdisjoint(test.margin.syms()))
        inner = {s.sym: s.extent for s in ir.walk(loop.body) if isinstance(s, ir.Par | ir.Seq)}
        least = [(test, low) for test in tests if (low := _least(test.margin, inner)) is not None]
        if isinstance(loop, ir.Par):
            least = least if tests else self._fills(loop, said, inner)
            body = self._either(tuple(low for _, low in least), _without(loop.body, [t for t, _ in least]), loop.body)
            return (replace(loop, extent=self._reach(loop, tests, inner, around), body=body),)
        fixed = [(t, low) for t, low in least if loop.sym not in low.syms()]
        moving = [(t, end) for t, low in least if (end := end_of(low, loop.sym)) is not None and not _is_unrolled(loop)]
        main = self._ended(loop, moving, _without(loop.body, [t for t, _ in (*fixed, *moving)]), around)
        rest = self._ended(loop, moving, _without(loop.body, [t for t, _ in moving]), around) if len(main) == 1 else (loop,)
        return self._either(tuple(low for _, low in fixed), main, rest)

    def _fills(self, loop: ir.Par, said: set[Sym], inner: Mapping[Sym, Expr]) -> list[tuple[_Test, Expr]]:
        """The tests by which copies in `loop` fill what there is not, and the least that is ≥ 0 where they hold."""
        tests = (test for test in dict.fromkeys(tests_of(loop.body, True)) if said.isdisjoint(test.margin.syms()))
        return [(test, low) for test in tests if (low := _least(test.margin, inner)) is not None]

    def _reach(self, loop: ir.Par, tests: Sequence[_Test], inner: Mapping[Sym, Expr], around: tuple[ir.Loop, ...]) -> Expr:
        """The extent of `loop` without trailing iterations that do nothing, if it is bound to no level and its trip count
        need not be constant, as that of vectorized and unrolled loops."""
        written = mark(loop, Vector) is not None or mark(loop, Unroll) is not None
        if written or level_of(loop) is not None or not loop.extent.is_constant or loop.fully:
            return loop.extent
        for test in tests:
            most = greatest_of(test.margin, inner)
            end = None if most is None else end_of(most, loop.sym)
            if most is not None and end is not None and asks(loop.body, lambda part, most=most: implies(part, most, inner)):
                end = minimum(loop.extent, end)
                return end if self._is_positive(end, around) else maximum(ZERO, end)
        return loop.extent

    def _is_positive(self, end: Expr, around: tuple[ir.Loop, ...]) -> bool:
        """Whether a minimum is never negative in the loops around."""
        facts = list(self.given)
        for loop in around:
            facts += in_loop(loop.sym, loop.extent)
        promised = known(facts)
        atom = end.as_atom
        return all(map(promised.nonnegative, atom.args if isinstance(atom, Min) else (end,)))

    def _ended(self, loop: ir.Seq, moving: Sequence[tuple[_Test, Expr]], body: Body, around: tuple[ir.Loop, ...]) -> Body:
        """The iterations before the first `end`, and the rest as it was, unless it does nothing."""
        if not moving:
            return (replace(loop, body=body),)
        end = minimum(loop.extent, *(e for _, e in moving))
        end = end if self._is_positive(end, around) else maximum(ZERO, end)
        main = replace(loop, extent=end, body=body)
        if any(_covers(loop.body, t) for t, _ in moving) and len({e for _, e in moving}) == 1:
            return (main,)
        rest = replace(loop, extent=loop.extent - end, body=substitute_block(loop.body, {loop.sym: end + loop.sym}))
        return (main, *copied((rest,), self._fresh))

    def _either(self, margins: Sequence[Expr], then: Body, orelse: Body) -> Body:
        """One of two copies, by the margins. Both share the locals at their start, as only one of them runs."""
        least: dict[Expr, Expr] = {}  # of margins that differ by a constant, the smallest suffices
        for margin in margins:
            rest = margin - margin.constant
            least[rest] = min(margin, least.get(rest, margin), key=lambda m: m.constant)
        test = conjunction([holds(m) for m in least.values()])
        if test is None:
            return then
        both = tuple(s for s in orelse if isinstance(s, ir.New) and s in then)
        then, orelse = (tuple(s for s in body if s not in both) for body in (then, orelse))
        then, orelse = _settled(then, tuple(least.values()), True), _settled(orelse, tuple(least.values()), False)
        return (*both, ir.If(test, then, copied(orelse, self._fresh), span=orelse[0].span))

    def _fresh(self, base: str) -> str:
        plain, _, _ = base.partition("'")  # nothing may follow the number of `x'1` in a text
        name = next(n for k in count(1) if (n := f"{plain}_{k}") not in self.taken)
        self.taken.add(name)
        return name


def _pays(loop: ir.Loop, around: tuple[ir.Loop, ...]) -> bool:
    """Whether one thread runs `loop` often enough, and it is small enough, to justify a second copy."""
    if not isinstance(loop, ir.Seq) or (loop.extent.is_constant and loop.extent.constant < LEAST_TRIPS):
        return False
    alone = any((level_of(p) or "").startswith(("block", "warp", "lane")) for p in around)
    copied = 1
    for stmt in ir.walk(loop.body):
        match stmt:
            case ir.Par() if alone and stmt.extent.is_constant and not stmt.fully:
                copied *= max(1, stmt.extent.constant)
            case ir.Bind() | ir.If() | ir.New():
                pass
            case _:
                return False
    return copied <= MOST_COPIED and any(isinstance(p, ir.Par) for p in around)


def _masks_much(loop: ir.Par) -> bool:
    """Whether each lane does little else than to test, of many elements, whether they count."""
    many = 1
    body: Body = loop.body
    while len(body) == 1 and isinstance(inner := body[0], ir.Seq) and inner.extent.is_constant:
        many, body = many * inner.extent.constant, inner.body
    return many >= LEAST_MASKED and len(body) == 1 and isinstance(body[0], ir.Bind) and any(True for _ in _masks(body))


def _masks(body: Body) -> Iterator[_Test]:
    """The affine comparisons in the conditions of every `select` below."""
    for stmt in ir.walk(body):
        for value in stmt.values if isinstance(stmt, ir.Bind) else ():
            for node in walk(value):
                if isinstance(node, Op) and node.name == "select":
                    margins = ((part, margin_of(part)) for part in conjuncts(node.args[0]))
                    yield from (_Test(part, margin) for part, margin in margins if margin is not None)


def _unselected(body: Body, gone: Container[Value]) -> Body:
    """`body` where the tests in `gone` hold: of a `select` on nothing else the first arm is left."""

    def chosen(node: Value) -> Value | None:
        match node:
            case Op("select", (test, then, orelse)):
                left = conjunction([part for part in conjuncts(test) if part not in gone])
                return map_value(then, chosen) if left is None else replace(node, args=(left, then, orelse))
            case _:
                return None

    def of(stmt: ir.Stmt) -> ir.Stmt:
        if isinstance(stmt, ir.Bind):
            return replace(stmt, values=tuple(map_value(value, chosen) for value in stmt.values))
        return with_blocks(stmt, tuple(tuple(map(of, block)) for block in ir.blocks(stmt)))

    return tuple(map(of, body))


def _is_unrolled(loop: ir.Loop) -> bool:
    """Whether `loop` is unrolled completely, so that its trip count must stay."""
    found = mark(loop, Unroll)
    return found is not None and found.factor is None


def tests_of(body: Body, filled: bool = False) -> Iterator[_Test]:
    """The affine comparisons in the condition of every `if` without `else` below or, if `filled`, with one."""
    for stmt in ir.walk(body):
        if isinstance(stmt, ir.If) and bool(stmt.orelse) == filled:
            for part in conjuncts(stmt.condition):
                margin = margin_of(part)
                if margin is not None:
                    yield _Test(part, margin)


def margin_of(value: Value) -> Expr | None:
    """The expression that is ≥ 0 where the comparison holds."""
    match value:
        case Op("lt", (Index(left), Index(right))):
            return right - left - 1
        case Op("le", (Index(left), Index(right))):
            return right - left
        case Op("gt", (Index(left), Index(right))):
            return left - right - 1
        case Op("ge", (Index(left), Index(right))):
            return left - right
        case _:
            return None


def holds(margin: Expr) -> Value:
    """margin ≥ 0, with negative terms moved to the left."""
    left = combination(0, ((m, -c) for m, c in margin.terms if c < 0)) + max(0, -margin.constant)
    return Op("le", (Index(left, I64), Index(margin + left, I64)), BOOL)


def _least(margin: Expr, inner: Mapping[Sym, Expr]) -> Expr | None:
    """A lower bound of a margin over the loops inside, of constant extents; None where they occur in products with others."""
    moving = ZERO
    for monomial, coefficient in margin.terms:
        part = term(monomial, coefficient)
        if part.syms() & inner.keys():
            moving = moving + part
    if not all(s in inner and inner[s].is_constant for s in moving.syms()):
        return None
    low, _ = bounds(moving, {s: (0, max(0, inner[s].constant - 1)) for s in moving.syms()})
    return None if low is None else margin - moving + low


def end_of(margin: Expr, sym: Sym) -> Expr | None:
    """The first value of `sym` at which a margin that decreases in it is negative; None where it does not decrease linearly."""
    slope = next((c for m, c in margin.terms if m == (sym,)), 0)
    rest = margin - expr(sym) * slope
    if slope >= 0 or sym in rest.syms():
        return None
    return rest // -slope + ONE


def greatest_of(margin: Expr, inner: Mapping[Sym, Expr]) -> Expr | None:
    """An upper bound of a margin, dual to `_least`."""
    found = _least(-margin, inner)
    return None if found is None else -found


def _covers(body: Body, test: _Test) -> bool:
    """Whether nothing in `body` runs where `test` fails, and `test` is invariant inside."""
    inner = {s.sym for s in ir.walk(body) if isinstance(s, ir.Par | ir.Seq)}
    return not test.margin.syms() & inner and asks(body, lambda part: part == test.value)


def asks(body: Body, is_meant: Callable[[Value], bool]) -> bool:
    """Whether every computing statement is guarded by an `if` with a conjunct that `is_meant` accepts."""
    for stmt in body:
        match stmt:
            case ir.New():
                continue
            case ir.If():
                below = (stmt.orelse,) if any(map(is_meant, conjuncts(stmt.condition))) else (stmt.then, stmt.orelse)
            case ir.Par() | ir.Seq():
                below = (stmt.body,)
            case _:
                return False
        if not all(asks(block, is_meant) for block in below):
            return False
    return True


def implies(test: Value, most: Expr, inner: Mapping[Sym, Expr]) -> bool:
    """Whether a test implies `most` ≥ 0."""
    margin = margin_of(test)
    own = None if margin is None else greatest_of(margin, inner)
    return own is not None and (more := most - own).is_constant and more.constant >= 0


def _settled(body: Body, margins: Sequence[Expr], whole: bool) -> Body:
    """`body` where all of `margins` are ≥ 0 (`whole`), or one is not: an `if` with `else` on exactly that is replaced by one
    branch."""
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(_settled(block, margins, whole) for block in ir.blocks(stmt)))
        if not isinstance(made, ir.If) or not made.orelse:
            found.append(made)
        elif whole and all(_follows(part, margins) for part in conjuncts(made.condition)):
            found.extend(made.then)
        elif not whole and {margin_of(part) for part in conjuncts(made.condition)} == set(margins):
            found.extend(made.orelse)
        else:
            found.append(made)
    return tuple(found)


def _follows(test: Value, margins: Sequence[Expr]) -> bool:
    margin = margin_of(test)
    return margin is not None and any((more := margin - known).is_constant and more.constant >= 0 for known in margins)


def _without(body: Body, tests: Sequence[_Test]) -> Body:
    """`body` with the conjuncts in `tests` removed from its conditions."""
    gone = {test.value for test in tests}
    found: list[ir.Stmt] = []
    for stmt in body:
        made = with_blocks(stmt, tuple(_without(block, tests) for block in ir.blocks(stmt)))
        if isinstance(made, ir.If) and any(part in gone for part in conjuncts(made.condition)):
            left = [part for part in conjuncts(made.condition) if part not in gone]
            test = conjunction(left)
            found.extend(made.then if test is None else (replace(made, condition=test),))
        else:
            found.append(made)
    return tuple(found)
