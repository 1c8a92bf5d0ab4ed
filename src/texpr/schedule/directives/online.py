"""`online(j, 64) -> b`: what a row sums up by the maximum of keys, in one sweep over blocks of 64 keys.

Before: par L |j| reduce(m) { m max= s[j] }
        par L |j| reduce(t) { t += exp(s[j] - m) }
        par D |d| { par L |j| reduce(o) { o[d] += exp(s[j] - m) * V[j, d] } }
After:  seq (L + 63) / 64 |b| {
            new m_next: f32  new m_now: f32  new m_keep: f32
            m_next = m
            par 64 |j| reduce(m_next) { m_next max= select(64 * b + j < L, s[j], -inf) }
            m_now = select(m_next == -inf, 0, m_next)
            m_keep = exp(select(m == -inf, m_now, m) - m_now)
            m = m_next
            t = t * m_keep
            par D |d| { o[d] = o[d] * m_keep }
            par 64 |j| reduce(t) { t += select(64 * b + j < L, exp(s[j] - m_now), 0) }
            par D |d| { par 64 |j| reduce(o) { … } }
        }

The loop over j is that of the maximum; in a row without one, any over the keys of a local with an element for each, which sums
read: then terms are added block by block, and nothing is multiplied. A key has what it had before, in memory of a block: all
loops over the same keys, and along locals with an element for each, go through blocks; keys that there are not are neutral.
Sums hold terms of the maximum so far, and go on with those of a greater one when they have been multiplied by a factor: over
the reals that is the same, which is decided (`texpr.schedule.sums.rescaled`). So the order of the sums has to be free
(`reduce`), and without `#ieee`. Proved, by other code: `texpr.proof.schedule.sweeps`.
"""

from __future__ import annotations

from collections.abc import Callable

from texpr.affine.expr import Expr, Sym
from texpr.ir import program as ir
from texpr.ir.program.instances import numbered_from
from texpr.ir.program.marks import Online
from texpr.ir.program.rows.keyed import Fault, Row, row_of
from texpr.schedule.call import Call, Rule
from texpr.schedule.rewrite.shape import free_loop, sizes_known
from texpr.schedule.state import State
from texpr.schedule.sums.running import renoted, size_of
from texpr.schedule.sums.sweep import Sweep
from texpr.schedule.tree import Body, loops, path_to, replaced
from texpr.support.diagnostic import Note
from texpr.support.record import replace

KEYS = 64
"""Keys of a block, if nobody says how many."""


def _apply(call: Call) -> State:
    call.expect(1, 2)
    loop = free_loop(call, call.plain[0])
    size = call.number(call.plain[1]) if call.plain[1:] else KEYS
    (block,) = call.results(f"{loop.sym.base}_b")
    whole = sizes_known(call).multiple(loop.extent, size)
    try:
        row = row_of(call.state.function, loop.sym.name)
        first = _first(call, row, loop)
        body = Sweep(row, size, block, whole, _names(call, row, block.name)).body()
    except Fault as why:
        help = (
            "one sweep needs sums in a free order (`reduce`): of what the row has of each key, or with a factor exp(f(j) - m) "
            "for a maximum m of f(j)"
        )
        note = (Note("here", why.stmt.span),) if isinstance(why.stmt, ir.Par | ir.Seq) else ()
        raise call.refuse(
            "E0905", f"no sweep over `{loop.sym.base}`: {why.reason}", *note, at=call.plain[0], help=help
        ) from None
    function = _put(row, body, first)
    made = Online(loop.sym.name, size, int(whole), span=call.directive.span)
    return replace(call.state, function=replace(function, directives=(*function.directives, made)))


def _names(call: Call, row: Row, block: str) -> Callable[[str], str]:
    """Gives free names, that or one with a number."""
    taken = {*call.state.taken(), block, *(new.buffer.name for new in row.news)}
    inside = (*row.before, *(turn.nest for turn in row.turns), *row.after)
    taken |= {s.sym.name for s in ir.walk(inside) if isinstance(s, ir.Par | ir.Seq | ir.Let)}

    def fresh(base: str) -> str:
        plain = base.partition("'")[0]
        found = next(each for n in range(len(taken) + 1) if (each := f"{plain}_{n}" if n else plain) not in taken)
        taken.add(found)
        return found

    return fresh


def _first(call: Call, row: Row, loop: ir.Loop) -> int:
    """The number of the first statement of the row. Raises E0905 where something was done to the row before."""
    body = _body(row)
    notes = [s.instance for s in ir.walk(body) if isinstance(s, ir.Bind | ir.Let)]
    first = notes[0][0].constant if notes and notes[0] else -1
    meant = numbered_from(body, _around(call.state.function, row), first)
    if notes != [s.instance for s in ir.walk(meant) if isinstance(s, ir.Bind | ir.Let)]:
        reason = f"statements in the row of `{loop.sym.base}` are no longer those of the program"
        raise call.refuse("E0905", reason, at=call.plain[0], help="let `online` come first")
    return first


def _around(function: ir.Function, row: Row) -> tuple[Sym, ...]:
    path = () if row.parent is None else path_to(function.body, row.parent) or ()
    return tuple(s.sym for s in path if isinstance(s, ir.Par | ir.Seq))


def _body(row: Row) -> Body:
    return row.function.body if row.parent is None else row.parent.body


def _put(row: Row, body: Body, first: int) -> ir.Function:
    """The function with a body of the row, whose statements have numbers, and those that come later others."""
    before, function = size_of(_body(row)), row.having(())
    more = size_of(body) - before

    def later(old: tuple[Expr, ...]) -> tuple[Expr, ...]:
        return (old[0] + more, *old[1:]) if old and old[0].constant >= first + before else old

    moved = replace(function, body=renoted(function.body, later))
    made = numbered_from(body, _around(row.function, row), first)
    if row.parent is None:
        return replace(moved, body=made)
    sym = row.parent.sym
    parent = next(s for s in loops(moved.body) if s.sym == sym)
    return replace(moved, body=replaced(moved.body, parent, lambda _: (replace(parent, body=made),)))


RULE = Rule("online", "online(LOOP) or online(LOOP, KEYS) -> NAME", _apply)
"""A maximum and the sums that need it, or sums alone, in one sweep."""
