"""What machine code asks of a machine, from how often each of its instructions is run."""

from __future__ import annotations

from texpr.isa.levels import Space
from texpr.isa.memories import SHARED
from texpr.isa.target import Target
from texpr.model.bound import SYNC
from texpr.model.code.classes import Access, access, product, unit
from texpr.model.code.text import Code, Instruction
from texpr.model.code.walk import Counts
from texpr.model.work import Totals, Work
from texpr.support.record import Record

ROUND = SHARED.banks * SHARED.bank_width
"""Bytes that shared memory, or the first-level cache, hands out in a clock."""

_BYTES = {"f64": 8, "tf32": 4, "i8": 1, "f8": 1}


class Reading(Record):
    """What was read of a kernel. `unknown`: opcodes of which it is not known what runs them; `engine`: copies by the engine of
    tiles, whose bytes machine code does not say; `undecided`: jumps that data decides, `cut`: no count is whole."""

    work: Work
    unknown: tuple[str, ...]
    engine: float
    undecided: tuple[int, ...]
    cut: bool


def read_work(code: Code, counts: Counts, target: Target, known: Work | None = None) -> Reading:
    """The work of a launch. Addresses are not known: what lanes ask of global memory counts as dense, and banks as free of
    conflicts. `known`: who knows which bytes must move between memories says it there."""
    units = Totals()
    products = Totals()
    sums = Totals()
    unknown: set[str] = set()
    for one, times in zip(code.instructions, counts.executed, strict=True):
        by = unit(one)
        if by is None:
            unknown.add(one.opcode)
            continue
        units[by] += times
        if (made := product(one)) is not None:
            products[made.dtype + ("" if made.group else SYNC)] += made.multiply_adds * times
            sums["shared"] += _operand_bytes(one) / ROUND * times if made.group else 0.0
        elif by == "matrix":
            unknown.add(one.opcode)
        if (asked := access(one)) is not None:
            _memory(sums, asked, times, target)
        sums["barriers"] += times if one.name == "BAR" else 0.0
    kept = {name: amount for name, amount in units.items() if amount}
    l2, dram = (None, None) if known is None else (known.l2, known.dram)
    work = Work(
        issued=sum(counts.issued),
        units=kept,
        products={name: amount for name, amount in products.items() if amount},
        requests=sums["requests"],
        l1=sums["l1"],
        shared=sums["shared"],
        l2=l2,
        dram=dram,
        again=0.0 if known is None else known.again,
        own=0.0 if known is None else known.own,
        barriers=sums["barriers"],
        spilled=sums["spilled"],
    )
    return Reading(work, tuple(sorted(unknown)), kept.get("copy", 0.0), counts.undecided, counts.cut)


def _memory(sums: Totals, asked: Access, times: float, target: Target) -> None:
    """Adds what a request of a warp takes."""
    whole = asked.width * target.warp
    rounds = max(1.0, whole / ROUND) * times
    match asked.space:
        case Space.SHARED:
            sums["shared"] += rounds
        case Space.LOCAL:
            sums["l1"] += rounds
            sums["spilled"] += whole * times
        case _:
            sums["requests"] += times
            sums["shared" if asked.around else "l1"] += rounds


def _operand_bytes(one: Instruction) -> float:
    """Bytes of shared memory that one warp's part of a warp group's product reads: both factors, or one where the other is in
    registers."""
    made = product(one)
    word = next((each for each in one.modifiers if each.count("x") == 2), None)
    if made is None or word is None:
        return 0.0
    rows, columns, depth = map(int, word.split("x"))
    both = not (len(one.operands) > 1 and one.operands[1].startswith("R") and one.operands[1] != "RZ")
    size = _BYTES.get(made.dtype, 2)
    return ((rows if both else 0) + columns) * depth * size * made.multiply_adds / (rows * columns * depth)
