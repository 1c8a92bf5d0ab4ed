"""How fast a device is: rates of its units, bandwidths, latencies, each number with where it comes from.

A rate is what one multiprocessor does in a clock: operations of lanes (an instruction of a warp is one a lane), multiply-adds
of the matrix unit, bytes of a memory. What nobody has published is `None`, and whoever needs it says that it is not known.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.support.record import Record


class Figure(Record):
    """One number and its source; "assumed" where there is none, "not published" where there is no number either."""

    value: float | None
    source: str


UNKNOWN = Figure(None, "not published")


class Rates(Record):
    """Lanes of an instruction that a multiprocessor runs in a clock, by the unit that does the work.

    `issue`: whatever the instruction. `fma`: add, multiply, multiply-add of f32. `alu`: integer addition, logic, shifts,
    comparisons, minima, conversions by rounding. `imad`: integer multiply-add. `half`: pairs of f16 or bf16. `fp64`: f64.
    `special`: reciprocals, roots, exponentials, conversions between integers and floats. `lsu`: lanes that get at memory.
    """

    issue: Figure
    fma: Figure
    alu: Figure
    imad: Figure
    half: Figure
    fp64: Figure
    special: Figure
    lsu: Figure


class Matrix(Record):
    """Multiply-adds of the matrix unit in a clock of a multiprocessor, by the type of what is multiplied.

    `clock`: at how many MHz the sheet tells its rate. `sync`: the share of it that instructions of one warp reach.
    """

    f16: Figure
    tf32: Figure
    f8: Figure
    i8: Figure
    f64: Figure
    clock: Figure
    sync: Figure

    def rate(self, dtype: str) -> Figure:
        """Of the type `dtype`, bf16 like f16."""
        known = {"f16": self.f16, "bf16": self.f16, "tf32": self.tf32, "f8": self.f8, "i8": self.i8, "f64": self.f64}
        return known.get(dtype, UNKNOWN)


class Bandwidth(Record):
    """`dram`: bytes a second; `l2`: bytes a clock from the second-level cache to all multiprocessors; `l1`, `shared`: bytes a
    clock of one multiprocessor."""

    dram: Figure
    l2: Figure
    l1: Figure
    shared: Figure


class Latency(Record):
    """Clocks from the issue of an instruction to the first that may use what it gives, where nothing else is in the way.

    `fixed`: arithmetic whose latency the compiler knows; machine code says it of each instruction.
    """

    fixed: Figure
    shared: Figure
    l1: Figure
    l2: Figure
    dram: Figure
    special: Figure
    shuffle: Figure
    matrix: Figure
    fp64: Figure
    constant: Figure
    barrier: Figure


class Between(Record):
    """Microseconds for which a multiprocessor waits between two tiles of blocks that have it to themselves. `begin`: at least,
    from the last product of a block to the first one of the next, whose operands are on their way; `store`: for each KiB of
    results that lanes store, while the copy engine would do so beside the products of the next tile."""

    begin: Figure = UNKNOWN
    store: Figure = UNKNOWN


class Allocation(Record):
    """In what portions a multiprocessor hands out its registers (to a warp) and its shared memory (to a block), in registers
    and bytes; `reserved`: bytes of shared memory of each block that are the system's."""

    registers: int
    shared: int
    reserved: int


# CUDA Occupancy Calculator (cuda_occupancy.h): the same of compute capability 8.0 to 12.0.
ALLOCATION = Allocation(registers=256, shared=128, reserved=1024)


class Device(Record):
    """One device. `targets`: those that it stands for, where nobody says which device there is; `cards`: as drivers name it.
    `schedulers`: of a multiprocessor, each issues one instruction of a warp a clock.

    `clock`: MHz, the highest, since a bound must be below every time. `cache`: bytes of the second-level cache.
    """

    name: str
    targets: tuple[str, ...]
    multiprocessors: Figure
    schedulers: int
    clock: Figure
    rates: Rates
    matrix: Matrix
    bandwidth: Bandwidth
    latency: Latency
    allocation: Allocation = ALLOCATION
    cards: tuple[str, ...] = ()
    between: Between = Between()
    cache: Figure = UNKNOWN

    def figures(self) -> Iterator[tuple[str, Figure]]:
        """Every number by its name."""
        yield "multiprocessors", self.multiprocessors
        yield "clock", self.clock
        yield "cache", self.cache
        for group in ("rates", "matrix", "bandwidth", "latency", "between"):
            part = getattr(self, group)
            for name in part.__struct_fields__:
                yield f"{group}.{name}", getattr(part, name)
