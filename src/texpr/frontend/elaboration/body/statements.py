"""Statements. An erroneous one is reported and left out, so that one run finds further errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from texpr.affine.expr import Expr, expr
from texpr.frontend.elaboration import views
from texpr.frontend.elaboration.body.calls import bind_arguments, find, is_expression
from texpr.frontend.elaboration.body.joint import called_by, joint_operands, written_out
from texpr.frontend.elaboration.body.once import index_once, read_once, view_once
from texpr.frontend.elaboration.body.one_step import one_step
from texpr.frontend.elaboration.body.returns import results, returned_names
from texpr.frontend.elaboration.body.rounding import rounded
from texpr.frontend.elaboration.body.signals import barriers, is_signal, signal
from texpr.frontend.elaboration.body.updates import bind
from texpr.frontend.elaboration.context import Context, Slot
from texpr.frontend.elaboration.drafts import Affine, Typed, height
from texpr.frontend.elaboration.expressions import RESERVED, condition, operand, plain_index, value, view
from texpr.frontend.elaboration.scope import Broken, Entity
from texpr.frontend.elaboration.typing import Operand, lookup_type, settle, settle_natural, truth
from texpr.frontend.elaboration.views import View
from texpr.frontend.tree import (
    Anchor,
    Asm,
    Bind,
    Call,
    CallStatement,
    Fn,
    Ident,
    If,
    Instr,
    Instruct,
    Let,
    Loop,
    New,
    Reg,
    Return,
    Statement,
    StaticFor,
    TypeExp,
)
from texpr.ir import program
from texpr.ir.program import BARRIER, Par, Seq
from texpr.ir.program.marked import is_atomic
from texpr.ir.program.uses import loads
from texpr.ir.value import PITCHES, Buffer, Load, pitched
from texpr.ir.value.types import I64
from texpr.support.diagnostic import Edit, Proposal, TexprError, error
from texpr.support.record import replace
from texpr.support.span import Span

MAX_UNROLL = 4096


def body(ctx: Context, statements: Sequence[Statement], types: Sequence[TypeExp], span: Span) -> tuple[View, ...]:
    """Elaborates the statements of a function or call into `ctx`; gives the results, as views."""
    last = statements[-1] if statements else None
    if isinstance(last, Return):
        block(ctx, statements[:-1])
        return results(ctx, last, types)
    block(ctx, statements)
    if types:
        raise error("E0315", span, "this function has results and returns nothing", help="end it with `return …`")
    return ()


def block(ctx: Context, statements: Sequence[Statement]) -> None:
    """Elaborates every statement into `ctx`."""
    for statement in statements:
        try:
            with ctx.file.deeper(4, statement.span):
                _statement(ctx, statement)
        except TexprError as raised:
            ctx.making.keep(raised)
            if ctx.making.is_too_large:
                raise TexprError([]) from None
            for name in _declares(statement):
                # Its uses are no errors of their own.
                if ctx.scope.find(name.name) is None:
                    ctx.scope.declare(name, Broken(), "the name")


def _declares(statement: Statement) -> tuple[Ident, ...]:
    match statement:
        case New() | Reg():
            return (statement.name,)
        case Let():
            return statement.names
        case _:
            return ()


def _statement(ctx: Context, statement: Statement) -> None:
    match statement:
        case Loop():
            _loop(ctx, statement)
        case StaticFor():
            _static_for(ctx, statement)
        case New():
            _new(ctx, statement)
        case Reg():
            _reg(ctx, statement)
        case Let():
            _let(ctx, statement)
        case Bind():
            ctx.out.append(bind(ctx, statement))
        case If():
            _if(ctx, statement)
        case Anchor():
            _anchor(ctx, statement)
        case CallStatement():
            _call(ctx, statement.call, anchored=False)
        case Asm():
            _call(ctx, called_by(ctx, statement), anchored=False)
        case Instruct():
            _instruct(ctx, statement)
        case Return():
            raise error("E0315", statement.span, "`return` stands at the end of a function only")
        case _:
            assert_never(statement)


def _loop(ctx: Context, statement: Loop) -> None:
    extent = index_once(ctx, statement.extent)
    reduce = tuple(dict.fromkeys(_named(ctx, name, "reduce") for name in statement.reduce))
    scan = tuple(dict.fromkeys(_named(ctx, name, "scan") for name in statement.scan))
    if scan and statement.kind == "par":
        source, start = statement.span.source, statement.span.start
        told = "write `seq`: it says what comes before what, and a schedule may do the iterations in parallel"
        help = Proposal(told, Edit("seq", Span(source, start, start + 3)))
        reason = "a `scan` goes through iterations in order, and those of a `par` have none"
        raise error("E0334", statement.scan[0].span, reason, help=help)
    marks, ieee = rounded(statement)
    ctx.scope.check_free(statement.index)
    symbol = ctx.symbol(statement.index.name)
    inner = ctx.inner()
    inner.scope.declare(statement.index, Affine(expr(symbol)), "the loop index")
    block(inner, statement.body)
    below, label, span = tuple(inner.out), statement.label, statement.span
    if statement.kind == "par":
        made = Par(symbol, extent, below, reduce, label, marks, statement.fully, span, ieee)
        free = not (made.fully or ieee or is_atomic(made))
        ctx.out.append(replace(made, reduce=tuple(b for b in reduce if not is_told(b, made))) if free else made)
    else:
        ctx.out.append(Seq(symbol, extent, below, reduce, label, marks, span, ieee, scan))


def is_told(buffer: Buffer, loop: Par) -> bool:
    """Whether each iteration of a loop updates elements of its own, and does nothing else with the buffer: a `reduce` of it
    frees nothing, as that of a loop over rows in `par M, K |i, k| reduce(y) { y[i] += A[i, k] }`."""
    mine = expr(loop.sym)
    updates = [stmt for stmt in program.walk(loop.body) if isinstance(stmt, program.Bind) and stmt.update is not None]
    targets = [target for stmt in updates for target in stmt.targets if target.buffer is buffer]
    touched = [load for stmt in program.walk(loop.body) for load in loads(stmt) if load.buffer is buffer]
    own = any(all(target.index[at] is mine for target in targets) for at in range(buffer.rank))  # by one subscript of all
    return own and len(touched) == len(targets) > 0


def _named(ctx: Context, name: Ident, clause: str) -> Buffer:
    entity = ctx.scope.resolve(name.name, name.span)
    if not isinstance(entity, View):
        help = "name the memory in which iterations meet"
        raise error("E0320", name.span, f"`{clause}` takes buffers, and `{name.name}` is none", help=help)
    return entity.buffer


def _static_for(ctx: Context, statement: StaticFor) -> None:
    bounds: list[int] = []
    for bound in (statement.lo, statement.hi):
        found = plain_index(ctx, bound, "a bound of `static for`")
        if not found.is_constant:
            consts = [s.name for s in found.syms() if s in dict(ctx.making.consts)]
            help = f"give `{consts[0]}` a value for this build" if consts else "use `seq` for what is known at run time only"
            message = f"`static for` is unrolled, and {found} is not known"
            raise error("E0316", bound.span, message, help=help)
        bounds.append(found.constant)
    lo, hi = bounds
    if hi - lo > MAX_UNROLL:
        message = f"`static for` makes {hi - lo} copies, more than {MAX_UNROLL}"
        raise error("E0317", statement.span, message, help="use `par` or `seq`")
    ctx.scope.check_free(statement.index)
    for number in range(lo, hi):
        inner = ctx.flat()
        inner.scope.declare(statement.index, Affine(expr(number)), "the static index")
        ctx.making.count(max(1, len(statement.body)), statement.span)
        block(inner, statement.body)


def _new(ctx: Context, statement: New) -> None:
    name = statement.name
    ctx.scope.check_free(name)
    if statement.type.dtype.name == BARRIER:
        made = barriers(ctx, statement)
        ctx.out.append(made)
        return ctx.scope.declare(name, views.whole(made.buffer), "the barriers")
    dtype = lookup_type(statement.type.dtype)
    shape = tuple(index_once(ctx, e) for e in statement.type.shape)
    slot = ctx.slots.get(name.name)
    own = slot.name if slot is not None else ctx.making.namer.unique(name.name)
    role, align = (slot.role, slot.align) if slot is not None else ("local", None)
    buffer = Buffer(own, dtype, shape, role, _strides(ctx, statement, shape, role), align, name.span)
    ctx.out.append(program.New(buffer, span=statement.span))
    if statement.value is not None:
        _fill(ctx, statement, buffer)
    ctx.scope.declare(name, views.whole(buffer), "the buffer")


def _strides(ctx: Context, statement: New, shape: tuple[Expr, ...], role: str) -> tuple[Expr, ...] | None:
    """The strides of a buffer, by which rows begin at multiples of some elements, and none overlaps the next."""
    if statement.stride is None:
        return None
    name, found = statement.name.name, tuple(index_once(ctx, e) for e in statement.stride)
    if len(found) != len(shape):
        raise error("E0301", statement.span, f"`{name}` has rank {len(shape)} and {len(found)} strides")
    if role != "local" or not any(found == pitched(shape, count) for count in PITCHES):
        reason = "is a result, which is dense" if role != "local" else "has rows that may overlap, or leave gaps of other sizes"
        raise error("E0301", statement.span, f"`{name}` {reason}", help="leave the strides out: the compiler may pad rows")
    return found


def _reg(ctx: Context, statement: Reg) -> None:
    """Registers as a `new`, of the type of what they are given first where none is written."""
    if statement.type is not None:
        return _new(ctx, New(statement.name, statement.type, statement.value, statement.span))
    assert statement.value is not None
    found, name = value(ctx, statement.value), statement.name
    ctx.scope.check_free(name)
    array = isinstance(found, View) and found.rank > 0
    one = None if array else settle_natural(operand(ctx, statement.value))
    dtype, shape = (found.dtype, found.shape) if isinstance(found, View) and array else (one.dtype if one else I64, ())
    buffer = Buffer(ctx.making.namer.unique(name.name), dtype, shape, "local", None, None, name.span)
    ctx.out.append(program.New(buffer, span=statement.span))
    _fill(ctx, statement, buffer)
    ctx.scope.declare(name, views.whole(buffer), "the registers")


def _fill(ctx: Context, statement: New | Reg, buffer: Buffer) -> None:
    """`new v: T[shape] = e`: every element is `e`, or that of an array of the same shape."""
    assert statement.value is not None
    span = statement.span
    symbols = [ctx.symbol(f"{statement.name.name}_{k}") for k in range(buffer.rank)]
    place = tuple(map(expr, symbols))
    found = value(ctx, statement.value)
    if isinstance(found, View) and found.rank > 0:
        _check_same_shape(ctx, found, buffer, statement)
        read = Typed(views.read(found, place, (), statement.value.span))
    else:
        read = operand(ctx, statement.value).draft
    what = settle(Operand(read, statement.value.span), buffer.dtype)
    filled: program.Stmt = program.Bind((Load(buffer, place, (), span),), (what,), None, span)
    for symbol, extent in zip(reversed(symbols), reversed(buffer.shape), strict=True):
        filled = Par(symbol, extent, (filled,), span=span)
    ctx.out.append(filled)


def _check_same_shape(ctx: Context, found: View, buffer: Buffer, statement: New | Reg) -> None:
    same = found.rank == buffer.rank and all(map(ctx.making.equal, found.shape, buffer.shape))
    if not same:
        assert statement.value is not None
        message = f"an array of shape {shape_text(found.shape)} does not fill one of shape {shape_text(buffer.shape)}"
        raise error("E0311", statement.value.span, message)


def shape_text(shape: tuple[Expr, ...]) -> str:
    """A shape in words."""
    return f"[{', '.join(map(str, shape))}]"


def _let(ctx: Context, statement: Let) -> None:
    name = statement.names[0]
    for one in statement.names:
        ctx.scope.check_free(one)
    if isinstance(statement.value, Call) and statement.value.name.name not in RESERVED:
        called = find(ctx, statement.value)
        if not is_expression(called) or len(statement.names) > 1:
            return _let_call(ctx, statement, statement.value, called)
    if len(statement.names) > 1:
        help = "only a call of a function with several results gives several"
        raise error("E0326", statement.span, f"{len(statement.names)} names for one value", help=help)
    found = value(ctx, statement.value)
    entity: Entity
    if isinstance(found, View) and found.rank == 0:
        found = operand(ctx, statement.value).draft
    if isinstance(found, View):
        entity = view_once(ctx, found, statement.value.span)
    else:
        if height(found) > 0 and not isinstance(found, Typed):
            settle_natural(Operand(found, statement.value.span))
        entity = read_once(ctx, name.name, found, statement.span)
    ctx.scope.declare(name, entity, "the name")


def _let_call(ctx: Context, statement: Let, call: Call, called: Fn | Instr) -> None:
    count = len(called.results) if isinstance(called, Fn) else 0
    if not isinstance(called, Fn) or count != len(statement.names):
        gives = "no result" if count == 0 else "1 result" if count == 1 else f"{count} results"
        raise error("E0326", statement.span, f"`{call.name.name}` gives {gives}, and {len(statement.names)} are named")
    for name, found in zip(statement.names, _inline(ctx, call, called, statement.names), strict=True):
        ctx.scope.declare(name, found, "the name")


def _inline(ctx: Context, call: Call, fn: Fn, names: Sequence[Ident]) -> tuple[View, ...]:
    """The body of `fn` in place of the call; its results are named `names`."""
    inner = bind_arguments(ctx, call, fn, once=True)
    ctx.making.count(4 + len(fn.body), call.span)
    wanted = [ctx.slots.get(n.name) or Slot(ctx.making.namer.unique(n.name), "local") for n in names]
    inner.slots = _slots(fn, wanted)
    before = len(ctx.making.diagnostics)
    ctx.making.calls.append((call.name.name, call.span))
    try:
        with ctx.file.deeper(5, call.span):
            found = body(inner, fn.body, fn.results, fn.name.span)
    except TexprError as raised:
        ctx.making.keep(raised)
        raise TexprError([]) from None
    finally:
        ctx.making.calls.pop()
    if len(ctx.making.diagnostics) > before:
        raise TexprError([])
    return found


def _slots(fn: Fn, wanted: Sequence[Slot]) -> Mapping[str, Slot]:
    """The names for the results of `fn`; an unnamed result is named by its position."""
    returned = returned_names(fn.body)
    return {
        (name if name is not None else f"#{at}"): slot for at, (name, slot) in enumerate(zip(returned, wanted, strict=False))
    }


def _if(ctx: Context, statement: If) -> None:
    test = condition(ctx, statement.condition)
    known = truth(test)
    if known is not None:
        return block(ctx.flat(), statement.then if known else statement.orelse)
    then, orelse = ctx.inner(), ctx.inner()
    block(then, statement.then)
    block(orelse, statement.orelse)
    ctx.out.append(program.If(test, tuple(then.out), tuple(orelse.out), statement.span))


def _anchor(ctx: Context, statement: Anchor) -> None:
    if isinstance(statement.value, Call) and statement.value.name.name in ctx.file.instrs:
        return _call(ctx, statement.value, anchored=True)
    found = settle_natural(operand(ctx, statement.value))
    ctx.out.append(program.Anchor(found, statement.span))


def _call(ctx: Context, call: Call, anchored: bool) -> None:
    if is_signal(ctx, call):
        return ctx.out.append(signal(ctx, call))
    if call.name.name in RESERVED:
        help = "name it, `let x = …`, or evaluate it for its effect, `anchor …`"
        raise error("E0326", call.span, f"`{call.name.name}` computes a value, and nothing uses it", help=help)
    called = find(ctx, call)
    if isinstance(called, Instr):
        return _instruction(ctx, call, called, anchored)
    if called.results:
        help = f"name it, `let z = {call.name.name}(…)`"
        raise error("E0326", call.span, f"the result of `{call.name.name}` is not used", help=help)
    _inline(ctx, call, called, ())


def _instruction(ctx: Context, call: Call, instr: Instr, anchored: bool) -> None:
    if (joint := ctx.file.records.get(call.name.name)) is not None:
        given = tuple(joint_operands(ctx, call, instr, joint))
        return ctx.out.append(program.Instruction(joint.name, (), given, anchored, call.span, joint))
    inner = bind_arguments(ctx, call, instr, once=True)
    operands: list[Load] = []
    for param in instr.params:
        entity = inner.scope.resolve(param.name.name, call.span)
        if isinstance(entity, View):
            operands.append(views.element(entity, (expr(0),) * entity.rank, (), call.span))
    inner.out = []
    ctx.making.count(1 + len(instr.meaning), call.span)
    ctx.making.calls.append((call.name.name, call.span))
    try:
        block(inner, instr.meaning)
    finally:
        ctx.making.calls.pop()
    if (step := one_step(instr, inner.out, call.span)) is not None and not anchored:
        ctx.making.steps.append(step)
        ctx.out += inner.out
        return
    ctx.out.append(program.Instruction(call.name.name, tuple(inner.out), tuple(operands), anchored, call.span))


def _instruct(ctx: Context, statement: Instruct) -> None:
    operands: list[Load] = []
    for e in statement.operands:
        found = view(ctx, e)
        if found.rank > 0 or found.paddings:
            raise error(
                "E0321", e.span, "an operand of a written-out `instr` is an element", help="write the first one, `A[i, k]`"
            )
        operands.append(views.element(found, (), (), e.span))
    inner = ctx.inner()
    block(inner, statement.body)
    name, span = statement.name.name, statement.span
    joint = written_out(ctx, name)
    ctx.out.append(program.Instruction(name, tuple(inner.out), tuple(operands), statement.anchored, span, joint))
