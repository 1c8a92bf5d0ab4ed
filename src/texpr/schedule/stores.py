"""`stage(C, …, via=tma|scatter4)` of what is written: a tile that the engine stores when the iteration ends, or combines with
what is there."""

from __future__ import annotations

from dataclasses import replace

from texpr.checks.coverage import reads_undefined
from texpr.checks.subject import Subject
from texpr.ir import program as ir
from texpr.relation.facts import known
from texpr.schedule.call import Call
from texpr.schedule.combining import are_updates, neutral, operation
from texpr.schedule.engine import boxes_asked, require_load, require_store, swizzle_asked, with_memory
from texpr.schedule.marks import SAVES, TENSOR, marked
from texpr.schedule.materialise import materialise
from texpr.schedule.region import Box, NoBox, Use, inside, is_met_again
from texpr.schedule.rows import Rows, by_name, is_injective, require_rows, rows, table_of
from texpr.schedule.staging import Staging
from texpr.schedule.state import State
from texpr.schedule.tensor import Boxes
from texpr.schedule.touched import copy_loops, defined, own, seen, untouchable


def stored(call: Call, staging: Staging) -> State:
    """Elements kept while they are written, and then stored by the tensor memory accelerator."""
    return _by_rows(call, staging) if staging.via == "scatter4" else _by_boxes(call, staging)


def _by_boxes(call: Call, staging: Staging) -> State:
    if are_updates(staging.uses):
        return _joined(call, staging)
    staging, region = seen(call, staging)
    like = own(call, staging)
    region, boxes = boxes_asked(call, staging.seen, region)
    require_store(call, staging.seen, region, boxes, known(inside(staging.state, staging.outer)))
    names = copy_loops(call, f"{staging.name}_out", len(region.extent))
    state = staging.to_box(region, names, lambda loop: by_tma(call, staging, loop, boxes))
    if reads_undefined(Subject(materialise(state).function), staging.name):
        return _exchanged(call, staging, like, region, boxes)
    return with_memory(state, staging.name, boxes)


def _exchanged(call: Call, staging: Staging, like: Use, region: Box, boxes: Boxes) -> State:
    """Elements that are read before they are written: their box is loaded first. It has nothing beside what is written."""
    promised = known(inside(staging.state, staging.outer))
    require_load(call, staging.seen, region, boxes, promised, None)
    names = tuple(copy_loops(call, f"{staging.name}{part}", len(region.extent)) for part in ("", "_out"))
    state, use = staging.through_box(region, (names[0], names[1]), lambda loop: by_tma(call, staging, loop, boxes))
    if is_met_again(state, use, use.inner):
        raise untouchable(call, like, "an element of its box is read, or stored with it, that another iteration may write")
    return with_memory(defined(call, staging, like, state), staging.name, boxes)


def _joined(call: Call, staging: Staging) -> State:
    """Partial results collected in a tile, which the engine combines with the buffer."""
    buffer = staging.buffer
    try:
        op = operation(staging.state, staging.uses)
    except ValueError as reason:
        raise untouchable(call, staging.uses[0], str(reason), help="stage it in registers, or by via=ld") from None
    staging, region = seen(call, staging)
    region, boxes = boxes_asked(call, staging.seen, region)
    require_store(call, staging.seen, region, boxes, known(inside(staging.state, staging.outer)))
    names = tuple(copy_loops(call, f"{staging.name}{part}", len(region.extent)) for part in ("", "_out"))
    state, use = staging.to_join(
        region, (names[0], names[1]), lambda loop: by_tma(call, staging, loop, boxes), op, neutral(op, buffer.dtype)
    )
    if is_met_again(state, use, use.inner, free=True):
        raise untouchable(
            call, staging.uses[0], "its box may touch elements of another iteration that does not meet this one by right"
        )
    return with_memory(defined(call, staging, staging.uses[0], state), staging.name, boxes)


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
    if reads_undefined(Subject(materialise(made).function), staging.name):
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
    view = () if staging.view is None or staging.view.is_plain else ("view", *staging.view.words)
    loop = marked(loop, TENSOR, boxes.swizzle.span, *boxes.box, *view, span=call.directive.span)
    saves = call.key("save_traffic")
    if saves is None or call.word(saves, ("true", "false")) == "false":
        return loop
    return marked(loop, SAVES, span=call.directive.span)
