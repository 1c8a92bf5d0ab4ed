"""Operands of machine code as functions of what a thread holds: registers, predicates, constants.

A value that is not known, as one from memory, is None, and so is whatever is computed of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from texpr.model.code.text import Instruction
from texpr.support.record import Mutable, field

Number: TypeAlias = "int | None"
BITS = 0xFFFFFFFF
"""All bits of a register."""

_REGISTER = re.compile(r"([-~|]*)(U?R)(\d+|Z)(\|?)((?:\.\w+)*)")
_PREDICATE = re.compile(r"(!?)(U?P)(\d+|T)")
_NUMBER = re.compile(r"(-?)(0x[0-9a-f]+|\d+)")
_CONSTANT = re.compile(r"([-~|]*)c\[(0x[0-9a-f]+)\]\[(0x[0-9a-f]+)\](\|?)((?:\.\w+)*)")
_ANY = re.compile(r"(?<![\w.])(U?R)(\d+)((?:\.\w+)*)|(?<![\w.])(U?P)(\d+)(?!\w)")
_PLAIN = frozenset(("", ".reuse", ".64", ".reuse.64", ".64.reuse", ".U32", ".CONSTANT"))


class Thread(Mutable):
    """What one thread holds. Registers that are not here are not known; `special`: what `S2R` reads, by name."""

    special: Mapping[str, int]
    constant: Callable[[int, int], Number]
    registers: dict[str, Number] = field(default_factory=dict[str, Number])

    def get(self, name: str) -> Number:
        """A register or a predicate."""
        return self.registers.get(name)


Reader: TypeAlias = Callable[[Thread], Number]


def reader(text: str, wide: bool = False) -> Reader:
    """What an operand gives: 32 bits, or of a `wide` one 64, two registers in a row. A predicate is 1 or 0."""
    if found := _PREDICATE.fullmatch(text):
        return _predicate(found[1] == "!", found[2] + found[3])
    if found := _REGISTER.fullmatch(text):
        if found[5] not in _PLAIN or "|" in found[1]:
            return _unknown
        return _signed(found[1], _register(found[2], found[3], wide), wide)
    if found := _NUMBER.fullmatch(text):
        value = int(found[2], 0) * (-1 if found[1] else 1)
        return lambda thread: value & (BITS << 32 | BITS if wide else BITS)
    if found := _CONSTANT.fullmatch(text):
        bank, at = int(found[2], 0), int(found[3], 0)
        return _unknown if "|" in found[1] else _signed(found[1], _word(bank, at, wide), wide)
    return _unknown


def _unknown(thread: Thread) -> Number:
    return None


def _predicate(negated: bool, name: str) -> Reader:
    if name in ("PT", "UPT"):
        always = int(not negated)
        return lambda thread: always

    def read(thread: Thread) -> Number:
        value = thread.registers.get(name)
        return None if value is None else value ^ negated

    return read


def _register(kind: str, number: str, wide: bool) -> Reader:
    if number == "Z":
        return lambda thread: 0
    name, more = f"{kind}{number}", f"{kind}{int(number) + 1}"
    if not wide:
        return lambda thread: thread.registers.get(name)

    def both(thread: Thread) -> Number:
        low, high = thread.registers.get(name), thread.registers.get(more)
        return None if low is None or high is None else high << 32 | low

    return both


def _word(bank: int, at: int, wide: bool) -> Reader:
    if not wide:
        return lambda thread: thread.constant(bank, at)

    def both(thread: Thread) -> Number:
        low, high = thread.constant(bank, at), thread.constant(bank, at + 4)
        return None if low is None or high is None else high << 32 | low

    return both


def _signed(sign: str, plain: Reader, wide: bool) -> Reader:
    """With `-`, two's complement of which the carry is kept, as a sum of it has; with `~`, all bits turned."""
    whole = BITS << 32 | BITS if wide else BITS
    if sign == "-":
        return lambda thread: None if (value := plain(thread)) is None else whole + 1 - value
    if sign == "~":
        return lambda thread: None if (value := plain(thread)) is None else value ^ whole
    return plain


def named(text: str) -> Iterator[str]:
    """The registers and predicates that an operand names, both of a pair."""
    for found in _ANY.finditer(text):
        if found[1]:
            yield found[1] + found[2]
            if ".64" in found[3]:
                yield f"{found[1]}{int(found[2]) + 1}"
        else:
            yield found[4] + found[5]


def is_predicate(text: str) -> bool:
    """Whether it is one that may be written."""
    return bool(found := _PREDICATE.fullmatch(text)) and not found[1]


def is_register(text: str) -> bool:
    """Whether it is a whole register that may be written."""
    found = _REGISTER.fullmatch(text)
    return found is not None and not found[1] and found[5] in ("", ".64")


def following(name: str, count: int) -> Iterator[str]:
    """So many registers in a row; none of what is always zero."""
    kind = name.rstrip("0123456789Z")
    number = name.removeprefix(kind).partition(".")[0]
    if number.isdecimal():
        yield from (f"{kind}{int(number) + more}" for more in range(count))


_STORES = ("STG", "ST", "STS", "STL", "STSM", "RED", "REDG", "LDGSTS")
_JUMPS = ("BRA", "EXIT", "RET", "CALL", "BSYNC", "BSSY", "NOP", "WARPSYNC", "YIELD", "NANOSLEEP", "BPT", "PREEXIT", "ACQBULK")
_WAITS = ("BAR", "MEMBAR", "FENCE", "DEPBAR", "LDGDEPBAR", "ERRBAR", "CCTL", "WARPGROUP", "UCGABAR_ARV", "UCGABAR_WAIT")
_COPIES = ("UTMALDG", "UTMASTG", "UTMAREDG", "UBLKCP", "UBLKRED", "UTMAPF", "UTMACMDFLUSH")
_NOTHING = frozenset((*_STORES, *_JUMPS, *_WAITS, *_COPIES))
"""What writes no register and no predicate."""

_TESTS = frozenset(["ISETP", "UISETP", "FSETP", "DSETP", "HSETP2", "PLOP3", "UPLOP3", "PSETP", "UPSETP"])
_WIDE = {"64": 2, "128": 4, "WIDE": 2, "256": 8}


def results(one: Instruction) -> tuple[tuple[str, ...], int]:
    """The operands that are written, which come first, and how many registers each of them is."""
    if one.name in _NOTHING:
        return (), 1
    if one.name in _TESTS:
        return one.operands[:2], 1
    found: list[str] = []
    had = False
    for operand in one.operands:
        if is_predicate(operand):
            found.append(operand)
        elif not had and is_register(operand):
            found.append(operand)
            had = True
        else:
            break
    if len(found) == len(one.operands) and len(found) > 1 and not is_register(found[-1]):
        found.pop()  # what is read comes last
    if one.name in ("CS2R",) and "32" not in one.modifiers:
        return tuple(found), 2
    if one.name.startswith("D") and one.name[1:] in ("ADD", "MUL", "FMA"):
        return tuple(found), 2
    if one.name.endswith("MMA"):
        return tuple(found), 4
    wide = max((_WIDE.get(word, 1) for word in one.modifiers), default=1)
    return tuple(found), 1 if one.name in ("SHF", "USHF") else wide
