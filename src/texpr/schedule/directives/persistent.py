"""`persistent(j, blocks=4) -> (block, turn)`: four blocks share the iterations of j, each goes through every fourth of them.

Before: par E |j| { … j … }
After:  par 4 |block| { seq (E - block + 3) / 4 |turn| { … block + 4 * turn … } }

The loop over blocks is for `bind`; that over turns stays sequential. A ring of `pipeline` in it goes on from one turn to the
next: phases of its slots are counted through, so with `roles` copies of the next tile begin while results of this one leave.
Always legal: each iteration is that of one block in one turn, and iterations of a `par` may come in any order.

`persistent(i, j, blocks=132)` shares the tiles of nested loops, which are counted by rows, so that blocks at work at one time
have neighbours. `order=columns` counts the other way, `order=(grouped, 8)` eight rows at a time, column by column: then they
share rows and columns alike, which the second-level cache brings from memory once. It is a bijection, as `split`, `reorder` and
`merge`, of which it is made, are: no tile of a group is missing, as the number of rows is a multiple of its rows.
"""

from __future__ import annotations

from texpr.affine.expr import expr
from texpr.domain.iterdomain import IterDomain
from texpr.domain.transforms.split import Split
from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Persistent
from texpr.schedule.call import Call, Rule
from texpr.schedule.directives.merge import RULE as MERGE
from texpr.schedule.directives.reorder import RULE as REORDER
from texpr.schedule.directives.split import RULE as SPLIT
from texpr.schedule.edits import Offers, left_out, without
from texpr.schedule.rewrite.shape import free_loop
from texpr.schedule.state import State
from texpr.schedule.tree import exactly, replaced
from texpr.support.record import replace

ORDERS = ("rows", "columns", "grouped")
"""In which tiles of several loops are counted."""

MOST = 8
"""The most loops over tiles."""


def _apply(call: Call) -> State:
    call.expect(1, MOST, keys=("blocks", "order"))
    asked = call.key("blocks")
    if asked is None:
        raise call.wrong("needs `blocks=N`: how many blocks share the iterations")
    count = call.number(asked)
    loops = [_shared(call, argument) for argument in call.plain]
    block, turn = call.results(f"{loops[-1].sym.base}_b", f"{loops[-1].sym.base}_t")
    taken = {block.name, turn.name}
    state, tiles = _counted(call, loops, taken)
    whole = state.domain(tiles)
    turns = IterDomain(turn, (whole.extent + (count - 1)) // count)
    split = Split(whole, turns, IterDomain(block, expr(count)))
    ended = (tiles.extent - expr(block) + (count - 1)) // count
    inner = ir.Seq(turn, ended, tiles.body, span=tiles.span)
    made = ir.Par(block, expr(count), (marked(inner, Persistent(span=call.directive.span)),), span=tiles.span)
    return state.with_transform(split).with_body(replaced(state.function.body, tiles, lambda _: (made,)))


def _shared(call: Call, argument: ir.Argument) -> ir.Par:
    """A loop whose iterations blocks may share."""
    loop = free_loop(call, argument)
    if not isinstance(loop, ir.Par) or loop.reduce:
        how = "meet in a `reduce`" if isinstance(loop, ir.Par) else "come in order (`seq`)"
        reason = f"the iterations of `{loop.sym.base}` {how}, so blocks cannot share them"
        raise call.refuse("E0909", reason, at=argument, offers=left_out(call.directive.span))
    return loop


def _counted(call: Call, loops: list[ir.Par], taken: set[str]) -> tuple[State, ir.Loop]:
    """One loop over all tiles, in the order that is asked for. `taken`: names that are not free."""
    state, names = call.state, [exactly(loop.sym.name, call.state.function.body) for loop in loops]
    order, group = _order(call, loops)

    def fresh(base: str) -> str:
        name = next(each for each in state.all_fresh(f"{base}_{n}" for n in ("m", "n", "c", "g", "l")) if each not in taken)
        taken.add(name)
        return name

    if order == "columns":
        state, names = _then(call, state, REORDER, names[::-1]), names[::-1]
    elif order == "grouped":
        *others, rows, columns = names
        lines, line = fresh(rows), fresh(rows)
        state = _then(call, state, SPLIT, (rows, group), lines, line)
        state = _then(call, state, REORDER, (lines, columns, line))
        names = [*others, lines, columns, line]
    *others, tiles = names
    for outer in reversed(others):
        name = fresh(outer)
        state, tiles = _then(call, state, MERGE, (outer, tiles), name), name
    return state, replace(call, state=state).loop(ir.Argument(tiles, None, call.directive.span))


def _then(call: Call, state: State, rule: Rule, plain: tuple[str | int, ...] | list[str], *results: str) -> State:
    """The state after another directive, in the place of this one."""
    args = tuple(ir.Argument(each, None, call.directive.span) for each in plain)
    return rule.apply(Call(rule, ir.Directive(rule.name, args, results, call.directive.span), state))


def _order(call: Call, loops: list[ir.Par]) -> tuple[str, int]:
    """The order that is asked for, and the rows of a group."""
    asked = call.key("order")
    if asked is None:
        return "rows", 0
    parts = [*asked.value.args] if isinstance(asked.value, ir.Group) else [asked]
    if parts and str(parts[0].value) == "hilbert":
        reason = "has no order along a curve: its tiles are no quasi-affine function of a number, so that each is in it once"
        raise call.wrong(f"{reason} cannot be proved", asked)
    order = call.word(parts[0], ORDERS, "an order") if parts else ""
    if len(parts) != (2 if order == "grouped" else 1):
        raise call.wrong("takes `rows`, `columns` or `(grouped, N)`, of so many rows at a time", asked)
    if len(loops) < 2:
        offers = without(call.directive.span, "order")
        raise call.refuse("E0905", "only tiles of several loops have an order", at=asked, offers=offers)
    if order != "grouped":
        return order, 0
    group, extent = call.number(parts[1]), loops[-2].extent
    if not extent.is_constant or extent.constant % group:
        reason = f"groups of {group} rows are not whole: `{loops[-2].sym.base}` has {extent}"
        raise call.refuse("E0905", reason, at=asked, offers=_whole(call, extent.constant if extent.is_constant else 0, group))
    return order, group


def _whole(call: Call, rows: int, group: int) -> Offers:
    """The offers of the most rows below `group` that divide all, and of whole lines of tiles."""
    fewer = next((each for each in range(group - 1, 1, -1) if rows and rows % each == 0), 0)
    grouped = call.instead(f"ask for `order=(grouped, {fewer})`", lambda said: said.having("order", f"(grouped, {fewer})"))
    return (*(grouped if fewer else ()), *without(call.directive.span, "order"))


FORM = "persistent(LOOP, LOOP, …, blocks=N, order=rows|columns|(grouped, N)) -> (BLOCK, TURN)"

RULE = Rule("persistent", FORM, _apply)
