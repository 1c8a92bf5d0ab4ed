"""Instructions that a core does by itself as events, element by element, by their meaning and the order of their registers in
memory. It is trusted that a template computes the meaning."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from texpr.affine.expr import ZERO, Expr, Sym, expr
from texpr.affine.simplify import Simplifier
from texpr.ir import kernel as k
from texpr.ir.instr import Give, Instr, Operand, Step, Turn
from texpr.ir.ops.collective import Held
from texpr.ir.program.rewrite import map_value
from texpr.ir.program.updates import combine
from texpr.ir.value import Buffer, Index, Load, Value
from texpr.proof.read.boxes import behind
from texpr.proof.read.events import Event, Site, over, ranged
from texpr.support.record import Mutable, replace


def in_rows(op: k.Alone, site: Site, placed: Callable[[Load], Load]) -> Iterator[Event]:
    """The events of an instruction at a site. `placed`: an element over coordinates of the kernel. Raises ValueError for rows
    of what is not dense."""
    instr = site.launch.kernel.instr_of[op.name]
    names = {turn.sym: sym for turn, sym in zip(instr.loops, op.loops, strict=True)}
    held = {operand.memory: (operand, each) for operand, each in zip(instr.operands, op.registers, strict=True)}
    ranges = {sym: (0, turn.extent - 1) for turn, sym in zip(instr.loops, op.loops, strict=True)}
    plain = Simplifier(ranged(site).known.also((), ranges))
    yield from _Doing(op, instr, held, names, placed, plain).steps(instr.meaning, site)


class _Doing(Mutable):
    op: k.Alone
    instr: Instr
    held: Mapping[Buffer, tuple[Operand, Held]]
    names: Mapping[Sym, Sym]
    placed: Callable[[Load], Load]
    plain: Simplifier

    def steps(self, some: Sequence[Step], site: Site, free: frozenset[str] = frozenset()) -> Iterator[Event]:
        for at, step in enumerate(some):
            here = replace(site, time=(*site.time, at))
            if isinstance(step, Turn):
                loop = k.For(self.names[step.sym], ZERO, expr(step.extent), (), expr(1))
                yield from self.steps(step.body, over(here, (loop,)), free.union(step.free))
            else:
                yield self.give(step, here, step.update is not None and step.target.buffer.name in free)

    def give(self, step: Give, site: Site, fused: bool) -> Event:
        """The event of an assignment. `fused`: a sum with the machine's own order and rounding."""
        place, value = self.element(step.target), self.value(step.value)
        whole = value if step.update is None else combine(step.update, (place,), (value,))[0]
        return Event(site, place, whole, replace(self.op, fused=fused))

    def index(self, value: Expr) -> Expr:
        return value.substitute({sym: expr(name) for sym, name in self.names.items()})

    def element(self, load: Load) -> Load:
        """The element of an operand: so many behind the first as its register's number is."""
        operand, held = self.held[load.buffer]
        return behind(self.placed(held.first), operand.fragment.register(tuple(map(self.index, load.index))), self.plain)

    def value(self, value: Value) -> Value:
        def leaf(node: Value) -> Value | None:
            if isinstance(node, Load):
                return self.element(node)
            return Index(self.index(node.expr), node.dtype, node.span) if isinstance(node, Index) else None

        return map_value(value, leaf)
