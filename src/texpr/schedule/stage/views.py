"""Tensors viewed with other dimensions: neighbours merged, and dimensions split by a divisor of their size.

    A: f32[P, M, K]     merge(p, i) -> pi  split(pi, 16) -> (b, t)     A as f32[P · M, K]: rows 16 · b + t
    A: f32[M, K]        split(i, 32) -> (t, s), s outside               A as f32[M / 32, 32, K]: rows (t, s)

The region of one iteration may be a box in the one and not in the other. Merges need contiguous neighbours, splits a divisor:
then elements correspond one to one, and memory is the same. These are the views of a TMA domain in "Introduction to TMA
Support in NVFuser" (NVIDIA).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.simplify import Simplifier
from texpr.domain.graph import DomainGraph
from texpr.domain.transforms.merge import Merge
from texpr.domain.transforms.split import Split
from texpr.ir.value import Buffer
from texpr.relation.facts import in_loop, known
from texpr.schedule.rewrite.materialise import given
from texpr.schedule.stage.boxes import dense_strides
from texpr.schedule.stage.region import Box, NoBox, Use, box, inside, subscripts
from texpr.schedule.state import State
from texpr.support.record import Record, replace


class View(Record):
    """`counts`: for each dimension of the view before splits, the number of the tensor's dimensions merged in it. `factors`:
    by which it is split, the innermost last: 1 for no split, f for (size / f, f)."""

    counts: tuple[int, ...]
    factors: tuple[int, ...]

    @classmethod
    def plain(cls, rank: int) -> View:
        """The identity."""
        return cls((1,) * rank, (1,) * rank)

    @property
    def is_plain(self) -> bool:
        """Whether these are the tensor's own dimensions."""
        return all(n == 1 for n in (*self.counts, *self.factors))

    @property
    def words(self) -> tuple[int, ...]:
        """The numbers that encode it in a mark."""
        return tuple(n for pair in zip(self.counts, self.factors, strict=True) for n in pair)

    @classmethod
    def read(cls, words: Sequence[int]) -> View:
        """The view encoded in a mark."""
        return cls(tuple(words[::2]), tuple(words[1::2]))

    def of(self, buffer: Buffer) -> Buffer:
        """`buffer` with the dimensions of the view. Its memory is the same."""
        if self.is_plain:
            return buffer
        shape: list[Expr] = []
        strides: list[Expr] = []
        own = dense_strides(buffer)
        for part, factor in zip(self._parts(range(buffer.rank)), self.factors, strict=True):
            size = expr(1)
            for dim in part:
                size = size * buffer.shape[dim]
            step = own[part[-1]]
            shape += [size] if factor == 1 else [size // factor, expr(factor)]
            strides += [step] if factor == 1 else [step * factor, step]
        return replace(buffer, shape=tuple(shape), strides=None if buffer.strides is None else tuple(strides))

    def seen(self, index: Sequence[Expr], shape: Sequence[Expr], simple: Callable[[Expr], Expr]) -> tuple[Expr, ...]:
        """An index of the tensor, of `shape`, in the dimensions of the view."""
        found: list[Expr] = []
        for part, factor in zip(self._parts(range(len(index))), self.factors, strict=True):
            total = ZERO
            for dim in part:
                total = total * shape[dim] + index[dim]
            total = simple(total)
            found += [total] if factor == 1 else [simple(total // factor), simple(total % factor)]
        return tuple(found)

    def meant(self, index: Sequence[Expr], shape: Sequence[Expr]) -> tuple[Expr, ...]:
        """The tensor's own index, of one in the dimensions of the view."""
        found: list[Expr] = []
        rest = iter(index)
        for part, factor in zip(self._parts(range(len(shape))), self.factors, strict=True):
            total = next(rest)
            total = total if factor == 1 else total * factor + next(rest)
            own: list[Expr] = []
            for dim in reversed(part[1:]):
                own.append(total % shape[dim])
                total = total // shape[dim]
            found += [total, *reversed(own)]
        return tuple(found)

    def _parts(self, dims: Sequence[int]) -> Iterator[Sequence[int]]:
        at = 0
        for count in self.counts:
            yield dims[at : at + count]
            at += count


class Seen(Record):
    """A box, in the dimensions of a view (None for the tensor's own), and accesses with their subscripts in these."""

    view: View | None
    uses: tuple[Use, ...]
    box: Box


def viewed(state: State, uses: Sequence[Use], most: int) -> Seen:
    """A view in which the region of `uses` is a box, that with the fewest merges. Raises NoBox where there is none.

    A dimension of which only every n-th element is accessed, with n above `most`, is split by n where that divides it.
    """
    buffer = uses[0].load.buffer
    try:
        return _split(state, Seen(None, tuple(uses), box(state, uses)), most)
    except NoBox as reason:
        problem = reason
    for view in _merged(buffer):
        seen = seen_by(state, uses, view)
        try:
            return _split(state, Seen(view, seen, box(state, seen)), most)
        except NoBox:
            continue
    raise _told(state, problem)


def _told(state: State, problem: NoBox) -> NoBox:
    """`problem`, or the reason why a merge of discontiguous dimensions has no box."""
    use, buffer = problem.use, problem.use.load.buffer
    transforms = state.graph((*use.outer, *use.inner)).transforms
    apart = any(len(view.counts) == 1 for view in _merged(buffer))
    for merge in transforms:
        cut = next(
            (t for t in transforms if isinstance(t, Split) and isinstance(merge, Merge) and t.input == merge.output), None
        )
        if isinstance(merge, Merge) and cut is not None and cut.inner.extent.is_constant and not apart:
            factor, size = cut.inner.extent, merge.inner.extent
            names = f"`{merge.outer.sym.base}` and `{merge.inner.sym.base}`"
            reason = f"{names} are merged, are not contiguous in memory, and {factor} is not seen to divide {size}"
            return NoBox(use, reason, clause=f"where {size} % {factor} == 0")
    return problem


def seen_by(state: State, uses: Sequence[Use], view: View) -> tuple[Use, ...]:
    """`uses` with their subscripts in the dimensions that are seen."""
    return tuple(replace(use, index=view.seen(use.index, use.load.buffer.shape, _simple(state, use))) for use in uses)


def told_in_views(state: State, use: Use) -> Iterator[Use]:
    """An access as written, and then with the subscripts of each of its views: all of the same element."""
    yield use
    plain = replace(use, index=subscripts(state, use.load, (*use.outer, *use.inner)))
    for view in () if use.load.data else _merged(use.load.buffer):
        (seen,) = seen_by(state, (plain,), view)
        yield replace(use, load=replace(use.load, index=seen.index))


def _merged(buffer: Buffer) -> Iterator[View]:
    """Views that merge contiguous neighbours, those with the most dimensions first, starting with the tensor's own."""
    strides, shape = dense_strides(buffer), buffer.shape
    joints = [(False, True) if strides[d] is strides[d + 1] * shape[d + 1] else (False,) for d in range(buffer.rank - 1)]
    for joined in sorted(product(*joints), key=sum):
        counts = [1]
        for each in joined:
            if each:
                counts[-1] += 1
            else:
                counts.append(1)
        yield View(tuple(counts), (1,) * len(counts))


def _split(state: State, found: Seen, most: int) -> Seen:
    """Dimensions of which only every n-th element is accessed, split by n, where n exceeds the element stride."""
    buffer = found.uses[0].load.buffer
    view = found.view or View.plain(buffer.rank)
    promised = known(inside(state, found.uses[0].outer))
    every = zip(found.box.grain, view.of(buffer).shape, strict=True)
    factors = tuple(grain if grain > most and promised.multiple(size, grain) else 1 for grain, size in every)
    if all(factor == 1 for factor in factors):
        return found
    made = replace(view, factors=factors)
    uses = tuple(replace(use, index=subscripts(state, use.load, (*use.outer, *use.inner))) for use in found.uses)
    seen = seen_by(state, uses, made)
    try:
        return Seen(made, seen, box(state, seen))
    except NoBox:
        return found


def _simple(state: State, use: Use) -> Callable[[Expr], Expr]:
    """The simplifier at an access. A size that a split's factor is promised to divide is written as a multiple of it."""
    graph = state.graph((*use.outer, *use.inner))
    facts = (*given(state.function), *running(graph))
    promised = known(facts)
    factors = sorted({d.extent.constant for t in graph.transforms for d in t.outputs if d.extent.is_constant}, reverse=True)
    there: dict[Sym, Expr] = {}
    back: dict[Sym, Expr] = {}
    for size in state.function.sizes:
        factor = next((f for f in factors if f > 1 and promised.multiple(expr(size), f)), None)
        if factor is not None:
            part = Sym(f"{size.name} / {factor}")
            there[size], back[part] = expr(part) * factor, expr(size) // factor
    simple = Simplifier(promised) if not there else Simplifier(known(fact.substitute(there) for fact in facts))
    return lambda e: simple(e.substitute(there)).substitute(back)


def running(graph: DomainGraph) -> Iterator[Expr]:
    """What is ≥ 0 where the loops over a graph's leaves run, in holes, too: no extent above them is 0."""
    some = {leaf.sym for leaf in graph.leaves}
    for transform in reversed(graph.transforms):
        if transform.fills and all(d.sym in some for d in transform.outputs):
            some |= {d.sym for d in transform.inputs}
    indices = graph.indices()
    for leaf in graph.leaves:
        yield from in_loop(leaf.sym, leaf.extent.substitute(indices))
    yield from (d.extent.substitute(indices) - 1 for d in graph.domains() if d.sym in some)
