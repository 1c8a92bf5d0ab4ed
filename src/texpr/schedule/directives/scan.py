"""`scan(j, 4) -> (a, b, m, c, t)`: the running values of a `seq` in chunks, which come in any order.

Before: seq N |j| scan(s) { s += x[j]  y[j] = s }
After:  par N / 4 |a| { sums[a] = 0  par 4 |b| reduce(sums) { sums[a] += x[j] } }      where a · 4 + b = j < N
        seq N / 4 |m| scan(s) { at[m] = s  s += sums[m] }
        par N / 4 |c| { own = at[c]  seq 4 |t| scan(own) { own += x[j]  y[j] = own } }    where c · 4 + t = j < N

`scan(j)` has no chunks: par N |j| { own = s  par j |k| reduce(own) { own += x[k] }  own += x[j]  y[j] = own }. The loop over
m, or over t, may be scanned again. Proved: the values are running ones, the order of whose terms is free; and iterations have
nothing else to do with each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from texpr.affine.expr import Expr, Sym, expr
from texpr.checks.independence import independence
from texpr.checks.subject import Subject
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.split import Split
from texpr.ir import program as ir
from texpr.ir.program.marks import NONE, Scanned
from texpr.ir.program.running import Fault, Running, is_free, running, runnings
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import any_order, left_out
from texpr.schedule.rewrite.materialise import materialise
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.sums.running import Chunks
from texpr.schedule.tree import loops, path_to
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace


def _apply(call: Call) -> State:
    call.expect(1, 2)
    loop = free_loop(call, call.plain[0])
    size = call.number(call.plain[1]) if call.plain[1:] else 0
    if isinstance(loop, ir.Par):
        raise call.refuse("E0905", f"the iterations of `{loop.sym.base}` have no order: it is a `par`", at=call.plain[0])
    runs = runnings(loop)
    if not runs:
        raise _none(call, loop)
    _require_wanted(call, loop, runs)
    whole, tiles = _tiles(call, loop, size)
    base, around = _numbers(call, loop, whole)
    chunks = Chunks(call.state, loop, runs, whole, tiles, base, around)
    if size:
        names = call.results(*(f"{loop.sym.base}_{each}" for each in ("a", "b", "m", "c", "t")))
        tile = loop.extent.constant if tiles else 0
        made = Scanned(whole.sym.name, tile, size, names[2].name, names[4].name, span=call.directive.span)
        state, outer = chunks.parts(size, names)
    else:
        call.no_results()
        state, outer, all_ = chunks.before()
        made = Scanned(whole.sym.name, 0, 0, all_, NONE, span=call.directive.span)
    _require_apart(call, state, outer)
    function = state.function
    return replace(state, function=replace(function, directives=(*function.directives, made)))


def _require_wanted(call: Call, loop: ir.Seq, runs: Sequence[Running]) -> None:
    """Raises E0905 where nobody sees what is combined so far: a sum in any order has parts, but no running values."""
    for run in runs:
        if run.target.buffer in loop.reduce:
            reason = f"`{run.target.buffer.name}` is a sum in any order, whose values in between nobody sees"
            help = f"`partial({loop.sym.base})` sums parts of it up apart"
            raise call.refuse("E0905", reason, at=call.plain[0], help=help)


def _numbers(call: Call, loop: ir.Seq, whole: IterDomain) -> tuple[int, tuple[Expr, ...]]:
    """The number of the first statement in `loop`, and the indices of the written loops around that of `whole`."""
    notes = [s.instance for s in ir.walk(loop.body) if isinstance(s, ir.Bind | ir.Let)]
    index = expr(whole.sym)
    if all(notes) and index in notes[0][1:]:
        base, at = notes[0][0].constant, notes[0].index(index, 1)
        if all(note[0].constant == base + n and note[1 : at + 1] == notes[0][1 : at + 1] for n, note in enumerate(notes)):
            return base, notes[0][1:at]
    reason = f"statements in the loop over `{loop.sym.base}` are no longer those of the program"
    raise call.refuse("E0905", reason, at=call.plain[0], help="let `scan` come first")


def _none(call: Call, loop: ir.Seq) -> TexprError:
    """The refusal of a loop without running values."""
    buffers = {t.buffer: s for s in ir.walk(loop.body) if isinstance(s, ir.Bind) and s.update is not None for t in s.targets}
    for buffer in buffers:
        found = running(loop, buffer)
        if not isinstance(found, Fault) and not is_free(loop, found):
            reason = f"the terms of `{buffer.name}` are combined in the order of `{loop.sym.base}`, and rounded so"
            help = f"if they may be combined in any order, say `scan({buffer.name})` on the loop"
            offers = any_order((loop,), buffer, help, "scan")
            return call.refuse("E0906", reason, at=call.plain[0], offers=offers)
        if isinstance(found, Fault):
            return call.refuse("E0905", found.reason, at=call.plain[0], help=found.help)
    reason = f"nothing is combined from one iteration of `{loop.sym.base}` to the next"
    return call.refuse("E0905", reason, at=call.plain[0], help="a `scan` is of what iterations add up one after the other")


def _tiles(call: Call, loop: ir.Seq, size: int) -> tuple[IterDomain, IterDomain | None]:
    """The IterDomain of the program's own loop, and that of the tiles if `loop` is of one."""
    state, domain = call.state, call.state.domain(loop)
    shaped = "a loop that is shaped otherwise has no chunks: let `scan` come first, or behind one `split` by a number"
    if len(state.copies(loop)) > 1:
        raise call.refuse("E0905", f"there are several loops over `{loop.sym.base}`", at=call.plain[0], help=shaped)
    written = {sym for s in ir.walk(loop.body) if isinstance(s, ir.Bind | ir.Let) for e in s.instance for sym in e.syms()}
    made = next((t for t in state.transforms if domain in t.outputs), None)
    if made is None or domain.sym in written:
        return domain, None
    inner = made.outputs[-1].extent
    path = path_to(state.function.body, loop) or ()
    above = next((s for s in reversed(path[:-1]) if isinstance(s, ir.Par | ir.Seq)), None)
    is_tile = isinstance(made, Split) and domain == made.outputs[-1] and made.inputs[0].sym in written and inner.is_constant
    if not is_tile or not isinstance(above, ir.Seq) or len(above.body) != 1 or state.domain(above) != made.outputs[0]:
        raise call.refuse("E0905", f"the loop over `{loop.sym.base}` was shaped before", at=call.plain[0], help=shaped)
    if not size or inner.constant % size:
        reason = f"tiles of {inner} iterations are no whole number of chunks of {size or 'any size'}"
        raise call.refuse("E0905", reason, at=call.plain[-1], help="a chunk's size divides that of a tile")
    return made.inputs[0], made.outputs[0]


def _require_apart(call: Call, state: State, outer: Sym) -> None:
    """Raises E0906 where iterations have something else to do with each other."""
    function = materialise(state.alone(next(s for s in loops(state.function.body) if s.sym == outer))).function
    found = next(iter(independence(Subject(function))), None)
    if found is not None:
        reason = f"chunks would not come in order, and {found.message}"
        offers = left_out(call.directive.span, "leave it out, and the loop stays in its order")
        raise call.refuse("E0906", reason, *found.notes, offers=offers)


RULE = Rule("scan", "scan(LOOP) or scan(LOOP, SIZE) -> (PART, TERM, CHUNKS, CHUNK, INNER)", _apply)
"""A recurrence as chunks."""
