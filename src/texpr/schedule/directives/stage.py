"""`stage(A, at=ko, in=shared, via=ld) -> As`: the part of A that one iteration of ko accesses is kept in a buffer of its own
meanwhile.

Before: seq … |ko| { … A[i, k] … }
After:  seq … |ko| { new As: T[128, 16]
                     par 128 |As_0| { par 16 |As_1| { As[As_0, As_1] = A[128 * bi + As_0, 16 * ko + As_1] } }
                     … As[ti, ki] … }

A read-only buffer goes to `shared` as a box, or to `registers` by loops like those that read it. A written one is copied out
at the end by loops like those that write it, and copied in only where a read precedes the write; so an accumulator stays in
registers over a whole loop. By tma it is stored from shared memory, a box at a time.

`in`: shared or registers. `via`: ld (loads and stores), cp_async, or tma: boxes of `box=(128, 16)` elements that the tensor
memory accelerator copies, with `swizzle=32B|64B|128B`; with `stride=(2, 1)` every other row; with `multicast=bj` once for all
blocks of a cluster along bj, each of which copies its share; with `along=i` only for accesses that vary with i. By im2col it
copies pixels as a convolution reads them, `box=(PIXELS, CHANNELS)` at a time; by gather4 and scatter4, rows given by an index
table, four at a time; by bulk, rows inside of A, without a tensor map. `fill`: the value of elements of the region outside of
A: weak (undefined: no read sees them), zero, or a number. Proved: no other iteration writes what is copied in, and what is
copied out was written; or refused.
"""

from __future__ import annotations

from math import frexp

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.program.marked import marked
from texpr.ir.program.marks import Async, Multicast, Tensor
from texpr.ir.value import Buffer, Literal
from texpr.ir.value.types import F8E8M0
from texpr.relation.facts import known
from texpr.schedule.call import Call, Rule
from texpr.schedule.edits import Offers, left_out, staged_at, touching, without
from texpr.schedule.rewrite.cluster import dimension, many, peers
from texpr.schedule.stage.ahead import copied_ahead
from texpr.schedule.stage.flat import in_rows
from texpr.schedule.stage.offsets import settled
from texpr.schedule.stage.region import Box, NoBox, Use, are_apart, inside, told_apart, uses
from texpr.schedule.stage.staging import Staging
from texpr.schedule.stage.touched import (
    alike,
    as_walked,
    box_of,
    copy_loops,
    defined,
    depends_on_more,
    own,
    refused_box,
    seen,
    undefined,
    untouchable,
)
from texpr.schedule.state import State
from texpr.schedule.sums.parts import neutral as sum_start
from texpr.schedule.tensor.bulk import require_named_runs, require_runs
from texpr.schedule.tensor.engine import (
    boxes_asked,
    boxes_shared,
    from_a_chunk,
    require_engine,
    require_fill,
    require_load,
    swizzle_asked,
    with_memory,
)
from texpr.schedule.tensor.rows import require_rows, require_target, rows
from texpr.schedule.tensor.stores import by_tma, stored
from texpr.schedule.tensor.windows import columns_asked, columns_shared, region, require_columns
from texpr.schedule.tree import exactly, path_to
from texpr.support.diagnostic import Note
from texpr.support.record import replace

VIA = ("ld", "cp_async", "bulk", "tma", "im2col", "gather4", "scatter4")
"""The words of `via=`."""

HALF = 0.5
"""The fraction of a power of two."""

OFFSETS = ("ld", "cp_async", "tma")
"""Copies of boxes that may begin where data say."""

WORDS = {
    "box": ("tma", "im2col"),
    "stride": ("tma",),
    "swizzle": ("tma", "im2col", "gather4", "scatter4"),
    "save_traffic": ("tma",),
    "multicast": ("tma", "im2col"),
}
"""The arguments that apply only to copies by some engines."""


def _apply(call: Call) -> State:
    space = call.key("in")
    if space is not None and space.value == "global":
        call.expect(1, keys=("in",))
        return copied_ahead(call, call.buffer(call.plain[0]))
    state = _staged(call)
    *others, own = state.staged
    return replace(state, staged=(*others, replace(own, is_open=call.key("fill") is None and not own.copied_out)))


def _staged(call: Call) -> State:
    call.expect(1, keys=("at", "in", "via", "fill", "box", "stride", "swizzle", "save_traffic", "multicast", "along", "start"))
    buffer = call.buffer(call.plain[0])
    where = call.key("at")
    if where is None:
        raise call.wrong("needs `at=LOOP`: the loop in each of whose iterations the copy lives")
    at = call.loop(where)
    space = _word(call, "in", ("shared", "cluster", "registers"))
    via = _word(call, "via", VIA)
    start = call.key("start")
    if start is not None:
        call.word(start, ("neutral",))
    _require_words_of_via(call, buffer, via)
    call.require_memory(space, call.key("in"))
    outer = tuple(s for s in path_to(call.state.function.body, at) or () if isinstance(s, ir.Par | ir.Seq))
    found = uses(call.state, buffer, outer)
    if not found:
        raise call.refuse(
            "E0912",
            f"nothing inside the loop over `{at.sym.base}` touches `{buffer.name}`",
            at=where,
            offers=_touching(call, buffer),
        )
    if not are_apart(found):
        return _staged(replace(call, state=told_apart(call.state, at, buffer)))
    if via in OFFSETS and any(use.load.data for use in found) and not (via == "tma" and any(use.writes for use in found)):
        state = settled(call.state, buffer, outer, whole=via == "tma")
        if state is not call.state:
            return _staged(replace(call, state=state))
    found = _along(call, buffer, found)
    _require_outside(call, buffer, at, where, space)
    (name,) = call.results(f"{buffer.name}_{space[0]}")
    rows, found = (in_rows(call.state, found) if via in ("ld", "cp_async") else None) or (None, found)
    staging = Staging(call.state, buffer, name.name, space, via, outer, found, call.directive.span, rows)
    if any(use.writes for use in found):
        if via in ("tma", "scatter4", "bulk") and space == "shared":
            return stored(call, staging)
        _require_plain(call, buffer, via)
        return _accumulated(call, staging) if start is None else _summed(call, staging)
    if start is not None:
        reason = f"`start=` is for sums, and `{buffer.name}` is only read here"
        raise call.refuse("E0912", reason, at=start, offers=without(call.directive.span, "start"))
    return _copied(call, staging, outer)


def _copied(call: Call, staging: Staging, outer: tuple[ir.Loop, ...]) -> State:
    """What is only read, copied at the start."""
    buffer, found, space, via = staging.buffer, staging.uses, staging.space, staging.via
    if via == "scatter4":
        reason = f"`via=scatter4` is for rows that are written, and `{buffer.name}` is only read here"
        raise call.refuse("E0912", reason, at=call.key("via"), offers=call.by("gather4", "ld"))
    _require_quiet(call, buffer, outer)
    if space == "cluster":
        _require_plain(call, buffer, via)
    if space == "registers":
        return _in_registers(call, staging)
    fill = _fill(call, buffer)
    if via == "im2col":
        return _by_columns(call, staging, fill)
    if via == "gather4":
        return _by_rows(call, staging, fill)
    if via == "tma":
        return defined(call, staging, found[0], _by_engine(call, staging, fill))
    if via == "bulk" and any(use.load.data for use in found):
        return _by_rows(call, staging, None)
    if via in ("ld", "cp_async") and any(use.load.data for use in found):
        return _by_threads(call, staging, fill)
    region = box_of(call, staging)
    names = copy_loops(call, staging.name, len(region.extent))
    if via == "bulk":
        return defined(call, staging, found[0], _by_runs(call, staging, region, names))
    state = staging.from_box(
        region, names, fill, lambda loop: marked(loop, Async(span=call.directive.span)) if via == "cp_async" else loop
    )
    return defined(call, staging, found[0], state)


def _require_outside(call: Call, buffer: Buffer, at: ir.Loop, where: ir.Argument, space: str) -> None:
    """The buffer lives outside of the loop in each of whose iterations the copy does."""
    if any(isinstance(s, ir.New) and s.buffer is buffer for s in ir.walk((at,))):
        reason = f"`{buffer.name}` is made inside the loop over `{at.sym.base}`, so it lives there already"
        raise call.refuse(
            "E0912", reason, at=where, offers=call.instead("say where: %", lambda _: f"place({buffer.name}, {space})")
        )


def _along(call: Call, buffer: Buffer, found: tuple[Use, ...]) -> tuple[Use, ...]:
    """With `along=`, the accesses that vary with that loop: the others are left where they are."""
    argument = call.key("along")
    if argument is None:
        return found
    sym = call.state.domain(call.loop(argument)).sym
    chosen = tuple(use for use in found if any(sym in e.syms() for e in use.index))
    if any(use.writes for use in found):
        reason = f"`{buffer.name}` is written, and all its accesses go to one copy"
        raise call.refuse("E0912", reason, at=argument, offers=without(call.directive.span, "along"))
    if not chosen:
        reason = f"no access of `{buffer.name}` there varies with `{sym.base}`"
        raise call.refuse("E0912", reason, at=argument, offers=without(call.directive.span, "along"))
    return chosen


def _in_registers(call: Call, staging: Staging) -> State:
    """A read-only buffer, copied to registers: by loops like those that read it or, where it is filled, as a box."""
    _require_plain(call, staging.buffer, staging.via, ("via",))
    like, fill = alike(call, staging), _fill(call, staging.buffer)
    if fill is None and not depends_on_more(staging, like):
        return defined(call, staging, like, staging.as_used(like, copy_in=True, copy_out=False))
    region = box_of(call, staging)
    names = copy_loops(call, staging.name, len(region.extent))
    order = as_walked(staging, like) if fill is None else None
    state = staging.from_box(region, names, fill, lambda loop: loop, order)
    return defined(call, staging, like, state)


def _by_engine(call: Call, staging: Staging, fill: Literal | None) -> State:
    """The box copied by the tensor memory accelerator, and its memory in the engine's layout."""
    staging, region = seen(call, staging)
    promised = known(inside(staging.state, staging.outer))
    if region.extent:
        region = from_a_chunk(region, staging.seen.dtype.bytes, promised)
    region, boxes = boxes_asked(call, staging.seen, region)
    require_load(call, staging.seen, region, boxes, promised, fill)
    along = call.key("multicast")
    among = () if along is None else peers(call, along, staging.outer, region.base)
    boxes = boxes_shared(staging.seen, region, boxes, promised, many(among))
    names = copy_loops(call, staging.name, len(region.extent))
    state = staging.from_box(region, names, fill, lambda loop: _multicast(call, by_tma(call, staging, loop, boxes), among))
    return with_memory(state, staging.name, boxes)


def _by_runs(call: Call, staging: Staging, region: Box, names: tuple[Sym, ...]) -> State:
    """Rows copied by the engine without a tensor map."""
    promised = known(inside(staging.state, staging.outer))
    require_runs(call, staging.buffer, region, promised)
    made = Tensor(0, region.extent, "bulk", span=call.directive.span)
    return staging.from_box(region, names, None, lambda loop: marked(loop, made))


def _by_columns(call: Call, staging: Staging, fill: Literal | None) -> State:
    """A column of pixels copied by the tensor memory accelerator, as a convolution reads them."""
    like = alike(call, staging)
    try:
        found = region(staging.state, like)
    except ValueError as reason:
        raise untouchable(call, like, f"it is no column of pixels: {reason}", offers=call.by("tma", "ld")) from None
    boxes = columns_asked(call, staging.buffer, found)
    promised = known(inside(staging.state, staging.outer))
    require_columns(call, staging.buffer, found, boxes, promised)
    along = call.key("multicast")
    among = () if along is None else peers(call, along, staging.outer, found.corner)
    boxes = columns_shared(staging.buffer, found, boxes, promised, many(among))
    loops = dict(zip(found.syms, zip(copy_loops(call, staging.name, 2), found.extent, strict=True), strict=True))
    corners = (n for corner, step in zip(found.window.corners, found.window.steps, strict=True) for n in (*corner, step))
    made = Tensor(boxes.swizzle.span, boxes.box, "im2col", tuple(corners), span=call.directive.span)

    def mark(loop: ir.Par) -> ir.Par:
        return _multicast(call, marked(loop, made), among)

    state = staging.from_column(found.column.index, found.place, loops, fill, mark)
    return with_memory(defined(call, staging, like, state), staging.name, boxes)


def _by_rows(call: Call, staging: Staging, fill: Literal | None) -> State:
    """Rows given by an index table, copied four at a time by the tensor memory accelerator, or each as a run."""
    try:
        found = rows(staging.state, staging.uses, swizzle_asked(call))
    except NoBox as problem:
        raise refused_box(call, problem) from None
    in_runs, promised = staging.via == "bulk", known(inside(staging.state, staging.outer))
    if in_runs:
        require_named_runs(call, found, promised)
    else:
        require_rows(call, found, promised)
    row, column = copy_loops(call, staging.name, 2)
    extents = (found.count, found.width) if in_runs else found.boxes.extent
    made = Tensor(0, extents, "bulk") if in_runs else Tensor(found.boxes.swizzle.span, found.boxes.box, "gather4")
    loops = dict(zip((row, column), extents, strict=True))
    state = staging.from_rows(
        found.at(row, column), loops, found.where, fill, lambda loop: marked(loop, replace(made, span=call.directive.span))
    )
    state = defined(call, staging, staging.uses[0], state)
    return state if in_runs else with_memory(state, staging.name, found.memory)


def _by_threads(call: Call, staging: Staging, fill: Literal | None) -> State:
    """Rows given by an index table, copied by threads, which look each of them up."""
    try:
        found = rows(staging.state, staging.uses)
    except NoBox as problem:
        raise refused_box(call, problem) from None
    names = copy_loops(call, staging.name, 2)
    loops = dict(zip(names, (found.count, found.width), strict=True))
    made = Async(span=call.directive.span)
    state = staging.from_rows(
        found.at(*names), loops, found.where, fill, lambda loop: marked(loop, made) if staging.via == "cp_async" else loop
    )
    return defined(call, staging, staging.uses[0], state)


def _multicast(call: Call, loop: ir.Par, among: tuple[ir.Loop, ...]) -> ir.Par:
    return marked(loop, Multicast(tuple(map(dimension, among)), span=call.directive.span)) if among else loop


def _require_words_of_via(call: Call, buffer: Buffer, via: str) -> None:
    """Requires a target with the engine for the arguments of its copies."""
    if via in ("bulk", "tma", "im2col", "gather4", "scatter4"):
        require_engine(call)
        require_fill(call, buffer)
    fill = call.key("fill")
    if via == "bulk" and fill is not None and fill.value != "weak":
        raise call.refuse(
            "E0916",
            "a copy without a map fills nothing",
            at=fill,
            offers=(*without(call.directive.span, "fill"), *call.by("tma", "ld")),
        )
    if via in ("gather4", "scatter4"):
        require_target(call, "via=cp_async" if via == "gather4" else "via=ld")
    for key, engines in WORDS.items():
        argument = call.key(key)
        if argument is not None and via not in engines:
            raise call.wrong(f"has `{key}=` with {' or '.join(f'`via={each}`' for each in engines)} alone", argument)


def _word(call: Call, key: str, choices: tuple[str, ...]) -> str:
    argument = call.key(key)
    return choices[0] if argument is None else call.word(argument, choices)


def _require_plain(call: Call, buffer: Buffer, via: str, keys: tuple[str, ...] = ("via", "fill")) -> None:
    for key in keys:
        argument = call.key(key)
        if argument is not None and argument.value not in ("ld", "weak"):
            reason = (
                f"`{key}={argument.value}` is for what is only read and copied to shared memory, unlike `{buffer.name}` here"
            )
            rows = call.by("scatter4") if argument.value == "gather4" else ()
            plain = call.by("ld") if key == "via" else without(call.directive.span, key)
            raise call.refuse("E0912", reason, at=argument, offers=(*rows, *plain))


def _require_quiet(call: Call, buffer: Buffer, outer: tuple[ir.Loop, ...]) -> None:
    """Nothing writes the buffer while the parallel iterations around the copy, in the scope of the buffer, run."""
    inside = tuple(loop for loop in outer if not any(isinstance(s, ir.New) and s.buffer is buffer for s in ir.walk(loop.body)))
    outermost = next((loop for loop in inside if isinstance(loop, ir.Par)), outer[-1])
    for stmt in ir.walk((outermost,)):
        if isinstance(stmt, ir.Bind) and any(t.buffer is buffer for t in stmt.targets):
            reason = f"`{buffer.name}` is written in the same nest, so a copy of it could be out of date"
            offers = left_out(call.directive.span, f"leave it out, and `{buffer.name}` is read where it is")
            raise call.refuse("E0912", reason, Note("it is written here", stmt.span), offers=offers)


def _summed(call: Call, staging: Staging) -> State:
    """Sums that begin at the neutral value, and are added to the elements in the end."""
    like = alike(call, staging)
    found = [use for use in staging.uses if use.writes]
    updates = [use.stmt for use in found if isinstance(use.stmt, ir.Bind) and isinstance(use.stmt.update, str)]
    first = updates[0] if updates else None
    plain = [use for use in staging.uses if use.stmt not in updates or use.tested]
    if plain or first is None or any(each.update != first.update or len(each.targets) > 1 for each in updates):
        use = plain[0] if plain else found[0]
        raise untouchable(
            call, use, "it is no update as all others are, and `start=neutral` keeps what updates make of nothing"
        )
    if first.update == "sub":
        raise untouchable(call, like, "differences would be subtracted twice: add what is negative instead")
    free = [loop for loop in (*staging.outer, *like.inner) if staging.buffer in loop.reduce]
    if not any(loop in like.inner for loop in free):
        reason = (
            f"no `reduce({staging.buffer.name})` inside of the loop over `{staging.at.sym.base}` frees the order of updates"
        )
        raise call.refuse("E0906", reason, at=call.key("start"), offers=without(call.directive.span, "start"))
    joins = str(first.update), sum_start(first)
    return staging.as_used(like, copy_in=True, copy_out=True, joins=joins)


def _accumulated(call: Call, staging: Staging) -> State:
    """Elements kept while they are written, copied in where a read would be undefined otherwise."""
    like = own(call, staging)
    state = staging.as_used(like, copy_in=False, copy_out=True)
    if not undefined(state, staging.name):
        return state
    return defined(call, staging, like, staging.as_used(like, copy_in=True, copy_out=True))


def _fill(call: Call, buffer: Buffer) -> Literal | None:
    argument = call.key("fill")
    if argument is None or argument.value == "weak":
        return None
    value = 0 if argument.value == "zero" else argument.value
    if not isinstance(value, int | float) or (isinstance(value, float) and not buffer.dtype.is_float):
        raise call.wrong(f"fills {buffer.dtype} with weak, zero or a number of that type", argument)
    if not buffer.dtype.is_float and not buffer.dtype.limits[0] <= value <= buffer.dtype.limits[1]:
        low, high = buffer.dtype.limits
        raise call.refuse(
            "E0306", f"{value} does not fit {buffer.dtype}", at=argument, help=f"{buffer.dtype} holds {low} to {high}"
        )
    if buffer.dtype == F8E8M0 and not (value > 0 and frexp(value)[0] == HALF):
        raise call.refuse(
            "E0306", f"{value} is no power of two, and f8e8m0 holds no others", at=argument, help="`fill=1` is one"
        )
    return Literal(value, buffer.dtype)


def _touching(call: Call, buffer: Buffer) -> Offers:
    """The offers to stage at loops that access the buffer, the innermost first."""
    body = call.state.function.body
    return staged_at(call.directive.span, [exactly(loop.sym.name, body) for loop in touching(body, buffer.name)])


FORM = (
    f"stage(BUFFER, at=LOOP, in=shared|cluster|registers|global, via={'|'.join(VIA)}, fill=weak|zero|NUMBER, box=(N, …), "
    "stride=(N, …), swizzle=none|32B|64B|128B, save_traffic=true|false, multicast=LOOP, along=LOOP, start=neutral) -> NAME"
)

RULE = Rule("stage", FORM, _apply)
