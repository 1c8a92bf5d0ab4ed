"""Directives for engines that fit each other: what is tiled is copied, and what is copied is in a ring or for a cluster.

Drawn ones by one, copies by engines are nearly always refused: their rows are no whole chunks, or a ring has nothing to copy.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Load
from texpr.support.record import Mutable, field

WIDE = (4, 4, 8, 8, 16, 32, 6)
"""What loops along rows are split by: mostly whole chunks of 16 bytes, for elements of 4 bytes, as the subjects have."""
NARROW = (1, 2, 2, 3, 4, 4, 8)
"""What other loops are split by."""


class Parts(Mutable):
    """Names of the loops that one was split into: `block` around `thread`, and between them `step`, which runs in order."""

    loop: ir.Loop
    block: str | None
    step: str | None
    thread: str


class Fitting(Mutable):
    """Directives for the nest of `path`, from one seed. `fresh` makes names."""

    random: random.Random
    fresh: Callable[[str], str]
    path: Sequence[ir.Loop]
    parts: list[Parts] = field(default_factory=list[Parts])
    copied: list[str] = field(default_factory=list[str])

    def directives(self) -> Iterator[ir.Directive]:
        """Tiles of blocks, steps and threads; copies at blocks or steps; a ring of the steps; a cluster; holes left alone."""
        yield from self._tiles()
        if not self.parts:
            return
        blocks = [p.block for p in self.parts if p.block is not None]
        yield from self._bound("grid", blocks)
        clustered = self.random.choice(blocks) if blocks and self._chance(0.45) else None
        if clustered is not None:
            yield _directive("cluster", clustered, self.random.choice((2, 2, 4)))
        unguarded = self._chance(0.5)
        yield from self._copies(blocks, clustered, unguarded)
        if self._chance(0.8):
            yield from self._bound("block", [p.thread for p in self.parts if isinstance(p.loop, ir.Par)])
        steps = [p.step for p in self.parts if p.step is not None]
        if steps and self._chance(0.7):
            yield _directive("pipeline", steps[-1], stages=self.random.randint(2, 4))
        inner = [p.thread for p in self.parts if isinstance(p.loop, ir.Seq)]
        if inner and unguarded:
            yield _directive("unguard", inner[-1])

    def _chance(self, of: float) -> bool:
        return self.random.random() < of

    def _tiles(self) -> Iterator[ir.Directive]:
        pars = [loop for loop in self.path if isinstance(loop, ir.Par)][:3]
        seqs = [loop for loop in self.path if isinstance(loop, ir.Seq)][:1]
        stepped = self.random.choice(pars) if pars and not seqs and self._chance(0.7) else None
        for loop in (*pars, *seqs):
            wide = any(loop.sym in row for row in self._rows())
            factor = self.random.choice(WIDE if wide else NARROW)
            outer, thread = self.fresh("o" if isinstance(loop, ir.Seq) else "b"), self.fresh("t")
            yield _split(loop.sym.name, factor, outer, thread)
            if isinstance(loop, ir.Seq):
                self.parts.append(Parts(loop, None, outer, thread))
            elif loop is stepped:
                block, step = self.fresh("b"), self.fresh("o")
                yield _split(outer, self.random.choice((2, 3, 8)), block, step)
                yield _directive("serial", step)
                self.parts.append(Parts(loop, block, step, thread))
            else:
                self.parts.append(Parts(loop, outer, None, thread))
        threads = [p.thread for p in sorted(self.parts, key=lambda p: isinstance(p.loop, ir.Seq))]
        blocks, steps = [p.block for p in self.parts if p.block], [p.step for p in self.parts if p.step]
        if self.parts:
            yield _directive("reorder", *blocks, *steps, *threads)

    def _bound(self, level: str, names: Sequence[str]) -> Iterator[ir.Directive]:
        for name, dim in zip(names, self.random.sample("xyz", 3), strict=False):
            yield _directive("bind", name, f"{level}.{dim}")

    def _accesses(self) -> list[Load]:
        return [load for stmt in ir.walk(self.path[-1].body) for load in loads(stmt)]

    def _rows(self) -> list[frozenset[Sym]]:
        """The symbols of the last subscripts."""
        return [frozenset(load.index[-1].syms()) for load in self._accesses() if load.index]

    def _copies(self, blocks: Sequence[str], clustered: str | None, filled: bool) -> Iterator[ir.Directive]:
        written = {
            target.buffer for stmt in ir.walk(self.path[-1].body) if isinstance(stmt, ir.Bind) for target in stmt.targets
        }
        steps = [p.step for p in self.parts if p.step is not None]
        for buffer in dict.fromkeys(load.buffer for load in self._accesses()):
            if not self._chance(0.4 if buffer in written else 0.9) or not buffer.rank:
                continue
            at = self.random.choice([*blocks[-1:], *(() if buffer in written else steps * 3)] or [self.parts[0].thread])
            via = self.random.choice(("bulk", "tma", "tma") if buffer in written else ("cp_async", "bulk", "tma", "tma"))
            keys: dict[str, ir.ArgumentValue] = {"at": at, "in": "shared", "via": via}
            if via != "bulk" and buffer not in written and (filled or self._chance(0.2)):
                keys["fill"] = "zero"
            if via == "tma" and self._chance(0.15):
                keys["swizzle"] = self.random.choice(("32B", "64B", "128B"))
            if clustered is not None and via == "tma" and self._alike(buffer, clustered) and self._chance(0.7):
                keys["multicast"] = clustered
            yield _directive("stage", buffer.name, to=(self.fresh(buffer.name),), **keys)

    def _alike(self, buffer: Buffer, block: str) -> bool:
        """Whether all blocks along `block` touch the same of `buffer`, as far as its subscripts say."""
        (loop,) = [p.loop for p in self.parts if p.block == block]
        used = [sym for load in self._accesses() if load.buffer is buffer for index in load.index for sym in index.syms()]
        return loop.sym not in used


def _directive(name: str, *plain: ir.ArgumentValue, to: tuple[str, ...] = (), **keys: ir.ArgumentValue) -> ir.Directive:
    return ir.Directive(name, (*map(ir.Argument, plain), *(ir.Argument(v, k) for k, v in keys.items())), to)


def _split(name: str, factor: int, outer: str, inner: str) -> ir.Directive:
    return _directive("split", name, factor, to=(outer, inner))
