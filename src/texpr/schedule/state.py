"""A program while it is scheduled: its loops are those of the loop domain, its indices still those of the logical one.

`split(i, 128) -> (bi, ti)` makes two loops of the loop over `i` and leaves every statement, which mentions `i`, unchanged:
the graph records i = bi · 128 + ti. So the order and the shape of loops may change freely, no statement is rewritten, and the
predicates are computed once, at the end (`texpr.schedule.rewrite.materialise`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache
from itertools import count

from texpr.affine.expr import Expr, Sym
from texpr.domain.graph import DomainGraph
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transform import Transform
from texpr.ir import program as ir
from texpr.ir.program.rewrite import with_blocks
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer
from texpr.isa.target import Target
from texpr.schedule.tree import Body, below, loops, replaced
from texpr.support.record import Record, field, replace


class Staged(Record):
    """The effect of a `stage` directive, for `explain`: `name` holds part of `of` during an iteration of `at`.

    `base`: the start of the part in `of`, along each dimension, where it is a box. `fill`: the value of holes, None for
    undefined. `stages`: the slots of its ring, 1 for none; `lag`: turns that a slot rests after its use. `copied_out`: it is
    stored at the end of the iteration. `is_open`: no fill was given.
    """

    name: str
    of: str
    at: str
    via: str
    base: tuple[str, ...]
    fill: float | None = None
    stages: int = 1
    lag: int = 0
    copied_out: bool = False
    is_open: bool = False


class State(Record):
    """`function` has loops over leaves. `domain_of`: the IterDomain of a loop where it does not have the loop's own symbol,
    as two loops may run over one IterDomain after distribution. `allocations`: the graphs of buffers whose memory has
    another shape than their indices. `staged`: the stage directives, in order. `dependent`: whether a launch may start before
    the one before it has ended."""

    function: ir.Function
    target: Target
    transforms: tuple[Transform, ...] = ()
    domain_of: Mapping[Sym, IterDomain] = field(default_factory=dict[Sym, IterDomain])
    allocations: Mapping[Buffer, DomainGraph] = field(default_factory=dict[Buffer, DomainGraph])
    staged: tuple[Staged, ...] = ()
    min_blocks: int = 0
    dependent: bool = True

    def domain(self, loop: ir.Loop) -> IterDomain:
        """The IterDomain that `loop` runs over."""
        return self.domain_of.get(loop.sym) or _domain(loop.sym, loop.extent)

    def above(self, loop: ir.Loop) -> frozenset[Sym]:
        """The IterDomain of `loop` and every one above it, whose index is computed from that of `loop`."""
        found = {self.domain(loop).sym}
        for transform in reversed(self.transforms):
            if any(d.sym in found for d in transform.outputs):
                found |= {d.sym for d in transform.inputs}
        return frozenset(found)

    def with_body(self, body: Body) -> State:
        """The same with another body."""
        return replace(self, function=replace(self.function, body=body))

    def alone(self, stmt: ir.Stmt) -> State:
        """The same without the siblings of the outermost statement that contains `stmt`, except what it uses; without any where
        a directive has replaced it.

        It is all that dependences within `stmt` depend on.
        """
        body = self.function.body
        whole = [each for each in body if stmt is each or stmt in below(each)]
        used = {load.buffer for inner in ir.walk(tuple(whole)) for load in loads(inner)}
        kept = (s for s in body if s in whole or isinstance(s, ir.Let) or (isinstance(s, ir.New) and s.buffer in used))
        return self.with_body(tuple(kept))

    def with_ring(self, names: Collection[str], stages: int, lag: int = 0) -> State:
        """The same with a ring of so many slots for the staged buffers `names`, which are filled again after `lag` turns."""
        made = (replace(each, stages=stages, lag=lag) if each.name in names else each for each in self.staged)
        return replace(self, staged=tuple(made))

    def with_transform(self, transform: Transform) -> State:
        """The same with a further transform."""
        return replace(self, transforms=(*self.transforms, transform))

    def graph(self, around: Iterable[ir.Loop]) -> DomainGraph:
        """From the logical IterDomains to the loops `around` a statement, as leaves."""
        return ending_in(self.transforms, tuple(self.domain(loop) for loop in around))

    def taken(self) -> frozenset[str]:
        """Names in use, which a new loop or buffer may not have."""
        function = self.function
        own = frozenset[str]().union(*map(_names, function.body))
        buffers = (b.name for b in (*function.params, *function.results))
        sizes = (s.name for s in (*function.sizes, *(s for s, _ in function.consts)))
        domains = (d.sym.name for t in self.transforms for d in (*t.inputs, *t.outputs))
        played = (name for s, d in self.domain_of.items() for name in (s.name, d.sym.name))
        return frozenset((function.name, *buffers, *sizes, *own, *domains, *played))

    def fresh(self, base: str) -> str:
        """`base`, or the first of `base_1`, `base_2`, … that is free."""
        (name,) = self.all_fresh((base,))
        return name

    def all_fresh(self, bases: Iterable[str]) -> tuple[str, ...]:
        """A free name for each of `bases`, all different."""
        taken = self.taken()
        return tuple(next(name for n in count() if (name := f"{b}_{n}" if n else b) not in taken) for b in bases)

    def respelled(self, domain: IterDomain) -> State:
        """The same with the extent of an IterDomain as another expression of the same value."""
        made = tuple(transform.respelled(domain) for transform in self.transforms)
        other = {sym: domain if found.sym == domain.sym else found for sym, found in self.domain_of.items()}
        return replace(self, transforms=made, domain_of=other)

    def copies(self, loop: ir.Loop) -> tuple[ir.Loop, ...]:
        """Every loop over the IterDomain of `loop`, itself among them."""
        domain = self.domain(loop).sym
        return tuple(s for s in loops(self.function.body) if self.domain(s).sym == domain)

    def changed(self, loop: ir.Loop, change: Callable[[ir.Loop], ir.Loop]) -> State:
        """The same with every copy of `loop` changed; `change` must keep bodies and symbols."""
        wanted = {copy.sym for copy in self.copies(loop)}

        def visit(body: Body) -> Body:
            found: list[ir.Stmt] = []
            for stmt in body:
                made = with_blocks(stmt, tuple(visit(block) for block in ir.blocks(stmt)))
                found.append(change(made) if isinstance(made, ir.Par | ir.Seq) and made.sym in wanted else made)
            return tuple(found)

        return self.with_body(visit(self.function.body))

    def renamed(self, old: Sym, new: Sym) -> State:
        """The same with the loop `old` renamed to `new`; it runs over the same IterDomain."""
        loop = next(s for s in loops(self.function.body) if s.sym == old)
        body = replaced(self.function.body, loop, lambda _: (replace(loop, sym=new),))
        return replace(self.with_body(body), domain_of={**self.domain_of, new: self.domain(loop)})

    def copy_of(self, loop: ir.Loop, base: str | None = None) -> tuple[State, ir.Loop]:
        """A loop with a fresh name, based on `base` or its own, over the same IterDomain, without a body."""
        name = Sym(self.fresh(base or loop.sym.base))
        return replace(self, domain_of={**self.domain_of, name: self.domain(loop)}), replace(loop, sym=name, body=())


@lru_cache(maxsize=1 << 12)
def _domain(sym: Sym, extent: Expr) -> IterDomain:
    return IterDomain(sym, extent)


@lru_cache(maxsize=1 << 12)
def _names(stmt: ir.Stmt) -> frozenset[str]:
    """Names of loops, values and buffers in `stmt`; memoised, as most statements survive a directive."""
    own = frozenset(s.sym.name for s in ir.walk((stmt,)) if isinstance(s, ir.Par | ir.Seq | ir.Let))
    return own | {s.buffer.name for s in ir.walk((stmt,)) if isinstance(s, ir.New)}


def ending_in(transforms: tuple[Transform, ...], leaves: tuple[IterDomain, ...]) -> DomainGraph:
    """The subgraph of the transforms all of whose outputs `leaves` determine."""
    known = {d.sym for d in leaves}
    kept: list[Transform] = []
    for transform in reversed(transforms):
        first, *others = transform.outputs
        if first.sym in known and all(d.sym in known for d in others):
            kept.append(transform)
            known |= {d.sym for d in transform.inputs}
    kept.reverse()
    made = {d.sym for t in kept for d in t.outputs}
    tops = dict.fromkeys(d for d in (*(d for t in kept for d in t.inputs), *leaves) if d.sym not in made)
    return DomainGraph(tuple(tops), tuple(kept), leaves)
