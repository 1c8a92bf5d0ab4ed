"""Graphs at random, and what they mean, worked out without any of the product's code but for expressions of sizes.

A `Recipe` is plain data. `graph` builds the product's value from it; `walk` follows every logical index down with integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from random import Random

from texpr.affine.expr import Expr, Sym, expr, sym, xor
from texpr.affine.facts import Known, multiple_of
from texpr.domain import DomainGraph
from texpr.domain.transforms.swizzle import Custom, Permutation, Shift, Xor
from texpr.support.record import Record

POINTS = 1500
"""Leaf points that a recipe may have at each of its sizes."""

KINDS = (*(("split", "merge", "resize") * 2), "split", "outer", "xor", "shift", "mirror", "stride", "blocks")
EXPANDS = ((0, 1), (1, 0), (2, 1), (0, 3), (-1, 0), (0, -1), (-1, 2), (1, -1), (2, -2), (-1, -1), (0, 0))

OUTER, INNER = Sym("o"), Sym("i")


class Size(Record):
    """An extent: a number, or a named size that is a multiple of `unit` and has these values."""

    name: str
    values: tuple[int, ...]
    unit: int = 1

    @property
    def is_fixed(self) -> bool:
        return not self.name


class Step(Record):
    """One transform: its kind, the leaves it takes, those it gives, and its numbers."""

    kind: str  # "split", "outer", "merge", "resize", "xor", "shift", "mirror", "stride", "blocks"
    takes: tuple[str, ...]
    gives: tuple[str, ...]
    numbers: tuple[int, ...] = ()


class Recipe(Record):
    """Logical extents and steps."""

    logical: tuple[tuple[str, Size], ...]
    steps: tuple[Step, ...]

    def sizes(self) -> Iterator[dict[str, int]]:
        """Values of the named sizes, all together."""
        named = {size.name: size.values for _, size in self.logical if not size.is_fixed}
        for values in product(*named.values()):
            yield dict(zip(named, values, strict=True))

    def known(self) -> Known:
        """That sizes are not negative, and of which units they are multiples."""
        named = [size for _, size in self.logical if not size.is_fixed]
        return Known({Sym(s.name): (0, None) for s in named}, [multiple_of(sym(s.name), s.unit) for s in named if s.unit > 1])

    def graph(self) -> DomainGraph:
        """The recipe as the product has it."""
        made = DomainGraph.of(*((name, s.values[0] if s.is_fixed else sym(s.name)) for name, s in self.logical))
        for step in self.steps:
            made = _applied(made, step)
        return made

    def extents(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The extent of every IterDomain."""
        found = {name: size.values[0] if size.is_fixed else sizes[size.name] for name, size in self.logical}
        for step in self.steps:
            _extend(found, step)
        return found

    def leaves(self) -> tuple[str, ...]:
        """Names of the leaves, in no particular order."""
        taken = {name for step in self.steps for name in step.takes}
        every = [*(name for name, _ in self.logical), *(name for step in self.steps for name in step.gives)]
        return tuple(name for name in every if name not in taken)

    def walk(self, sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
        """Each logical index that no resize drops, with the index of every IterDomain."""
        extents = self.extents(sizes)
        names = [name for name, _ in self.logical]
        for point in product(*(range(extents[name]) for name in names)):
            at = dict(zip(names, point, strict=True))
            if all(_down(at, step, extents) for step in self.steps):
                yield at


def _extend(extents: dict[str, int], step: Step) -> None:
    took = [extents[name] for name in step.takes]
    match step.kind:
        case "split":
            made = [-(-took[0] // step.numbers[0]), step.numbers[0]]
        case "outer":
            made = [step.numbers[0], -(-took[0] // step.numbers[0])]
        case "merge":
            made = [took[0] * took[1]]
        case "resize":
            made = [took[0] + sum(step.numbers)]
        case _:
            made = took
    extents.update(zip(step.gives, made, strict=True))


def _down(at: dict[str, int], step: Step, extents: Mapping[str, int]) -> bool:
    """Adds the indices of what `step` gives; False where it leaves the index out."""
    took = [at[name] for name in step.takes]
    size = extents[step.takes[-1]]
    match step.kind:
        case "split" | "outer":
            made = list(divmod(took[0], extents[step.gives[1]]))
        case "merge":
            made = [took[0] * size + took[1]]
        case "resize":
            made = [took[0] + step.numbers[0]]
        case "xor":
            made = [took[0], took[1] ^ (took[0] & ((1 << step.numbers[0]) - 1))]
        case "shift":
            made = [took[0], (took[1] + took[0]) % size]
        case "mirror":
            made = [took[0], size - 1 - took[1]]
        case "stride":
            made = [took[0], (took[1] + step.numbers[0] * took[0]) % size]
        case "blocks":
            made = [took[0], took[1] ^ ((took[0] // 2) & 3)]
        case _:
            raise ValueError(step.kind)
    at.update(zip(step.gives, made, strict=True))
    return all(0 <= at[name] < extents[name] for name in step.gives)


def _applied(graph: DomainGraph, step: Step) -> DomainGraph:
    match step.kind:
        case "split" | "outer":
            return graph.split(step.takes[0], step.numbers[0], (step.gives[0], step.gives[1]), outer=step.kind == "outer")
        case "merge":
            return graph.merge(*step.takes, step.gives[0])
        case "resize":
            return graph.resize(step.takes[0], *step.numbers, step.gives[0])
        case _:
            how = _permutation(step, graph[step.takes[1]].extent)
            return graph.swizzle(*step.takes, how, (step.gives[0], step.gives[1]))


def _permutation(step: Step, extent: Expr) -> Permutation:
    o, i = expr(OUTER), expr(INNER)
    match step.kind:
        case "xor":
            return Xor(step.numbers[0])
        case "shift":
            return Shift()
        case "mirror":
            return Custom(extent - 1 - i, extent - 1 - i, OUTER, INNER)
        case "stride":
            return Custom((i + step.numbers[0] * o) % extent, (i - step.numbers[0] * o) % extent, OUTER, INNER)
        case _:
            return Custom(xor(i, o // 2, 2), xor(i, o // 2, 2), OUTER, INNER)


def recipe(seed: int) -> Recipe:
    """A recipe of 6 to 10 steps whose leaf points are few at all of its sizes."""
    return _Maker(Random(seed)).recipe()


class _Maker:
    def __init__(self, random: Random):
        self._random = random
        self._count = 0

    def recipe(self) -> Recipe:
        names = "xyz"[: self._random.randint(1, 3)]
        logical = tuple((name, self._size(name)) for name in names)
        made = Recipe(logical, ())
        wanted = self._random.randint(6, 10)
        for _ in range(400):
            if len(made.steps) == wanted:
                break
            step = self._step(made)
            tried = Recipe(logical, (*made.steps, step)) if step is not None else made
            if all(self._small(tried, sizes) for sizes in tried.sizes()):
                made = tried
        return made

    def _small(self, made: Recipe, sizes: Mapping[str, int]) -> bool:
        extents = made.extents(sizes)
        return min(extents.values()) >= 0 and prod(extents[leaf] for leaf in made.leaves()) <= POINTS

    def _size(self, name: str) -> Size:
        kind = self._random.random()
        if kind < 0.5:
            return Size("", (self._random.choice((0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16)),))
        if kind < 0.75:
            return Size(name.upper(), tuple(self._random.sample((0, 1, 2, 3, 4, 5, 6, 7, 9, 11), 4)))
        unit = self._random.choice((2, 4, 6))
        return Size(name.upper(), (0, unit, 2 * unit), unit)

    def _step(self, made: Recipe) -> Step | None:
        leaves = made.leaves()
        every = [made.extents(sizes) for sizes in made.sizes()]
        kind = self._random.choice(KINDS)
        if kind in ("split", "outer"):
            factors = (1, 2, 2, 3, 4, 4, 5, 8)
            return Step(kind, (self._random.choice(leaves),), self._names(2), (self._random.choice(factors),))
        if kind == "resize":
            return Step(kind, (self._random.choice(leaves),), self._names(1), self._expands())
        if len(leaves) < 2:
            return None
        takes = tuple(self._random.sample(leaves, 2))
        if kind == "merge":
            return Step(kind, takes, self._names(1))
        bits = {"xor": self._random.randint(1, 2), "blocks": 2}.get(kind, 0)
        if not all(extents[takes[1]] % (1 << bits) == 0 for extents in every):
            return None
        if kind == "stride" and (len({extents[takes[1]] for extents in every}) > 1 or every[0][takes[1]] == 0):
            return None
        return Step(kind, takes, self._names(2), (bits or self._random.randint(1, 3),))

    def _expands(self) -> tuple[int, int]:
        return self._random.choice(EXPANDS)

    def _names(self, count: int) -> tuple[str, ...]:
        self._count += count
        return tuple(f"a{self._count - k}" for k in reversed(range(count)))
