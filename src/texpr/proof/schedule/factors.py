"""Computed factors as arrays: what a scheduled program whose lanes compute an operand of an instruction is compared with.

A statement in loops sums up products, of which a factor f is computed:

    par M |m| { par N |n| { seq K |k| reduce(y) { y[m, n] += x[m, k] * f(w[k, n], n) } } }

Suppose that f reads only what these loops do not write, and what there is before them, at subscripts that no data say; that it
depends on loops whose extents are those of the function's sizes; and that nothing is around the statement but loops. Then

    new v: T[K, N]
    seq K |k| { seq N |n| { v[k, n] = f(w[k, n], n) } }
    par M |m| { par N |n| { seq K |k| reduce(y) { y[m, n] += x[m, k] * v[k, n] } } }

computes the same, where f is of type T and reads within its arrays for all k and n. *Proof*: the loops change nothing that f
reads, so v[k, n] is its value in each iteration, and is there where it is read, as the statement is executed for such k and n
alone. That f reads within its arrays is asked: where there is no m the program as written reads nothing. ∎

A product of two factors is the same the other way round. A scheduled program names factors by marks (`Computed`), which are
claims: where they are false, so is the comparison. Statements keep their numbers, and those of arrays have the last ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import program as ir
from texpr.ir.program.instances import numbered, with_notes
from texpr.ir.program.marks import Computed
from texpr.ir.program.rewrite import substitute_value, with_blocks
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Value, walk
from texpr.presburger.formula import Formula, between, conj, negate
from texpr.presburger.isl.raw import Undecided
from texpr.presburger.questions import witness
from texpr.support.record import replace

Body = tuple[ir.Stmt, ...]

ARRAY = "v◆"
"""How the names of arrays begin, as those of no text do."""


def in_arrays(written: ir.Function, marks: Sequence[Computed], premises: Formula) -> ir.Function | None:
    """`written` with an array for each factor that a mark names; None where one is no such factor."""
    for number, mark in enumerate(marks):
        every = (each for each in _statements(written.body, ()) if not _is_of_array(each[0]))
        found = next((each for at, each in enumerate(every) if at == mark.statement), None)
        made = None if found is None else _array(written, *found, mark, number, premises)
        if made is None:
            return None
        written = made
    return written


def numbered_last(function: ir.Function) -> ir.Function:
    """`function` with each statement noted as an instance of itself, those of such arrays with the last numbers."""
    every = [stmt for stmt, _ in _statements(function.body, ())]
    order = sorted(range(len(every)), key=lambda at: _is_of_array(every[at]))
    plain = numbered(function)
    notes = {stmt: stmt.instance for stmt in ir.walk(plain.body) if isinstance(stmt, ir.Bind | ir.Let)}
    numbers = {old: new for new, old in enumerate(order)}
    moved: dict[ir.Stmt, tuple[Expr, ...]] = {
        stmt: (expr(numbers[first.constant]), *at) for stmt, (first, *at) in notes.items()
    }
    return with_notes(plain, moved) if order != sorted(order) else plain


def _is_of_array(stmt: ir.Stmt) -> bool:
    return isinstance(stmt, ir.Bind) and stmt.targets[0].buffer.name.startswith(ARRAY)


def _statements(body: Body, around: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Stmt, tuple[ir.Stmt, ...]]]:
    """The statements with what is around them, in the order of their numbers."""
    for stmt in body:
        if isinstance(stmt, ir.Bind | ir.Let):
            yield stmt, around
        for block in ir.blocks(stmt):
            yield from _statements(block, (*around, stmt))


def _array(
    written: ir.Function, stmt: ir.Stmt, around: Sequence[ir.Stmt], mark: Computed, number: int, premises: Formula
) -> ir.Function | None:
    """`written` with an array for a factor of a statement."""
    loops = [loop for loop in around if isinstance(loop, ir.Par | ir.Seq)]
    if not isinstance(stmt, ir.Bind) or stmt.update != "add" or not loops or len(loops) < len(around):
        return None
    product = stmt.values[0]
    if not isinstance(product, Op) or product.name != "mul" or mark.factor >= len(product.args):
        return None
    factor = product.args[mark.factor]
    value = factor.arg if isinstance(factor, Cast) else factor
    own = [loop for loop in loops if loop.sym in _syms(value)]
    if not _is_kept(value, loops[0], written) or any(not loop.extent.syms() <= {*written.sizes} for loop in own):
        return None
    if not _is_inside(value, own, premises):
        return None
    array = Buffer(f"{ARRAY}{number}", value.dtype, tuple(loop.extent for loop in own), "local")
    there = Load(array, tuple(expr(loop.sym) for loop in own), span=stmt.span)
    args = list(product.args)
    args[mark.factor] = replace(factor, arg=there) if isinstance(factor, Cast) else there
    made = replace(stmt, values=(replace(product, args=tuple(reversed(args) if mark.swapped else args)),))
    filled, body = (ir.New(array), *_filled(there, value, own, number)), list[ir.Stmt]()
    for each in written.body:
        body += (*filled, *_replaced((each,), stmt, made)) if each is loops[0] else (each,)
    return replace(written, body=tuple(body))


def _filled(there: Load, value: Value, own: Sequence[ir.Loop], number: int) -> Body:
    """The loops that give an array its elements."""
    names = {loop.sym: expr(Sym(f"{loop.sym.name}◆{number}")) for loop in own}
    target = replace(there, index=tuple(e.substitute(names) for e in there.index))
    body: Body = (ir.Bind((target,), (substitute_value(value, names),), span=there.span),)
    for loop in reversed(own):
        sym = names[loop.sym].as_sym
        assert sym is not None
        body = (ir.Seq(sym, loop.extent, body, span=there.span),)
    return body


def _is_kept(value: Value, top: ir.Loop, written: ir.Function) -> bool:
    """Whether a value is computed of what there is before a loop, and is not written in it, at subscripts that no data say."""
    nodes = [*walk(value)]
    loads = [node for node in nodes if isinstance(node, Load)]
    known = all(isinstance(node, Load | Index | Literal | Op | Cast) for node in nodes)
    before = written.body[: next(at for at, stmt in enumerate(written.body) if stmt is top)]
    there = {*written.params, *(stmt.buffer for stmt in before if isinstance(stmt, ir.New))}
    inside = [*ir.walk((top,))]
    changed = {target.buffer for stmt in inside if isinstance(stmt, ir.Bind) for target in stmt.targets}
    plain = not any(isinstance(stmt, ir.Instruction) for stmt in inside)
    return known and plain and bool(loads) and all(x.buffer in there - changed and not x.data for x in loads)


def _is_inside(value: Value, own: Sequence[ir.Loop], premises: Formula) -> bool:
    """Whether all that a value reads in such loops are elements that there are."""
    domain = [between(0, loop.sym, loop.extent) for loop in own]
    within = conj(between(0, e, n) for load in walk(value) if isinstance(load, Load) for e, n in _places(load))
    try:
        return witness((*domain, negate(within)), premises) is None
    except Undecided:
        return False


def _places(load: Load) -> Iterator[tuple[Expr, Expr]]:
    yield from zip(load.index, load.buffer.shape, strict=True)


def _syms(value: Value) -> frozenset[Sym]:
    inside = [e for node in walk(value) for e in (node.index if isinstance(node, Load) else ())]
    inside += [node.expr for node in walk(value) if isinstance(node, Index)]
    return frozenset(sym for e in inside for sym in e.syms())


def _replaced(body: Body, old: ir.Stmt, new: ir.Stmt) -> Body:
    """`body` with one statement for another; the objects of all others stay."""
    found: list[ir.Stmt] = []
    for stmt in body:
        blocks = tuple(_replaced(block, old, new) for block in ir.blocks(stmt))
        found.append(new if stmt is old else with_blocks(stmt, blocks))
    return tuple(found)
