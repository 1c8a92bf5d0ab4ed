"""Instructions: one record each, from which the text in the language, the documentation and the tests are generated."""

from __future__ import annotations

from textwrap import indent

from texpr.isa.levels import Level
from texpr.isa.rounding import Rounding, ieee
from texpr.isa.target import Target
from texpr.support.record import Record

_DIGITS = {"f64": 52, "f32": 23}
"""Bits behind the leading one of types whose sums an instruction may round as IEEE 754 says."""


class Operand(Record):
    """An operand that an instruction reads, or with `inout` writes.

    `fragment`: which lane holds which element, as a layout `shape:stride` with basis strides, where the level is a warp.
    """

    name: str
    dtype: str
    shape: tuple[int, ...] = ()
    inout: bool = False
    fragment: str = ""

    @property
    def text(self) -> str:
        """The operand as a parameter, in the language."""
        shape = f"[{', '.join(map(str, self.shape))}]" if self.shape else ""
        return f"{'inout ' if self.inout else ''}{self.name}: {self.dtype}{shape}"


class Instruction(Record):
    """A machine's operation: the level that runs it, its operands, its templates, its effect, and its meaning.

    `asm` has a template by the first target that knows it: "sm_89" is for sm_89 and later, "sm_90a" for that target alone.
    In a template `{x}` is the register of operand x, `{x0}`, `{x1}` those of its elements where one thread holds several.
    `meaning`: statements of the language. `effect`: what it does to other threads, as words. `source`: where it is defined.
    `rounding`: what its inner arithmetic makes of a floating-point sum that its meaning does not mark `#ieee`.
    """

    name: str
    title: str
    level: Level
    operands: tuple[Operand, ...]
    asm: tuple[tuple[str, str], ...]
    meaning: str
    effect: str = ""
    source: str = ""
    rounding: Rounding | None = None

    @property
    def text(self) -> str:
        """The record as an `instr` of the language."""
        parts = [f"fragment {operand.name}: {operand.fragment};" for operand in self.operands if operand.fragment]
        parts += [f'asm "{target}": "{template}";' for target, template in self.asm]
        parts += [f"rounding {self.rounding.text};"] if self.rounding is not None else []
        parts += [f"effect {self.effect};"] if self.effect else []
        body = f"meaning {{\n{indent(self.meaning, '    ')}\n}}" if self.meaning else "meaning { }"
        inside = indent("\n".join([*parts, body]), "    ")
        return f"instr {self.name}({', '.join(operand.text for operand in self.operands)}) {{\n{inside}\n}}"

    def relative(self, products: int) -> float | None:
        """What a sum of so many products loses at most, relative to the magnitudes of its terms: 0 of integers, which wrap;
        None for what sums up nothing."""
        sums = [operand.dtype for operand in self.operands if operand.inout] if "+=" in self.meaning else []
        if not sums:
            return None
        if self.rounding is not None:
            return self.rounding.relative(products)
        return ieee(products, _DIGITS[sums[0]]) if sums[0] in _DIGITS else 0.0

    def template(self, target: Target) -> str | None:
        """The template for `target`, or `None` where it lacks the instruction."""
        return templated(self.asm, target)


def templated(asm: tuple[tuple[str, str], ...], target: Target) -> str | None:
    """Of templates, each by the first target that knows it, the one for `target`, or `None` where there is none."""
    best: tuple[int, str] | None = None
    for first, template in asm:
        if first == target.name:
            return template
        number, has = capability(first), 10 * target.capability[0] + target.capability[1]
        if not first.endswith("a") and 0 < number <= has and (best is None or number > best[0]):
            best = number, template
    return None if best is None else best[1]


def capability(name: str) -> int:
    """The capability in the name of a CUDA target, 0 for another."""
    digits = name.removeprefix("sm_").rstrip("af")
    return int(digits) if name.startswith("sm_") and digits.isdecimal() else 0
