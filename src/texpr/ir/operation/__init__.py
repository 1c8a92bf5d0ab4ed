"""What every operation of a kernel is: a record whose class says how it is written, and what it does to whom, when.

A family of operations is a file of `texpr.ir.ops`. Each class gives its text as a `FORM` (`texpr.ir.operation.form`), and from
that its printer, its parser, what it reads and writes and how it is rewritten are derived. What else there is to know are
methods with a default: which rules it keeps, whose work it is, when that is done, its C, and what it does in the words of a
verifier.
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
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record, replace
from texpr.support.span import NOWHERE, Span

if TYPE_CHECKING:
    from texpr.ir.kernel.place import Rule
    from texpr.ir.operation.effects import Effects
    from texpr.ir.operation.maps import TensorMap
    from texpr.ir.operation.printing import Printing


WARP, CLUSTER, BLOCK = -2, -1, 0
"""All lanes of a warp, all threads of the blocks of a cluster, and all of a block, where a group is a number of consecutive
threads."""


class Agent(Enum):
    """Whose work it is: the thread's that runs it, or that of an engine which the thread starts."""

    THREAD = "thread"
    ENGINE = "copy engine"


class Group(Enum):
    """What a thread's copies are counted in, as the machine has them."""

    ASYNC = "cp.async"
    BULK = "bulk"
    WGMMA = "wgmma"


class Joins(Record):
    """Goes on by itself, as one of the thread's copies that its next `Closes` makes a group of."""

    group: Group


class Closes(Record):
    """The copies that the thread started since the last such operation become one group."""

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
    """`kind` "async": what the thread did to shared memory comes before copies of engines that start after it.

    `kind` "init": barriers that the thread has made are known to engines. `kind` "registers": what the thread did to these
    `registers` comes before what its warpgroup starts after it.
    """

    kind: str
    registers: tuple[Load, ...] = ()


class Makes(Record):
    """Makes the barrier `at`, whose phases wait for `count` arrivals each."""

    at: Load
    count: int


class Arrives(Record):
    """Arrives at the barrier `at`, whose phase waits for `bytes` more."""

    at: Load
    bytes: Expr


class Brings(Record):
    """Goes on by itself, and brings its bytes to the phase of the barrier `at` when it is done."""

    at: Load
    bytes: Expr


class Waits(Record):
    """Waits until the phase of the barrier `at` with this parity has completed."""

    at: Load
    parity: Expr


Phased: TypeAlias = Makes | Arrives | Brings | Waits
"""What is done with a barrier in shared memory."""

Grouped: TypeAlias = Joins | Closes | Awaits | Fences
"""What is done for the sake of copies that go on by themselves, or is one, of which a thread counts groups."""

Completion: TypeAlias = Phased | Grouped
"""Why an operation is more than what it does while the thread is at it; None where it is not."""


class Bound(Record):
    """A variable that an operation declares. `value`: what it holds, where that is a value of the kernel."""

    sym: Sym
    dtype: DType
    value: Value | None = None


class Moved(Record):
    """A copy that goes on by itself: by what, from where to where, and how many bytes at most.

    `exactly`: how many bytes, where the kernel computes that. `when`: where this is false, zeros are written. `reduce`: by
    which each element is combined with what is there. Of a box of a tensor: `map`, `corner`, unless rows are named by data, and
    `tile`, where it lies in the kernel's own memory; `peers`: to which blocks of a cluster it goes, counted from `first`.
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
    """A statement of a kernel with none below it."""

    FORM: ClassVar[tuple[Part, ...]]
    """Its text, and by its parts its operands."""

    RULES: ClassVar[tuple[Rule, ...]] = ()
    """What makes one well formed, besides what is true of all."""

    AGENT: ClassVar[Agent] = Agent.THREAD
    """Whose work it is."""

    IN_LANES: ClassVar[bool] = False
    """Whether a loop over vector lanes may have it."""

    span: Span = NOWHERE

    @property
    def meets(self) -> int | None:
        """How many consecutive threads do it together, so that all must come; `WARP`, `BLOCK`, `CLUSTER` (`Kernel.group`); None
        where each is alone."""
        return None

    @property
    def by(self) -> str:
        """What moves elements, for those who tell of it; empty where that is the thread."""
        return ""

    @property
    def together(self) -> str:
        """The instruction of the kernel that lanes do together, by its name; empty where it is none."""
        return ""

    @property
    def masks(self) -> tuple[int, ...]:
        """Where lanes exchange what they hold: by which a lane's number is crossed to say which others it may get it from."""
        return ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The features of a target (`texpr.isa`) without which it is not there."""
        return ()

    @property
    def values(self) -> tuple[Value, ...]:
        """The values that it holds, elements that it writes among them, in the order of the text."""
        return tuple([value for part in self.FORM for value in part.values(self)])

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """The index expressions that it holds outside of its values."""
        return tuple([each for part in self.FORM for each in part.exprs(self)])

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The elements of memory that it touches itself."""
        return tuple([each for part in self.FORM for each in part.operands(self)])

    @property
    def reads(self) -> tuple[Load, ...]:
        """The elements that it reads itself; of a tile, and of a long run, the first stands for all."""
        return tuple([e for each in self.operands if each.access in (Access.READ, Access.UPDATE) for e in each.elements])

    @property
    def writes(self) -> tuple[Load, ...]:
        """The elements that it writes; of a tile, and of a long run, the first stands for all."""
        return tuple([e for each in self.operands if each.access in (Access.WRITE, Access.UPDATE) for e in each.elements])

    @property
    def barriers(self) -> tuple[Load, ...]:
        """The barriers in shared memory that it is about."""
        return tuple([each.first for each in self.operands if each.access is Access.BARRIER])

    @property
    def computed(self) -> tuple[Value, ...]:
        """The values that it computes, its own operands not among them."""
        own = [each.first for each in self.operands]
        return tuple([value for value in self.values if not any(value is each for each in own)])

    @property
    def bound(self) -> tuple[Bound, ...]:
        """The variables that it declares."""
        return ()

    def completion(self, maps: Mapping[str, TensorMap]) -> Completion | None:
        """What it has to do with work that goes on by itself. `maps`: those of the kernel."""
        return None

    @property
    def costs(self) -> tuple[tuple[Load, str, int], ...]:
        """The first elements that each lane touches itself, besides what its values read: how, and how many side by side."""
        own = self.operands if self.AGENT is Agent.THREAD else ()
        return tuple([(each.first, each.access.value, each.count or 1) for each in own if each.access is not Access.BARRIER])

    @property
    def waits_for(self) -> tuple[Covered, ...] | None:
        """The dependences for which it waits; None where it is no wait."""
        return None

    def over(self, value: Callable[[Value], Value], index: Callable[[Expr], Expr]) -> Operation:
        """The same with every value and index expression replaced."""
        changes = {name: new for part in self.FORM for name, new in part.changed(self, value, index)}
        return replace(self, **changes) if changes else self

    def moved(self, maps: Mapping[str, TensorMap]) -> Moved | None:
        """The copy that it is, for those who tell of copies. `maps`: those of the kernel."""
        return None

    @property
    def tiles(self) -> tuple[Load, ...]:
        """What an engine moves in memory of the kernel, or may: nothing else may lie there."""
        return ()

    @property
    def perhaps_outside(self) -> tuple[Load, ...]:
        """Operands that need not be there, since it does not touch them then."""
        return ()

    def c(self, to: Printing) -> Iterator[str]:
        """Its lines in C, where every machine has the same. Raises CompilerBug where this kind of machine has it not."""
        raise CompilerBug(f"{type(self).__name__} in a kernel for {to.machine}")

    def cuda(self, to: Printing) -> Iterator[str]:
        """Its lines in CUDA."""
        yield from self.c(to)

    def cpu(self, to: Printing) -> Iterator[str]:
        """Its lines in C++ for a CPU. Raises CompilerBug where that has no such thing."""
        yield from self.c(to)

    def does(self, effects: Effects) -> None:
        """What it does, told to who reads kernels: nothing that any thread could see, by default."""
