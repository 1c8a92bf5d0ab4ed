"""`stage(C, …, via=tma|scatter4|bulk)` of a written buffer: a tile that the engine stores at the end of the iteration, or
combines with the buffer."""

from __future__ import annotations

from collections.abc import Callable

from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Saves, Tensor
from texpr.ir.value import Buffer, Literal
from texpr.isa.engine import CHUNK
from texpr.relation.facts import known
from texpr.schedule.call import Call
from texpr.schedule.edits import Offers, in_registers, left_out, promise, staged_by
from texpr.schedule.stage.boxes import Boxes
from texpr.schedule.stage.combining import are_updates, neutral, operation
from texpr.schedule.stage.region import Box, NoBox, Use, inside, is_met_again
from texpr.schedule.stage.results import with_results
from texpr.schedule.stage.staging import Staging
from texpr.schedule.stage.touched import box_of, copy_loops, defined, own, refused_box, seen, undefined, untouchable
from texpr.schedule.stage.views import View
from texpr.schedule.state import State
from texpr.schedule.tensor.bulk import require_named_runs, require_runs
from texpr.schedule.tensor.engine import boxes_asked, require_load, require_store, swizzle_asked, with_memory
from texpr.schedule.tensor.rows import Rows, by_name, is_injective, require_rows, rows, table_of
from texpr.support.record import Record, replace


class _Way(Record):
    """How a region is copied: the mark of its loops, the check of loads, and the change of memory."""

    region: Box
    mark: Callable[[ir.Par], ir.Par]
    require_load: Callable[[], None]
    finish: Callable[[State], State]


def stored(call: Call, staging: Staging) -> State:
    """Elements accumulated in a tile, and then stored by the tensor memory accelerator."""
    if staging.via == "scatter4" or (staging.via == "bulk" and any(use.load.data for use in staging.uses)):
        return _by_rows(call, staging)
    way = _runs if staging.via == "bulk" else _boxes
    if not are_updates(staging.uses):
        staging, region = seen(call, staging) if staging.via == "tma" else (staging, box_of(call, staging))
        like = own(call, staging)
        return _written(call, staging, like, way(call, staging, region))
    try:
        op = operation(staging.state, staging.uses, flushes=staging.via == "bulk")
    except ValueError as reason:
        raise untouchable(call, staging.uses[0], str(reason), help=_otherwise(staging), offers=_plainly(call)) from None
    staging, region = seen(call, staging) if staging.via == "tma" else (staging, box_of(call, staging))
    return _joined(call, staging, op, way(call, staging, region))


def _plainly(call: Call) -> Offers:
    """The offers to drop the engine, or the copy."""
    span = call.directive.span
    return (*in_registers(span), *staged_by(span, "ld"), *left_out(span, "do not stage it"))


def _otherwise(staging: Staging) -> str | None:
    """The remedy for updates that the engine does not support, where iterations around reduce into them."""
    meets = [loop.sym.base for loop in staging.outer if staging.buffer in loop.reduce]
    if meets:
        return f"where threads do not make such updates either, the loop over `{meets[0]}` is bound to nothing"
    return None


def _boxes(call: Call, staging: Staging, region: Box) -> _Way:
    """Boxes, with a tensor map."""
    region, boxes = boxes_asked(call, staging.seen, region)
    promised = known(inside(staging.state, staging.outer))
    require_store(call, staging.seen, region, boxes, promised)
    return _Way(
        region,
        lambda loop: by_tma(call, staging, loop, boxes),
        lambda: require_load(call, staging.seen, region, boxes, promised, None),
        lambda state: _chunked(with_memory(state, staging.name, boxes), staging.buffer),
    )


def _runs(call: Call, staging: Staging, region: Box) -> _Way:
    """Runs, without a tensor map."""
    require_runs(call, staging.buffer, region, known(inside(staging.state, staging.outer)))
    made = Tensor(0, region.extent, "bulk", span=call.directive.span)
    return _Way(
        region,
        lambda loop: marked(loop, made),
        lambda: None,
        lambda state: _chunked(state, staging.buffer),
    )


def _chunked(state: State, buffer: Buffer) -> State:
    """Aligns a result as the engine needs it, so that a launcher tests it: of two plans it takes the one that fits."""
    return with_results(state, {buffer.name: max(CHUNK, buffer.align or 0)} if buffer.role == "result" else {})


def _written(call: Call, staging: Staging, like: Use, way: _Way) -> State:
    """Elements that are written; if they are read before, their region is loaded first. The buffer has no other accesses."""
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
        raise untouchable(call, like, reason, offers=_plainly(call))
    return way.finish(defined(call, staging, like, state))


def _joined(call: Call, staging: Staging, op: str, way: _Way) -> State:
    """Partial results accumulated in a tile, which the engine combines with the buffer."""
    names = tuple(copy_loops(call, f"{staging.name}{part}", len(way.region.extent)) for part in ("", "_out"))
    start = neutral(op, staging.buffer.dtype)
    state, use = staging.to_join(way.region, (names[0], names[1]), way.mark, op, start)
    if is_met_again(state, use, use.inner, free=True):
        reason = "its box may touch elements of another iteration that does not meet this one by right"
        raise untouchable(call, staging.uses[0], reason)
    return way.finish(defined(call, staging, staging.uses[0], state))


def _by_rows(call: Call, staging: Staging) -> State:
    """Rows given by an index table, stored four at a time, or each as a run, which can also combine; rows read first are
    gathered."""
    state, in_runs = staging.state, staging.via == "bulk"
    try:
        found = rows(state, staging.uses, swizzle_asked(call))
        joins = _joining(staging, found) if in_runs and are_updates(staging.uses) else None
    except NoBox as problem:
        raise refused_box(call, problem) from None
    except ValueError as reason:
        raise untouchable(call, staging.uses[0], str(reason), help=_otherwise(staging), offers=_plainly(call)) from None
    if joins is None:
        _require_apart(call, staging, found)
    like = found.named[0] if joins is not None else own(call, replace(staging, uses=found.named))
    promised = known(inside(state, staging.outer))
    if in_runs:
        require_named_runs(call, found, promised)
    else:
        require_rows(call, found, promised, stored=True)
    shape = (found.count, found.width) if in_runs else found.boxes.extent
    boxed = Tensor(0, shape, "bulk") if in_runs else Tensor(found.boxes.swizzle.span, found.boxes.box, "scatter4")
    every = [copy_loops(call, f"{staging.name}{part}", 2) for part in ("", "_out")]
    loops = [dict(zip(each, (found.count, shape[1]), strict=True)) for each in every]
    targets = [found.at(*each) for each in every]

    def mark(loop: ir.Par) -> ir.Par:
        return marked(loop, replace(boxed, span=call.directive.span))

    made, use = staging.to_rows(targets[1:], loops[1:], shape, found.where, mark)
    if joins is not None:
        made, use = staging.to_rows(targets, loops, shape, found.where, mark, joins)
        if _meets(made, staging, found, use):
            raise untouchable(call, like, "another iteration may touch its rows that does not meet this one by right")
    elif undefined(made, staging.name):
        made, use = staging.to_rows(targets, loops, shape, found.where, mark)
        if is_met_again(made, _by_name(use), use.inner):
            reason = "an element of its rows is read, or stored with them, that another iteration may write"
            help = None if in_runs else f"copies of rows are {found.least} elements wide, or a multiple of that"
            raise untouchable(call, like, reason, help=help)
        made = defined(call, staging, staging.uses[0], made)
    return _chunked(made if in_runs else with_memory(made, staging.name, found.memory), staging.buffer)


def _joining(staging: Staging, found: Rows) -> tuple[str, Literal]:
    """The operation by which rows are combined with their matrix, and its neutral element. Raises ValueError with the reason
    where they may not.

    Where two rows may be one, their order is arbitrary: for floating-point numbers the text must free it, in all loops along
    them.
    """
    op = operation(staging.state, found.named, flushes=True)
    buffer, dtype = staging.buffer, staging.buffer.dtype
    if dtype.is_float and not is_injective(staging.state, found.table.buffer):
        for use in found.named:
            along = frozenset(s for e in use.index[:-1] for s in e.syms())
            held = next((p for p in use.inner if staging.state.domain(p).sym in along and buffer not in p.reduce), None)
            if held is not None:
                reason = f"the order of a sum of {dtype} would change, which `{held.sym.base}` keeps"
                raise ValueError(f"{reason}; `reduce({buffer.name})` on that loop frees it")
    return op, neutral(op, dtype)


def _meets(state: State, staging: Staging, found: Rows, use: Use) -> bool:
    """Whether a combined element may be accessed by another iteration around that does not reduce into it."""
    if is_injective(staging.state, found.table.buffer):
        return is_met_again(state, _by_name(use), use.inner, free=True)
    column = use.load.index[1:]  # any two rows may be equal
    alone = replace(use, load=replace(use.load, index=column, data=()), index=column)
    return is_met_again(state, alone, use.inner[1:], free=True)


def _by_name(use: Use) -> Use:
    """The store of a row's element as an access of the table."""
    ((_, meaning),) = use.load.data
    table = table_of(meaning)
    assert table is not None
    return by_name(use, replace(use, load=table, index=table.index))


def _require_apart(call: Call, staging: Staging, found: Rows) -> None:
    """Refuses (E0912) rows that are combined with the buffer, or may be one row twice.

    PTX ISA, "cp.reduce.async.bulk.tensor": its `.load_mode` is `.tile` or `.im2col_no_offs`, and never `.tile::scatter4`.
    """
    meets = [loop for use in staging.uses for loop in (*use.outer, *use.inner) if staging.buffer in loop.reduce]
    if meets and are_updates(staging.uses):
        reason = f"iterations of `{meets[0].sym.base}` meet in its rows, and the engine combines no rows four at a time"
        raise untouchable(call, staging.uses[0], reason, offers=call.by("bulk"))
    table = found.table.buffer
    if not is_injective(staging.state, table):
        reason = f"two elements of `{table.name}` might name one row, and nothing says which of the two would be stored last"
        offers = promise(call.state.function, f"assume injective({table.name})", "promise it:")
        raise untouchable(call, staging.uses[0], reason, offers=offers)


def by_tma(call: Call, staging: Staging, loop: ir.Par, boxes: Boxes) -> ir.Par:
    """The outermost loop of a copy of boxes, with its mark."""
    view = staging.view.words if isinstance(staging.view, View) and not staging.view.is_plain else ()
    loop = marked(loop, Tensor(boxes.swizzle.span, boxes.box, view=view, span=call.directive.span))
    saves = call.key("save_traffic")
    if saves is None or call.word(saves, ("true", "false")) == "false":
        return loop
    return marked(loop, Saves(span=call.directive.span))
