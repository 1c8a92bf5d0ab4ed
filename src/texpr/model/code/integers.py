"""What integer instructions of machine code compute, as far as control flow depends on it.

Each is a function of its sources' bits that gives the bits of its result, and of predicates that it writes. Names and modifiers
are those of the CUDA Binary Utilities; the meaning of a lookup table of `LOP3` is that of PTX `lop3`, of `PRMT` that of `prmt`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from texpr.model.code.operand import BITS

Words: TypeAlias = Sequence[str]
Meaning: TypeAlias = Callable[[Words, Sequence[int]], "tuple[int, ...] | None"]
"""From modifiers and sources to the result, and then carries or conditions; None where that is not known."""

_HALF = 32
_TABLE = 8


def signed(value: int, bits: int = _HALF) -> int:
    """A number of so many bits in two's complement."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _add(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    """Sources past the third are carries that come in."""
    total = sum(sources)
    return total & BITS, int(total > BITS), int(total > 2 * BITS + 1)


def _multiply(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    one, other, *more = sources
    if "WIDE" in words or "HI" in words:
        product = one * other if "U32" in words else signed(one) * signed(other)
        total = (product + sum(more)) & (BITS << _HALF | BITS)
        return (total, 0) if "WIDE" in words else (total >> _HALF, 0)
    return (one * other + sum(more)) & BITS, 0


def _lea(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    """`a << s` plus b; with `HI` the upper half of `c:a << s`, where c is the sign of a with `SX32`."""
    if "HI" not in words:
        one, other, shift, *carry = sources
        total = (one << shift & BITS) + other + sum(carry)
        return total & BITS, int(total > BITS)
    if "SX32" in words:
        one, other, shift, *carry = sources
        high = signed(one) >> (_HALF - 1) & BITS
    else:
        one, other, high, shift, *carry = sources
    total = ((high << _HALF | one) << shift >> _HALF & BITS) + other + sum(carry)
    return total & BITS, int(total > BITS)


def _shift(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    low, by, high = sources
    by = by % _HALF if "W" in words else min(by, 2 * _HALF)
    if "L" in words:
        value = (high << _HALF | low) << by
    elif "HI" in words and ("S32" in words or "U32" in words):
        return ((signed(high) if "S32" in words else high) >> by & BITS,)
    else:
        value = (signed(high) << _HALF | low if "S64" in words or "S32" in words else high << _HALF | low) >> by
    return (value >> _HALF & BITS if "HI" in words else value & BITS,)


def _logic(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    one, other, third, table = sources[:4]
    found = 0
    for bit in range(_TABLE):
        if table >> bit & 1:
            part = one if bit & 4 else one ^ BITS
            part &= other if bit & 2 else other ^ BITS
            found |= part & (third if bit & 1 else third ^ BITS)
    return found, int(found != 0)


def _predicates(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    *three, table, second = sources[:5]
    at = three[0] << 2 | three[1] << 1 | three[2]
    return table >> at & 1, second >> at & 1


_COMPARED: Mapping[str, Callable[[int, int], bool]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
}


def _compare(words: Words, sources: Sequence[int]) -> tuple[int, ...] | None:
    """With `EX` it is of upper halves, and the last source says what the lower halves said."""
    one, other, *more = (sources[0] & BITS, sources[1] & BITS, *sources[2:])
    verb = next((word for word in words if word in _COMPARED), None)
    if verb is None:
        return None
    if "U32" not in words:
        one, other = signed(one), signed(other)
    found = _COMPARED[verb](one, other)
    if "EX" in words:
        lower = bool(more[-1])
        found = {"EQ": one == other and lower, "NE": one != other or lower}.get(
            verb, lower if one == other else (one < other) == (verb in ("LT", "LE"))
        )
        more = more[:-1]
    joined = more[0] if more else 1
    if "OR" in words:
        return int(found or joined), int(not found or joined)
    if "XOR" in words:
        return int(found) ^ joined, int(not found) ^ joined
    return int(found and joined), int(not found and joined)


def _select(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    return (sources[0] if sources[2] else sources[1],)


def _minimum(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    one, other, least = sources[:3]
    pair = (one & BITS, other & BITS)
    if "U32" not in words:
        pair = signed(pair[0]), signed(pair[1])
    return ((min(pair) if least else max(pair)) & BITS,)


def _permute(words: Words, sources: Sequence[int]) -> tuple[int, ...] | None:
    one, chosen, other = sources[:3]
    if len(words) > 0:
        return None
    whole, found = other << _HALF | one, 0
    for at in range(4):
        pick = chosen >> 4 * at & 15
        byte = whole >> 8 * (pick & 7) & 255
        found |= (255 * (byte >> 7) if pick & 8 else byte) << 8 * at
    return (found,)


def _move(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    return (sources[0],)


def _float(bits: int) -> float:
    return float(struct.unpack("<f", struct.pack("<I", bits & BITS))[0])


def _bits(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _to_float(words: Words, sources: Sequence[int]) -> tuple[int, ...] | None:
    """Of integers, for quotients by a size: upwards with `RP`."""
    if any(word.startswith(("F64", "U64", "S64", "F16")) for word in words):
        return None
    value = sources[0] & BITS if "U32" in words else signed(sources[0])
    found = _bits(float(value))
    return (found + ("RP" in words and _float(found) < value),)


def _reversed(words: Words, sources: Sequence[int]) -> tuple[int, ...]:
    return (int(f"{sources[0] & BITS:0{_HALF}b}"[::-1], 2),)


def _leading(words: Words, sources: Sequence[int]) -> tuple[int, ...] | None:
    """The place of the highest bit that is set, or with `SH` how far it is from the top; all bits where there is none."""
    if "U32" not in words:
        return None
    at = (sources[0] & BITS).bit_length() - 1
    return (BITS if at < 0 else _HALF - 1 - at if "SH" in words else at,)


def _special(words: Words, sources: Sequence[int]) -> tuple[int, ...] | None:
    value = _float(sources[0])
    return (_bits(1 / value),) if words and words[0] == "RCP" and value else None


def _to_integer(words: Words, sources: Sequence[int]) -> tuple[int, ...] | None:
    value = _float(sources[0])
    if "TRUNC" not in words or not math.isfinite(value) or "F64" in words:
        return None
    least, most = (0, BITS) if "U32" in words else (-(1 << 31), (1 << 31) - 1)
    return (min(max(math.trunc(value), least), most) & BITS,)


MEANINGS: Mapping[str, Meaning] = {
    **dict.fromkeys(("IADD3", "IADD", "VIADD", "UIADD3", "UVIADD"), _add),
    **dict.fromkeys(("IMAD", "UIMAD"), _multiply),
    **dict.fromkeys(("LEA", "ULEA"), _lea),
    **dict.fromkeys(("SHF", "USHF"), _shift),
    **dict.fromkeys(("LOP3", "ULOP3"), _logic),
    **dict.fromkeys(("PLOP3", "UPLOP3"), _predicates),
    **dict.fromkeys(("ISETP", "UISETP"), _compare),
    **dict.fromkeys(("SEL", "USEL"), _select),
    **dict.fromkeys(("VIMNMX", "IMNMX", "UIMNMX", "UVIMNMX"), _minimum),
    **dict.fromkeys(("PRMT", "UPRMT"), _permute),
    **dict.fromkeys(("MOV", "UMOV", "R2UR", "LDC", "ULDC", "VOTEU", "VOTE", "LDCU"), _move),
    "IABS": lambda words, sources: (abs(signed(sources[0])) & BITS,),
    "POPC": lambda words, sources: (sources[0].bit_count(),),
    "BREV": _reversed,
    "UBREV": _reversed,
    "FLO": _leading,
    "UFLO": _leading,
    "I2F": _to_float,
    "MUFU": _special,
    "F2I": _to_integer,
}
"""What each computes, by the name of its opcode."""
