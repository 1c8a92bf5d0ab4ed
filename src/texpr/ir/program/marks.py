"""Marks: annotations by which a schedule instructs mapping and lowering; records in the program, printed as pragmas.

    par (M + 15) / 16 |bi| #bind(grid.y) #cluster(2) { … }       seq 4 |k| #unroll { … }
    par 16 |i| #tma(128, 64, 32) #multicast(x) { par 32 |j| { … } }

Passes look them up by type (`texpr.ir.program.marked`); the words of the pragma are the fields of the record. A pragma in a
user's text is an `ir.program.Directive` until a schedule converts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import ClassVar, Self, TypeAlias

from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span

Word: TypeAlias = str | int

NONE = "none"
"""The word for a loop that there is not."""

IEEE = "ieee"
"""The pragma of a `reduce` whose updates are rounded as IEEE 754 says, in any order: a field of the loop (`ir.program.Par`)."""


class Mark(Record, kw_only=True):
    """`#name(words)` on a loop or a function. `span`: the directive that made it."""

    NAME: ClassVar[str] = ""

    span: Span = NOWHERE

    @property
    def name(self) -> str:
        """The name of the pragma."""
        return self.NAME

    @property
    def words(self) -> tuple[Word, ...]:
        """The arguments of the pragma."""
        return ()

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """The mark with these arguments, None if they are not valid for it."""
        return None if words else cls()


class Bind(Mark):
    """`#bind(grid.x)`: the level of the machine that executes the iterations."""

    NAME = "bind"

    level: str

    @property
    def words(self) -> tuple[Word, ...]:
        """The level."""
        return (self.level,)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """One word."""
        return cls(words[0]) if len(words) == 1 and isinstance(words[0], str) else None


class Blocks(Mark):
    """A mark with a number of blocks."""

    blocks: int

    @property
    def words(self) -> tuple[Word, ...]:
        """The number."""
        return (self.blocks,)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """One number."""
        return cls(words[0]) if len(words) == 1 and isinstance(words[0], int) else None


class Cluster(Blocks):
    """`#cluster(2)`: the number of blocks of a cluster along a loop of the grid."""

    NAME = "cluster"


class LaunchBounds(Blocks):
    """`#launch_bounds(2)`, of a function: the number of blocks that should be resident on a multiprocessor."""

    NAME = "launch_bounds"


class Unroll(Mark):
    """`#unroll`: the loop is unrolled completely; `#unroll(4)`: by this factor."""

    NAME = "unroll"

    factor: int | None = None

    @property
    def words(self) -> tuple[Word, ...]:
        """The number, if there is one."""
        return () if self.factor is None else (self.factor,)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """At most one number."""
        if not words:
            return cls()
        return cls(words[0]) if len(words) == 1 and isinstance(words[0], int) else None


class InOrder(Blocks):
    """`#inorder(3)`: a part of the third `fully par` whose lanes signal each other: barriers of the text order them."""

    NAME = "inorder"


class Vector(Mark):
    """`#vector`: the iterations are the elements of one vector access."""

    NAME = "vector"


class Async(Mark):
    """`#async`: an asynchronous copy by threads (`cp.async`)."""

    NAME = "async"


class Unguard(Mark):
    """`#unguard`: a loop that also executes holes; removed at the end of the schedule."""

    NAME = "unguard"


class Saves(Mark):
    """`#saves`: a copy that is skipped if none of its elements is needed."""

    NAME = "saves"


class Switch(Mark):
    """A decision of the compiler that a schedule overrides."""

    on: bool

    @property
    def words(self) -> tuple[Word, ...]:
        """`on` or `off`."""
        return ("on" if self.on else "off",)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """The mark for `on` or `off`."""
        return cls(words[0] == "on") if tuple(words) in (("on",), ("off",)) else None


class Partition(Switch):
    """`#partition(off)`: whether iterations without holes get a loop of their own; removed at the end of the schedule."""

    NAME = "partition"


class Together(Switch):
    """`#together(on)`: whether one launch executes all steps of a host loop."""

    NAME = "together"


class Dependent(Switch):
    """`#dependent(off)`, of a function: whether a launch may start before the one before it has ended."""

    NAME = "dependent"


class Persistent(Mark):
    """`#persistent`: a loop over the tiles of a block that ends with the last one; removed at the end of the schedule."""

    NAME = "persistent"


class Pipeline(Mark):
    """`#pipeline(3, As, Bs)`: the number of slots, and the buffers that have them; removed at the end of the schedule.

    `#pipeline(4, 1, As, Bs)`: a slot is filled again `lag` turns after it was used, and not in the next.
    """

    NAME = "pipeline"

    stages: int
    buffers: tuple[str, ...]
    lag: int = 0

    @property
    def ahead(self) -> int:
        """How many turns before its use a slot is filled."""
        return self.stages - 1 - self.lag

    @property
    def words(self) -> tuple[Word, ...]:
        """The numbers, then the names."""
        return (self.stages, *((self.lag,) if self.lag else ()), *self.buffers)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """One or two numbers, then names."""
        numbers = [word for word in words if isinstance(word, int)]
        names = [word for word in words if isinstance(word, str)]
        if not 1 <= len(numbers) <= 2 or (*numbers, *names) != tuple(words):
            return None
        return cls(numbers[0], tuple(names), *numbers[1:])


class Overlap(Mark):
    """`#overlap(dv, js)`: what an iteration does from the loop `late` on runs a turn late, behind the loop `behind` of the next
    one; removed at the end of the schedule."""

    NAME = "overlap"

    late: str
    behind: str

    @property
    def words(self) -> tuple[Word, ...]:
        """Both names."""
        return (self.late, self.behind)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """Two names."""
        names = [word for word in words if isinstance(word, str)]
        return cls(*names) if len(names) == len(words) == 2 else None


class Scanned(Mark):
    """`#scanned(j, 4096, 4, m, t)`, of a function: it computes what its program with this `seq` over `j` in chunks does.

    Chunks of `size` iterations first combine their own terms, a loop `over` chunks gives each the value that it starts with,
    and then each does its iterations, `inside`. `tile`: so many iterations at a time, 0 for all. A `size` of 0: there are no
    chunks, and each iteration combines the terms of all before it; no loop combines all of them where `over` is
    `none`. (`texpr.proof.schedule.scans`)
    """

    NAME = "scanned"

    loop: str
    tile: int
    size: int
    over: str
    inside: str

    @property
    def words(self) -> tuple[Word, ...]:
        """Its fields."""
        return (self.loop, self.tile, self.size, self.over, self.inside)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """A name, two numbers, two names."""
        match tuple(words):
            case (str() as loop, int() as tile, int() as size, str() as over, str() as inside) if min(tile, size) >= 0:
                return cls(loop, tile, size, over, inside)
            case _:
                return None


class Online(Mark):
    """`#online(j, 64, 0)`, of a function: it computes what its program does where the maximum of this loop over `j`, and the
    sums that need it, or sums of what each `j` has, are made in one sweep over blocks of 64 keys. `whole`: 1 where all blocks
    have so many. (`texpr.proof.schedule.sweeps`)
    """

    NAME = "online"

    loop: str
    size: int
    whole: int

    @property
    def words(self) -> tuple[Word, ...]:
        """Its fields."""
        return (self.loop, self.size, self.whole)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """A name, a number above 0, and 0 or 1."""
        match tuple(words):
            case (str() as loop, int() as size, (0 | 1) as whole) if size > 0:
                return cls(loop, size, whole)
            case _:
                return None


class Computed(Mark):
    """`#computed(3, 1, 0)`, of a function: the factor 1 of what its statement 3 sums up is an array, computed before its loops.
    `swapped`: 1 where the factors change places. (`texpr.proof.schedule.factors`)
    """

    NAME = "computed"

    statement: int
    factor: int
    swapped: int

    @property
    def words(self) -> tuple[Word, ...]:
        """Its fields."""
        return (self.statement, self.factor, self.swapped)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """Three numbers, the last two 0 or 1."""
        match tuple(words):
            case (int() as statement, (0 | 1) as factor, (0 | 1) as swapped) if statement >= 0:
                return cls(statement, factor, swapped)
            case _:
                return None


class Skip(Mark):
    """`#skip`: the loop is skipped where nothing reads what it makes; removed at the end of the schedule."""

    NAME = "skip"


class Apart(Mark):
    """`#apart(2, 1)`: so many turns at the start and at the end of a loop differ from those between, by tests of its index."""

    NAME = "apart"

    first: int
    last: int

    @property
    def words(self) -> tuple[Word, ...]:
        """Both numbers."""
        return (self.first, self.last)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """Two numbers."""
        numbers = [word for word in words if isinstance(word, int) and word >= 0]
        return cls(*numbers) if len(numbers) == len(words) == 2 else None


class Roles(Mark):
    """`#roles(1, 8)`: so many warps of their own copy boxes in the loop, and the others do all else in the nest; `#roles(4, 8,
    24, 240)`: with so many registers a thread."""

    NAME = "roles"

    copy: int
    compute: int
    registers: tuple[int, int] = (0, 0)

    @property
    def words(self) -> tuple[Word, ...]:
        """The numbers of warps, and of registers, if they are said."""
        return (self.copy, self.compute, *(self.registers if all(self.registers) else ()))

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """Two numbers, or four."""
        numbers = [word for word in words if isinstance(word, int) and word > 0]
        match numbers if len(numbers) == len(words) else []:
            case [copy, compute]:
                return cls(copy, compute)
            case [copy, compute, first, second]:
                return cls(copy, compute, (first, second))
            case _:
                return None


class Alternate(Mark):
    """`#alternate(2)`: so many groups of warps take the iterations of a loop over tiles in turn."""

    NAME = "alternate"

    groups: int

    @property
    def words(self) -> tuple[Word, ...]:
        """The number."""
        return (self.groups,)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """A number above 1."""
        match tuple(words):
            case (int() as groups,) if groups > 1:
                return cls(groups)
            case _:
                return None


class Multicast(Mark):
    """`#multicast(x)`: the dimensions of the grid along which one copy serves all blocks of a cluster."""

    NAME = "multicast"

    dimensions: tuple[str, ...]

    @property
    def words(self) -> tuple[Word, ...]:
        """Their names."""
        return self.dimensions

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """Names."""
        names = [word for word in words if isinstance(word, str)]
        return cls(tuple(names)) if names and len(names) == len(words) else None


class Tensor(Mark):
    """`#tma(128, 64, 32)`: a copy by the tensor memory accelerator: the swizzle in bytes, then the extents of its boxes.

    `form`: "box", "im2col" (with two corners and a step for each spatial dimension in `window`), "gather4" and "scatter4" (rows
    that a table selects), "bulk" (contiguous runs, without a map). `view`: the sizes and strides of the dimensions as which the
    copy sees the tensor; empty for the declared ones.
    """

    NAME = "tma"
    FORMS: ClassVar[tuple[str, ...]] = ("im2col", "gather4", "scatter4", "bulk")

    swizzle: int
    box: tuple[int, ...]
    form: str = "box"
    window: tuple[int, ...] = ()
    view: tuple[int, ...] = ()

    @property
    def words(self) -> tuple[Word, ...]:
        """The swizzle and extents; the form; the view."""
        form = () if self.form == "box" else (self.form, *self.window)
        return (self.swizzle, *self.box, *form, *(("view", *self.view) if self.view else ()))

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """Numbers, and after `im2col` and `view` more of them."""
        left = list(words)
        swizzle, *box = _numbers(left) or ("",)
        form = left.pop(0) if left and left[0] in cls.FORMS else "box"
        window = _numbers(left) if form == "im2col" else ()
        view = _numbers(left) if left and left.pop(0) == "view" else ()
        if left or not isinstance(swizzle, int) or not isinstance(form, str):
            return None
        return cls(swizzle, tuple(int(extent) for extent in box), form, window, view)


class Joint(Mark):
    """`#mma(mma_m16n8k16_f32_bf16)`: a nest to be executed by this instruction of lanes; removed at the end of the schedule."""

    NAME = "mma"

    instr: str

    @property
    def words(self) -> tuple[Word, ...]:
        """The name."""
        return (self.instr,)

    @classmethod
    def read(cls, words: Sequence[Word]) -> Self | None:
        """One word."""
        return cls(words[0]) if len(words) == 1 and isinstance(words[0], str) else None


MARKS: dict[str, type[Mark]] = {
    kind.NAME: kind
    for kind in (
        Alternate, Apart, Async, Bind, Cluster, Computed, Dependent, InOrder, Joint, LaunchBounds, Multicast, Online, Overlap,
        Partition, Persistent, Pipeline, Roles, Saves, Scanned, Skip, Tensor, Together, Unguard, Unroll, Vector,
    )
}  # fmt: skip
"""The marks, by name."""


def _numbers(left: list[Word]) -> tuple[int, ...]:
    """Removes the leading integers of `left` and returns them."""
    found = tuple(word for word in takewhile(lambda word: isinstance(word, int), left) if isinstance(word, int))
    del left[: len(found)]
    return found
