"""The program form: the checked, desugared form of a `.te` file.

    program   = function*
    function  = buffers (params, then locals by `New`), sizes, where, assumes, body, results, schedules
    stmt      = Par sym < extent {stmt} | Seq sym < extent {stmt} | New buffer | Let sym = value
              | Bind targets (=|update) values | If value {stmt} {stmt} | Anchor value | Instruction

Views (`reshape`, `transpose`, slices, `pad`), `static for`, calls and inline indirect reads are expanded: views are substituted
into indices, calls are inlined, `A[I[i]]` is a `Load` with `data`. Symbols are unique in a function.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir.instr import Instr
from texpr.ir.program.marks import Mark
from texpr.ir.value import Buffer, Load, Value
from texpr.ir.value.types import DType
from texpr.support.record import Record
from texpr.support.span import NOWHERE, Span


class Compare(Record):
    """A fact about sizes: `left op right`, `op` one of == != < <= > >=."""

    op: str
    left: Expr
    right: Expr
    span: Span = NOWHERE


class InRange(Record):
    """`assume I in lo..hi`: every element of `buffer` is ≥ lo and < hi."""

    buffer: Buffer
    lo: Expr
    hi: Expr
    span: Span = NOWHERE


class Injective(Record):
    """`assume injective(I)`: no two elements of `buffer` are equal."""

    buffer: Buffer
    span: Span = NOWHERE


class Monotone(Record):
    """`assume monotone(I)`: no element of `buffer`, of rank 1, is less than the one before it."""

    buffer: Buffer
    span: Span = NOWHERE


Assume: TypeAlias = InRange | Injective | Monotone


class Group(Record):
    """`(args)` as the value of an argument: `(128, 64)`, `(producer: 1 warp, consumer: 2 warpgroups)`."""

    args: tuple[Argument, ...]

    def __repr__(self) -> str:
        """As in the text of a program."""
        return f"({', '.join(map(repr, self.args))})"


ArgumentValue: TypeAlias = str | int | float | Expr | Group
"""Words as in the text (`shared`, `grid.y`, `1 warp`); an index expression over sizes is never a constant."""


class Argument(Record):
    """One argument of a directive: `value`, or `key=value`."""

    value: ArgumentValue
    key: str | None = None
    span: Span = NOWHERE

    @property
    def index(self) -> Expr | None:
        """The value as an index expression over sizes, None if it is not one."""
        match self.value:
            case int():
                return expr(self.value)
            case Expr():
                return self.value
            case str() | float() | Group():
                return None

    def __repr__(self) -> str:
        """As in the text of a program, without quotes."""
        return f"{self.value}" if self.key is None else f"{self.key}={self.value}"


class Directive(Record):
    """`name(args) -> results` of a schedule, or a pragma `#name(args)` on a loop or function, which has no results.

    It is generic: the code that applies a directive checks and interprets its arguments.
    """

    name: str
    args: tuple[Argument, ...] = ()
    results: tuple[str, ...] = ()
    span: Span = NOWHERE

    def __repr__(self) -> str:
        """As in the text of a program, without quotes."""
        made = f" -> ({', '.join(self.results)})" if self.results else ""
        return f"{self.name}({', '.join(map(repr, self.args))}){made}"


Pragma: TypeAlias = Directive | Mark
"""An annotation of a loop or function: a pragma as written, or a mark that a schedule made."""


class Schedule(Record):
    """`schedule function "name" for target { directives }`: the mapping of one function to a machine.

    `target`: the name of a target or of a family ("cpu", "cuda"); None: any.
    """

    function: str
    name: str | None
    target: str | None
    directives: tuple[Directive, ...]
    span: Span = NOWHERE

    def __repr__(self) -> str:
        """One line: its name, function and target, and its directives."""
        named = f' "{self.name}"' if self.name is not None else ""
        where = f" for {self.target}" if self.target is not None else ""
        return f"<Schedule{named} of {self.function}{where}: {'; '.join(map(repr, self.directives)) or 'nothing'}>"


class Combiner(Record, eq=False):
    """A user's `combine name(a, b) identity e`, assumed associative and commutative; `a`, `b` are `Ref`s in `value`."""

    name: str
    a: Sym
    b: Sym
    dtype: DType
    identity: Value
    value: Value
    span: Span = NOWHERE


Update: TypeAlias = str | Combiner
"""The operation of an update: "add" "sub" "mul" "max" "min" "and" "or", or a user's combiner."""


class Par(Record, eq=False):
    """`par extent |sym|`: iterations are independent; all effects are visible to all threads at the start and at the end.

    `reduce`: buffers that several iterations may access at one element, through updates only. `ieee`: each of these updates is
    rounded as IEEE 754 says, whatever their order. `fully` with `align`: consecutive iterations execute concurrently on
    consecutive lanes.
    """

    sym: Sym
    extent: Expr
    body: tuple[Stmt, ...]
    reduce: tuple[Buffer, ...] = ()
    label: str | None = None
    directives: tuple[Pragma, ...] = ()
    fully: bool = False
    span: Span = NOWHERE
    ieee: bool = False


class Seq(Record, eq=False):
    """`seq extent |sym|`: iterations in order. Updates of the buffers in `reduce` may execute in any order, rounded as IEEE 754
    says if `ieee`. `scan`: buffers whose value in an iteration is that of the same terms, combined in any order."""

    sym: Sym
    extent: Expr
    body: tuple[Stmt, ...]
    reduce: tuple[Buffer, ...] = ()
    label: str | None = None
    directives: tuple[Pragma, ...] = ()
    span: Span = NOWHERE
    ieee: bool = False
    scan: tuple[Buffer, ...] = ()


class New(Record, eq=False):
    """`new buffer`: fresh, undefined memory for each execution of the enclosing block, until that block ends.

    `space`: the memory that a schedule requires ("shared", "cluster", "registers"), None where the compiler decides.
    `arrivals`: for barriers, one an element: how many arrivals complete a phase; 0 for memory of data.
    """

    buffer: Buffer
    space: str | None = None
    span: Span = NOWHERE
    arrivals: int = 0


class Let(Record, eq=False):
    """`let sym = value`: a value read here, once. The frontend substitutes affine ones, so the remaining ones read data.

    `instance`: as for `Bind`.
    """

    sym: Sym
    value: Value
    span: Span = NOWHERE
    instance: tuple[Expr, ...] = ()


class Bind(Record, eq=False):
    """`target = value`, or with `update` `target = update(target, value)`.

    Several targets: a tuple update `(m, at) max= (x, i)`, `max` or `min` only: lexicographic on the first, ties to the smaller
    second, and so on; or, without an update, a simultaneous assignment. Values have the types of their targets.

    `instance`, in a scheduled program: the statement of the program as written that it executes, by number, and the values of
    that statement's loop indices, outermost first; an untrusted hint for proofs. Empty for statements that a schedule added.
    """

    targets: tuple[Load, ...]
    values: tuple[Value, ...]
    update: Update | None = None
    span: Span = NOWHERE
    instance: tuple[Expr, ...] = ()


class If(Record, eq=False):
    """`if condition {then} else {orelse}`; the condition is affine (comparisons of `Index`) or data."""

    condition: Value
    then: tuple[Stmt, ...]
    orelse: tuple[Stmt, ...] = ()
    span: Span = NOWHERE


class Anchor(Record, eq=False):
    """`anchor value`: evaluated exactly here, for its effect; passes neither move, copy nor drop it."""

    value: Value
    span: Span = NOWHERE


BARRIER, ARRIVE, WAIT = "mbarrier", "arrive", "wait"
"""The words for barriers of the text: their type, and what lanes do at them."""


class Signal(Record):
    """What a lane does at a barrier: it arrives, or waits until `phase`, and all before it, are complete. The first is 0."""

    phase: Expr | None = None


class Instruction(Record, eq=False):
    """A use of an `instr`: its name, and its meaning, a body in this language with the operands substituted.

    `instr`: its definition, for an instruction with fragments. Its operands are then locals whose dimensions are lanes and a
    lane's registers, each given by the first element of the first lane; the fragments map these to elements of the
    instruction's operands.

    `signal`: for `arrive(b)` and `wait(b, phase)`, whose operand is an element of barriers, and whose meaning is nothing.
    """

    name: str
    body: tuple[Stmt, ...]
    operands: tuple[Load, ...]
    anchored: bool = False
    span: Span = NOWHERE
    instr: Instr | None = None
    signal: Signal | None = None


Stmt: TypeAlias = Par | Seq | New | Let | Bind | If | Anchor | Instruction
Loop: TypeAlias = Par | Seq


class Function(Record, eq=False):
    """One `fn`.

    `params` in the order written (inputs, inouts, scalars as rank-0 inputs); `sizes` in order of first appearance, each ≥ 0;
    `consts` are sizes that a build must fix (they may be negative), with their defaults; `results` are buffers of role
    "result" (or inouts), in order. `schedules`: the alternatives that the file has for it; none is applied yet.
    `instrs`: the instructions of the file with fragments, for schedules to use.
    """

    name: str
    params: tuple[Buffer, ...]
    results: tuple[Buffer, ...]
    sizes: tuple[Sym, ...]
    body: tuple[Stmt, ...]
    consts: tuple[tuple[Sym, int | None], ...] = ()
    where: tuple[Compare, ...] = ()
    assumes: tuple[Assume, ...] = ()
    directives: tuple[Pragma, ...] = ()
    schedules: tuple[Schedule, ...] = ()
    span: Span = NOWHERE
    instrs: tuple[Instr, ...] = ()

    def __repr__(self) -> str:
        """One line: its name, parameters and results."""
        return f"<Function {self.name}({', '.join(map(repr, self.params))}): {', '.join(map(repr, self.results)) or 'nothing'}>"


class Program(Record, eq=False):
    """A `.te` file: its functions, in the order written, and its instructions with fragments."""

    functions: tuple[Function, ...]
    instrs: tuple[Instr, ...] = ()

    def __getitem__(self, name: str) -> Function:
        """The function `name`. Raises KeyError."""
        for function in self.functions:
            if function.name == name:
                return function
        raise KeyError(name)

    def schedules_of(self, name: str) -> tuple[Schedule, ...]:
        """The schedules of the function `name`, in the order written. Raises KeyError."""
        return self[name].schedules

    def __repr__(self) -> str:
        """One line: the functions' names."""
        return f"<Program: {', '.join(function.name for function in self.functions) or 'no functions'}>"


def in_turn(loop: Par, body: tuple[Stmt, ...] | None = None) -> Seq:
    """A `par` as a `seq`, around another body if one is given."""
    inside = loop.body if body is None else body
    return Seq(loop.sym, loop.extent, inside, loop.reduce, loop.label, loop.directives, loop.span, loop.ieee)


def blocks(stmt: Stmt) -> tuple[tuple[Stmt, ...], ...]:
    """The statement lists that `stmt` contains directly."""
    match stmt:
        case Par() | Seq():
            return (stmt.body,)
        case If():
            return (stmt.then, stmt.orelse)
        case Instruction():
            return (stmt.body,)
        case New() | Let() | Bind() | Anchor():
            return ()


def walk(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """Every statement of `body`, outermost first, in textual order."""
    for stmt in body:
        yield stmt
        for block in blocks(stmt):
            yield from walk(block)


def summed_by(stmt: Instruction) -> tuple[Buffer, ...]:
    """The buffers to which an instruction adds in an arithmetic that is not that of IEEE 754."""
    if stmt.instr is None or not stmt.instr.sums:
        return ()
    pairs = zip(stmt.instr.operands, stmt.operands, strict=True)
    return tuple(given.buffer for operand, given in pairs if operand.is_written)


def values(stmt: Stmt) -> tuple[Value, ...]:
    """The values that `stmt` itself evaluates, without those of nested statements; an updated target counts as read."""
    match stmt:
        case Bind():
            return (*stmt.values, *(stmt.targets if stmt.update is not None else ()))
        case Let() | Anchor():
            return (stmt.value,)
        case If():
            return (stmt.condition,)
        case Par() | Seq() | New() | Instruction():
            return ()


def buffers(function: Function) -> tuple[Buffer, ...]:
    """Parameters and every local, in order of appearance."""
    return (*function.params, *(s.buffer for s in walk(function.body) if isinstance(s, New)))
