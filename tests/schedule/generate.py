"""Random schedules: directives drawn one by one for the loops and buffers that there are, most of them meaningful.

A drawn directive may still be refused; whoever draws applies it and goes on from what came out.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tests.schedule.fitting import Fitting

from texpr.affine.expr import Expr, expr
from texpr.ir import program as ir
from texpr.ir.program.marked import level_of
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer
from texpr.schedule.rewrite.allocation import start
from texpr.schedule.state import State
from texpr.schedule.tree import loops, path_to

FACTORS = (1, 2, 2, 3, 4, 4, 4, 5, 8, 8, 16, 32, 100)
"""What loops are split by: dividing or not, one, larger than any extent that the tests have."""

SHAPE, MEMORY, THREADS, MARKS = "shape", "memory", "threads", "marks"

PHASES: Mapping[str, Mapping[str, int]] = {
    SHAPE: {"split": 10, "merge": 4, "resize": 2, "swizzle": 2, "reorder": 7, "distribute": 2, "inline": 1, "serial": 1},
    MEMORY: {"stage": 8, "place": 1, "allocate": 5, "split": 1},
    THREADS: {"bind": 8, "reorder": 1},
    MARKS: {"partition": 3, "unroll": 2, "vectorize": 2, "launch_bounds": 1, "place": 1, "pipeline": 3},
}
"""A schedule goes through these in order, as people write them; how often each directive is drawn in each."""

ENGINES: Mapping[str, Mapping[str, int]] = {THREADS: {"cluster": 2}, MARKS: {"pipeline": 8, "unguard": 2}}
"""What else, or how often, where engines copy."""


SUMS: Mapping[str, Mapping[str, int]] = {SHAPE: {"partial": 8, "hoist": 5, "scan": 8}, MARKS: {"skip": 6}}
"""The same for parts of sums, sums under guards, and running values."""


def arguments(*plain: ir.ArgumentValue, **keys: ir.ArgumentValue) -> tuple[ir.Argument, ...]:
    """Arguments of a directive; the key `in_` stands for `in`."""
    return (*map(ir.Argument, plain), *(ir.Argument(v, k.rstrip("_")) for k, v in keys.items()))


@dataclass
class Drawer:
    """Directives from one seed."""

    random: random.Random
    count: int = 0
    engines: bool = False
    """Whether copies are made by engines, in clusters and rings, too."""
    sums: bool = False
    """Whether sums are done in parts, ahead of guards, or in chunks, too."""
    draws: Mapping[str, Callable[[State], ir.Directive | None]] = field(init=False)

    def __post_init__(self) -> None:
        self.draws = {
            "split": self._split, "merge": self._merge, "resize": self._resize, "swizzle": self._swizzle,
            "reorder": self._reorder, "distribute": self._distribute, "inline": self._inline, "stage": self._stage,
            "place": self._place, "allocate": self._allocate, "bind": self._bind, "partition": self._partition,
            "unroll": self._unroll, "vectorize": self._vectorize, "launch_bounds": self._launch_bounds,
            "pipeline": self._pipeline, "serial": self._serial, "cluster": self._cluster,
            "unguard": self._unguard, "partial": self._partial, "hoist": self._hoist, "skip": self._skip, "scan": self._scan,
        }  # fmt: skip

    def phases(self) -> Iterator[str]:
        """The kind of directive to draw next, for a whole schedule."""
        for phase, most in ((SHAPE, 6), (MEMORY, 3), (THREADS, 4), (MARKS, 2)):
            weights = {**PHASES[phase], **(ENGINES.get(phase, {}) if self.engines else {})}
            weights |= SUMS.get(phase, {}) if self.sums else {}
            for _ in range(self.random.randint(0 if phase != SHAPE else 1, most)):
                yield self.random.choices(list(weights), list(weights.values()))[0]

    def tiling(self, state: State) -> list[ir.Directive]:
        """A path of loops tiled as people do it: blocks of the grid around a loop of steps around threads, inputs staged."""
        path = self._path(state)
        pars = [loop for loop in path if isinstance(loop, ir.Par)][:3]
        if not pars:
            return []
        found: list[ir.Directive] = []
        blocks: list[str] = []
        threads: list[str] = []
        for loop in pars:
            blocks.append(self._fresh("b"))
            threads.append(self._fresh("t"))
            factor = self.random.choice((1, 2, 3, 4, 4, 8, 8))
            found.append(ir.Directive("split", arguments(loop.sym.name, factor), (blocks[-1], threads[-1])))
        steps: list[str] = []
        inner: list[str] = []
        for loop in [loop for loop in path if isinstance(loop, ir.Seq)][:1]:
            steps.append(self._fresh("o"))
            inner.append(self._fresh("s"))
            found.append(ir.Directive("split", arguments(loop.sym.name, self.random.choice((2, 3, 4))), (steps[0], inner[0])))
        order = [*blocks, *steps, *threads, *inner] if self.random.random() < 0.7 else [*blocks, *threads, *steps, *inner]
        found.append(ir.Directive("reorder", arguments(*order)))
        binds = [ir.Directive("bind", arguments(b, f"grid.{d}")) for b, d in zip(blocks, self._dims(), strict=False)]
        if self.random.random() < 0.85:
            binds += [ir.Directive("bind", arguments(t, f"block.{d}")) for t, d in zip(threads, self._dims(), strict=False)]
        stages = [
            ir.Directive(
                "stage",
                arguments(b.name, at=self.random.choice([*blocks[-1:], *steps]), in_=space, **self._engine(space)),
                (self._fresh(b.name),),
            )
            for b in self._touched(path[-1].body)
            for space in [self.random.choice(("shared", "shared", "registers"))]
            if self.random.random() < 0.7
        ]
        return [*found, *binds, *stages] if self.random.random() < 0.5 else [*found, *stages, *binds]

    def fitting(self, state: State) -> Iterator[ir.Directive]:
        """Directives for a path of loops by which engines copy, in rings and clusters."""
        path = self._path(state)
        return Fitting(self.random, self._fresh, path).directives() if path else iter(())

    def _dims(self) -> list[str]:
        return self.random.sample("xyz", 3)

    def _touched(self, body: tuple[ir.Stmt, ...]) -> list[Buffer]:
        """The buffers that `body` names."""
        return list(dict.fromkeys(load.buffer for stmt in ir.walk(body) for load in loads(stmt)))

    def draw(self, kind: str, state: State) -> ir.Directive | None:
        """A directive of that kind, None where there is nothing that it could be about."""
        return self.draws[kind](state)

    def _fresh(self, base: str) -> str:
        self.count += 1
        return f"{base.split(chr(39))[0].replace('.', '_')}_{self.count}"

    def _loop(self, state: State, wanted: Callable[[ir.Loop], bool] = lambda _: True) -> ir.Loop | None:
        found = [loop for loop in loops(state.function.body) if wanted(loop)]
        return self.random.choice(found) if found else None

    def _local(self, state: State) -> Buffer | None:
        found = [s.buffer for s in ir.walk(state.function.body) if isinstance(s, ir.New)]
        found = [b for b in found if b not in state.function.results]
        return self.random.choice(found) if found else None

    def _factor(self, state: State, extent: Expr | None = None) -> int | Expr:
        kind = self.random.random()
        if kind < 0.08 and state.function.sizes:
            return expr(self.random.choice(state.function.sizes)) + self.random.randint(0, 1)
        if kind < 0.2 and extent is not None and extent.is_constant and extent.constant > 1:
            return self.random.choice([d for d in range(1, extent.constant + 1) if extent.constant % d == 0])
        return self.random.choice(FACTORS)

    def _split(self, state: State) -> ir.Directive | None:
        loop = self._loop(state)
        if loop is None:
            return None
        factor = self._factor(state, loop.extent)
        names = (self._fresh(loop.sym.base), self._fresh(loop.sym.base))
        if self.random.random() < 0.15:
            return ir.Directive("split", arguments(loop.sym.name, parts=factor), names)
        return ir.Directive("split", arguments(loop.sym.name, factor), names)

    def _merge(self, state: State) -> ir.Directive | None:
        outer = self._loop(state, lambda loop: len(loop.body) == 1 and isinstance(loop.body[0], ir.Par | ir.Seq))
        if outer is None:
            return None
        inner = outer.body[0]
        assert isinstance(inner, ir.Par | ir.Seq)
        return ir.Directive("merge", arguments(outer.sym.name, inner.sym.name), (self._fresh("m"),))

    def _resize(self, state: State) -> ir.Directive | None:
        loop = self._loop(state)
        if loop is None:
            return None
        sizes = [size.name for size in state.function.sizes]
        if sizes and self.random.random() < 0.2:
            to = arguments(loop.sym.name, to=self.random.choice(sizes))
            return ir.Directive("resize", to, (self._fresh(loop.sym.base),))
        left, right = self.random.choice([(0, 1), (1, 0), (2, 3), (0, 5), (-1, 0), (0, -1), (0, -2), (1, -1)])
        return ir.Directive("resize", arguments(loop.sym.name, left, right), (self._fresh(loop.sym.base),))

    def _swizzle(self, state: State) -> ir.Directive | None:
        outer = self._loop(state, lambda s: isinstance(s, ir.Par) and any(isinstance(i, ir.Par) for i in loops(s.body)))
        if outer is None:
            return None
        inner = self.random.choice([s for s in loops(outer.body) if isinstance(s, ir.Par)])
        names = (self._fresh(outer.sym.base), self._fresh(inner.sym.base))
        if self.random.random() < 0.5:
            return ir.Directive("swizzle", arguments(outer.sym.name, inner.sym.name, "shift"), names)
        xor = self.random.choice((2, 4, 8))
        return ir.Directive("swizzle", arguments(outer.sym.name, inner.sym.name, xor=xor), names)

    def _path(self, state: State) -> list[ir.Loop]:
        leaf = self._loop(state, lambda s: not loops(s.body))
        path = path_to(state.function.body, leaf) if leaf is not None else None
        return [s for s in path or () if isinstance(s, ir.Par | ir.Seq)]

    def _reorder(self, state: State) -> ir.Directive | None:
        path = self._path(state)
        if len(path) < 2:
            return None
        chosen = self.random.sample(path, self.random.randint(2, len(path)))
        return ir.Directive("reorder", arguments(*(loop.sym.name for loop in chosen)))

    def _distribute(self, state: State) -> ir.Directive | None:
        loop = self._loop(state, lambda s: sum(not isinstance(i, ir.New) for i in s.body) > 1)
        if loop is None:
            return None
        count = sum(not isinstance(s, ir.New) for s in loop.body)
        sizes: list[int] = []
        if count > 2 and self.random.random() < 0.4:
            ends = sorted(self.random.sample(range(1, count), self.random.randint(1, count - 2)))
            sizes = [end - start for start, end in pairwise((0, *ends, count))]
        names = tuple(self._fresh(loop.sym.base) for _ in sizes or range(count)) if self.random.random() < 0.5 else ()
        return ir.Directive("distribute", arguments(loop.sym.name, *sizes), names)

    def _serial(self, state: State) -> ir.Directive | None:
        loop = self._loop(state, lambda s: isinstance(s, ir.Par))
        return None if loop is None else ir.Directive("serial", arguments(loop.sym.name))

    def _partial(self, state: State) -> ir.Directive | None:
        path = self._path(state)
        loop = self._loop(state, _sums)
        if loop is None:
            return None
        around = [each for each in path if each is not loop]
        if around and self.random.random() < 0.6:
            return ir.Directive("partial", arguments(loop.sym.name, at=self.random.choice(around).sym.name))
        return ir.Directive("partial", arguments(loop.sym.name))

    def _hoist(self, state: State) -> ir.Directive | None:
        loop = self._loop(state, _sums)
        return None if loop is None else ir.Directive("hoist", arguments(loop.sym.name))

    def _skip(self, state: State) -> ir.Directive | None:
        loop = self._loop(state, lambda s: isinstance(s, ir.Seq))
        return None if loop is None else ir.Directive("skip", arguments(loop.sym.name))

    def _scan(self, state: State) -> ir.Directive | None:
        loop = self._loop(state, lambda s: isinstance(s, ir.Seq))
        if loop is None:
            return None
        size = [] if self.random.random() < 0.2 else [self.random.choice((1, 2, 3, 4, 8, 100))]
        return ir.Directive("scan", arguments(loop.sym.name, *size))

    def _inline(self, state: State) -> ir.Directive | None:
        buffer = self._local(state)
        return None if buffer is None else ir.Directive("inline", arguments(buffer.name))

    def _stage(self, state: State) -> ir.Directive | None:
        function = state.function
        buffers = dict.fromkeys((*ir.buffers(function), *function.results))
        loop = self._loop(state)
        if loop is None:
            return None
        touched = self._touched(loop.body)
        buffer = self.random.choice(touched if touched and self.random.random() < 0.9 else list(buffers))
        keys: dict[str, ir.ArgumentValue] = {"at": loop.sym.name}
        if not state.target.has_cores:
            keys["in_"] = self.random.choice(("shared", "shared", "registers"))
        if keys.get("in_") == "shared":
            fill = self.random.choice((None, None, "weak", "zero", 7))
            keys |= {} if fill is None else {"fill": fill}
            keys |= self._engine("shared")
        return ir.Directive("stage", arguments(buffer.name, **keys), (self._fresh(buffer.name),))

    def _engine(self, space: str) -> dict[str, ir.ArgumentValue]:
        """How a copy is made, and the words that only such copies have."""
        if not self.engines or space != "shared":
            return {}
        via = self.random.choice(("ld", "cp_async", "bulk", "tma", "tma", "tma"))
        keys: dict[str, ir.ArgumentValue] = {"via": via}
        if via == "tma":
            words = {"swizzle": ("32B", "64B", "128B"), "save_traffic": ("true",), "fill": ("zero",)}
            keys |= {word: self.random.choice(values) for word, values in words.items() if self.random.random() < 0.2}
        return keys

    def _cluster(self, state: State) -> ir.Directive | None:
        loop = self._loop(state, lambda loop: level_of(loop) is not None)
        return None if loop is None else ir.Directive("cluster", arguments(loop.sym.name, self.random.choice((2, 2, 4))))

    def _unguard(self, state: State) -> ir.Directive | None:
        loop = self._loop(state)
        return None if loop is None else ir.Directive("unguard", arguments(loop.sym.name))

    def _place(self, state: State) -> ir.Directive | None:
        buffer = self._local(state)
        if buffer is None:
            return None
        space = self.random.choice(("shared", "registers", "workspace"))
        return ir.Directive("place", arguments(buffer.name, space))

    def _allocate(self, state: State) -> ir.Directive | None:
        """A transform of a local's memory."""
        buffer = self._local(state)
        if buffer is None or not buffer.rank:
            return None
        graph = state.allocations.get(buffer) or start(buffer)
        dims = [d.sym.name for d in graph.leaves]
        kind = self.random.choice(("split", "merge", "resize", "resize", "swizzle", "reorder"))
        one = self.random.choice(dims)
        match kind:
            case "split":
                factor = self.random.choice(FACTORS)
                return ir.Directive("split", arguments(one, factor), (self._fresh("a"), self._fresh("a")))
            case "resize":
                return ir.Directive("resize", arguments(one, self.random.randint(0, 2), self.random.randint(0, 2)))
            case "reorder" if len(dims) > 1:
                return ir.Directive("reorder", arguments(*self.random.sample(dims, len(dims))))
            case _ if len(dims) > 1:
                at = self.random.randrange(len(dims) - 1)
                two = (dims[at], dims[at + 1])
                if kind == "merge":
                    return ir.Directive("merge", arguments(*two))
                if self.random.random() < 0.5:
                    return ir.Directive("swizzle", arguments(*two, "shift"))
                return ir.Directive("swizzle", arguments(*two, xor=self.random.choice((2, 4, 8))))
            case _:
                return None

    def _bind(self, state: State) -> ir.Directive | None:
        """Outermost loops mostly to the grid, loops of few iterations to threads."""
        body = state.function.body
        free = [s for s in loops(body) if isinstance(s, ir.Par) and level_of(s) is None]
        if not free:
            return None
        loop = self.random.choice(free)
        small = [s for s in free if s.extent.is_constant and 1 <= s.extent.constant <= 32]
        if state.target.has_cores:
            return ir.Directive("bind", arguments(loop.sym.name, "core"))
        if small and self.random.random() < 0.6:
            loop = self.random.choice(small)
            level = self.random.choice(("block.x", "block.x", "block.y", "block.z", "lane", "warp"))
            return ir.Directive("bind", arguments(loop.sym.name, level))
        path = [s for s in path_to(body, loop) or () if isinstance(s, ir.Par) and level_of(s) is None]
        return ir.Directive("bind", arguments(path[0].sym.name, self.random.choice(("grid.x", "grid.y", "grid.z"))))

    def _partition(self, state: State) -> ir.Directive | None:
        loop = self._loop(state)
        return None if loop is None else ir.Directive("partition", arguments(loop.sym.name))

    def _unroll(self, state: State) -> ir.Directive | None:
        loop = self._loop(state)
        if loop is None:
            return None
        factor = self.random.choice(((), (), (2,), (4,)))
        return ir.Directive("unroll", arguments(loop.sym.name, *factor))

    def _vectorize(self, state: State) -> ir.Directive | None:
        def short(loop: ir.Loop) -> bool:
            return isinstance(loop, ir.Par) and loop.extent.is_constant and 2 <= loop.extent.constant <= 4

        loop = self._loop(state, short) or self._loop(state, lambda s: isinstance(s, ir.Par) and not loops(s.body))
        if loop is None:
            return None
        if short(loop):
            return ir.Directive("vectorize", arguments(loop.sym.name))
        names = (self._fresh(loop.sym.base), self._fresh(loop.sym.base))
        return ir.Directive("vectorize", arguments(loop.sym.name, self.random.choice((2, 4))), names)

    def _pipeline(self, state: State) -> ir.Directive | None:
        """A loop in whose iterations something lives, or any one now and then."""

        def makes(loop: ir.Loop) -> bool:
            return level_of(loop) is None and any(isinstance(s, ir.New) for s in loop.body)

        loop = self._loop(state, makes)
        if loop is None:
            return None
        made = [s.buffer.name for s in loop.body if isinstance(s, ir.New)]
        staged = {s.name for s in state.staged}
        named = () if set(made) & staged and self.random.random() < 0.7 else (self.random.choice(made),)
        return ir.Directive("pipeline", arguments(loop.sym.name, *named, stages=self.random.randint(2, 4)))

    def _launch_bounds(self, state: State) -> ir.Directive | None:
        return ir.Directive("launch_bounds", arguments(self.random.randint(1, 4)))


def _sums(loop: ir.Loop) -> bool:
    """Whether a loop adds something up."""
    return bool(loop.reduce)
