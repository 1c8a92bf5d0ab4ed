"""Knowledge of integers at each program point of a plan: ranges of sizes, coordinates, loop indices and data, and facts from
tests.

Printers and the survey of a plan's arithmetic (`ir.kernel.arithmetic`) use these functions only, so that both compute the same
`Typed` trees.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from itertools import takewhile
from operator import mul

from texpr.affine.expr import Expr, FloorDiv, Sym, expr, maximum
from texpr.affine.facts import Fact
from texpr.affine.magnitude import magnitude
from texpr.affine.ranges import Range, bounds
from texpr.affine.typed import Knowledge
from texpr.ir.kernel import Axis, For, HostIf, HostLoop, HostStep, Kernel, Launch, Plan, Store, kernels, memory, walk
from texpr.ir.program import Compare, InRange
from texpr.ir.value import Buffer, Index, Load, Op, Value
from texpr.ir.value.types import DType, Kind
from texpr.isa.levels import Level
from texpr.support.limits import LARGEST_SIZE, LAST_BLOCK, MOST_BYTES, Width

_COUNTED: Range = (0, LARGEST_SIZE)
"""The range of a host loop's trip count, which launchers check like a size."""


def size_ranges(sizes: Iterable[Sym], requires: Iterable[Compare]) -> dict[Sym, Range]:
    """0 ≤ size ≤ LARGEST_SIZE for each, narrowed by the requirements that compare one size with a number."""
    ranges: dict[Sym, Range] = {size: (0, LARGEST_SIZE) for size in sizes}
    for fact in requires:
        difference = fact.left - fact.right
        if len(difference.terms) != 1:
            continue
        ((monomial, coefficient),) = difference.terms
        if len(monomial) != 1 or not isinstance(monomial[0], Sym) or abs(coefficient) != 1 or monomial[0] not in ranges:
            continue
        size, limit = monomial[0], -difference.constant * coefficient
        ranges[size] = _cut(ranges[size], fact.op if coefficient > 0 else _MIRRORED[fact.op], limit)
    return ranges


def size_facts(requires: Iterable[Compare]) -> tuple[Fact, ...]:
    """The requirements, as facts."""
    return tuple(fact for compare in requires for fact in _facts(compare))


def checked_products(plan: Plan) -> tuple[tuple[Expr, int], ...]:
    """The products that launchers bound before any step: the bytes of each array, and the plan's bounds on sizes."""
    arrays = dict.fromkeys((*plan.params, *plan.results, *plan.workspace))
    spans = dict.fromkeys(reduce(mul, b.shape, expr(b.dtype.bytes)) for b in arrays if b.strides is None)
    ranges = size_ranges(plan.sizes, plan.requires)
    return (*((each, MOST_BYTES) for each in spans if _is_long(each, ranges)), *bounds_known(plan))


def bounds_known(plan: Plan) -> tuple[tuple[Expr, int], ...]:
    """The plan's bounds on sizes, which launchers check first."""
    return tuple((bound.left, bound.right.constant) for bound in plan.bounds)


def host_knowledge(plan: Plan, width: Width, *, checked: bool) -> Knowledge:
    """A launcher's knowledge of sizes of this width; its arithmetic has 128 bits.

    `checked`: after the checks of requirements and arrays.
    """
    if not checked:
        here = Knowledge(dict.fromkeys(plan.sizes, (0, LARGEST_SIZE)), products=bounds_known(plan), narrows=False)
    else:
        ranges = size_ranges(plan.sizes, plan.requires)
        here = Knowledge(ranges, products=checked_products(plan), narrows=False)
    return here.also(widths=dict.fromkeys(plan.sizes, width), tops={size: (expr(size), 1) for size in plan.sizes})


def host_loop(sym: Sym, extent: Expr, here: Knowledge) -> Knowledge:
    """The knowledge inside a host loop, whose trip count is checked to fit an `int`."""
    return here.integer(sym, _COUNTED, [Fact(0, sym, extent)], top=extent)


def every_element(buffer: Buffer, here: Knowledge) -> tuple[tuple[Sym, ...], Knowledge]:
    """Loop symbols over all elements of an array that a launcher reads, and the knowledge inside the loops."""
    syms = tuple(Sym(f"i{dimension}'") for dimension in range(buffer.rank))
    for sym, extent in zip(syms, buffer.shape, strict=True):
        here = here.integer(sym, (0, MOST_BYTES), [Fact(0, sym, extent)], top=extent)
    return syms, here


def kernel_knowledge(kernel: Kernel, plan: Plan) -> Knowledge:
    """The knowledge before a kernel's axes are declared: ranges of sizes and the requirements; no axis is empty, and no axis of
    the grid exceeds the limit of a launch."""
    ranges = size_ranges(plan.sizes, plan.requires)
    for sym in {sym for axis in kernel.axes for sym in factors(axis.extent)}:
        lo, hi = ranges.get(sym, (0, LARGEST_SIZE))
        ranges[sym] = max(lo or 0, 1), hi
    shared_out = [_iterations(axis.extent) for axis in kernel.axes if axis.level is Level.GRID]
    grids = [(whole, (LAST_BLOCK + 2) * each - 1) for whole, each in shared_out if _is_long(whole, ranges)]
    bases = {axis.base for axis in kernel.axes}
    most = {size: LAST_BLOCK if size in bases else LARGEST_SIZE for size in kernel.sizes}
    tops = {size: (expr(end), 1) for size, end in most.items()} | {size: (expr(size), 1) for size in plan.sizes}
    here = Knowledge(
        ranges,
        size_facts(plan.requires),
        products=(*checked_products(plan), *grids),
        tops=tops,
        promises={b.name: ends for b, ends in promised(plan).items()},
    )
    for size in kernel.sizes:
        here = here.integer(size, ranges.get(size, (0, most[size])))
    for loop in loops_around(kernel, plan.steps):
        _, past = here.bounds(loop.extent)
        last = LARGEST_SIZE if past is None else min(max(past - 1, 0), LARGEST_SIZE)
        here = here.integer(loop.sym, (0, last), [Fact(0, loop.sym, loop.extent)], top=loop.extent)
    return here


def loops_around(kernel: Kernel, steps: Iterable[HostStep]) -> tuple[HostLoop, ...]:
    """The host loops around every launch of a kernel, outermost first."""
    ways = list(_ways(kernel, steps, ()))
    return tuple(same[0] for same in takewhile(lambda each: len({*map(id, each)}) == 1, zip(*ways, strict=False)))


def _ways(kernel: Kernel, steps: Iterable[HostStep], around: tuple[HostLoop, ...]) -> Iterator[tuple[HostLoop, ...]]:
    """The host loops around each launch of a kernel."""
    for step in steps:
        if isinstance(step, Launch) and step.kernel == kernel:
            yield around
        elif isinstance(step, HostLoop | HostIf):
            yield from _ways(kernel, step.steps, (*around, step) if isinstance(step, HostLoop) else around)


def promised(plan: Plan) -> dict[Buffer, tuple[Expr, Expr]]:
    """The ranges that are assumed of arrays: of inputs, and of workspace buffers that are only copies of their elements, for
    later launches."""
    found = {a.buffer: (a.lo, a.hi) for a in plan.assumes if isinstance(a, InRange) and a.buffer.role == "input"}
    kept = [buffer for buffer in plan.workspace if found and buffer.dtype.is_integer]
    bodies = [kernel.body for kernel in kernels(plan.steps)] if kept else []
    touched = [tuple([load.buffer for load in each] for each in memory(body)) for body in bodies]
    writes = [buffer for _, written in touched for buffer in written]
    stores = [stmt for body in bodies for stmt in walk(body) if isinstance(stmt, Store)]
    for buffer in kept:
        own = [stmt.value for stmt in stores if stmt.target.buffer == buffer]
        said = {None if source is None else found.get(source) for source in map(source_of, own)}
        ways = [(buffer in read, buffer in written) for read, written in touched if buffer in read or buffer in written]
        behind = (True, True) not in ways and ways[:1] == [(False, True)]
        if behind and len(own) == writes.count(buffer) and len(said) == 1 and (whole := said.pop()) is not None:
            found[buffer] = whole
    return found


def axis_knowledge(axis: Axis, here: Knowledge) -> Knowledge:
    """The knowledge with an axis' coordinate. No launch has more than 2³¹ − 1 blocks along a GRID axis."""
    _, top = here.bounds(axis.extent)
    last = None if top is None else max(top - 1, 0)
    if axis.level is Level.GRID:
        last = LAST_BLOCK if last is None else min(last, LAST_BLOCK)
    return here.integer(axis.sym, (0, last), [Fact(0, axis.sym, axis.extent)], top=axis.extent)


def loop_knowledge(loop: For, here: Knowledge) -> Knowledge:
    """The knowledge inside a kernel's loop. The width of its variable also includes the final value."""
    ends, past = loop_ranges(loop, here)
    top = maximum(loop.hi, -loop.lo) if (ends[0] or 0) < 0 or ends[0] is None else loop.hi
    return here.integer(loop.sym, ends, [Fact(loop.lo, loop.sym, loop.hi)], past, top)


def loop_ranges(loop: For, here: Knowledge) -> tuple[Range, Range]:
    """The range of the loop's symbol within its body, and the range of its variable, with the final value."""
    (low, start), (_, end), (_, step) = (here.bounds(e) for e in (loop.lo, loop.hi, loop.step))
    if end is None:
        return (low, None), (low, None)
    last = end - 1 if low is None else max(end - 1, low)
    past = None if start is None or step is None else max(start, last + step)
    return (low, last), (low, past)


def data_knowledge(sym: Sym, dtype: DType, here: Knowledge, source: Buffer | None = None) -> Knowledge:
    """The knowledge with a data-dependent integer: in the range of its type, or in the range assumed of its array `source`."""
    signed = dtype.kind is Kind.INT
    lo, hi = (-(1 << dtype.bits - 1), (1 << dtype.bits - 1) - 1) if signed else (0, (1 << dtype.bits) - 1)
    width = next(each for each in Width if each.holds((lo, hi)))
    promise = None if source is None else here.promises.get(source.name)
    if promise is None:
        return here.also({sym: (lo, hi)}, widths={sym: width})
    (least, _), (_, end) = map(here.bounds, promise)
    lo, hi = lo if least is None else max(lo, least), hi if end is None else min(hi, max(end - 1, lo))
    width = width if width is Width.INT or not Width.LONG.holds((lo, hi)) else Width.LONG
    first, past = promise
    top = magnitude(past if lo >= 0 else maximum(past, -first), here.tops, here.known)
    return here.also({sym: (lo, hi)}, [Fact(first, sym, past)], {sym: width}, {} if top is None else {sym: top})


def source_of(value: Value) -> Buffer | None:
    """The array that a value is loaded from, if it is just a load."""
    return value.buffer if isinstance(value, Load) else None


def branch_facts(condition: Value) -> tuple[Fact, ...]:
    """The facts about index symbols that hold if the condition does: upper bounds of single symbols, as in guards."""
    match condition:
        case Op("and", (left, right)):
            return (*branch_facts(left), *branch_facts(right))
        case Op("lt", (Index(less), Index(more))) if less.as_sym is not None:
            return (Fact(None, less, more),)
        case _:
            return ()


def factors(extent: Expr) -> Iterator[Sym]:
    """The factors of an extent that is a product of symbols: where it is not 0 and no symbol is negative, each is at least
    1."""
    if len(extent.terms) == 1 and extent.constant == 0:
        yield from (atom for atom in extent.terms[0][0] if isinstance(atom, Sym))


def _iterations(extent: Expr) -> tuple[Expr, int]:
    """The number of iterations that an axis distributes, and how many each block gets: x and d for ⌈x / d⌉ blocks."""
    atom = extent.as_atom
    if isinstance(atom, FloorDiv) and atom.den.is_constant and atom.den.constant > 0:
        return atom.num, atom.den.constant
    return extent, 1


def _is_long(value: Expr, ranges: Mapping[Sym, Range]) -> bool:
    """Whether ranges alone do not prove that 64 bits suffice."""
    return not Width.LONG.holds(bounds(value, ranges))


def _facts(compare: Compare) -> Iterator[Fact]:
    left, right = compare.left, compare.right
    match compare.op:
        case "<":
            yield Fact(None, left, right)
        case "<=":
            yield Fact(None, left, right + 1)
        case ">":
            yield Fact(None, right, left)
        case ">=":
            yield Fact(None, right, left + 1)
        case "==":
            yield Fact(right, left, right + 1)
        case _:
            pass


_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def _cut(ends: Range, op: str, limit: int) -> Range:
    lo, hi = ends[0] or 0, LARGEST_SIZE if ends[1] is None else ends[1]
    match op:
        case "<" | "<=":
            hi = min(hi, limit - (op == "<"))
        case ">" | ">=":
            lo = max(lo, limit + (op == ">"))
        case "==":
            lo, hi = max(lo, limit), min(hi, limit)
        case _:
            pass
    return (lo, hi) if lo <= hi else ends
