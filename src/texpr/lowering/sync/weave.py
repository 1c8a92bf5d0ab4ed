"""The order of steps as steps of their own, between those of the nest; statements without annotations.

Before: the placed steps of a nest, and the operations at program points.

    all run { new t }   all spread { t[j] = … }   |(0, 1): barrier|   all spread { y[i, j'1] = t[63 - j'1] }

After: one sequence.

    all run { new t }   all spread { t[j] = … }   all order { barrier }   all spread { y[i, j'1] = t[63 - j'1] }
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from texpr.affine.expr import expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.instr import Operand
from texpr.ir.operation import Group
from texpr.ir.ops.collective import Held
from texpr.ir.steps import Branch, InGroup, Loop, Node, Part, Step, Steps
from texpr.ir.steps.plain import head, plain
from texpr.ir.steps.threads import ALL
from texpr.ir.steps.threads import ONE as FIRST
from texpr.ir.steps.work import Decide, End, Issue, Run, Together
from texpr.ir.steps.work import Order as Ordering
from texpr.lowering.build.cluster import Cluster
from texpr.lowering.build.paths import lists
from texpr.lowering.engine.instruct import instructed
from texpr.lowering.sync.barriers import behind_start
from texpr.lowering.sync.channel.roles import parted
from texpr.lowering.sync.columns import moved
from texpr.lowering.sync.order import Order
from texpr.support.record import Mutable, field, replace
from texpr.support.span import NOWHERE, Span

Barriers: TypeAlias = tuple[tuple[k.Stmt, ...], tuple[k.Covered, ...]]
"""What makes barriers of the text, and the dependences on that."""


def woven(steps: Steps, order: Order, cluster: Cluster, barriers: Barriers = ((), ())) -> Steps:
    """The form with `order` between its steps. `barriers`: those of the text."""
    begin, body, end = _Weaver(steps, order, cluster, barriers).nodes()
    if (channel := order.channel) is not None:
        own = channel.split.compute.warps * steps.warp
        threads = own + channel.split.copy.warps * steps.warp
        axes = tuple(replace(a, extent=expr(threads)) if a.level is k.Level.BLOCK else a for a in steps.axes)
        last: tuple[Node, ...] = (Part(channel.split.compute, end),) if end else ()
        if (left := channel.left) is not None:
            last = (*last, Step(ALL, Ordering((left,))))
        return replace(steps, threads=own, begin=begin, body=tuple(parted(channel, body)), end=last, axes=axes)
    return replace(steps, begin=begin, body=body, end=end)


class _Weaver(Mutable):
    """A tree with the operations at its program points; annotations are removed from its statements."""

    steps: Steps
    order: Order
    cluster: Cluster
    barriers: Barriers
    numbers: dict[int, int] = field(default_factory=dict[int, int])
    plain: dict[ir.Stmt, ir.Stmt] = field(default_factory=dict[ir.Stmt, ir.Stmt])

    def nodes(self) -> tuple[tuple[Node, ...], tuple[Node, ...], tuple[Node, ...]]:
        """The nodes before, in and after an iteration: barriers of engines are initialised first, and stores awaited last."""
        self.numbers = {id(each.nodes): each.number for each in lists(self.steps.body)}
        body = tuple(self._list(self.steps.body))
        begin, operations = list[Node](), self.order.operations
        columns = self.order.columns
        more = (*(columns.made if columns else ()), *self.barriers[0])
        made, asked = operations.start(more), operations.maps.prefetches()
        if self.order.channel is not None:
            made = (*made[:-1], *self.order.channel.made, *made[-1:])
        if made or asked:
            begin.append(Step(FIRST, Ordering((*asked, *made))))
        if made:
            meeting = behind_start((*operations.made, *self.barriers[1]), bool(operations.engines.shared))
            begin += [Step(ALL, Ordering((meeting,)))] if columns is None else columns.begin(meeting)
        ended = operations.finish()
        end = (Step(FIRST, Ordering(ended)),) if ended else ()
        return tuple(begin), body, (*end, columns.end()) if columns is not None else end

    def _list(self, nodes: tuple[Node, ...]) -> Iterator[Node]:
        number = self.numbers[id(nodes)]
        yield from self._gap((number, -1))
        for at, node in enumerate(nodes):
            if self.order.columns is not None:
                yield from self.order.columns.starting(number, at)
            match node:
                case Step():
                    made, use = self._step(node), node.stmts[0] if node.stmts else None
                    yield from moved(use, made) if isinstance(use, ir.Instruction) else (made,)
                case Loop(stmt, body):
                    loop = head(stmt)
                    assert isinstance(loop, ir.Seq)
                    yield Loop(loop, tuple(self._list(body)))
                case Part(role, body):
                    yield Part(role, tuple(self._list(body)))
                case Branch(stmt, decided, then, orelse):
                    test = self._test(stmt)
                    yield Branch(test, decided, tuple(self._list(then)), tuple(self._list(orelse)))
            if node in self.order.closing:
                yield Step(ALL, Ordering((k.CommitAsync(span=_span(node)),)))
            if node in self.order.committing:
                yield Step(ALL, Ordering((k.CommitWarpgroup(span=_span(node)),)))
            if (columns := self.order.columns) is not None and node in columns.launched:
                yield from columns.launched[node].behind()
            if columns is not None:
                yield from columns.ended(node)
            yield from self._gap((number, at))

    def _gap(self, gap: tuple[int, int]) -> Iterator[Step]:
        if does := self.order.gaps.get(gap):
            channel = self.order.channel
            yield Step(channel.split.leader if channel and gap in channel.copying else ALL, Ordering(does))

    def _test(self, stmt: ir.If) -> ir.If:
        made = self.plain.setdefault(stmt, replace(stmt, then=(), orelse=()))
        assert isinstance(made, ir.If)
        return made

    def _step(self, step: Step) -> Step:
        match step.work:
            case End():
                return replace(step, stmts=())
            case Decide(symbol):
                assert isinstance(step.stmt, ir.If)
                alike = bool(self.cluster.along) and self.cluster.alike(step.stmt.condition)
                return replace(step, work=Decide(symbol, alike), stmts=(self._test(step.stmt),))
            case Issue():
                operations = self.order.operations
                does = tuple(operations.issue(operations.engines.copies[step]))
                channel = self.order.channel
                who = channel.split.leader if channel and step in channel.split.copies else step.threads
                completion = operations.completion(step)
                return replace(step, threads=who, work=Issue(does), stmts=plain(step.stmts), completion=completion)
            case Run() if isinstance(use := step.stmts[0], ir.Instruction) and use.instr is not None:
                started, form = self.order.operations.engines.started.get(step), self.steps
                matrices = started.matrices if started else dict[Operand, Held]()
                split = self.order.channel.split if self.order.channel else None
                threads = form.threads + (form.warp * split.others if split else 0)
                thread = split.own(form.thread) if split else form.thread
                op = instructed(use, use.instr, dict(form.places), thread, threads, matrices)
                return Step(FIRST if use.instr.is_alone else ALL, Together((op,)))
            case _:
                for stmt in step.stmts:
                    if stmt not in self.plain:
                        (self.plain[stmt],) = plain((stmt,))
                stmts = tuple(self.plain[stmt] for stmt in step.stmts)
                completion = InGroup(Group.ASYNC) if step in self.order.copying else None
                return replace(step, stmts=stmts, completion=completion)


def _span(node: Node) -> Span:
    return NOWHERE if isinstance(node, Part) else node.stmt.span
