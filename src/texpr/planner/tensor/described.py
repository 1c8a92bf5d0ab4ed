"""The instructions by which a warpgroup, or one thread for tensor memory, does a product of operands in shared memory.

Which one follows from types, and from which elements of an operand are neighbours in memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from texpr.affine.expr import ONE, ZERO, expr
from texpr.ir.instr import COLUMNS, DESCRIBED, GROUPS, Operand
from texpr.ir.instr.fragment import core_matrix
from texpr.isa.instruction import Instruction
from texpr.isa.instruction import Operand as RecordOperand
from texpr.isa.instructions.tcgen05 import PAIR, PAIRED
from texpr.isa.registry import INSTRUCTIONS
from texpr.isa.target import Target
from texpr.planner.nest import Nest
from texpr.planner.tensor.product import Product, product_of
from texpr.schedule.joint.match import Match
from texpr.schedule.joint.records import called

Together: TypeAlias = tuple[Instruction, ...]
"""Instructions of the same number of columns, one for each sum."""


def product_by(nest: Nest, target: Target, *, computed: bool = False) -> tuple[Product, tuple[Together, ...]] | None:
    """A nest as a product that a warpgroup does, and the instructions for it, of different numbers of columns. `computed`: of
    those that read an operand in registers, which lanes compute."""
    fits = _is_from_lanes if computed else _is_from_shared
    read, kinds = {touch.buffer.dtype.name for touch in nest.touches}, dict[tuple[str, ...], list[Instruction]]()
    for each in INSTRUCTIONS.values():
        types = tuple(operand.dtype for operand in each.operands)
        if fits(each) and each.template(target) is not None and read.issuperset(types[:-1]):
            kinds.setdefault(types, []).append(each)
    least = {min(records, key=columns_of).name: records for records in kinds.values()}
    found = product_of(nest, [instr for name in least if (instr := called(name)) is not None])
    if found is None or found.is_computed != computed:
        return None
    product = _turned(found, nest)
    fitting = [{columns_of(r): r for r in least[each.instr.name] if _lies_so(r, each)} for each in product.sums]
    records = tuple(tuple(each[columns] for each in fitting) for columns in _common(fitting))
    return (product, records) if records else None


def _common(fitting: Sequence[Mapping[int, Instruction]]) -> list[int]:
    """The numbers of columns of which there is an instruction for every sum."""
    return [columns for columns in fitting[0] if all(columns in each for each in fitting)]


def _is_from_shared(record: Instruction) -> bool:
    """Whether a warpgroup does it, of matrices in shared memory, and of scales that are brought from there."""
    read = [o.fragment for o in record.operands if not o.inout]
    matrices = sum(each.startswith(DESCRIBED) for each in read)
    alone = record.effect in GROUPS and record.effect != PAIRED
    return alone and matrices > 1 and all(each.startswith((DESCRIBED, COLUMNS)) for each in read)


def of_pairs(names: Sequence[str]) -> tuple[str, ...]:
    """The instructions by which a pair of blocks does what each does by those of some names; none where there is not each."""
    pairs = [each for each in INSTRUCTIONS.values() if each.effect == PAIRED]
    found = [next((each.name for each in pairs if _alike(each, INSTRUCTIONS[name])), "") for name in names]
    return tuple(found) if all(found) else ()


def _alike(pair: Instruction, alone: Instruction) -> bool:
    """Whether an instruction of a pair does in each block what another one does, of operands that lie alike."""
    mine, theirs = ([(o.dtype, o.shape, o.fragment.replace(f"{PAIR}@1 ", "")) for o in each.operands] for each in (pair, alone))
    return mine == theirs and pair.meaning == alone.meaning


def _is_from_lanes(record: Instruction) -> bool:
    """Whether a warpgroup does it, of a matrix that lanes have in registers, and one in shared memory."""
    read = [o.fragment for o in record.operands if not o.inout]
    return record.effect in GROUPS and [each.startswith(DESCRIBED) for each in read] == [False, True] and COLUMNS not in read[0]


def columns_of(record: Instruction) -> int:
    """The columns that an instruction sums up."""
    return record.operands[-1].shape[1]


def _turned(product: Product, nest: Nest) -> Product:
    """The same, of the rows and columns that the instruction has."""
    rows, columns = product.found.along(product.found.result)
    loops = {loop.sym: loop for loop in nest.loops}
    return Product(loops[rows], loops[columns], product.sum, product.sums)


def _lies_so(record: Instruction, found: Match) -> bool:
    """Whether elements of operands that the instruction has side by side are neighbours in rows of memory."""
    pairs = zip(record.operands, found.instr.operands, strict=True)
    return all(lies_so(mine, theirs, found) for mine, theirs in pairs if theirs.is_described)


def lies_so(record: RecordOperand, operand: Operand, found: Match) -> bool:
    """Whether elements that a described operand of a record has side by side are neighbours in rows of what is read for one."""
    core = core_matrix(record.fragment.removeprefix(DESCRIBED).strip(), len(record.shape))
    (dim,) = {digit.dim for digit in core.digits if not digit.of_lane}
    assert dim is not None
    sym, load = found.along(operand)[dim], found.reads[operand.memory]
    moved = [e.substitute({sym: expr(sym) + 1}) - e for e in load.index]
    return not load.data and moved[-1] is ONE and all(e is ZERO for e in moved[:-1])
