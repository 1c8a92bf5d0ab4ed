"""Bounds on sizes that keep a plan's index arithmetic within what machines compute.

Before: a plan whose integers are exact as `Expr`s. After: the same plan, with a bound for each of its integers that would
exceed 64 bits (128 on the host) for sizes that launchers let pass, or an `int` where one is asked for. Most plans need none.
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
"""What the host's arithmetic is bounded to, below where sums and products that saturate stop."""


def bounded(plan: Plan) -> Plan:
    """The plan with the bounds that it needs. Raises `Limitation` E0506 where data would have to be bounded, too.

    All that a scan finds is bounded at once; the next one looks at it again, where more is known.
    """
    while True:
        found = _missing(plan)
        if not found:
            return plan
        plan = replace(plan, bounds=(*plan.bounds, *found))


def _missing(plan: Plan) -> list[Compare]:
    """The bounds that a scan of the plan finds missing, but for what earlier ones of them hold, too."""
    new: list[Compare] = []
    for found in computed(plan):
        for node in found.tree.nodes():
            most = found.most if node is found.tree else None
            if _holds(node, node.ends, found, most) or (new and _holds(node, _ends(node, found, new), found, most)):
                continue
            bound = _bound(node, found, most)
            if not isinstance(bound, Compare):
                if not new:  # else it is looked at again with these
                    raise bound
            elif bound in plan.bounds:
                if not new:
                    raise CompilerBug(f"{bound.left} <= {bound.right} does not bound what it was made for, in {plan.name}")
            elif bound not in new:
                new.append(bound)
    return new


def _holds(node: Typed, ends: Range, found: Computed, most: int | None) -> bool:
    """Whether a node that lies in a range has its width, and is no more than is of use."""
    return node.width.holds(ends) and (most is None or _below(ends, found))


def _ends(node: Typed, found: Computed, new: Sequence[Compare]) -> Range:
    """The range of a node where sizes keep to new bounds, too."""
    products = ((bound.left, bound.right.constant) for bound in new)
    here = replace(found.here, products=(*found.here.products, *products))
    if node.op == "product":
        return count([arg.value for arg in node.args], here).ends
    ends = here.bounds(node.value)
    return ends if node.op != "variable" else (node.ends[0], ends[1])


def _below(ends: Range, found: Computed) -> bool:
    """Whether what is passed on as an `int` is one, and a loop has no more turns than are of use."""
    if found.most is None:
        return True
    as_int = found.most <= LARGEST_INT and not found.turns
    return ends[1] is not None and ends[1] <= found.most and (not as_int or Width.INT.holds(ends))


def _bound(node: Typed, found: Computed, most: int | None) -> Compare | Limitation:
    """What sizes have to fulfil for a node to fit: where its value may be too small, the bound of its opposite.

    A `Limitation` where nothing that they fulfil does.
    """
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
        return limitation("E0506", found.span, told, help=help)
    return Compare("<=", clamped(above, limit), expr(limit), found.span)
