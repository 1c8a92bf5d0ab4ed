"""Machine code made ready to be walked: basic blocks, of which only what control flow depends on is computed.

A register matters where a jump or a guard is decided by it, or where one that matters is computed of it. All others are left
out, which are most: what a kernel computes of its data decides little.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from typing import TypeAlias

from texpr.model.code.flow import JUMPS, LEAVES, Flow, flow
from texpr.model.code.integers import MEANINGS
from texpr.model.code.operand import BITS, Number, Reader, Thread, following, is_predicate, named, reader, results
from texpr.model.code.text import Code, Instruction
from texpr.support.record import Record

Step: TypeAlias = Callable[[Thread, "list[int]"], None]
"""Does one instruction, and counts in the list, by its place, where its guard is false."""

CALLS = frozenset({"CALL"})
_ENDS = JUMPS | LEAVES | CALLS
_SLOT = re.compile(r"\[R1(?:\+(0x[0-9a-f]+))?\]")
_WORD, _HALF = 4, 32
_WIDE = ("64", "128")


class Block(Record, eq=False):
    """Instructions of places `first` to `last`, of which the last may jump; `steps` are those that matter."""

    first: int
    last: int
    steps: tuple[Step, ...]
    guard: Reader | None
    decides: Reader | None
    """A predicate that is an operand of the jump."""


class Program(Record, eq=False):
    """`starts`: the block that begins at a place. `special`: the special registers that control flow depends on."""

    code: Code
    flow: Flow
    blocks: tuple[Block, ...]
    starts: dict[int, int]
    special: frozenset[str]
    places: dict[int, int]
    """The place of each instruction, by its address."""

    def aimed(self, one: Instruction) -> int | None:
        """The block that a jump leads to; None where it is not known."""
        place = None if one.target is None else self.places.get(one.target)
        return None if place is None else self.starts.get(place)


def program(code: Code) -> Program:
    """Code made ready."""
    ways = flow(code)
    matters = _what_matters(code, ways)
    leaders = sorted(_leaders(code))
    ends = [*leaders[1:], len(code.instructions)]
    blocks = tuple(_block(code, first, end - 1, matters) for first, end in zip(leaders, ends, strict=True))
    special = {
        one.operands[-1]
        for one, decides in zip(code.instructions, matters, strict=True)
        if decides and one.name in ("S2R", "S2UR")
    }
    starts = {block.first: at for at, block in enumerate(blocks)}
    return Program(code, ways, blocks, starts, frozenset(special), code.index())


def _leaders(code: Code) -> set[int]:
    places, found = code.index(), {0}
    for at, one in enumerate(code.instructions):
        if one.name in _ENDS:
            found.add(at + 1)
            if one.target is not None and one.target in places:
                found.add(places[one.target])
    return {at for at in found if at < len(code.instructions)}


def _written(one: Instruction) -> tuple[str, ...]:
    """Names of what an instruction writes; a slot of a thread's stack is one, too."""
    if one.name == "STL":
        return tuple(_slots(one, one.operands[0]))
    named_results, width = results(one)
    return tuple(
        name for text in named_results for name in ((text,) if is_predicate(text) else following(text, width)) if text != "PT"
    )


def _slots(one: Instruction, place: str) -> Iterator[str]:
    found = _SLOT.fullmatch(place)
    if found is not None:
        first = int(found[1] or "0", 0)
        yield from (f"stack {first + _WORD * at}" for at in range(_width(one)))


def _width(one: Instruction) -> int:
    return 4 if "128" in one.modifiers else 2 if "64" in one.modifiers else 1


def _read(one: Instruction) -> Iterator[str]:
    """Names of what a result that is known is computed of."""
    if one.name == "LDL":
        yield from _slots(one, one.operands[-1])
    elif one.name == "STL":
        yield from _stored(one)
    elif one.name in MEANINGS or one.name == "SHFL":
        sources = one.operands[len(results(one)[0]) :]
        for at, text in enumerate(sources):
            yield from (name for name in named(text) if not name.endswith("PT"))
            if at == 2 and ("WIDE" in one.modifiers or "HI" in one.modifiers):
                for name in tuple(named(text)):
                    yield from following(name, 2)


def _stored(one: Instruction) -> tuple[str, ...]:
    first = next(named(one.operands[1]), None)
    return () if first is None else tuple(following(first, _width(one)))


def _what_matters(code: Code, ways: Flow) -> tuple[bool, ...]:
    """Of each instruction, whether control flow depends on what it writes there: names go backwards to where they are set."""
    size = len(code.instructions)
    written = [frozenset(_written(one)) for one in code.instructions]
    read = [frozenset(_read(one)) for one in code.instructions]
    decided = [frozenset(_decided(one)) for one in code.instructions]
    comes: list[list[int]] = [[] for _ in range(size)]
    for at, there in enumerate(ways.follows):
        for each in there:
            comes[each].append(at)
    after: list[frozenset[str]] = [frozenset()] * size
    waiting, queued = list(range(size)), set(range(size))
    while waiting:
        at = waiting.pop()
        queued.discard(at)
        names = after[at]
        if not names.isdisjoint(written[at]):
            names = (names if code.instructions[at].guard else names - written[at]) | read[at]
        names |= decided[at]
        for each in comes[at]:
            if not names <= after[each]:
                after[each] |= names
                if each not in queued:
                    queued.add(each)
                    waiting.append(each)
    return tuple(not names.isdisjoint(own) for names, own in zip(after, written, strict=True))


def _decided(one: Instruction) -> Iterator[str]:
    """Names that decide whether it is done."""
    if one.guard:
        yield one.guard.lstrip("!")
    if one.name in JUMPS:
        yield from (name for text in one.operands[:-1] for name in named(text))


def _block(code: Code, first: int, last: int, matters: tuple[bool, ...]) -> Block:
    steps: list[Step] = []
    for at in range(first, last + 1):
        one = code.instructions[at]
        if one.name in _ENDS:
            continue
        step = _step(one) if matters[at] else None
        if one.guard:
            step = _guarded(reader(one.guard), step, _forgets(one) if matters[at] else _nothing, at)
        if step is not None:
            steps.append(step)
    one = code.instructions[last]
    guard = reader(one.guard) if one.guard and one.name in _ENDS else None
    asks, *more = one.operands or ("",)
    decides = _decides(asks) if one.name in JUMPS and more else None
    return Block(first, last, tuple(steps), guard, decides)


def _decides(asks: str) -> Reader:
    """What a jump looks at: lanes of a warp are taken to stay together, so that none leads to where they do not."""
    return (lambda thread: 0) if asks.startswith("UR") else reader(asks)


def _guarded(guard: Reader, step: Step | None, forgets: Step, at: int) -> Step:
    def run(thread: Thread, idle: list[int]) -> None:
        value = guard(thread)
        if value is None:
            forgets(thread, idle)
        elif not value:
            idle[at] += 1
        elif step is not None:
            step(thread, idle)

    return run


def _nothing(thread: Thread, idle: list[int]) -> None:
    """For what nothing depends on."""


def _forgets(one: Instruction) -> Step:
    """Leaves nothing known of what the instruction writes."""
    names = _written(one)

    def run(thread: Thread, idle: list[int]) -> None:
        for name in names:
            thread.registers[name] = None

    return run


def _step(one: Instruction) -> Step:
    """Does what is known of an instruction."""
    named_results, width = results(one)
    sources = one.operands[len(named_results) :]
    if one.name in ("S2R", "S2UR"):
        return _sets(_written(one), lambda thread: thread.special.get(sources[0]))
    if one.name == "CS2R":
        return _sets(_written(one), (lambda thread: 0) if sources[-1:] == ("SRZ",) else (lambda thread: None))
    if one.name in ("LDL", "STL"):
        return _copies(tuple(_slots(one, one.operands[-1])) if one.name == "LDL" else _stored(one), _written(one))
    if one.name == "SHFL" and "IDX" in one.modifiers:
        return _sets(_written(one)[-1:], reader(sources[0]))  # the value of one lane, where all have the same
    if one.name == "HFMA2" and len(sources) == 4 and all(text.strip("-") == "RZ" for text in sources[:2]):
        return _sets(_written(one), _halves(*sources[2:]))
    if one.name == "USETMAXREG" or (one.name == "SYNCS" and "PHASECHK" in one.modifiers):
        return _sets(_written(one), lambda thread: 1)  # a wait ends at once
    if one.name == "ELECT":
        return _sets(_written(one), lambda thread: 1)  # a lane that is walked is the one, or its turn comes
    known = one.name in MEANINGS and not (one.name in ("VOTE", "VOTEU") and any(map(_is_whole, named_results)))
    return _computes(one, named_results, width, sources) if known else _forgets(one)


def _halves(high: str, low: str) -> Reader:
    """A constant that is written as a sum of two halves with nothing."""
    try:
        value = int.from_bytes(struct.pack("<ee", float(low), float(high)), "little")
    except (ValueError, OverflowError):
        return lambda thread: None
    return lambda thread: value


def _is_whole(text: str) -> bool:
    return not is_predicate(text)


def _copies(sources: tuple[str, ...], targets: tuple[str, ...]) -> Step:
    def run(thread: Thread, idle: list[int]) -> None:
        values = [thread.registers.get(name) for name in sources] or [None] * len(targets)
        for name, value in zip(targets, values, strict=False):
            thread.registers[name] = value

    return run


def _sets(names: tuple[str, ...], value: Reader) -> Step:
    def run(thread: Thread, idle: list[int]) -> None:
        found = value(thread)
        for name in names:
            thread.registers[name] = found

    return run


def _computes(one: Instruction, named_results: tuple[str, ...], width: int, sources: tuple[str, ...]) -> Step:
    meaning, words = MEANINGS[one.name], one.modifiers
    whole = one.name in ("LDC", "ULDC", "LDCU") and width > 1
    wide = "WIDE" in words or ("HI" in words and one.name in ("IMAD", "UIMAD"))
    readers = [reader(text, wide=whole or (wide and at == 2)) for at, text in enumerate(sources)]
    numbers = [following(text, width) if not is_predicate(text) else () for text in named_results]
    values_of = tuple(name for names in numbers for name in names)
    bits_of = tuple(text for text in named_results if is_predicate(text) and text not in ("PT", "UPT"))
    places = tuple(at for at, text in enumerate(t for t in named_results if is_predicate(t)) if text not in ("PT", "UPT"))
    has_value = any(not is_predicate(text) for text in named_results)
    forget = _forgets(one)

    def run(thread: Thread, idle: list[int]) -> None:
        values: list[int] = []
        for read in readers:
            value: Number = read(thread)
            if value is None:
                forget(thread, idle)
                return
            values.append(value)
        found = meaning(words, values)
        if found is None:
            forget(thread, idle)
            return
        for at, name in enumerate(values_of):
            thread.registers[name] = found[0] >> _HALF * at & BITS
        for at, name in zip(places, bits_of, strict=True):
            where = at + has_value
            thread.registers[name] = found[where] if where < len(found) else None

    return run
