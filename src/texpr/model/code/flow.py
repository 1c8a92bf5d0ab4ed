"""Control flow of machine code: basic blocks, natural loops, and the shortest way to the end.

A natural loop is what runs between the header and a jump back to it: the blocks that reach the jump without the header, where
the header dominates the jump (Aho, Lam, Sethi, Ullman, Compilers, 9.6).
"""

from __future__ import annotations

from collections.abc import Iterator

from texpr.model.code.text import Code, Instruction
from texpr.support.record import Record

LEAVES = frozenset({"EXIT", "RET", "BRX", "JMX", "KILL", "BRXU"})
"""After which, unguarded, nothing follows that is known."""

JUMPS = frozenset({"BRA", "JMP"})


class Loop(Record):
    """The places (not addresses) of the instructions of a loop. `depth`: 1 for an outermost one."""

    header: int
    body: frozenset[int]
    depth: int

    def __len__(self) -> int:
        return len(self.body)


class Flow(Record):
    """`follows`: for each instruction, where it may go on. `loops`: outermost first. `left`: how many instructions there are to
    the end by the shortest way; None where no way is known to lead there."""

    follows: tuple[tuple[int, ...], ...]
    loops: tuple[Loop, ...]
    left: tuple[int | None, ...]

    def depth(self, at: int) -> int:
        """How many loops are around an instruction."""
        return sum(at in loop.body for loop in self.loops)

    def inner(self) -> Iterator[Loop]:
        """Loops with none inside."""
        for loop in self.loops:
            if not any(other.body < loop.body for other in self.loops):
                yield loop


def flow(code: Code) -> Flow:
    """The control flow of a kernel: calls are taken to return."""
    places = code.index()
    follows = tuple(tuple(dict.fromkeys(_next(code.instructions, at, places))) for at in range(len(code.instructions)))
    return Flow(follows, tuple(_loops(follows)), _left(follows))


def _next(instructions: tuple[Instruction, ...], at: int, places: dict[int, int]) -> Iterator[int]:
    one = instructions[at]
    aimed = places.get(one.target) if one.target is not None and one.name in JUMPS else None
    always = not one.guard and not (one.name in JUMPS and len(one.operands) > 1)
    if aimed is not None:
        yield aimed
    if at + 1 < len(instructions) and not (always and (one.name in LEAVES or aimed is not None)):
        yield at + 1


def _order(follows: tuple[tuple[int, ...], ...]) -> list[int]:
    """Reverse postorder of what is reached from the first instruction."""
    seen: set[int] = set()
    done: list[int] = []
    stack: list[tuple[int, int]] = [(0, 0)] if follows else []
    seen.add(0)
    while stack:
        at, turn = stack.pop()
        if turn < len(follows[at]):
            stack.append((at, turn + 1))
            there = follows[at][turn]
            if there not in seen:
                seen.add(there)
                stack.append((there, 0))
        else:
            done.append(at)
    return done[::-1]


def _dominators(follows: tuple[tuple[int, ...], ...], order: list[int], comes: dict[int, list[int]]) -> dict[int, int]:
    """The immediate dominator of each (Cooper, Harvey, Kennedy, A Simple, Fast Dominance Algorithm)."""
    rank = {at: number for number, at in enumerate(order)}
    found = {order[0]: order[0]}

    def meet(one: int, other: int) -> int:
        while one != other:
            while rank[one] > rank[other]:
                one = found[one]
            while rank[other] > rank[one]:
                other = found[other]
        return one

    changed = True
    while changed:
        changed = False
        for at in order[1:]:
            known = [each for each in comes[at] if each in found]
            now = known[0]
            for each in known[1:]:
                now = meet(now, each)
            if found.get(at) != now:
                found[at] = now
                changed = True
    return found


def _loops(follows: tuple[tuple[int, ...], ...]) -> list[Loop]:
    order = _order(follows)
    if not order:
        return []
    comes: dict[int, list[int]] = {at: [] for at in order}
    for at in order:
        for there in follows[at]:
            comes[there].append(at)
    above = _dominators(follows, order, comes)
    bodies: dict[int, set[int]] = {}
    for at in order:
        for header in follows[at]:
            if _dominates(header, at, above):
                bodies.setdefault(header, {header}).update(_body(header, at, comes))
    sorted_bodies = sorted(bodies.items(), key=lambda each: (-len(each[1]), each[0]))
    whole = [frozenset(body) for _, body in sorted_bodies]
    return [Loop(header, frozenset(body), sum(body <= other for other in whole)) for header, body in sorted_bodies]


def _dominates(one: int, other: int, above: dict[int, int]) -> bool:
    while other != one and above[other] != other:
        other = above[other]
    return one == other


def _body(header: int, last: int, comes: dict[int, list[int]]) -> set[int]:
    found, waiting = {header}, [last]
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += comes[at]
    return found


def _left(follows: tuple[tuple[int, ...], ...]) -> tuple[int | None, ...]:
    comes: list[list[int]] = [[] for _ in follows]
    for at, there in enumerate(follows):
        for each in there:
            comes[each].append(at)
    left: list[int | None] = [None] * len(follows)
    now = [at for at, there in enumerate(follows) if not there]
    steps = 0
    while now:
        steps += 1
        for at in now:
            left[at] = steps
        now = list({each for at in now for each in comes[at] if left[each] is None})
    return tuple(left)
