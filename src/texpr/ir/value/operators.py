"""Operations on scalar values, as records: arity, what they take, what they give.

The meaning of each is the NumPy function of the same name on the element type, except where a note says otherwise. Operations
on f16, bf16, f8 and tf32 compute in f32 and round once to the type.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.ir.value.types import BOOL, DType
from texpr.support.record import Record


class OpInfo(Record):
    """`takes`: "any", "number", "integer", "float" or "bool"; `gives`: "same" or "bool"; `exact`: rounded correctly."""

    name: str
    arity: int
    takes: str
    gives: str
    note: str
    exact: bool = True

    def result(self, dtypes: Sequence[DType]) -> DType:
        """The type of the result, from those of the operands: bool, or that of the last (`select`'s first is a condition)."""
        return BOOL if self.gives == "bool" else dtypes[-1]


OPS: dict[str, OpInfo] = {
    info.name: info
    for info in (
        OpInfo("add", 2, "number", "same", "integers wrap"),
        OpInfo("sub", 2, "number", "same", "integers wrap"),
        OpInfo("mul", 2, "number", "same", "integers wrap"),
        OpInfo("div", 2, "number", "same", "integers floor; by zero is 0 for integers; the least integer by -1 wraps"),
        OpInfo("mod", 2, "number", "same", "sign of the divisor, as NumPy; by zero is 0 for integers"),
        OpInfo("neg", 1, "number", "same", "integers wrap"),
        OpInfo("abs", 1, "number", "same", "integers wrap"),
        OpInfo("max", 2, "number", "same", "propagates nan"),
        OpInfo("min", 2, "number", "same", "propagates nan"),
        OpInfo("fma", 3, "float", "same", "a * b + c, rounded once"),
        OpInfo("pow", 2, "float", "same", "", exact=False),
        OpInfo("sqrt", 1, "float", "same", ""),
        OpInfo("rsqrt", 1, "float", "same", "1 / sqrt(x)", exact=False),
        OpInfo("exp", 1, "float", "same", "", exact=False),
        OpInfo("exp2", 1, "float", "same", "", exact=False),
        OpInfo("log", 1, "float", "same", "", exact=False),
        OpInfo("log2", 1, "float", "same", "", exact=False),
        OpInfo("sin", 1, "float", "same", "", exact=False),
        OpInfo("cos", 1, "float", "same", "", exact=False),
        OpInfo("tanh", 1, "float", "same", "", exact=False),
        OpInfo("erf", 1, "float", "same", "", exact=False),
        OpInfo("expm1", 1, "float", "same", "exp(x) - 1, exact near 0", exact=False),
        OpInfo("log1p", 1, "float", "same", "log(1 + x), exact near 0", exact=False),
        OpInfo("sigmoid", 1, "float", "same", "1 / (1 + exp(-x))", exact=False),
        OpInfo("silu", 1, "float", "same", "x * sigmoid(x)", exact=False),
        OpInfo("gelu", 1, "float", "same", "x times the normal distribution's probability of at most x", exact=False),
        OpInfo("floor", 1, "float", "same", ""),
        OpInfo("ceil", 1, "float", "same", ""),
        OpInfo("trunc", 1, "float", "same", ""),
        OpInfo("round", 1, "float", "same", "half to even"),
        OpInfo("isnan", 1, "float", "bool", ""),
        OpInfo("isinf", 1, "float", "bool", ""),
        OpInfo("lt", 2, "number", "bool", ""),
        OpInfo("le", 2, "number", "bool", ""),
        OpInfo("gt", 2, "number", "bool", ""),
        OpInfo("ge", 2, "number", "bool", ""),
        OpInfo("eq", 2, "any", "bool", ""),
        OpInfo("ne", 2, "any", "bool", ""),
        OpInfo("and", 2, "bool", "bool", "both sides are evaluated"),
        OpInfo("or", 2, "bool", "bool", "both sides are evaluated"),
        OpInfo("not", 1, "bool", "bool", ""),
        OpInfo("bitand", 2, "integer", "same", ""),
        OpInfo("bitor", 2, "integer", "same", ""),
        OpInfo("bitxor", 2, "integer", "same", ""),
        OpInfo("shl", 2, "integer", "same", "0 for a count ≥ the width"),
        OpInfo("shr", 2, "integer", "same", "arithmetic for signed types; a count ≥ the width acts as width − 1 or gives 0"),
        OpInfo("select", 3, "any", "same", "select(c, a, b): only the branch taken is evaluated"),
    )
}
"""Every operation by name."""
