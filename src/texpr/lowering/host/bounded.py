"""Bounds on sizes that keep a plan's index arithmetic in the range of machine integers.

Before: a plan whose integers are exact as `Expr`s. After: the same plan, with a bound for each of its integers that could
exceed 64 bits (128 on the host), or an `int` argument, for sizes that launchers accept. Most plans need none.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import expr
from texpr.affine.magnitude import clamped
from texpr.affine.ranges import Range
from texpr.affine.typed import Typed, count
from texpr.ir.kernel import Plan
from texpr.ir.kernel.arithmetic import Computed, computed
from texpr.ir.program import Compare
from texpr.support.diagnostic import CompilerBug, Limitation, limitation
from texpr.support.limits import LARGEST_INT, MOST_INDEX, Width
from texpr.support.record import replace

MOST_ON_HOST = 2**125
"""The bound of the host's integers, less than where its saturating sums and products saturate."""


def bounded(plan: Plan) -> Plan:
    """The plan with the bounds that it needs. Raises `Limitation` E0506 where data would have to be bounded, too.

    Each scan adds all bounds that it finds missing; the next scan uses them.
    """
    while True:
        found = _missing(plan)
        if not found:
            return plan
        plan = replace(plan, bounds=(*plan.bounds, *found))


def _missing(plan: Plan) -> list[Compare]:
    """The bounds that a scan of the plan finds missing, without those that earlier ones of them imply."""
    new: list[Compare] = []
    for found in computed(plan):
        for node in found.tree.nodes():
            most = found.most if node is found.tree else None
            if _holds(node, node.ends, found, most) or (new and _holds(node, _ends(node, found, new), found, most)):
                continue
            bound = _bound(node, found, most)
            if not isinstance(bound, Compare):
                if not new:  # otherwise the next scan has more bounds
                    raise bound
            elif bound in plan.bounds:
                if not new:
                    raise CompilerBug(f"{bound.left} <= {bound.right} does not bound what it was made for, in {plan.name}")
            elif bound not in new:
                new.append(bound)
    return new


def _holds(node: Typed, ends: Range, found: Computed, most: int | None) -> bool:
    """Whether a node in a range fits its width, and is at most `most` where that is given."""
    return node.width.holds(ends) and (most is None or _below(ends, found))


def _ends(node: Typed, found: Computed, new: Sequence[Compare]) -> Range:
    """The range of a node if the sizes also satisfy the new bounds."""
    products = ((bound.left, bound.right.constant) for bound in new)
    here = replace(found.here, products=(*found.here.products, *products))
    if node.op == "product":
        return count([arg.value for arg in node.args], here).ends
    ends = here.bounds(node.value)
    return ends if node.op != "variable" else (node.ends[0], ends[1])


def _below(ends: Range, found: Computed) -> bool:
    """Whether an `int` argument fits an `int`, and a trip count or value is at most its limit."""
    if found.most is None:
        return True
    as_int = found.most <= LARGEST_INT and not found.turns
    return ends[1] is not None and ends[1] <= found.most and (not as_int or Width.INT.holds(ends))


def _bound(node: Typed, found: Computed, most: int | None) -> Compare | Limitation:
    """The condition on sizes by which a node fits: where its value may be too small, the bound of its negation.

    A `Limitation` where no condition on sizes is sufficient.
    """
    value, ends = node.value, node.ends
    limit = MOST_INDEX if found.here.narrows else MOST_ON_HOST
    if most is not None:
        limit = min(most, limit)
    low = ends[1] is not None and ends[1] <= limit
    above = found.here.upper(-value if low else value)
    if node.op == "product":
        above = found.here.upper_product(arg.value for arg in node.args)
    if above is None or above.constant > limit:
        told = f"{found.what}: computing `{value}` may exceed {32 if limit <= LARGEST_INT else 64} bits, whatever sizes are"
        help = "data are bounded where their range is promised, as by `assume t in 0..n`" if above is None else None
        return limitation("E0506", found.span, told, help=help)
    return Compare("<=", clamped(above, limit), expr(limit), found.span)
