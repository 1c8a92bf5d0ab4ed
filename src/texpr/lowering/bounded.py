"""Bounds on sizes that keep a plan's index arithmetic within what machines compute.

Before: a plan whose integers are exact as `Expr`s. After: the same plan, with a bound for each of its integers that would
exceed 64 bits (128 on the host) for sizes that launchers let pass, or an `int` where one is asked for. Most plans need none.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.affine.expr import expr
from texpr.affine.magnitude import clamped
from texpr.affine.ranges import Range
from texpr.affine.typed import Typed
from texpr.ir.arithmetic import Computed, computed
from texpr.ir.kernel import Plan
from texpr.ir.program import Compare
from texpr.support.diagnostic import CompilerBug, limitation
from texpr.support.limits import LARGEST_INT, MOST_INDEX, Width
from texpr.support.record import replace

MOST_ON_HOST = 2**125
"""What the host's arithmetic is bounded to, below where sums and products that saturate stop."""


def bounded(plan: Plan) -> Plan:
    """The plan with the bounds that it needs. Raises `Limitation` E0506 where data would have to be bounded, too."""
    while True:
        found = next(_missing(plan), None)
        if found is None:
            return plan
        if found in plan.bounds:
            raise CompilerBug(f"{found.left} <= {found.right} does not bound what it was made for, in {plan.name}")
        plan = replace(plan, bounds=(*plan.bounds, found))


def _missing(plan: Plan) -> Iterator[Compare]:
    for found in computed(plan):
        for node in found.tree.nodes():
            whole = node is found.tree and found.most is not None
            if not node.fits or (whole and not _below(node.ends, found)):
                yield _bound(node, found, found.most if whole else None)


def _below(ends: Range, found: Computed) -> bool:
    """Whether what is passed on as an `int` is one, and a loop has no more turns than are of use."""
    if found.most is None:
        return True
    as_int = found.most <= LARGEST_INT and not found.turns
    return ends[1] is not None and ends[1] <= found.most and (not as_int or Width.INT.holds(ends))


def _bound(node: Typed, found: Computed, most: int | None) -> Compare:
    """What sizes have to fulfil for a node to fit: where its value may be too small, the bound of its opposite."""
    value, ends = node.value, node.ends
    limit = MOST_INDEX if found.here.narrows else MOST_ON_HOST
    if most is not None:
        limit = min(most, limit)
    low = ends[1] is not None and ends[1] <= limit
    above = found.here.upper(-value if low else value)
    if node.op == "product":
        above = found.here.upper_product(arg.value for arg in node.args)
    if above is None:
        told = f"{found.what}: computing `{value}` may exceed {32 if limit <= LARGEST_INT else 64} bits, whatever sizes are"
        help = "what data say is bounded where their range is promised, as by `assume t in 0..n`"
        raise limitation("E0506", found.span, told, help=help)
    return Compare("<=", clamped(above, limit), expr(limit), found.span)
