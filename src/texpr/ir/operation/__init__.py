"""The interface of a kernel's operations: a record whose class defines text, rules, operands, effects, completion and C code.

A family of operations is a file of `texpr.ir.ops`. Each class gives its text as a `FORM` (`texpr.ir.operation.form`), from
which printing, parsing, operands and rewriting are derived. The rest are methods with defaults: rules, agent, completion, C
code, and effects for proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir.operation.covered import Covered
from texpr.ir.operation.form import Access, Operand, Part
from texpr.ir.value import Buffer, Load, Value
from texpr.ir.value.types import DType
from texpr.isa.levels import Level
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span

if TYPE_CHECKING:
    from texpr.ir.kernel.place import Rule
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing


WARP, CLUSTER, BLOCK = -2, -1, 0
"""Values of `meets`: all lanes of a warp, all threads of a cluster, all threads of a block; a positive number is that many
consecutive threads."""


class Agent(Enum):
    """Who performs the operation: the thread that executes it, or an engine that the thread starts."""

    THREAD = "thread"
    ENGINE = "copy engine"


class Group(Enum):
    """The kinds of groups of asynchronous copies that a machine has."""

    ASYNC = "cp.async"
    BULK = "bulk"
    WGMMA = "wgmma"
    TENSOR = "tcgen05"


class Joins(Record):
    """An asynchronous copy, part of the group that the thread's next `Closes` makes."""

    group: Group


class Closes(Record):
    """Makes one group of the copies that the thread started since the last such operation."""

    group: Group


class Awaits(Record):
    """Waits until at most `pending` of the thread's groups, the latest ones, are unfinished; `read`: have yet to read.

    `registers`: which of those that the finished ones had are the thread's again.
    """

    group: Group
    pending: int
    read: bool = False
    registers: tuple[Load, ...] = ()


class Fences(Record):
    """Kind "async": accesses of the thread to shared memory are ordered before copies by engines that start later.

    `kind` "init": barriers that the thread has made are known to engines. `kind` "columns before", "columns after": what the
    thread did in tensor memory comes before it meets others, or what it does there behind that (`ir.ops.columns`). `kind`
    "registers": what the thread did to these `registers` comes before what its warpgroup starts after it.
    """

    kind: str
    registers: tuple[Load, ...] = ()


class Makes(Record):
    """Initialises the barrier `at` with `count` arrivals a phase."""

    at: Load
    count: int


class Arrives(Record):
    """Arrives at the barrier `at`, and adds `bytes` to what its phase waits for."""

    at: Load
    bytes: Expr


class Commits(Arrives):
    """Arrives once at the barrier `at`, with no bytes, when all of the `group` is done that the thread started before.

    `pair`: a thread of the first block of a pair started it, for both, and it arrives in each of both.
    """

    group: Group
    pair: bool = False


class Brings(Record):
    """An asynchronous copy whose bytes count for the phase of the barrier `at` when they have arrived; `led`: of that of the
    first block of a pair."""

    at: Load
    bytes: Expr
    led: bool = False


class Waits(Record):
    """Waits until the phase of the barrier `at` with this parity has completed, and all before it: the number `phase`, where
    that is said."""

    at: Load
    parity: Expr
    phase: Expr | None = None


class Releases(Record):
    """One arrival at the barrier `at` for all lanes of a warp, after all of them have come; in each of `blocks` blocks of the
    cluster, whose threads learn by it only what engines have done."""

    at: Load
    blocks: int = 1


class Lasts(Record):
    """The life of `count` columns of tensor memory: "take", "have" or "free"."""

    what: str
    count: int


Phased: TypeAlias = Makes | Arrives | Brings | Waits | Releases
"""Operations on a barrier in shared memory."""

Grouped: TypeAlias = Joins | Closes | Awaits | Fences | Lasts
"""Asynchronous copies in groups, and what orders these; tensor memory that is taken and given back."""

Completion: TypeAlias = Phased | Grouped
"""The role of an operation in asynchronous work."""


class Bound(Record):
    """A variable that an operation declares. `value`: its value, if that is known in this thread."""

    sym: Sym
    dtype: DType
    value: Value | None = None


class Moved(Record):
    """An asynchronous copy: mechanism, source, target, and the most bytes that it moves.

    `exactly`: the number of bytes, if the kernel computes it. `when`: a condition; where it is false, zeros are written.
    `reduce`: the operation that combines each element with the target's. For a box of a tensor: `map`; `corner`, unless rows
    are selected by data; `tile`, the first element in the kernel's own memory; `peers`, the ranks in the cluster that get it,
    relative to `first`.
    """

    by: str
    source: Buffer
    target: Buffer
    bytes: int
    exactly: Expr | None = None
    when: Value | None = None
    reduce: str | None = None
    map: str | None = None
    corner: tuple[Expr, ...] | None = None
    tile: Load | None = None
    peers: tuple[int, ...] = ()
    first: Expr = ZERO


class Operation(Record, eq=False, kw_only=True):
    """A statement of a kernel that contains no statements."""

    FORM: ClassVar[tuple[Part, ...]]
    """The parts of its text, from which its operands follow."""

    RULES: ClassVar[tuple[Rule, ...]] = ()
    """The rules that a well-formed one keeps, besides those of all statements."""

    AGENT: ClassVar[Agent] = Agent.THREAD
    """Who performs it."""

    DECLARES: ClassVar[bool] = False
    """Whether it does nothing but declare variables."""

    IN_LANES: ClassVar[bool] = False
    """Whether it is allowed in a loop over vector lanes."""

    FILLS: ClassVar[bool] = False
    """Whether what is around it is laid out for the registers of a core: a compiler that writes out loops has too few."""

    span: Span = NOWHERE

    @property
    def in_pair(self) -> bool | None:
        """Whether a pair of blocks does it together, of what has to do with tensor memory; None of all else."""
        return None

    @property
    def meets(self) -> int | None:
        """The consecutive threads that must all execute it together: a number, `WARP`, `BLOCK` or `CLUSTER` (`Kernel.group`);
        None where each thread executes it alone."""
        return None

    @property
    def joined(self) -> Level | None:
        """The level whose threads it joins, all or some of them; None where it is no barrier."""
        return None

    @property
    def by(self) -> str:
        """The mechanism that moves elements, for reports; empty for loads and stores of the thread."""
        return ""

    @property
    def together(self) -> str:
        """The instruction of the kernel that lanes do together, by its name; empty where it is none."""
        return ""

    @property
    def masks(self) -> tuple[int, ...]:
        """The xor-differences between a lane and those that its value comes from, for an exchange of registers."""
        return ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The features of a target (`texpr.isa`) that it requires."""
        return ()

    @property
    def values(self) -> tuple[Value, ...]:
        """Its values, written elements included, in the order of the text."""
        return tuple([value for part in self.FORM for value in part.values(self)])

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Its index expressions outside of values."""
        return tuple([each for part in self.FORM for each in part.exprs(self)])

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The elements of memory that it accesses, apart from those in computed values."""
        return tuple([each for part in self.FORM for each in part.operands(self)])

    @property
    def reads(self) -> tuple[Load, ...]:
        """The elements that it reads as operands; the first element represents a tile or a long run."""
        return tuple([e for each in self.operands if each.access in (Access.READ, Access.UPDATE) for e in each.elements])

    @property
    def writes(self) -> tuple[Load, ...]:
        """The elements that it writes; the first element represents a tile or a long run."""
        return tuple([e for each in self.operands if each.access in (Access.WRITE, Access.UPDATE) for e in each.elements])

    @property
    def barriers(self) -> tuple[Load, ...]:
        """The barriers in shared memory that it uses."""
        return tuple([each.first for each in self.operands if each.access is Access.BARRIER])

    @property
    def computed(self) -> tuple[Value, ...]:
        """The values that it computes, without its operands."""
        own = [each.first for each in self.operands]
        return tuple([value for value in self.values if not any(value is each for each in own)])

    @property
    def bound(self) -> tuple[Bound, ...]:
        """The variables that it declares."""
        return ()

    @property
    def assigns(self) -> tuple[Bound, ...]:
        """The variables of before that it assigns, each with its value from here on."""
        return ()

    def completion(self, maps: Mapping[str, TensorMap]) -> Completion | None:
        """Its role in asynchronous work, None if it has none. `maps`: the tensor maps of the kernel."""
        return None

    @property
    def costs(self) -> tuple[tuple[Load, str, int], ...]:
        """The operands that each lane accesses: first element, kind of access, and the number of consecutive elements."""
        own = self.operands if self.AGENT is Agent.THREAD else ()
        return tuple([(each.first, each.access.value, each.count or 1) for each in own if each.access is not Access.BARRIER])

    @property
    def waits_for(self) -> tuple[Covered, ...] | None:
        """The dependences that it covers; None where it is no wait."""
        return None

    def over(self, value: Callable[[Value], Value], index: Callable[[Expr], Expr]) -> Operation:
        """A copy with every value and index expression replaced."""
        changes = {name: new for part in self.FORM for name, new in part.changed(self, value, index)}
        return replace(self, **changes) if changes else self

    def moved(self, maps: Mapping[str, TensorMap]) -> Moved | None:
        """The copy that it starts, for reports. `maps`: the tensor maps of the kernel."""
        return None

    @property
    def tiles(self) -> tuple[Load, ...]:
        """The operands in the kernel's own memory that an engine accesses or may access: nothing else may overlap them."""
        return ()

    @property
    def perhaps_outside(self) -> tuple[Load, ...]:
        """Operands that may be out of bounds, as they are not accessed then."""
        return ()

    def c(self, to: Printing) -> Iterator[str]:
        """Its lines of C, for all machines. Raises CompilerBug where the machine has no such operation."""
        raise CompilerBug(f"{type(self).__name__} in a kernel for {to.machine}")

    def cuda(self, to: Printing) -> Iterator[str]:
        """Its lines of CUDA."""
        yield from self.c(to)

    def cpu(self, to: Printing) -> Iterator[str]:
        """Its lines of C++ for a CPU. Raises CompilerBug where a CPU has no such operation."""
        yield from self.c(to)

    def does(self, effects: Effects) -> None:
        """Reports its effects; by default it has none that a thread could observe."""
