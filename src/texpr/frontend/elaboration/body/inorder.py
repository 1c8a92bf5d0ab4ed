"""A `fully par` whose lanes signal each other, in the order of its text: all do what stands before a wait, then they wait.

    fully par 64 |t| {                                          fully par 64 |t| #inorder(1) { if t < 32 {
        if t < 32 {                                                 wait(empty[0], -1)
            wait(empty[0], -1)                                      s[t] = x[t]
            s[t] = x[t]                          becomes            arrive(full[0])
            arrive(full[0])                                     } }
        } else {                                                fully par 64 |t| #inorder(1) { if not t < 32 {
            wait(full[0], 0)                                        wait(full[0], 0)
            y[t - 32] = s[t - 32]                                   y[t - 32] = s[t - 32]
        }                                                       } }
    }

Loops in the arms of a branch, which are of different lanes, go turn by turn, if they have as many. So a lane may read what
others wrote before, and the iterations of each part are independent, as those of any `par`. Loops around a signal are the same
for all lanes; a branch is of the lane's number, of loops and of sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from texpr.affine.expr import expr
from texpr.frontend.elaboration.body.together import Lanes
from texpr.ir.program import ARRIVE, BARRIER, WAIT, Bind, If, Instruction, New, Par, Seq, Stmt, blocks, values, walk
from texpr.ir.program.marked import marked, pragma
from texpr.ir.program.marks import InOrder
from texpr.ir.program.rewrite import substitute_block, with_blocks
from texpr.ir.value import Buffer, Load, Op, Ref, Value
from texpr.ir.value import walk as value_walk
from texpr.ir.value.types import BOOL
from texpr.support.diagnostic import Note, error, limitation
from texpr.support.record import Mutable, field, replace

Side: TypeAlias = tuple[tuple[Value, ...], tuple[Stmt, ...]]
"""What holds of some lanes, and what they do."""

Named = Callable[[str], str]
"""A name of its own for something that is called so."""


def in_order(body: tuple[Stmt, ...], named: Named) -> tuple[Stmt, ...]:
    """`body` with each `fully par` whose lanes signal each other as its parts. Raises TexprError E0336, Limitation E0541."""
    made = {stmt.buffer for stmt in walk(body) if isinstance(stmt, New) and stmt.arrivals}
    if not made and not any(map(_is_signal, walk(body))):
        return body
    _require_barriers(body, made)
    return tuple(_Reader(named).block(body, ()))


def _is_signal(stmt: Stmt) -> bool:
    return isinstance(stmt, Instruction) and stmt.signal is not None


def _holds(stmt: Stmt) -> bool:
    return any(map(_is_signal, walk((stmt,))))


def _require_barriers(body: tuple[Stmt, ...], made: set[Buffer]) -> None:
    """That barriers are no data, and data no barriers."""
    for stmt in walk(body):
        targets = stmt.targets if isinstance(stmt, Bind) else ()
        for node in (each for value in (*values(stmt), *targets) for each in value_walk(value)):
            if isinstance(node, Load) and node.buffer in made:
                told = f"`{node.buffer.name}` is barriers, which have no value"
                raise error("E0336", node.span, told, help=f"lanes `{ARRIVE}` at one, and `{WAIT}` for a phase of it")
        if isinstance(stmt, Instruction) and stmt.signal is not None and stmt.operands[0].buffer not in made:
            (load,) = stmt.operands
            told = f"`{stmt.name}` is of a barrier, and `{load.buffer.name}` is memory of data"
            note = Note("it is declared here", load.buffer.span)
            raise error("E0336", load.span, told, note, help=f"declare it as `new {load.buffer.name}: {BARRIER}(32)`")


class _Reader(Mutable):
    """`found`: how many such loops there are so far."""

    named: Named
    found: int = 0

    def block(self, body: tuple[Stmt, ...], around: tuple[Stmt, ...]) -> Iterator[Stmt]:
        for stmt in body:
            match stmt:
                case New() if stmt.arrivals:
                    self._require_once(stmt, around)
                    yield stmt
                case Par() if stmt.fully and _holds(stmt) and pragma(stmt, InOrder.NAME) is None:
                    self.found += 1
                    yield from _InOrder(marked(stmt, InOrder(self.found)), self.named).block(stmt.body)
                case Par() if stmt.fully:
                    yield stmt
                case Instruction() if stmt.signal is not None:
                    told = f"lanes `{stmt.name}` at a barrier, and this is in no `fully par`"
                    raise error(
                        "E0336", stmt.span, told, help="threads that are known to run at once are those of a `fully par`"
                    )
                case _ if blocks(stmt):
                    yield with_blocks(stmt, tuple(tuple(self.block(each, (*around, stmt))) for each in blocks(stmt)))
                case _:
                    yield stmt

    def _require_once(self, new: New, around: tuple[Stmt, ...]) -> None:
        """That barriers are of a block, which makes them once."""
        loops = [stmt for stmt in around if isinstance(stmt, Par | Seq)]
        if not loops or not isinstance(loops[-1], Par):
            told = "a block makes its barriers once, and phases go on in all of its loops"
            where = "inside of the `par` over its blocks, outside of every `seq` and `fully par`"
            note = () if not loops else (Note("this loop would make them anew", loops[-1].span),)
            raise error("E0336", new.span, told, *note, help=f"declare them {where}")


class _InOrder(Lanes):
    """One `fully par`. `tests`: what holds of the lanes that come here."""

    tests: list[Value] = field(default_factory=list[Value])

    def block(self, body: Sequence[Stmt]) -> Iterator[Stmt]:
        """The parts of some statements, in the order of the text."""
        if not self.loop.extent.is_constant:
            raise error("E0410", self.loop.span, f"the extent of a `fully par` is constant, not `{self.loop.extent}`")
        run: list[Stmt] = []
        for stmt in body:
            match stmt:
                case New():
                    yield New(self.expanded(stmt.buffer), span=stmt.span)
                case Instruction() if stmt.instr is not None:
                    told = f"lanes do `{stmt.name}` together, and this `fully par` orders its lanes by barriers of its own"
                    raise limitation("E0541", stmt.span, told, help="let another `fully par` of the block do it")
                case Instruction() if stmt.name == WAIT and stmt.signal is not None:
                    if not all(map(_is_wait, run)):
                        yield from self.part(run)
                    run.append(stmt)
                case _ if not _holds(stmt) or isinstance(stmt, Instruction):
                    run.append(stmt)
                case Seq():
                    yield from self.part(run)
                    self._require_plain(stmt)
                    yield replace(stmt, body=tuple(self.block(stmt.body)))
                case If():
                    yield from self.part(run)
                    yield from self.arms([*self._sides(stmt)])
                case _:
                    yield from self.part(run)
                    self._require_plain(stmt)
        yield from self.part(run)

    def _sides(self, stmt: If) -> Iterator[Side]:
        """The arms of a branch, and of those that are all of an `else`, with what holds of the lanes of each."""
        self._require_plain(stmt)
        opposite = _negated(stmt.condition)
        yield (stmt.condition,), stmt.then
        match stmt.orelse:
            case (If() as other,) if _holds(other):
                yield from (((opposite, *tests), arm) for tests, arm in self._sides(other))
            case _:
                yield (opposite,), stmt.orelse

    def arms(self, sides: list[Side]) -> Iterator[Stmt]:
        """What different lanes do: one after the other, but loops with signals of as many turns in all go turn by turn."""
        sides = [side for side in sides if side[1]]
        loops = [[s for s in arm if isinstance(s, Seq) and _holds(s)] for _, arm in sides]
        together = len(sides) > 1 and all(len(each) == 1 and _are_alike(each[0], loops[0][0]) for each in loops)
        if not together:
            for side in sides:
                yield from self._side(side)
            return
        first, ends = loops[0][0], [arm.index(each[0]) for (_, arm), each in zip(sides, loops, strict=True)]
        for (tests, arm), end in zip(sides, ends, strict=True):
            yield from self._side((tests, arm[:end]))
        self._require_plain(first)
        turns = [substitute_block(each[0].body, {each[0].sym: expr(first.sym)}) for each in loops]
        body = tuple(self.arms([(tests, turn) for (tests, _), turn in zip(sides, turns, strict=True)]))
        yield replace(first, body=body, reduce=tuple(dict.fromkeys(b for each in loops for b in each[0].reduce)))
        for (tests, arm), end in zip(sides, ends, strict=True):
            yield from self._side((tests, arm[end + 1 :]))

    def _side(self, side: Side) -> Iterator[Stmt]:
        tests, arm = side
        self.tests += tests
        yield from self.block(arm)
        del self.tests[len(self.tests) - len(tests) :]

    def part(self, run: list[Stmt]) -> Iterator[Stmt]:
        """A loop over lanes around what was gathered, and around the tests that hold there."""
        made = tuple(run)
        run.clear()
        for test in reversed(self.tests):
            made = (If(test, made, span=made[0].span),) if made else ()
        yield from self.piece(list(made))

    def _require_plain(self, stmt: Stmt) -> None:
        """That what lanes are told apart by around a signal is their number, and that loops are the same for all."""
        use = next(filter(_is_signal, walk((stmt,))))
        name = use.name if isinstance(use, Instruction) else ""
        nodes = [node for value in values(stmt) for node in value_walk(value)]
        why = ""
        if isinstance(stmt, Seq) and (self.loop.sym in stmt.extent.syms() or stmt.extent.syms() & self.lets.keys()):
            why = "this loop is not the same for all of them"
        elif any(isinstance(node, Load | Ref) for node in nodes):
            why = "data say here which of them do"
        elif not isinstance(stmt, Seq | If):
            why = "its iterations need not run together"
        if why:
            told = f"it is not known which lanes `{name}`, nor how often: {why}"
            help = "let the lane's number, loops and sizes say it, and let lanes that have nothing to do signal, too"
            raise error("E0336", getattr(use, "span", stmt.span), told, Note("here", stmt.span), help=help)


def _is_wait(stmt: Stmt) -> bool:
    return isinstance(stmt, Instruction) and stmt.name == WAIT and stmt.signal is not None


def _are_alike(one: Seq, other: Seq) -> bool:
    """Whether loops have as many turns, and nothing is said of one that is not of the other."""
    said = any(each.directives or each.label or each.scan for each in (one, other))
    return not said and (one.extent, one.ieee) == (other.extent, other.ieee)


_OPPOSITE = {"lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "eq": "ne", "ne": "eq"}


def _negated(test: Value) -> Value:
    """The opposite of a condition of indices."""
    if isinstance(test, Op) and test.name in _OPPOSITE:
        return Op(_OPPOSITE[test.name], test.args, BOOL)
    return Op("not", (test,), BOOL)
