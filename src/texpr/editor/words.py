"""What each word of the language means: for hovering and completion, and for the page on editors, which has the same text."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from inspect import cleandoc

from texpr.frontend.elaboration.expressions import INDEX, SWIZZLE, VIEWS
from texpr.frontend.elaboration.schedules import MACHINES
from texpr.ir.program import ARRIVE, BARRIER, WAIT
from texpr.ir.program.marked import ATOMIC
from texpr.ir.program.marks import IEEE
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import DTYPES
from texpr.schedule.pragmas import ALIGN, IN_PLACE, LEVELS
from texpr.schedule.rules import RULES

KEYWORDS: Mapping[str, str] = {
    "fn": "`fn name(x: f32[n]): f32[n] { … }`: a function. The names in the shapes of its parameters are its sizes.",
    "par": "`par n |i| { … }`: a loop whose iterations are independent, which is proved.",
    "seq": "`seq n |i| { … }`: a loop that runs in order.",
    "fully": "`fully par 32 |lane| { … }`: a loop whose iterations run at the same time, neighbours on neighbouring lanes.",
    "static": "`static for d in 0..8 { … }`: a loop that is unrolled before anything else; its index is a constant.",
    "new": "`new v: f32[n]`: memory whose content is undefined, fresh each time; the compiler or a schedule places it.",
    "reg": "`reg a: f16[8]`: what a lane of a `fully par` has in registers.",
    "let": "`let x = e`: a name for a value read here, an index expression or a view; it takes no memory.",
    "if": "`if condition { … } else { … }`: the condition is of indices or of data.",
    "else": "`else { … }` or `else if condition { … }`: what is done where the condition before does not hold.",
    "return": "`return a, b`: the results, at the end of a function.",
    "anchor": "`anchor e`: evaluates `e` exactly here, for its effect alone: it is not moved, copied or dropped.",
    "inout": "`inout y: f32[n]`: a parameter that is read and written in place.",
    "const": "`const step: i32 = 2`: an integer that a build fixes, with a default if it has one.",
    "and": "`a and b`: both sides are evaluated; `flag and= e` is an update.",
    "or": "`a or b`: both sides are evaluated; `flag or= e` is an update.",
    "not": "`not a`: of booleans.",
    "true": "A value of type `bool`.",
    "false": "A value of type `bool`.",
    "inf": "Infinity, of the floating type of its context.",
    "nan": "Not a number, of the floating type of its context.",
    "where": "`where n % 4 == 0`: a promise of callers about sizes; the compiler uses it, and the launcher checks it.",
    "assume": "`assume I in 0..m, injective(I)`: a promise about the elements of an integer input.",
    "combine": "`combine f(a: f32, b: f32): f32 identity 0.0 { … }`: an operation for updates.",
    "instr": "`instr name(a: f16[16, 16]) { … }`: an instruction of a machine, with its meaning.",
    "schedule": '`schedule f "name" for cuda { … }`: maps a function to a machine by directives; it changes no result.',
}
"""Each keyword with one sentence."""

CONTEXTUAL: Mapping[str, str] = {
    "reduce": "`reduce(total)`: iterations of the loop may update the buffer in any order.",
    "scan": "`scan(total)`: what the buffer has in an iteration is of the same terms, which may be combined in any order.",
    "identity": "`identity e`: the value that changes nothing when it is combined.",
    "stride": "`stride(lda, 1)`: the strides of a parameter, in elements; callers promise them.",
    "align": "`align(16)`: the alignment of a parameter or a result, in bytes.",
    "injective": "`injective(I)`: no two elements of the input are equal.",
    "monotone": "`monotone(I)`: no element of the input is less than the one before it.",
    "for": "`for cuda`: the targets of a schedule; and a part of `static for`.",
    "in": "`I in lo..hi`: a range, of the elements of an input or of an unrolled index.",
    "fragment": "`fragment a: layout;`: which lane has which element of an operand, in which register.",
    "asm": '`asm "sm_80": "…";`: the assembler of an instruction for a target; in a body, a use of that instruction.',
    "effect": "`effect …;`: what an instruction does that no type says.",
    "rounding": "`rounding aligned F, products L, truncated P;`: how an instruction rounds its sums.",
    "meaning": "`meaning { … }`: what an instruction computes, in this language.",
    BARRIER: f"`new full: {BARRIER}(32)[4]`: barriers of a block; a phase of one is complete when 32 lanes have arrived.",
}
"""Words that mean something in their place, and are names elsewhere."""

PRAGMAS: Mapping[str, str] = {
    **{level: f"`#{level}`: iterations go to the next dimension of the {level}, x first." for level in LEVELS},
    ALIGN: "`#align(32)`: the first iteration of a `fully par` is on a lane whose number 32 divides.",
    ATOMIC: "`#atomic`: updates of floating-point sums may be atomic, so that the result depends on their order.",
    IEEE: "`#ieee`: each operation of the sum is rounded as IEEE 754 says, whatever their order.",
    "unproved": "`#unproved`: a schedule, or a plan, of the function may be built without a proof.",
    **{name: f"`#{name}`: the directive `{name}` on this loop." for name in IN_PLACE},
}
"""Each pragma with one sentence."""


_OTHERS = {
    INDEX: "`index(j / 2)`: a whole index expression as a value, computed exactly before it takes its type.",
    SWIZZLE: "`xor(j, i, 3)`: j with its low 3 bits XORed by those of i.",
    "transpose": "`transpose(A)`: a view with the dimensions in reverse order; never a copy.",
    "reshape": "`reshape(A, (m, n))`: a view of the same elements in another shape; never a copy.",
    "pad": "`pad(x, lo, hi, v)`: a view that reads v outside of x, by lo elements before and hi behind.",
}


def _operation(name: str) -> str:
    if name not in OPS:
        return _OTHERS[name]
    found = OPS[name]
    note = f": {found.note}" if found.note else ""
    rounded = "" if found.takes != "float" or found.exact else "; not rounded correctly"
    return f"An operation on {found.arity} operand{'s' * (found.arity > 1)}{note}{rounded}."


_INFIX = frozenset(["add", "sub", "mul", "div", "mod", "neg", "lt", "le", "gt", "ge", "eq", "ne", "and", "or", "not"])
FUNCTIONS: Mapping[str, str] = {
    **{name: _operation(name) for name in (*OPS, *VIEWS, INDEX, SWIZZLE) if name not in _INFIX},
    ARRIVE: f"`{ARRIVE}(full[s])`: this lane arrives at a barrier; what it did before is known to whoever waits for the phase.",
    WAIT: f"`{WAIT}(full[s], phase)`: this lane waits until that phase of a barrier is complete, and all before it.",
}
"""Each function of the language with what it does."""

TYPES: tuple[str, ...] = tuple(DTYPES)
"""The types of elements."""

TARGETS: tuple[str, ...] = MACHINES
"""The words that may follow `for` in the head of a schedule."""


def directives() -> dict[str, tuple[str, str]]:
    """Each directive with its form and its documentation, that of its file."""
    return {name: (rule.form, cleandoc(sys.modules[rule.apply.__module__].__doc__ or "")) for name, rule in RULES.items()}
