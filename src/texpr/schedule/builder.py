"""Schedules from Python: the directives of the text as methods, one implementation.

    s = Schedule(module["matmul"], target="sm_90a").split("i", 128, names=("bi", "ti")).bind("bi", "grid.y")
    kernel = texpr.compile(module["matmul"], target="sm_90a", schedule=s)

A schedule is an immutable value: each method gives a new one. With a target each directive is proved, or refused, in the line
that names it; without one, when the function is compiled.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import index
from types import NoneType
from typing import SupportsIndex, cast

from texpr.ir import program as ir
from texpr.ir.program.selection import AUTO, NONE
from texpr.ir.program.text import print_directive, print_function, print_schedule
from texpr.isa.registry import resolve
from texpr.schedule.apply import follow, laid_out, start
from texpr.schedule.state import State
from texpr.support.diagnostic import CompilerBug, Limitation, Note, TexprError
from texpr.support.expect import expect
from texpr.support.record import replace

Size = SupportsIndex | str
"""An integer (of NumPy too), or the name of a size."""


class Schedule:
    """A schedule of `function`. `target`: the name of one; None for any. `name`: what `--schedule` selects."""

    def __init__(self, function: ir.Function, target: str | None = None, name: str | None = None):
        if not isinstance(function, ir.Function):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"a schedule is for a function of a program, not for {type(function).__name__}")
        expect(name, (str, NoneType), "name must be one that `--schedule` could take, such as 'tiled'")
        if name in (AUTO, NONE):
            raise ValueError(f"a schedule cannot be called `{name}`: `--schedule {name}` means something else")
        self._function = function
        self._record = ir.Schedule(function.name, name, target, ())
        self._state: State | None = None if target is None else start(function, resolve(target))

    @property
    def record(self) -> ir.Schedule:
        """The schedule in program form."""
        return self._record

    def __str__(self) -> str:
        """The schedule as text of the language."""
        return print_schedule(self._record, self._function)

    def laid_out(self, target: str | None = None) -> ir.Function:
        """The function after this schedule. Raises TexprError or Limitation where a directive is refused."""
        chosen = target or self._record.target
        if chosen is None:
            raise ValueError("name a target: this schedule is for any")
        state = start(self._function, resolve(chosen))
        for directive in self._record.directives:
            state = _followed(state, directive)
        return laid_out(state).function

    def show(self, target: str | None = None) -> str:
        """`laid_out` as text."""
        return print_function(self.laid_out(target))

    # Domain.

    def split(
        self, loop: str, factor: Size | None = None, *, parts: Size | None = None, names: tuple[str, ...] = ()
    ) -> Schedule:
        """A loop (or a dimension of a local's memory) split by `factor`, or into `parts`: outer and inner."""
        return self._and("split", (loop, factor), {"parts": parts}, names)

    def merge(self, outer: str, inner: str, *, name: str | None = None) -> Schedule:
        """Two perfectly nested loops as one."""
        return self._and("merge", (outer, inner), {}, _one(name))

    def resize(
        self, loop: str, left: Size | None = None, right: Size | None = None, *, to: Size | None = None, name: str | None = None
    ) -> Schedule:
        """A loop (or dimension) with more iterations before and after, or `to` as its extent; the added ones are holes."""
        return self._and("resize", (loop, left, right), {"to": to}, _one(name))

    def swizzle(
        self, outer: str, inner: str, *, xor: int | None = None, shift: bool = False, names: tuple[str, ...] = ()
    ) -> Schedule:
        """Iterations (or elements) of `inner` permuted for each of `outer`: by XOR with its low bits, or by a cyclic shift."""
        return self._and("swizzle", (outer, inner, "shift" if shift else None), {"xor": xor}, names)

    def reorder(self, *loops: str) -> Schedule:
        """The loops, which are nested, in this order from outside in (or the dimensions of a local's memory)."""
        return self._and("reorder", loops, {}, ())

    def distribute(self, loop: str, *statements: int, names: tuple[str, ...] = ()) -> Schedule:
        """Loop fission: a loop for each statement of its body, or for each of so many statements."""
        return self._and("distribute", (loop, *statements), {}, names)

    def scan(self, loop: str, size: int | None = None, *, names: tuple[str, ...] = ()) -> Schedule:
        """The running values of a `seq` in chunks of `size` iterations, or of each iteration by itself, in any order.

        `names`: of the loops over chunks and their terms, the recurrence over chunks, and chunks and their iterations.
        """
        return self._and("scan", (loop, size), {}, names)

    def online(self, loop: str, keys: int | None = None, *, name: str | None = None) -> Schedule:
        """The maximum of a loop over keys, and the sums that need it, in one sweep over blocks of so many keys.

        `name`: of the loop over blocks.
        """
        return self._and("online", (loop, keys), {}, () if name is None else (name,))

    def mma(
        self, rows: str, columns: str, along: str, instruction: str | None = None, *, names: tuple[str, ...] = ()
    ) -> Schedule:
        """The innermost nest of a product, of these loops, done by lanes of a warp together, as one instruction."""
        return self._and("mma", (rows, columns, along, instruction), {}, names)

    def serial(self, loop: str) -> Schedule:
        """A `par` made a `seq`."""
        return self._and("serial", (loop,), {}, ())

    def partial(self, loop: str, *, at: str | None = None, names: tuple[str, ...] = ()) -> Schedule:
        """What iterations of `loop` add to sums, summed up in memory of their own before the loop `at`, and added up then."""
        return self._and("partial", (loop,), {"at": at}, names)

    def widen(self, buffer: str, dtype: str = "f32") -> Schedule:
        """A sum of a narrow floating type kept in f32, and rounded where it is read."""
        return self._and("widen", (buffer, dtype), {}, ())

    def hoist(self, loop: str, *, names: tuple[str, ...] = ()) -> Schedule:
        """Sums in an `if`, done ahead of it in memory of their own, whether or not they are asked for."""
        return self._and("hoist", (loop,), {}, names)

    def skip(self, loop: str) -> Schedule:
        """A sum that is skipped where a block asks for none of its results."""
        return self._and("skip", (loop,), {}, ())

    # Machine.

    def bind(self, loop: str, level: str) -> Schedule:
        """A `par` distributed over `grid.x`, `block.y`, `warp`, `lane`, `core`, …"""
        return self._and("bind", (loop, level), {}, ())

    def cluster(self, loop: str, blocks: int) -> Schedule:
        """Clusters of `blocks` blocks along a loop of the grid."""
        return self._and("cluster", (loop, blocks), {}, ())

    def persistent(
        self, *loops: str, blocks: int, order: str | tuple[str, int] | None = None, names: tuple[str, ...] = ()
    ) -> Schedule:
        """Iterations that so many blocks go through, one after the other: loops over blocks and over turns. `order`: in which
        tiles of several loops are counted: "rows", "columns", or ("grouped", 8), of so many rows at a time."""
        asked = order if order is None or isinstance(order, str) else _group("persistent", order)
        return self._and("persistent", loops, {"blocks": blocks, "order": asked}, names)

    def place(self, buffer: str, space: str) -> Schedule:
        """The placement of a local: shared, registers or workspace."""
        return self._and("place", (buffer, space), {}, ())

    def stage(
        self,
        buffer: str,
        *,
        at: str,
        in_: str = "shared",
        via: str = "ld",
        fill: str | float = "weak",
        box: tuple[int, ...] | None = None,
        swizzle: str | None = None,
        save_traffic: bool = False,
        multicast: str | tuple[str, ...] | None = None,
        along: str | None = None,
        name: str | None = None,
    ) -> Schedule:
        """The part of a buffer that one iteration of `at` accesses, kept in shared memory or registers meanwhile.

        `in_` is `in=` of the language, a reserved word in Python. `box`, `swizzle` ("32B", "64B", "128B"): of copies with
        `via="tma"`; `save_traffic`: boxes of holes only are not loaded; `multicast`: the loop, or loops, along which blocks
        of a cluster share the copy. `along`: only accesses that vary with this loop use it.
        """
        boxes = None if box is None else _group("stage", box)
        among = ir.Group(tuple(map(ir.Argument, multicast))) if isinstance(multicast, tuple) else multicast
        keys = {"at": at, "in": in_, "via": via, "fill": fill, "box": boxes, "swizzle": swizzle, "multicast": among}
        keys |= {"save_traffic": "true" if save_traffic else None, "along": along}
        return self._and("stage", (buffer,), keys, _one(name))

    def inline(self, buffer: str) -> Schedule:
        """The value of a local, recomputed at each read."""
        return self._and("inline", (buffer,), {}, ())

    # Time.

    def unroll(self, loop: str, factor: int | None = None) -> Schedule:
        """A loop unrolled completely, or by `factor`."""
        return self._and("unroll", (loop, factor), {}, ())

    def vectorize(self, loop: str, width: int | None = None, *, names: tuple[str, ...] = ()) -> Schedule:
        """A `par` of constant extent whose accesses become vectors; with `width`, split by it first."""
        return self._and("vectorize", (loop, width), {}, names)

    def pipeline(self, loop: str, *buffers: str, stages: int, lag: int | None = None) -> Schedule:
        """What is staged at `loop` (or `buffers`), prefetched `stages` − 1 − `lag` iterations ahead, into a ring of `stages`
        slots."""
        return self._and("pipeline", (loop, *buffers), {"stages": stages, "lag": lag}, ())

    def overlap(self, loop: str, late: str, *, behind: str) -> Schedule:
        """What an iteration of `loop` does from the loop `late` on, a turn late, behind the loop `behind` of the next one."""
        return self._and("overlap", (loop, late), {"behind": behind}, ())

    def roles(
        self, loop: str, *, copy: int | None = None, compute: int | None = None, registers: tuple[int, int] | None = None
    ) -> Schedule:
        """Copies of a pipelined loop by `copy` warps of their own, all else in its nest by `compute` warpgroups; with so many
        `registers` a thread of each."""
        shares = None if registers is None else ir.Group(tuple(ir.Argument(each) for each in registers))
        return self._and("roles", (loop,), {"copy": copy, "compute": compute, "registers": shares}, ())

    def alternate(self, turn: str, *, groups: int | None = None) -> Schedule:
        """Tiles of a block, of the loop over them, that so many groups of its warps take in turn."""
        return self._and("alternate", (turn,), {"groups": groups}, ())

    def partition(self, loop: str, on: bool = True) -> Schedule:
        """Index-set splitting: iterations whose predicates all hold, separated from the rest; or no splitting of a loop
        (`off`)."""
        return self._and("partition", (loop, None if on else "off"), {}, ())

    def unguard(self, loop: str) -> Schedule:
        """A loop without the guard of its holes, which compute on the fills of staged buffers."""
        return self._and("unguard", (loop,), {}, ())

    def together(self, loop: str, on: bool = True) -> Schedule:
        """All steps of a loop of the host in one launch, where all blocks are resident at once; or never."""
        return self._and("together", (loop, None if on else "off"), {}, ())

    def dependent(self, on: bool = True) -> Schedule:
        """Launches that may start before the one before them has ended; or none."""
        return self._and("dependent", ("on" if on else "off",), {}, ())

    def launch_bounds(self, blocks: int) -> Schedule:
        """The blocks that should be resident on a multiprocessor."""
        return self._and("launch_bounds", (blocks,), {}, ())

    def _and(
        self,
        name: str,
        plain: tuple[Size | None, ...],
        keys: Mapping[str, Size | float | ir.Group | None],
        results: tuple[str, ...],
    ) -> Schedule:
        given = tuple(ir.Argument(_value(name, value)) for value in plain if value is not None)
        keyed = tuple(ir.Argument(_value(name, value), key) for key, value in keys.items() if value is not None)
        expect(results, (tuple, list), "names must be a tuple, such as ('outer', 'inner')")
        for result in results:
            expect(result, str, f"a result of `{name}` must be a name")
        directive = ir.Directive(name, (*given, *keyed), tuple(results))
        made = Schedule.__new__(Schedule)
        made._function = self._function
        made._record = replace(self._record, directives=(*self._record.directives, directive))
        made._state = None if self._state is None else _followed(self._state, directive)
        return made


def _group(directive: str, values: tuple[object, ...]) -> ir.Group:
    """Several values as one argument."""
    return ir.Group(tuple(ir.Argument(_value(directive, value)) for value in values))


def _value(directive: str, value: object) -> ir.ArgumentValue:
    """An argument in program form; integers of NumPy are accepted. Raises TypeError for anything but a name or a number."""
    if isinstance(value, ir.Group):
        return value
    expect(value, (str, float, SupportsIndex), f"`{directive}` takes names and numbers")
    if isinstance(value, bool):
        raise TypeError(f"`{directive}` takes names and numbers, not {value}")
    return value if isinstance(value, str | float) else index(cast(SupportsIndex, value))


def _one(name: str | None) -> tuple[str, ...]:
    return () if name is None else (name,)


def _followed(state: State, directive: ir.Directive) -> State:
    """One directive; a refusal names it, as there is no source text to show."""
    try:
        return follow(state, directive)
    except CompilerBug:
        raise
    except TexprError as refused:
        note = Note(f"the directive is `{print_directive(directive)}`")
        kind = Limitation if isinstance(refused, Limitation) else TexprError
        raise kind([replace(d, notes=(*d.notes, note), span=None) for d in refused.diagnostics]) from None
