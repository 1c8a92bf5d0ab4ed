"""Accesses in a loop over the lanes of a vector: each access that varies by lane is one of consecutive elements.

    par 4 |v| { if 4 * t + v < n { y[4 * t + v] = a[0] * x[4 * t + v] } }

`x` and `y` move by one element a lane, from a multiple of four: one access of 16 bytes each. `a[0]` is uniform. The test
holds for all lanes where it holds for the last; elsewhere the lanes run one by one. Where n is a multiple of 4 it is uniform.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from texpr.affine.expr import ONE, ZERO, Expr, Sym, expr
from texpr.affine.facts import Known
from texpr.affine.simplify import Simplifier
from texpr.ir import program as ir
from texpr.ir.kernel import value_symbols
from texpr.ir.ops.vectors import VECTOR_BYTES
from texpr.ir.value import Buffer, Index, Load, Op, Value, conjuncts, operands, walk
from texpr.schedule.edits import Offers
from texpr.support.diagnostic import Note, TexprError, error
from texpr.support.record import Mutable, Record, field, replace
from texpr.support.span import Span


class Obstacle(Record):
    """Why something in the body cannot run for all lanes at once: a whole sentence, and its subject.

    Remedies: to `promise` a clause, or the alignment of a buffer (`begins`); to move an `inner` loop outside; fewer lanes,
    where it `is_wide`.
    """

    reason: str
    span: Span | None = None
    help: str | None = None
    promise: str | None = None
    begins: tuple[Buffer, int] | None = None
    inner: Sym | None = None
    is_wide: bool = False

    def refusal(self, span: Span | None, loop: ir.Loop, offers: Offers = ()) -> TexprError:
        """E0911 at `span`."""
        notes = () if self.span is None else (Note("this is in the way", self.span),)
        reason = f"the loop over `{loop.sym.base}` cannot be a vector: {self.reason}"
        return error("E0911", span, reason, *notes, help=self.help, offers=offers)


_SELECT = "`select(…)` chooses values lane by lane"


class Test(Record):
    """A comparison that varies by lane. `whole`: where it holds for all lanes. `alike`: it is uniform."""

    whole: Value
    alike: bool


class Lanes(Mutable):
    """The iterations of `loop`, which run at once. `known`: what is known at a statement.

    `asking`: alignment may still be required of results. `workspace`: locals that are in global memory, each as it is declared.
    `varying`: symbols that vary by lane; `own`: scalars private to a lane; `named`: lets.
    """

    loop: ir.Loop
    known: Callable[[ir.Stmt], Known]
    asking: bool = False
    workspace: frozenset[Buffer] = frozenset()
    varying: set[Sym] = field(default_factory=set[Sym])
    own: set[Buffer] = field(default_factory=set[Buffer])
    named: set[Sym] = field(default_factory=set[Sym])
    _simple: dict[int, Simplifier] = field(default_factory=dict[int, Simplifier])

    def __post_init__(self) -> None:
        self.varying.add(self.loop.sym)

    @property
    def width(self) -> int:
        """The number of lanes."""
        return self.loop.extent.constant

    def at(self, value: Expr, lane: int, stmt: ir.Stmt) -> Expr:
        """`value` in one lane, simplified by what is known at `stmt`."""
        known = self.known(stmt)
        simple = self._simple.setdefault(id(known), Simplifier(known))
        return simple(value.substitute({self.loop.sym: lane}))

    def differs(self, value: Value) -> bool:
        """Whether `value` may vary by lane."""
        mine = any(isinstance(node, Load) and node.buffer in self.own for node in walk(value))
        return mine or bool(value_symbols(value) & self.varying)

    def meet(self, stmt: ir.Stmt) -> None:
        """Records the values of `stmt` that vary by lane."""
        match stmt:
            case ir.Let():
                self.named.add(stmt.sym)
                if self.differs(stmt.value):
                    self.varying.add(stmt.sym)
            case ir.New():
                self.own.add(stmt.buffer)
            case _:
                pass

    def wrong_statement(self, stmt: ir.Stmt) -> Obstacle | None:
        """What forbids the statement itself: a loop, or several targets."""
        match stmt:
            case ir.Par() | ir.Seq():
                help = "a loop of lanes is the innermost one"
                return Obstacle(f"the loop over `{stmt.sym.base}` is inside of it", stmt.span, help, inner=stmt.sym)
            case ir.Anchor() | ir.Instruction():
                return Obstacle("what is inside of it runs for one iteration at a time", stmt.span)
            case ir.New() if stmt.buffer.rank:
                return Obstacle(f"each of its iterations has an array `{stmt.buffer.name}` of its own", stmt.span)
            case ir.Bind() if len(stmt.targets) > 1 and any(self.differs(t) and t.buffer not in self.own for t in stmt.targets):
                return Obstacle("several elements are written together", stmt.span)
            case _:
                return None

    def obstacle(self, load: Load, stmt: ir.Stmt) -> Obstacle | None:
        """Why `load`, which varies by lane, is not one aligned access of consecutive elements; None if it is."""
        found = self._moves_by_one(load, stmt)
        buffer, size = load.buffer, load.dtype.bytes * self.width
        if found is not None:
            return Obstacle(f"`{buffer.name}` {found}", load.span)
        if size not in VECTOR_BYTES:
            most = VECTOR_BYTES[-1] // load.dtype.bytes
            reason = f"{self.width} elements of `{buffer.name}` are {size} bytes, and one access moves 2, 4, 8 or 16"
            return Obstacle(reason, load.span, is_wide=self.width > most > 1)
        given = buffer.role in ("input", "inout")
        if (given or (buffer.role == "result" and not self.asking)) and (buffer.align or buffer.dtype.bytes) % size:
            reason = f"`{buffer.name}` may begin anywhere, and a vector of {size} bytes needs a multiple of that"
            help = None if given else "results are aligned where a schedule asks for it, by `vectorize`"
            return Obstacle(reason, load.span, help, begins=(buffer, size) if given else None)
        return self._unaligned(load, stmt, size)

    def _moves_by_one(self, load: Load, stmt: ir.Stmt) -> str | None:
        """Why `load` does not move by one element a lane, None where it does."""
        if any(self.differs(meaning) for _, meaning in load.data) or {s for e in load.index for s in e.syms()} & (
            self.varying - {self.loop.sym}
        ):
            return "is accessed at places that data give, different for each lane"
        *outer, last = load.index
        first = [self.at(e, 0, stmt) for e in (*outer, last)]
        for lane in range(1, self.width):
            steps = [self.at(e, lane, stmt) - at for e, at in zip(load.index, first, strict=True)]
            moved = next((d for d, step in enumerate(steps[:-1]) if step is not ZERO), None)
            if moved is not None:
                return f"moves along its dimension {moved}, not along its last one"
            if steps[-1] is not expr(lane):
                return f"moves by {steps[-1]} elements from lane 0 to lane {lane}"
        strides = load.buffer.strides
        if strides is not None and strides[-1] is not ONE:
            return f"has its neighbours {strides[-1]} elements apart"
        return None

    def _unaligned(self, load: Load, stmt: ir.Stmt, size: int) -> Obstacle | None:
        buffer, known = load.buffer, self.known(stmt)
        strides = row_major(buffer.shape) if buffer.strides is None else buffer.strides
        total = ZERO
        for index, stride in zip(load.index, strides, strict=True):
            total = total + self.at(index, 0, stmt) * stride
        if known.multiple(total, self.width):
            return None
        start = f"`{buffer.name}[{', '.join(str(self.at(e, 0, stmt)) for e in load.index)}]`"
        reason = f"{start} is not known to lie at a multiple of {size} bytes"
        free = [s for s in strides[:-1] if not known.multiple(s, self.width)]
        help = said = None
        if free and known.multiple(self.at(load.index[-1], 0, stmt), self.width):
            pitch = free[-1]
            odd = pitch.is_constant
            help = f"rows of {pitch} elements cannot be aligned" if odd else None
            said = None if odd else f"where {pitch} % {self.width} == 0"
        return Obstacle(reason, load.span, help, said)

    def test(self, condition: Value, stmt: ir.Stmt) -> Test | Obstacle:
        """A condition that varies by lane: a comparison of affine sides, or an obstacle."""
        span = stmt.span
        if not (isinstance(condition, Op) and condition.name in _MARGINS and all(isinstance(a, Index) for a in condition.args)):
            help = _SELECT if any(isinstance(n, Load) for n in walk(condition)) else None
            return Obstacle("a condition is not the same for all lanes", span, help)
        one, other = (a.expr for a in condition.args if isinstance(a, Index))
        if (one.syms() | other.syms()) & self.named:
            return Obstacle("a condition is not the same for all lanes", span, _SELECT)
        margin = _MARGINS[condition.name](one, other)
        first = self.at(margin, 0, stmt)
        step = self.at(margin, 1, stmt) - first if self.width > 1 else ZERO
        if not step.is_constant or any(self.at(margin, n, stmt) - first is not step * n for n in range(2, self.width)):
            return Obstacle("a condition does not change evenly from lane to lane", span)
        worst = self.width - 1 if step.constant < 0 else 0
        edge = {-1: first + 1, 0: ZERO, 1: first}.get(step.constant)
        alike = edge is not None and self.known(stmt).multiple(edge, self.width)
        lane = 0 if alike else worst
        args = tuple(replace(a, expr=self.at(a.expr, lane, stmt)) for a in condition.args if isinstance(a, Index))
        return Test(replace(condition, args=args), alike)

    def tests(self, condition: Value) -> tuple[list[Value], list[Value]]:
        """The conjuncts that are uniform, and the others."""
        parts = list(conjuncts(condition))
        return [p for p in parts if not self.differs(p)], [p for p in parts if self.differs(p)]


_MARGINS: dict[str, Callable[[Expr, Expr], Expr]] = {
    "lt": lambda a, b: b - a - 1,
    "le": lambda a, b: b - a,
    "gt": lambda a, b: a - b - 1,
    "ge": lambda a, b: a - b,
}
"""The expression that is ≥ 0 where a comparison holds."""


def row_major(shape: tuple[Expr, ...]) -> tuple[Expr, ...]:
    """The strides of a dense buffer, in elements."""
    strides: list[Expr] = []
    total = expr(1)
    for extent in reversed(shape):
        strides.append(total)
        total = total * extent
    return tuple(reversed(strides))


def reads(value: Value, sure: bool = True) -> Iterator[tuple[Load, bool]]:
    """The elements that `value` reads, and whether unconditionally: a branch of `select` may not be taken."""
    if isinstance(value, Load):
        yield value, sure
    for number, operand in enumerate(operands(value)):
        lazy = isinstance(value, Op) and value.name == "select" and number > 0
        yield from reads(operand, sure and not lazy)


def examine(lanes: Lanes, body: tuple[ir.Stmt, ...]) -> Iterator[tuple[Load, int] | Obstacle]:
    """Every element of global memory that the lanes access as a vector, with its bytes, and every obstacle.

    Of locals those in `lanes.workspace` alone are checked, as the placement of others is not known yet.
    """
    for stmt in body:
        lanes.meet(stmt)
        wrong = lanes.wrong_statement(stmt)
        if wrong is not None:
            yield wrong
            continue
        if isinstance(stmt, ir.If):
            found = (lanes.test(part, stmt) for part in lanes.tests(stmt.condition)[1])
            yield from (each for each in found if isinstance(each, Obstacle))
        for load in moving(lanes, stmt):
            if load.buffer.role != "local" or load.buffer in lanes.workspace:
                yield lanes.obstacle(load, stmt) or (load, load.dtype.bytes * lanes.width)
        yield from maybe_read(lanes, stmt)
        for block in ir.blocks(stmt):
            yield from examine(lanes, block)


def moving(lanes: Lanes, stmt: ir.Stmt) -> tuple[Load, ...]:
    """The elements that `stmt` reads or writes unconditionally, varying by lane."""
    targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
    sure = (load for value in ir.values(stmt) for load, always in reads(value) if always)
    return tuple(dict.fromkeys(e for e in (*sure, *targets) if lanes.differs(e) and e.buffer not in lanes.own))


def maybe_read(lanes: Lanes, stmt: ir.Stmt) -> Iterator[Obstacle]:
    """The elements that only a branch of `select` reads, as they might be out of bounds otherwise."""
    found = moving(lanes, stmt)
    for value in ir.values(stmt):
        for load, always in reads(value):
            if not always and lanes.differs(load) and load.buffer not in lanes.own and load not in found:
                help = "what an `if` keeps from the others is read for no lane that has no part in it"
                yield Obstacle(f"`{load.buffer.name}` is read only where a `select` takes it", load.span, help)
