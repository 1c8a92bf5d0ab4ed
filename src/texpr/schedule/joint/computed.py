"""Operands that lanes compute: what a laid-out program says of them before its nests become instructions.

    acc[ii, jj] += f32(As[ii, kk]) * f32(bf16(f32(bf16(Ws[kk, jj])) * f32(scale[jj])))          statement 3, of the program

The lanes compute what they hold of an operand, and the program has no array of it. So the scheduled program is compared with
one that has: `Computed` says which factor of which statement that is.
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.ir import program as ir
from texpr.ir.program.marked import mark
from texpr.ir.program.marks import Computed, Joint
from texpr.ir.value import Cast, Op
from texpr.isa.target import Target
from texpr.schedule.joint.convert import Converter
from texpr.schedule.joint.match import Match
from texpr.support.record import replace


def told(function: ir.Function, target: Target) -> ir.Function:
    """`function` with a mark for each factor that instructions read and lanes compute."""
    tops = [s for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq) and mark(s, Joint)]
    every = dict.fromkeys(made for top in tops for made in _marks(Converter(function, target, top).nest(top).match))
    return replace(function, directives=(*function.directives, *every))


def _marks(found: Match) -> Iterator[Computed]:
    """The marks for a nest: of two factors that are computed the second says whether they change places."""
    product = found.bind.values[0]
    if not found.computed or not isinstance(product, Op) or not found.bind.instance:
        return
    plain = [arg.arg if isinstance(arg, Cast) else arg for arg in product.args]
    at = [number for number, arg in enumerate(plain) if any(arg is each for each in found.computed.values())]
    for number in at:
        yield Computed(found.bind.instance[0].constant, number, int(found.swapped and number == at[-1]))
