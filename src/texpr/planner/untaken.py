"""Why a sum of products is not given to an instruction of lanes: one sentence for each that a plan leaves to threads.

    C[i, j] += A[i, k] * B[j, k]      k is summed up; A has the loop i of results alone, B has j: a product of matrices

Sums are told by their statements, whatever the loops around are: factors, the loops of each, and types are those of the program
as it is written. What fits an instruction, and was refused nevertheless, has the reason of that refusal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import Sym, expr
from texpr.ir import program as ir
from texpr.ir.instr import GROUPS, loads_of
from texpr.ir.program.text import print_value
from texpr.ir.program.updates import SUMS
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Value
from texpr.ir.value import walk as value_walk
from texpr.ir.value.types import F32, TF32
from texpr.isa.instructions.wgmma import INSTRUCTIONS as OF_WARPGROUPS
from texpr.isa.target import Target
from texpr.planner.plan import Chosen
from texpr.planner.strategies.products import LEAST
from texpr.planner.tensor.product import named, reads_memory, syms_of
from texpr.schedule.joint.records import usable
from texpr.support.record import Record

FACTORS = 2
"""What an instruction multiplies."""


class Sum(Record, eq=False):
    """A statement that sums up products. `around`: the loops around it; `results`: those of them that tell which element it
    adds to, or, for a local, that are around that; the others are summed up."""

    bind: ir.Bind
    around: tuple[ir.Loop, ...]
    results: tuple[ir.Loop, ...]

    @property
    def line(self) -> int:
        """Its line in the text."""
        return self.bind.span.line

    @property
    def place(self) -> tuple[int, int]:
        """Where it is in the text."""
        return self.bind.span.start, self.bind.span.end

    @property
    def factors(self) -> tuple[Value, ...]:
        """What it multiplies."""
        return tuple(_factors(self.bind.values[0]))

    @property
    def summed(self) -> tuple[ir.Loop, ...]:
        """The loops along which it sums up."""
        return tuple(loop for loop in self.around if loop not in self.results)

    def of(self, load: Load) -> list[ir.Loop]:
        """The loops over results on which an element depends."""
        return [loop for loop in self.results if loop.sym in _syms(load)]


def sums(function: ir.Function) -> Iterator[Sum]:
    """Every sum of products of at least two elements, in textual order; a sum of squares is none."""
    yield from _sums(function.body, (), {})


def _sums(body: Sequence[ir.Stmt], around: tuple[ir.Loop, ...], made: dict[Buffer, int]) -> Iterator[Sum]:
    for stmt in body:
        match stmt:
            case ir.New():
                made = {**made, stmt.buffer: len(around)}
            case ir.Bind() if stmt.update in SUMS and len(stmt.targets) == 1:
                yield from _sum(stmt, around, made.get(stmt.targets[0].buffer, 0))
            case ir.Par() | ir.Seq():
                yield from _sums(stmt.body, (*around, stmt), made)
            case ir.Instruction():
                pass  # it is one
            case _:
                for block in ir.blocks(stmt):
                    yield from _sums(block, around, made)


def _sum(bind: ir.Bind, around: tuple[ir.Loop, ...], made: int) -> Iterator[Sum]:
    target = _syms(bind.targets[0])
    results = tuple(loop for at, loop in enumerate(around) if at < made or loop.sym in target)
    found = Sum(bind, around, results)
    summed = {loop.sym for loop in found.summed}
    moving = {(load.buffer, load.index) for each in found.factors for load in _loads(each) if _syms(load) & summed}
    if len(found.factors) >= FACTORS and len(moving) >= FACTORS and summed:
        yield found


def untaken(
    written: ir.Function, scheduled: ir.Function, chosen: Sequence[Chosen], target: Target
) -> Iterator[tuple[int, str]]:
    """The line of each sum of products that `scheduled` does without an instruction, and why; of targets that have some."""
    if not target.has_warps:
        return
    left, every = {each.place for each in sums(scheduled)}, [*sums(written)]
    taken = {each.bind.targets[0].buffer for each in every if each.place not in left}
    for each in every:
        parts = {load.buffer for factor in each.factors for load in _loads(factor)} & taken
        if each.place in left and not any(_is_made_in(each.summed, part) for part in parts):
            yield each.line, why(each, written, chosen, target)


def _is_made_in(loops: Sequence[ir.Loop], part: Buffer) -> bool:
    """Whether what an instruction sums up is new in each iteration of a sum, which adds such parts up, with scales perhaps."""
    return any(isinstance(stmt, ir.New) and stmt.buffer is part for loop in loops for stmt in loop.body)


def why(found: Sum, function: ir.Function, chosen: Sequence[Chosen], target: Target) -> str:
    """Why a sum is not given to an instruction: what it is, or else what was refused."""
    reason = _order(found) or _operands(found) or _loops(found) or _types(found, function, target) or _extents(found)
    return reason or _refused(found, chosen)


def _order(found: Sum) -> str:
    target = found.bind.targets[0]
    if found.bind.update != "add":
        return "it subtracts, and an instruction adds to its sum: subtract the sum where it is used"
    if any(target.buffer not in loop.reduce for loop in found.summed):
        return f"its sum is in order, and no instruction keeps to one: `reduce({target.buffer.name})` frees it"
    return ""


def _operands(found: Sum) -> str:
    if len(found.factors) > FACTORS:
        told = ", ".join(f"`{print_value(each)}`" for each in found.factors)
        few = next((node.dtype for each in found.factors for node in value_walk(each) if _is_converted(node)), None)
        own = "" if few is None else f": `{few}(…)` rounds what two of them are together"
        return f"it multiplies {len(found.factors)} elements ({told}), and an instruction {FACTORS}{own}"
    for each in found.factors:
        load = _element(each)
        if load is None:
            return f"its factor `{print_value(each)}` is computed, and an instruction reads elements of arrays"
        if named(load).data:
            return f"which element of `{load.buffer.name}` it reads is data, and an instruction reads boxes of arrays"
    return ""


def _loops(found: Sum) -> str:
    """Rows are loops over results of one factor alone, columns those of the other."""
    one, other = (load for each in found.factors if (load := _element(each)) is not None)
    without = [
        mine
        for mine, theirs in ((one, other), (other, one))
        if not any(loop not in found.of(theirs) for loop in found.of(mine))
    ]
    if not without:
        return ""
    names, have = " and ".join(f"`{load.buffer.name}`" for load in without), "has" if len(without) == 1 else "have"
    own = "itself" if len(without) == 1 else "themselves"
    single = "be one element" if len(without) > 1 else "have one row or column"
    return f"it is no product of matrices: {names} {have} no loop over results to {own}, so a tile would {single}"


def _types(found: Sum, function: ir.Function, target: Target) -> str:
    kept = found.bind.targets[0].dtype
    into = F32.name if kept.is_float and kept.bits < F32.bits else kept.name  # `widen` keeps it so
    of = tuple(load.dtype.name for each in found.factors if (load := _element(each)) is not None)
    known = {
        (tuple(load.dtype.name for load in loads_of(instr.gives[0])), instr.gives[0].target.dtype.name)
        for instr in usable(function, target)
        if instr.products is not None
    }
    for each in OF_WARPGROUPS:
        if each.effect in GROUPS and each.template(target) is not None:
            *read, result = (operand.dtype for operand in each.operands)
            known.add((tuple(read), result))
    if (of, into) in known:
        return ""
    help = ", unless the text says `tf32`" if set(of) == {"f32"} and (("tf32", "tf32"), "f32") in known else ""
    return f"no instruction of {target.name} multiplies {of[0]} by {of[1]} into {into}{help}"


def _extents(found: Sum) -> str:
    syms = {loop.sym for loop in found.around}
    for loop in found.around:
        outer = sorted(loop.extent.syms() & syms, key=str)
        if outer:
            return f"the extent of `{loop.sym.base}` depends on `{outer[0].base}`, and tiles are whole boxes"
    one, other = (load for each in found.factors if (load := _element(each)) is not None)
    for mine, theirs in ((one, other), (other, one)):
        own = [loop for loop in found.of(mine) if loop not in found.of(theirs)]
        if all(loop.extent.is_constant and loop.extent.constant < LEAST for loop in own):
            most = max(loop.extent.constant for loop in own)
            return f"there are {most} results along `{own[-1].sym.base}`, and a tile is worth it from {LEAST} on"
    return ""


def _refused(found: Sum, chosen: Sequence[Chosen]) -> str:
    nest = max((each for each in chosen if each.line <= found.line), key=lambda each: each.line, default=None)
    chosen_by = [each for each in found.factors if any(isinstance(node, Op) for node in value_walk(each))]
    told = f" with the factor `{print_value(chosen_by[0])}`" if chosen_by else ""
    last = "" if nest is None else nest.products[-1] if nest.products else nest.reason
    return f"it is a product of matrices{told}, but {last or 'other statements stand in its loops'}"


def _factors(value: Value) -> Iterator[Value]:
    match value:
        case Op("mul", args):
            for arg in args:
                yield from _factors(arg)
        case Cast(Op("mul", _) as arg) if not _is_narrow(arg):
            yield from _factors(arg)
        case _:
            yield value


def _is_converted(value: Value) -> bool:
    """Whether it is an element of few bits in a type that an instruction multiplies: what scales it may be multiplied there."""
    return isinstance(value, Cast) and _is_narrow(value) and value.arg.dtype.bits < value.dtype.bits


def _is_narrow(value: Value) -> bool:
    """Whether it is of a type that an instruction multiplies, of fewer bits than f32 has."""
    return value.dtype.is_float and (value.dtype.bits < F32.bits or value.dtype is TF32)


def _element(value: Value) -> Load | None:
    """The element that a factor is, perhaps of an array that is padded with zero; or a name for what is computed of some in a
    type that an instruction multiplies."""
    match value:
        case Load():
            return value
        case Cast() | Op() if _is_narrow(value) and reads_memory(value) and not any(load.data for load in _loads(value)):
            syms = tuple(map(expr, sorted({s for load in _loads(value) for e in load.index for s in e.syms()}, key=str)))
            return Load(Buffer(print_value(value), value.dtype, syms, "local"), syms)
        case Cast():
            return _element(value.arg)
        case Op("select", (test, arm, Literal(0))) if not reads_memory(test):
            return _element(arm)
        case _:
            return None


def _loads(value: Value) -> Iterator[Load]:
    return (node for node in value_walk(value) if isinstance(node, Load))


def _syms(load: Load) -> frozenset[Sym]:
    return syms_of(named(load))
