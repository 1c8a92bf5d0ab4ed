"""Calls are inlined: the body of the called function replaces the call, with fresh names.

Arguments are evaluated once, at the call. A function that is one expression (`let`s and `return e`) may be called anywhere;
others only in a statement of their own.
"""

from __future__ import annotations

from texpr.affine.expr import ONE, Expr, Sym, expr
from texpr.frontend.elaboration.body.once import read_once, view_once
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.drafts import Affine, Draft, Typed, affine_of, height
from texpr.frontend.elaboration.expressions import operand, plain_index, value, view
from texpr.frontend.elaboration.facts import assumption, comparison, conjuncts, known
from texpr.frontend.elaboration.scope import Scope, did_you_mean
from texpr.frontend.elaboration.typing import lookup_type, settle
from texpr.frontend.elaboration.views import View
from texpr.frontend.printer import print_expression
from texpr.frontend.tree import Call, ConstParam, Exp, Fn, Ident, Instr, Let, Param, Return, names_in
from texpr.ir.value.types import DType
from texpr.support.diagnostic import Edit, Note, Proposal, TexprError, error
from texpr.support.record import Record, derive, field, replace


def find(ctx: Context, call: Call) -> Fn | Instr:
    """The function or instruction that is called, itself without errors."""
    name = call.name.name
    found = ctx.file.fns.get(name) or ctx.file.instrs.get(name)
    if found is None:
        if name in ctx.file.combines:
            help = f"use it as an update, `acc {name}= x`"
            raise error("E0326", call.name.span, f"`{name}` is a combiner and cannot be called", help=help)
        if ctx.scope.find(name) is not None:
            raise error("E0204", call.name.span, f"`{name}` is not a function", help=f"an element is written `{name}[…]`")
        known_names = [*ctx.file.fns, *ctx.file.instrs, *ctx.file.builtins]
        raise error("E0204", call.name.span, f"unknown function `{name}`", help=did_you_mean(name, known_names))
    if not ctx.file.is_made(ctx.file, name, call.name.span):
        raise TexprError([])
    ctx.file.called.add(name)
    return found


def is_expression(fn: Fn | Instr) -> bool:
    """Whether a function is `let`s and `return e`, one scalar: it may be called inside an expression."""
    if not isinstance(fn, Fn) or len(fn.results) != 1 or fn.results[0].shape or not fn.body:
        return False
    if any(isinstance(p, Param) and p.inout for p in fn.params):
        return False
    *lets, last = fn.body
    return isinstance(last, Return) and len(last.values) == 1 and all(isinstance(s, Let) and len(s.names) == 1 for s in lets)


def scalar_call(ctx: Context, call: Call) -> Draft:
    """The value of a call inside an expression."""
    fn = find(ctx, call)
    if not isinstance(fn, Fn) or not is_expression(fn):
        return _refuse_value(fn, call)
    inner = bind_arguments(ctx, call, fn, once=False)
    dtype = lookup_type(fn.results[0].dtype)
    ctx.making.count(1, call.span)
    try:
        with ctx.file.deeper(6, call.span):
            return _evaluate(inner, fn, dtype)
    except TexprError as raised:
        note = Note(f"in this call of `{call.name.name}`", call.span)
        kept = [replace(d, notes=(*d.notes, note)) for d in raised.diagnostics]
        raise TexprError(kept) from None


def _evaluate(inner: Context, fn: Fn, dtype: DType) -> Draft:
    for statement in fn.body:
        if isinstance(statement, Let):
            inner.scope.declare(statement.names[0], value(inner, statement.value), "the name")
    last = fn.body[-1]
    assert isinstance(last, Return)
    found = operand(inner, last.values[0])
    exact = affine_of(found.draft) if dtype.is_integer else None
    return Typed(settle(found, dtype), exact, 1 + height(found.draft))


def _refuse_value(fn: Fn | Instr, call: Call) -> Draft:
    name = call.name.name
    if isinstance(fn, Instr):
        raise error("E0326", call.span, f"`{name}` is an instruction and gives no value", help="write it as a statement")
    if not fn.results:
        raise error("E0326", call.span, f"`{name}` gives no result", help="call it in a statement of its own")
    help = f"name its result first, `let t = {name}(…)`"
    raise error("E0326", call.span, f"`{name}` has statements and cannot be called inside an expression", help=help)


def bind_arguments(ctx: Context, call: Call, fn: Fn | Instr, once: bool) -> Context:
    """The context of the body: parameters bound to the arguments, sizes to the extents found in them.

    `once`: loads in the arguments are evaluated here, by `let`s.
    """
    inner = Context(ctx.making, Scope(), ctx.out)
    given = match_arguments(call, fn)
    for param in fn.params:
        if isinstance(param, ConstParam):
            inner.scope.declare(param.name, _const(ctx, inner, param, given.get(param.name.name), call), "the constant")
    arrays: list[_Argument] = []
    for param in fn.params:
        if not isinstance(param, Param):
            continue
        exp = given[param.name.name]
        if param.type.shape or param.inout:
            found = _array(ctx, param, exp)
            found = view_once(ctx, found, exp.span) if once else found
            arrays.append(_Argument(param, found, exp))
            inner.scope.declare(param.name, found, "the parameter")
        else:
            inner.scope.declare(param.name, _scalar(ctx, param, exp, once), "the parameter")
    _check_aliases(arrays)
    _solve_sizes(inner, arrays, call)
    _check_promises(inner, fn, call)
    return inner


class _Argument(Record):
    param: Param
    view: View
    exp: Exp
    dims: tuple[tuple[Exp, Expr], ...] = field(init=False)

    def __post_init__(self) -> None:
        derive(self, dims=tuple(zip(self.param.type.shape, self.view.shape, strict=True)))


def match_arguments(call: Call, fn: Fn | Instr) -> dict[str, Exp]:
    """The argument of each parameter by its name; constants with a default may have none."""
    name = call.name.name
    names = [p.name.name for p in fn.params]
    if len(call.args) > len(names):
        s = "" if len(names) == 1 else "s"
        raise error("E0310", call.span, f"`{name}` takes {len(names)} argument{s}, not {len(call.args)}", _declared(fn))
    given = dict(zip(names, call.args, strict=False))
    for key, exp in call.keys:
        if key.name not in names:
            message = f"`{name}` has no parameter `{key.name}`"
            raise error("E0208", key.span, message, _declared(fn), help=did_you_mean(key.name, names))
        if key.name in given:
            raise error("E0310", key.span, f"the parameter `{key.name}` is given twice")
        given[key.name] = exp
    for param in fn.params:
        if param.name.name not in given and (isinstance(param, Param) or param.default is None):
            raise error("E0310", call.span, f"`{name}` needs an argument for `{param.name.name}`", _declared(fn))
    return given


def _declared(fn: Fn | Instr) -> Note:
    return Note(f"`{fn.name.name}` is declared here", fn.name.span)


def _const(ctx: Context, inner: Context, param: ConstParam, exp: Exp | None, call: Call) -> Affine:
    if exp is None:
        assert param.default is not None
        return Affine(plain_index(inner, param.default, "a default"))
    found = plain_index(ctx, exp, f"the constant `{param.name.name}`")
    if not found.syms() <= {symbol for symbol, _ in ctx.making.consts}:
        message = f"`{param.name.name}` is fixed at build, and {found} is not"
        raise error("E0316", exp.span, message, help="pass a number or a `const`")
    return Affine(found)


def _array(ctx: Context, param: Param, exp: Exp) -> View:
    name, dtype = param.name.name, lookup_type(param.type.dtype)
    found = view(ctx, exp)
    if found.dtype != dtype:
        raise error("E0311", exp.span, f"`{name}` is an array of {dtype}, and this is one of {found.dtype}")
    rank = len(param.type.shape)
    if found.rank != rank:
        raise error("E0311", exp.span, f"`{name}` has rank {rank}, and this has rank {found.rank}")
    if param.inout:
        check_writable(found, exp)
    return found


def check_writable(found: View, exp: Exp) -> None:
    """Refuses a view that cannot be written: of an input, or padded."""
    if found.paddings:
        raise error("E0313", exp.span, "a padded view cannot be written to")
    if found.buffer.role == "input":
        name = found.buffer.name
        note = Note(f"`{name}` is declared here", found.buffer.span)
        kind = "parameter" if found.buffer.rank else "scalar parameter"
        message = f"the {kind} `{name}` is only read"
        text = f"declare it `inout {name}`, or write to a `new` buffer"
        help = Proposal(text, Edit("inout …", found.buffer.span)) if name == found.buffer.span.text else text
        raise error("E0313", exp.span, message, note, help=help)


def _scalar(ctx: Context, param: Param, exp: Exp, once: bool) -> Draft:
    dtype = lookup_type(param.type.dtype)
    found = operand(ctx, exp)
    exact = affine_of(found.draft) if dtype.is_integer else None
    draft = Typed(settle(found, dtype), exact, height(found.draft))
    return read_once(ctx, param.name.name, draft, exp.span) if once else draft


def _check_aliases(arrays: list[_Argument]) -> None:
    """Parameters do not alias: a written argument shares no buffer with another."""
    for one in arrays:
        for other in arrays:
            if one is other or not one.param.inout or one.view.buffer is not other.view.buffer:
                continue
            if one.view.whole or other.view.whole or one.view.index == other.view.index:
                note = Note(f"it is also the argument for `{other.param.name.name}`", other.exp.span)
                message = f"`{one.view.buffer.name}` is written through `{one.param.name.name}` and passed twice"
                raise error("E0324", one.exp.span, message, note, help="parameters do not alias; copy it first")


def _solve_sizes(inner: Context, arrays: list[_Argument], call: Call) -> None:
    """Solves the shapes of the arguments for the sizes of the callee, then checks every shape."""
    waiting = [(one, exp, extent) for one in arrays for exp, extent in one.dims]
    for one in arrays:
        strides = _strides(one.view)
        if one.param.stride is not None and strides is not None:
            waiting += [(one, exp, stride) for exp, stride in zip(one.param.stride, strides, strict=False)]
    progress = True
    while progress:
        progress = False
        for _, exp, extent in waiting:
            unknown = _unknown_sizes(inner, exp)
            if len(unknown) == 1 and (found := _solve(inner, exp, unknown[0], extent)) is not None:
                inner.scope.declare(unknown[0], Affine(found), "the size")
                progress = True
    for one, exp, extent in waiting:
        unknown = _unknown_sizes(inner, exp)
        if unknown:
            message = f"the size `{unknown[0].name}` of `{call.name.name}` cannot be told from the arguments"
            raise error("E0312", call.span, message, Note("it is used here", unknown[0].span))
        wanted = plain_index(inner, exp, "a shape")
        if not inner.making.equal(wanted, extent):
            note = Note(f"`{call.name.name}` declares it here", exp.span)
            message = f"an extent of `{one.param.name.name}` is {extent}, where `{call.name.name}` needs {wanted}"
            apart = wanted.syms().isdisjoint(extent.syms())
            help = f"if they agree, add `where {extent} == {wanted}`" if apart and not (wanted - extent).is_constant else None
            raise error("E0311", one.exp.span, message, note, help=help)


def _strides(found: View) -> tuple[Expr, ...] | None:
    if not found.whole:
        return None
    if found.buffer.strides is not None:
        return found.buffer.strides
    strides: list[Expr] = []
    inside = ONE
    for extent in reversed(found.shape):
        strides.insert(0, inside)
        inside = inside * extent
    return tuple(strides)


def _unknown_sizes(inner: Context, exp: Exp) -> list[Ident]:
    return [name for name in names_in(exp) if inner.scope.find(name.name) is None]


def _solve(inner: Context, exp: Exp, size: Ident, extent: Expr) -> Expr | None:
    """The size with which `exp` is `extent`, where `exp` is ± the size plus what is known."""
    symbol = Sym("'size")
    trial = Scope(inner.scope)
    trial.declare(size, Affine(expr(symbol)), "the size")
    form = plain_index(Context(inner.making, trial, []), exp, "a shape")
    rest = form.substitute({symbol: 0})
    slope = form - rest
    if slope is expr(symbol):
        return extent - rest
    return rest - extent if slope is -expr(symbol) else None


def _check_promises(inner: Context, fn: Fn | Instr, call: Call) -> None:
    """Refuses a `where` that is known not to hold; an `assume` about a whole parameter becomes one of the caller."""
    if not isinstance(fn, Fn):
        return
    for exp in (part for clause in fn.where for part in conjuncts(clause)):
        fact = comparison(inner, exp)
        if known(fact, inner.making.facts) is False:
            note = Note(f"`{fn.name.name}` asks for it here", exp.span)
            numbers = fact.left.is_constant and fact.right.is_constant
            found = f": {fact.left} {fact.op} {fact.right} does not hold" if numbers else ""
            raise error("E0311", call.span, f"this call breaks `where {print_expression(exp)}`{found}", note)
    for clause in fn.assumes:
        entity = inner.scope.resolve(clause.name.name, clause.name.span)
        if isinstance(entity, View) and entity.whole:
            inner.making.assumes.append(assumption(inner, clause))
