"""What the inner arithmetic of an instruction makes of a floating-point sum: a record, and the bound that follows from it.

A unit adds the products of a block to the sum in one step. All terms, the sum among them, are aligned to the largest exponent
and cut off there, the exact sum of what is left is rounded to the type of the sum. What machines do is published; what holds
for every such machine is derived in docs/theory/rounding.md, whose names these are.
"""

from __future__ import annotations

import re
from math import ceil, expm1, log1p

from texpr.support.record import Record

_TEXT = re.compile(r"aligned (\d{1,4}) ?, ?products (\d{1,4}) ?, ?(truncated|nearest) (\d{1,4})( ?, ?flushed)?", re.ASCII)

MOST_BITS, MOST_PRODUCTS = 64, 1 << 10
"""The most bits, and products of a step, that a record may have."""

SLACK = 1 + 2.0**-40
"""More than what computing a bound in binary64 loses."""


class Rounding(Record):
    """A step adds `products` products. `aligned`: bits of a term that are kept behind the leading one of the largest; `kept`:
    of the sum afterwards, truncated or, if `nearest`, rounded to the nearest. `flushed`: subnormal factors and sums count as 0.
    `source`: who found that.
    """

    products: int
    aligned: int
    kept: int
    nearest: bool = False
    source: str = ""
    flushed: bool = False

    @property
    def text(self) -> str:
        """The clause of an `instr`."""
        how, rest = "nearest" if self.nearest else "truncated", ", flushed" if self.flushed else ""
        return f"aligned {self.aligned}, products {self.products}, {how} {self.kept}{rest}"

    @property
    def step(self) -> float:
        """δ: what one step loses at most, relative to the magnitudes of its terms."""
        return (self.products + 1) * 2.0**-self.aligned + 2.0 ** -(self.kept + self.nearest)

    @property
    def exact_below(self) -> int:
        """Sums of whole numbers are exact while the magnitudes of all terms together stay below this."""
        return 1 << (min(self.aligned, self.kept) + 1)

    def relative(self, products: int) -> float:
        """What a sum of so many products loses at most, relative to the magnitudes of all terms together."""
        return SLACK * expm1(ceil(products / self.products) * log1p(self.step))

    def bound(self, products: int, magnitude: float, start: float = 0.0, least: float = 2.0**-126) -> float:
        """|computed − exact| at most, where nothing overflows.

        `magnitude`: Σ |a · b|, in which a subnormal factor counts as the least normal number, and 0 as 2^−126; `start`: |c|;
        `least`: the least normal number of the type of the sum. Where subnormals are `flushed`, the exact sum is that without
        products of a subnormal factor, and each step may lose a subnormal sum.
        """
        lost = ceil(products / self.products) * least * SLACK if self.flushed else 0.0
        return self.relative(products) * (magnitude + abs(start) + least + lost) + lost if products else 0.0


def read(text: str) -> Rounding | None:
    """The record of a clause, None if it is none."""
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    aligned, products, kept = (int(found[at]) for at in (1, 2, 4))
    if not (1 <= aligned <= MOST_BITS and 1 <= kept <= MOST_BITS and 1 <= products <= MOST_PRODUCTS):
        return None
    return Rounding(products, aligned, kept, found[3] == "nearest", flushed=bool(found[5]))


def ieee(products: int, digits: int) -> float:
    """The same of a sum in IEEE 754 arithmetic with `digits` bits behind the leading one, each product and each sum rounded to
    the nearest, in any order (Higham, "Accuracy and Stability of Numerical Algorithms", 2002, §3.1)."""
    return SLACK * expm1(2 * products * log1p(2.0 ** -(digits + 1)))
