"""Loop interchange, with the loop fission and scalar expansion that it needs.

    par M |i| { new s; s = 0; seq K |k| { s += a[i, k] }; y[i] = s }

With `reorder(k, i)` the loop over i is distributed over its statements, and s gets an element for each i:

    new s[M]; par M |i_1| { s[i] = 0 }; seq K |k| { par M |i| { s[i] += a[i, k] } }; par M |i_2| { y[i] = s[i] }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice

from texpr.affine.expr import Sym, expr
from texpr.affine.simplify import Simplifier
from texpr.domain.iterdomain import IterDomain
from texpr.ir import program as ir
from texpr.ir.program.copies import renamed
from texpr.ir.program.rewrite import Rewriter, map_value, replace_loads
from texpr.ir.program.uses import loads, symbols, touched, written
from texpr.ir.value import Buffer, Load, Ref, Value
from texpr.relation.facts import in_loop, known
from texpr.schedule.call import Call
from texpr.schedule.edits import words
from texpr.schedule.rewrite.lets import is_there
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.state import State
from texpr.schedule.tree import Body, loops, path_to, replaced
from texpr.support.record import Mutable, replace
from texpr.support.span import NOWHERE, Span


class Nesting(Mutable):
    """A state in the course of loop interchange. `moved`: each original statement → the current one."""

    call: Call
    state: State
    moved: dict[ir.Stmt, ir.Stmt]

    def loop(self, sym: Sym) -> ir.Loop:
        """The current loop of that symbol."""
        return next(loop for loop in loops(self.state.function.body) if loop.sym == sym)

    def interchange(self, parent: Sym, child: Sym) -> None:
        """Interchanges `parent` with `child`, a statement of its body."""
        outer, inner = self.loop(parent), self.loop(child)
        if self.state.above(outer) & inner.extent.syms():
            inner = self._same_for_all(outer, inner)
        if self.state.above(outer) & inner.extent.syms():
            reason = f"the extent of `{inner.sym.base}` depends on `{outer.sym.base}`, which must stay outside of it"
            raise self.call.refuse("E0905", reason)
        self._expand_all(parent)
        self._lets_before(parent, child)
        self.distribute(parent, child)
        outer = self.loop(parent)
        (inner,) = outer.body
        assert isinstance(inner, ir.Par | ir.Seq)
        self._put(outer, (replace(inner, body=(replace(outer, body=inner.body),)),))

    def _same_for_all(self, outer: ir.Loop, inner: ir.Loop) -> ir.Loop:
        """`inner` with an extent that does not mention `outer`, where it is the same in all iterations of that.

        par n / 64 |bi| { par 64 |ii| { seq i / 64 |k| … } } }, i = 64 * bi + ii: bi.
        """
        around = [
            s for s in path_to(self.state.function.body, inner) or () if isinstance(s, ir.Par | ir.Seq) and s is not inner
        ]
        graph = self.state.graph(around)
        facts = [fact for domain in graph.leaves for fact in in_loop(domain.sym, domain.extent)]
        extent = Simplifier(known((*given(self.state.function), *facts)))(inner.extent.substitute(graph.indices()))
        if self.state.above(outer) & extent.syms():
            return inner
        made = replace(inner, extent=extent)
        self._note((inner,), (made,))
        self._put(inner, (made,))
        self.state = self.state.respelled(IterDomain(self.state.domain(inner).sym, extent))
        return made

    def distribute(self, parent: Sym, child: Sym) -> None:
        """Fission of `parent` into `child` alone, and copies of it for what comes before and after. No `new` is left in it."""
        outer = self.loop(parent)
        at = next(n for n, s in enumerate(outer.body) if isinstance(s, ir.Par | ir.Seq) and s.sym == child)
        self._lets_stay(outer, [outer.body[:at], outer.body[at : at + 1], outer.body[at + 1 :]])
        found: list[ir.Stmt] = []
        for part in (outer.body[:at], outer.body[at + 1 :]):
            if part:
                self.state, copy = self.state.copy_of(outer)
                found.append(_around(copy, part))
            else:
                found.append(outer)
        before, after = found
        middle = _around(outer, outer.body[at : at + 1])
        self._put(outer, tuple(s for s in (before, middle, after) if s is not outer))

    def split_at(self, parent: Sym, sizes: Sequence[int], keeper: int) -> tuple[Sym, ...]:
        """Fission of `parent` into groups of its statements (not counting `new`s); group `keeper` keeps its symbol."""
        self._keep_lets(parent, sizes)
        sizes = self._lets_go_along(parent, sizes)
        self._expand_shared(parent, sizes)
        outer = self.loop(parent)
        groups = _groups(outer.body, sizes)
        self._lets_stay(outer, groups)
        found: list[ir.Loop] = []
        for number, group in enumerate(groups):
            copy = outer
            if number != keeper:
                self.state, copy = self.state.copy_of(outer)
            found.append(_around(copy, group))
        self._put(outer, tuple(found))
        return tuple(loop.sym for loop in found)

    def sort_copies(self, order: Sequence[Sym]) -> None:
        """Puts perfectly nested copies of loops into the `order` of their IterDomains, too."""
        rank = {sym: n for n, sym in enumerate(order)}
        while (pair := self._inverted(rank)) is not None:
            self.interchange(*pair)

    def _inverted(self, rank: Mapping[Sym, int]) -> tuple[Sym, Sym] | None:
        for outer in loops(self.state.function.body):
            match outer.body:
                case (ir.Par() | ir.Seq() as inner,):
                    first, second = self.state.domain(outer).sym, self.state.domain(inner).sym
                    if first in rank and second in rank and rank[first] > rank[second]:
                        return outer.sym, inner.sym
                case _:
                    pass
        return None

    def _lets_stay(self, outer: ir.Loop, groups: Sequence[Body]) -> None:
        for number, group in enumerate(groups):
            named = {s.sym for s in group if isinstance(s, ir.Let)}
            used = named & symbols(tuple(s for other in groups[number + 1 :] for s in other))
            if used:
                let = min((s for s in groups[number] if isinstance(s, ir.Let) and s.sym in used), key=lambda s: s.sym.base)
                name, place = let.sym.base, let.span
                reason = f"the loop over `{outer.sym.base}` cannot be distributed: `let {name}` is used further below in it"
                start = f"let {name} ="
                head = Span(place.source, place.start, place.start + len(start)) if place.text.startswith(start) else NOWHERE
                new = f"new {name}: {let.value.dtype} ="
                raise self.call.refuse("E0905", reason, offers=words(head, f"write `{new} …` instead of `let`", new))

    def _lets_before(self, parent: Sym, child: Sym) -> None:
        """Reads before `parent` what its loop `child` needs and its iterations read alike, if it is there whether there are
        any or not."""
        outer = self.loop(parent)
        path = path_to(self.state.function.body, outer) or ()
        around = [step for step in path if isinstance(step, ir.Par | ir.Seq) and step is not outer]
        inner = tuple(s for s in outer.body if isinstance(s, ir.Par | ir.Seq) and s.sym == child)
        lets = [
            s for s in outer.body if isinstance(s, ir.Let) and s.sym in symbols(inner) and is_there(self.state, s.value, around)
        ]
        if lets:
            before = (replace(let, instance=()) for let in lets)  # it is none of the program's, as there may be no iteration
            self._put(outer, (*before, replace(outer, body=tuple(s for s in outer.body if s not in lets))))

    def _keep_lets(self, parent: Sym, sizes: Sequence[int]) -> None:
        """Makes a `let` that several groups use a local, if it is a float, which occurs in no subscript and no extent."""

        def crosses(let: ir.Stmt) -> bool:
            if not isinstance(let, ir.Let) or not let.value.dtype.is_float:
                return False
            return sum(let in group or let.sym in symbols(group) for group in _groups(self.loop(parent).body, sizes)) > 1

        while (let := next((s for s in self.loop(parent).body if crosses(s)), None)) is not None:
            outer = self.loop(parent)
            assert isinstance(let, ir.Let)
            buffer = Buffer(self.state.fresh(let.sym.base), let.value.dtype, (), "local", span=let.span)
            body = tuple(_kept(s, let, Load(buffer, (), span=let.span)) for s in outer.body)
            self._note(outer.body, body)
            self._put(outer, (replace(outer, body=(ir.New(buffer, span=let.span), *body)),))

    def _lets_go_along(self, parent: Sym, sizes: Sequence[int]) -> Sequence[int]:
        """Copies a `let` into each later group that uses it, if it has the same value there; gives the new sizes."""
        outer = self.loop(parent)
        lets = [s for s in outer.body if isinstance(s, ir.Let) and _says_the_same(s, outer)]
        names = iter(self.state.all_fresh(let.sym.base for _ in sizes for let in lets))
        made: list[Body] = []
        for group in _groups(outer.body, sizes):
            own = group
            for let in reversed(lets):
                if let not in group and let.sym in symbols(own):
                    own = renamed((let, *own), {let.sym: Sym(next(names))}, {})
            self._note(group, own[len(own) - len(group) :])
            made.append(tuple(s for s in own if not isinstance(s, ir.New)))
        news = tuple(s for s in outer.body if isinstance(s, ir.New))
        self._put(outer, (replace(outer, body=(*news, *(s for group in made for s in group))),))
        return [len(group) for group in made]

    def _expand_all(self, parent: Sym) -> None:
        """Expands every `new` directly inside `parent`."""
        while (new := next((s for s in self.loop(parent).body if isinstance(s, ir.New)), None)) is not None:
            self._expand(self.loop(parent), new)

    def _expand_shared(self, parent: Sym, sizes: Sequence[int]) -> None:
        """Expands every `new` directly inside `parent` that several groups access."""

        def is_shared(new: ir.New) -> bool:
            return sum(new.buffer in touched(group) for group in _groups(self.loop(parent).body, sizes)) > 1

        while (new := next((s for s in self.loop(parent).body if isinstance(s, ir.New) and is_shared(s)), None)) is not None:
            self._expand(self.loop(parent), new)

    def _expand(self, outer: ir.Loop, new: ir.New) -> None:
        """Expansion: `new v` inside `outer` becomes one `new` outside, with an element for each iteration."""
        old, domain = new.buffer, self.state.domain(outer)
        if old in self.state.allocations:
            reason = f"`{old.name}` has an allocation of its own, made before these loops were moved"
            raise self.call.refuse("E0905", reason, help="an allocation is shaped behind all that moves loops")
        if self.state.above(outer) & {s for e in old.shape for s in e.syms()}:
            reason = f"the shape of `{old.name}` depends on `{outer.sym.base}`, so it cannot be kept for all iterations"
            raise self.call.refuse("E0905", reason)
        made = replace(old, shape=(domain.extent, *old.shape), role="local")

        def load(found: Load) -> Load | None:
            return replace(found, buffer=made, index=(expr(domain.sym), *found.index)) if found.buffer is old else None

        def value(found: Value) -> Value:
            return replace_loads(found, load)

        def target(found: Load) -> Load:
            moved = value(found)
            assert isinstance(moved, Load)
            return moved

        rewriter = Rewriter(value=value, target=target, buffer=lambda b: made if b is old else b)
        kept = tuple(s for s in outer.body if s is not new)
        body = rewriter.block(kept)
        self._note(kept, body)
        self._put(outer, (replace(new, buffer=made), replace(outer, body=body)))

    def _note(self, old: Body, new: Body) -> None:
        """Records that statements of `old` are now those of `new`."""
        became = dict(zip(ir.walk(old), ir.walk(new), strict=True))
        later = set(self.moved.values())
        self.moved = {start: became.get(now, now) for start, now in self.moved.items()}
        self.moved.update({before: now for before, now in became.items() if before not in later})

    def _put(self, loop: ir.Loop, made: Body) -> None:
        self.state = self.state.with_body(replaced(self.state.function.body, loop, lambda _: made))


def _kept(stmt: ir.Stmt, let: ir.Let, place: Load) -> ir.Stmt:
    """`stmt` with reads of `let` replaced by `place`, or with its definition stored there."""
    if stmt is let:
        return ir.Bind((place,), (let.value,), span=let.span, instance=let.instance)

    def value(old: Value) -> Value:
        return map_value(old, lambda node: place if isinstance(node, Ref) and node.sym == let.sym else None)

    return Rewriter(value=value).stmt(stmt)


def _says_the_same(let: ir.Let, outer: ir.Loop) -> bool:
    """Whether `let`, in the body of `outer`, has the same value wherever an iteration evaluates it: its operands are never
    written after it, or are private to the iteration."""
    own = {s.buffer for s in outer.body if isinstance(s, ir.New)}
    read = {load.buffer for load in loads(let)}
    after = outer.body[outer.body.index(let) + 1 :]
    return not read & written(after) and not (read - own) & written(outer.body)


def _groups(body: Body, sizes: Sequence[int]) -> list[Body]:
    """The statements of `body` in groups of `sizes`, each preceded by the `new`s of the locals that it accesses first."""
    news = [s for s in body if isinstance(s, ir.New)]
    rest = iter([s for s in body if not isinstance(s, ir.New)])
    groups: list[Body] = []
    for size in sizes:
        group = tuple(islice(rest, size))
        here = touched(group)
        mine = [new for new in news if new.buffer in here]
        news = [new for new in news if new not in mine]
        groups.append((*mine, *group))
    return groups


def _around(loop: ir.Loop, body: Body) -> ir.Loop:
    """`loop` around `body`; its `reduce` is kept only for buffers that are updated there."""
    updated = {t.buffer for s in ir.walk(body) if isinstance(s, ir.Bind) and s.update is not None for t in s.targets}
    return replace(loop, body=body, reduce=tuple(b for b in loop.reduce if b in updated))


def chain(call: Call, state: State, named: Sequence[ir.Loop]) -> tuple[ir.Loop, ...]:
    """The loops from the outermost of `named` to the innermost, which must lie on one path with nothing else between."""
    paths = [path_to(state.function.body, loop) or () for loop in named]
    deepest = max(paths, key=len)
    for loop in named:
        if all(step is not loop for step in deepest):
            inner = next(s for s in reversed(deepest) if isinstance(s, ir.Par | ir.Seq))
            reason = f"the loops over `{loop.sym.base}` and `{inner.sym.base}` are not nested"
            raise call.refuse("E0905", reason, help="only loops one inside the other can change places")
    first = min(next(n for n, step in enumerate(deepest) if step is loop) for loop in named)
    found: list[ir.Loop] = []
    for step in deepest[first:]:
        if not isinstance(step, ir.Par | ir.Seq):
            raise call.refuse(
                "E0905", "an `if` stands between these loops", help="an `if` inside the innermost of them is in nobody's way"
            )
        found.append(step)
    return tuple(found)
