"""Legality of a new loop order: every dependence must still run from its source to its sink.

    c1 … cn the loops around both, in the new order: the first at which source and sink differ decides.
    a seq: the source's index must be less.    a par: they may not differ: nothing orders its iterations.
    none:  the source must come first in the text.

Updates whose order a `reduce` clause frees may be swapped, and be in different iterations of a `par` with the clause.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from texpr.affine.expr import Expr, Sym, expr
from texpr.checks.subject import Subject, Witness, element_at, place, sides
from texpr.ir import program as ir
from texpr.ir.program.uses import loads
from texpr.presburger.formula import Formula, compare, conj, disj
from texpr.presburger.isl.maps import left, right
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.solve.omega import System, system
from texpr.relation.dependence import Dependence, candidates, comparable, extended_syms, meeting_formula, order
from texpr.relation.model import Instance
from texpr.schedule.edits import Offers, any_order, left_out
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.state import State
from texpr.schedule.tree import Body, path_to
from texpr.support.diagnostic import Diagnostic, Limitation, Note, TexprError
from texpr.support.record import Record
from texpr.support.span import Span


class Where(Record):
    """The position of a statement in the new order: the loops around it, and the position in each list of statements on the
    path."""

    loops: tuple[ir.Loop, ...]
    positions: tuple[int, ...]
    ancestors: tuple[ir.Stmt, ...]


def require_order(before: State, after: State, moved: Mapping[ir.Stmt, ir.Stmt], root: ir.Loop, span: Span, name: str) -> None:
    """Raises TexprError E0906 with two instances and their element where `after` breaks a dependence among the statements below
    `root`, a loop of `before`; Limitation E0914 where that cannot be decided. `moved`: a statement of `before` → of `after`.
    """
    made = materialise(before.alone(root))
    subject = Subject(made.function)
    inside = set(ir.walk((root,)))
    proof = _Proof(subject, before, after, made.origin, moved, span, name)
    accesses = [a for i in subject.model.instances if made.origin.get(i.stmt) in inside for a in i.accesses]
    for source, sink in product(accesses, accesses):
        if source.buffer is sink.buffer and (source.writes or sink.writes):
            scope = frozenset(subject.model.scope_syms(source.buffer))
            if found := tuple(candidates(source, sink, scope)):
                meeting = system(conj((subject.model.facts, meeting_formula(source, sink, scope))))
                for each in found:
                    proof.require(each, meeting)


class _Proof(Record):
    """The proof that the directive `name` at `span`, from `before` to `after`, breaks no dependence of `subject`."""

    subject: Subject
    before: State
    after: State
    origin: Mapping[ir.Stmt, ir.Stmt]
    moved: Mapping[ir.Stmt, ir.Stmt]
    span: Span
    name: str

    def require(self, found: Dependence, meeting: System) -> None:
        """Raises as `require_order`. `meeting`: the points at which both ends access one element, in either order."""
        ends = (found.source.instance, found.sink.instance)
        old = [self.origin[i.stmt] for i in ends]
        places = [where(self.after.function.body, self.moved.get(stmt, stmt)) for stmt in old]
        names = [_named(self.before, instance) for instance in ends]
        broken = disj(_broken(self.after, found, places[0], places[1], names[0], names[1]))
        same = tuple(same_leaves(self.before, (old[0], old[1]), (names[0], names[1]), found.buffer.name))
        if meeting.is_empty(conj((order(found.source, found.sink, found.carrier), *same, broken))):
            return
        dims = (*map(left, extended_syms(found.source)), *map(right, extended_syms(found.sink)))
        try:
            witness = self.subject.point(dims, conj((found.formula, *same, broken)))
        except Undecided:
            raise Limitation([undecided(found, self.span, self.name)]) from None
        if witness is None:
            return
        if not (comparable(found.source, found.sink) and found.source.affine and found.sink.affine):
            raise Limitation([undecided(found, self.span, self.name)])
        raise TexprError([conflict(self.subject, found, witness, self.span, self.name)])


def where(body: Body, stmt: ir.Stmt) -> Where:
    """The position of `stmt`, which is in `body`."""
    path = path_to(body, stmt)
    assert path is not None, "a statement was lost"
    positions: list[int] = []
    blocks: tuple[Body, ...] = (body,)
    for step in path:
        positions.append(next(n for block in blocks for n, s in enumerate(block) if s is step))
        blocks = ir.blocks(step)
    return Where(tuple(s for s in path if isinstance(s, ir.Par | ir.Seq)), tuple(positions), path)


def same_leaves(
    state: State, stmts: tuple[ir.Stmt, ir.Stmt], names: tuple[Mapping[Sym, Sym], Mapping[Sym, Sym]], buffer: str
) -> Iterator[Formula]:
    """The loops whose indices are equal for two statements wherever they access one element of `buffer`, for all sizes.

    Subscripts that are a loop plus an invariant are equal, hence so are these loops, and everything that splits and merges
    derive from them: a merge of equal indices is equal, though with unknown sizes no affine formula states that.
    """
    one, other = (_subscripts(stmt, buffer) for stmt in stmts)
    if one is None or other is None or len(one) != len(other):
        return
    tops = {d.sym for t in state.transforms for d in t.inputs} | set(names[0]) | set(names[1])
    fixed = frozenset(state.function.sizes)
    equal: set[Sym] = set()
    for a, b in zip(one, other, strict=True):
        (alone, *more) = [*sorted(a.syms() - fixed, key=str), Sym("none")]
        if a is b and len(more) == 1 and alone in tops and (a - expr(alone)).syms() <= fixed:
            equal.add(alone)
    for transform in state.transforms:
        if all(d.sym in equal for d in transform.inputs):
            equal |= {d.sym for d in transform.outputs}
    for sym in sorted(equal & names[0].keys() & names[1].keys(), key=str):
        yield compare("==", expr(left(names[0][sym])), expr(right(names[1][sym])))


def _subscripts(stmt: ir.Stmt, buffer: str) -> tuple[Expr, ...] | None:
    """The subscripts of `buffer` in a statement, if all are equal and none is data."""
    targets = stmt.targets if isinstance(stmt, ir.Bind) else ()
    every = {load.index: load for load in (*loads(stmt), *targets) if load.buffer.name == buffer}
    ((index, load),) = every.items() if len(every) == 1 else ((None, None),)
    return None if load is None or load.data else index


def _named(state: State, instance: Instance) -> dict[Sym, Sym]:
    """For each IterDomain that the instance's loops run over, the loop's own symbol."""
    return {state.domain(loop).sym: loop.sym for loop in instance.loops}


def _broken(
    after: State, found: Dependence, source: Where, sink: Where, first: Mapping[Sym, Sym], second: Mapping[Sym, Sym]
) -> Iterator[Formula]:
    same: list[Formula] = []
    for one, other in zip(source.loops, sink.loops, strict=False):
        if one is not other:
            break
        domain = after.domain(one).sym
        a, b = expr(left(first[domain])), expr(right(second[domain]))
        if isinstance(one, ir.Par):
            # By name: an expanded local is another buffer now.
            if not (found.relaxed and any(b.name == found.buffer.name for b in one.reduce)):
                yield conj((*same, compare("!=", a, b)))
        elif not found.relaxed:
            yield conj((*same, compare(">", a, b)))
        same.append(compare("==", a, b))
    if not found.relaxed and sink.ancestors[-1] is not source.ancestors[-1] and sink.positions < source.positions:
        yield conj(same)


def undecided(found: Dependence, span: Span, name: str) -> Diagnostic:
    """The limitation for a directive `name` that may or may not break a dependence."""
    return Diagnostic(
        "E0914",
        span,
        f"cannot decide whether `{name}` keeps the order of accesses to `{found.buffer.name}`",
        tuple(
            Note(f"`{a.buffer.name}` is {'read' if a.kind == 'read' else 'written'} here", place(a))
            for a in dict.fromkeys((found.source, found.sink))
        ),
        "where sizes that are multiplied are fixed, it may be decided",
        proposals=left_out(span, "leave it out, and the loops stay as they are"),
    )


def conflict(
    subject: Subject,
    found: Dependence,
    witness: Witness,
    span: Span,
    name: str,
) -> Diagnostic:
    """The error for a directive `name` that breaks a dependence, with `witness`."""
    first, second = sides(found, witness)
    element = element_at(found.source, first)
    sizes = subject.sizes_text(witness)
    at = f", at {', '.join(sizes)}" if sizes else ""
    kinds = {"flow": "reads what the other writes", "anti": "overwrites what the other reads", "output": "overwrites the other"}
    return Diagnostic(
        "E0906",
        span,
        f"`{name}` changes what is computed: two instances that meet in `{element}` are no longer in order{at}",
        (
            Note(f"first{_at(found.source.instance, first)}", place(found.source)),
            Note(f"then{_at(found.sink.instance, second)}, which {kinds[found.kind]}", place(found.sink)),
        ),
        proposals=_otherwise(found, span),
    )


def _otherwise(found: Dependence, span: Span) -> Offers:
    """The offers to free the order of updates, or to remove the directive."""
    freed: Offers = ()
    if found.source.kind == found.sink.kind == "update":
        name = found.buffer.name
        shared = found.source.instance.loops
        loops = [loop for loop in found.sink.instance.loops if isinstance(loop, ir.Seq) and loop in shared]
        help = f"if updates of `{name}` may come in any order, say `reduce({name})` on the loop"
        freed = any_order(loops, found.buffer, help)
    return (*freed, *left_out(span, "leave it out, and the loops stay in their order"))


def _at(instance: Instance, values: Mapping[Sym, int]) -> str:
    listed = ", ".join(f"{s.base} = {values[s]}" for s in instance.syms if s in values)
    return f", at {listed}" if listed else ""
