"""`stage(C, …, via=tma|scatter4|bulk)` of what is written: a tile that the engine stores when the iteration ends, or combines
with what is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from texpr.ir import program as ir
from texpr.relation.facts import known
from texpr.schedule.call import Call
from texpr.schedule.combining import are_updates, neutral, operation
from texpr.schedule.engine import boxes_asked, require_load, require_store, swizzle_asked, with_memory
from texpr.schedule.marks import SAVES, TENSOR, marked
from texpr.schedule.region import Box, NoBox, Use, inside, is_met_again
from texpr.schedule.results import with_results
from texpr.schedule.rows import Rows, by_name, is_injective, require_rows, rows, table_of
from texpr.schedule.runs import require_runs
from texpr.schedule.staging import Staging
from texpr.schedule.state import State
from texpr.schedule.tensor import Boxes
from texpr.schedule.touched import box_of, copy_loops, defined, own, seen, undefined, untouchable
from texpr.schedule.views import View
from texpr.tma.swizzle import CHUNK


@dataclass(frozen=True, slots=True)
class _Way:
    """How a region is copied: the mark of its loops, what is refused of loading it, and what becomes of memory."""

    region: Box
    mark: Callable[[ir.Par], ir.Par]
    require_load: Callable[[], None]
    finish: Callable[[State], State]


def stored(call: Call, staging: Staging) -> State:
    """Elements kept while they are written, and then stored by the tensor memory accelerator."""
    if staging.via == "scatter4":
        return _by_rows(call, staging)
    way = _runs if staging.via == "bulk" else _boxes
    if not are_updates(staging.uses):
        staging, region = seen(call, staging) if staging.via == "tma" else (staging, box_of(call, staging))
        like = own(call, staging)
        return _written(call, staging, like, way(call, staging, region))
    try:
        op = operation(staging.state, staging.uses, flushes=staging.via == "bulk")
    except ValueError as reason:
        raise untouchable(call, staging.uses[0], str(reason), help=_otherwise(staging)) from None
    staging, region = seen(call, staging) if staging.via == "tma" else (staging, box_of(call, staging))
    return _joined(call, staging, op, way(call, staging, region))


def _otherwise(staging: Staging) -> str:
    """What to do about updates that the engine does not make: where iterations around meet in them, they are not staged."""
    meets = [loop.sym.base for loop in staging.outer if staging.buffer in loop.reduce]
    if meets:
        return f"do not stage it; where threads do not make such updates either, leave the loop over `{meets[0]}` unbound"
    return "stage it in registers, or by via=ld"


def _boxes(call: Call, staging: Staging, region: Box) -> _Way:
    """Boxes by a map."""
    region, boxes = boxes_asked(call, staging.seen, region)
    promised = known(inside(staging.state, staging.outer))
    require_store(call, staging.seen, region, boxes, promised)
    return _Way(
        region,
        lambda loop: by_tma(call, staging, loop, boxes),
        lambda: require_load(call, staging.seen, region, boxes, promised, None),
        lambda state: with_memory(state, staging.name, boxes),
    )


def _runs(call: Call, staging: Staging, region: Box) -> _Way:
    """Runs without a map: a result is asked to begin where one can."""
    require_runs(call, staging.buffer, region, known(inside(staging.state, staging.outer)))
    buffer, words = staging.buffer, (0, *region.extent, "bulk")
    align = {} if buffer.role != "result" else {buffer.name: max(CHUNK, buffer.align or 0)}
    return _Way(
        region,
        lambda loop: marked(loop, TENSOR, *words, span=call.directive.span),
        lambda: None,
        lambda state: with_results(state, align),
    )


def _written(call: Call, staging: Staging, like: Use, way: _Way) -> State:
    """Elements that are written; where they are read before, their region is loaded first. It has nothing beside them."""
    region = way.region
    names = copy_loops(call, f"{staging.name}_out", len(region.extent))
    state = staging.to_box(region, names, way.mark)
    if not undefined(state, staging.name):
        return way.finish(state)
    way.require_load()
    first = copy_loops(call, staging.name, len(region.extent))
    state, use = staging.through_box(region, (first, names), way.mark)
    if is_met_again(state, use, use.inner):
        reason = "an element of its box is read, or stored with it, that another iteration may write"
        raise untouchable(call, like, reason, help="let splits divide what they split, or stage it by via=ld")
    return way.finish(defined(call, staging, like, state))


def _joined(call: Call, staging: Staging, op: str, way: _Way) -> State:
    """Partial results collected in a tile, which the engine combines with the buffer."""
    names = tuple(copy_loops(call, f"{staging.name}{part}", len(way.region.extent)) for part in ("", "_out"))
    start = neutral(op, staging.buffer.dtype)
    state, use = staging.to_join(way.region, (names[0], names[1]), way.mark, op, start)
    if is_met_again(state, use, use.inner, free=True):
        reason = "its box may touch elements of another iteration that does not meet this one by right"
        raise untouchable(call, staging.uses[0], reason)
    return way.finish(defined(call, staging, staging.uses[0], state))


def _by_rows(call: Call, staging: Staging) -> State:
    """Rows that a table names, stored four at a time, and loaded so first where they are read before they are written."""
    state, first = staging.state, staging.uses[0]
    try:
        found = rows(state, staging.uses, swizzle_asked(call))
    except NoBox as problem:
        raise untouchable(call, problem.use, str(problem), help=problem.help) from None
    _require_apart(call, staging, found)
    like = own(call, replace(staging, uses=found.named))
    require_rows(call, found, known(inside(state, staging.outer)), stored=True)
    words = (found.boxes.swizzle.span, *found.boxes.box, "scatter4")
    row, column, *ins = (*copy_loops(call, f"{staging.name}_out", 2), *copy_loops(call, staging.name, 2))
    loops = {row: found.count, column: found.boxes.extent[1]}
    target = found.at(row, column)

    def mark(loop: ir.Par) -> ir.Par:
        return marked(loop, TENSOR, *words, span=call.directive.span)

    made, use = staging.to_rows((target,), (loops,), found.boxes.extent, found.where, mark)
    if undefined(made, staging.name):
        first_loops = dict(zip(ins, loops.values(), strict=True))
        targets, every = (found.at(ins[0], ins[1]), target), (first_loops, loops)
        made, use = staging.to_rows(targets, every, found.boxes.extent, found.where, mark)
        if is_met_again(made, _by_name(use), use.inner):
            reason = "an element of its rows is read, or stored with them, that another iteration may write"
            raise untouchable(call, like, reason, help=f"copies of rows are {found.least} elements wide, or a multiple of that")
        made = defined(call, staging, first, made)
    return with_memory(made, staging.name, found.memory)


def _by_name(use: Use) -> Use:
    """A store of a row's element as one of what names it."""
    ((_, meaning),) = use.load.data
    table = table_of(meaning)
    assert table is not None
    return by_name(use, replace(use, load=table, index=table.index))


def _require_apart(call: Call, staging: Staging, found: Rows) -> None:
    """Refuses (E0912) rows that are combined with what is there, or might be one row twice.

    PTX ISA, "cp.reduce.async.bulk.tensor": its `.load_mode` is `.tile` or `.im2col_no_offs`, and never `.tile::scatter4`.
    """
    meets = [loop for use in staging.uses for loop in (*use.outer, *use.inner) if staging.buffer in loop.reduce]
    if meets and are_updates(staging.uses):
        reason = f"iterations of `{meets[0].sym.base}` meet in its rows, and the engine combines no rows four at a time"
        raise untouchable(call, staging.uses[0], reason, help="stage it by via=bulk, which combines rows one by one")
    table = found.table.buffer
    if not is_injective(staging.state, table):
        reason = f"two elements of `{table.name}` might name one row, and nothing says which of the two would be stored last"
        raise untouchable(call, staging.uses[0], reason, help=f'promise it: "assume injective({table.name})"')


def by_tma(call: Call, staging: Staging, loop: ir.Par, boxes: Boxes) -> ir.Par:
    """The outermost loop of a copy of boxes, marked as one."""
    view = ("view", *staging.view.words) if isinstance(staging.view, View) and not staging.view.is_plain else ()
    loop = marked(loop, TENSOR, boxes.swizzle.span, *boxes.box, *view, span=call.directive.span)
    saves = call.key("save_traffic")
    if saves is None or call.word(saves, ("true", "false")) == "false":
        return loop
    return marked(loop, SAVES, span=call.directive.span)
