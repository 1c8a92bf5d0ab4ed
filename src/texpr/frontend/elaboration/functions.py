"""Functions: parameters, sizes, promises, body, results."""

from __future__ import annotations

from collections.abc import Callable

from texpr.affine.expr import Expr, Sym, expr
from texpr.frontend.elaboration import views
from texpr.frontend.elaboration.body.directives import pragmas
from texpr.frontend.elaboration.body.inorder import in_order
from texpr.frontend.elaboration.body.one_step import unlike
from texpr.frontend.elaboration.body.returns import returned_names
from texpr.frontend.elaboration.body.rounding import everywhere, misfits
from texpr.frontend.elaboration.body.statements import body
from texpr.frontend.elaboration.body.together import together
from texpr.frontend.elaboration.context import Context, File, Making, Slot, constant
from texpr.frontend.elaboration.drafts import Affine
from texpr.frontend.elaboration.expressions import RESERVED, plain_index
from texpr.frontend.elaboration.facts import assumption, comparison, conjuncts
from texpr.frontend.elaboration.schedules import make_schedules
from texpr.frontend.elaboration.scope import Broken, Scope
from texpr.frontend.elaboration.tested import read_once_where_tested
from texpr.frontend.elaboration.typing import lookup_type
from texpr.frontend.tree import ConstParam, Exp, Fn, Ident, Number, Param, names_in
from texpr.ir import program
from texpr.ir.program import Function
from texpr.ir.value import Buffer
from texpr.support.diagnostic import Diagnostic, TexprError, error


def make(file: File, fn: Fn) -> tuple[Function | None, list[Diagnostic]]:
    """The function in program form, None if it has errors; and the errors."""
    making = Making(file)
    ctx = Context(making, Scope(), [])
    header = _Header(ctx, fn)
    header.read()
    sound = not making.diagnostics
    schedules = make_schedules(header.sizes_alone(), fn.name.name) if sound else ()
    views_back = _body(ctx, fn) if sound else ()
    if making.diagnostics:
        return None, making.diagnostics
    try:
        marked = everywhere(tuple(ctx.out))
        if wrong := [*misfits(marked), *unlike(making.steps, tuple(ctx.out))]:
            return None, wrong
        for inner in program.walk(tuple(block for stmt in marked for each in program.blocks(stmt) for block in each)):
            if isinstance(inner, program.New) and inner.buffer.strides is not None:
                reason = f"`{inner.buffer.name}` has strides, which memory of the whole function may have alone"
                raise error("E0301", inner.span, reason, help="declare it outside of all loops")
        joint = together(in_order(marked, making.namer.unique), making.namer.unique)
    except TexprError as raised:
        return None, list(raised.diagnostics)
    out = read_once_where_tested(joint, ctx.symbol)
    function = Function(
        fn.name.name, tuple(header.params), tuple(v.buffer for v in views_back), tuple(header.sizes), out,
        tuple(making.consts), tuple(making.wheres), tuple(dict.fromkeys(making.assumes)), header.directives, schedules, fn.span,
    )  # fmt: skip
    return function, []


def _body(ctx: Context, fn: Fn) -> tuple[views.View, ...]:
    """The statements; the names that are returned are results."""
    slots: dict[str, Slot] = {}
    try:
        aligns = [alignment(declared.align) for declared in fn.results]
    except TexprError as raised:
        ctx.making.keep(raised)
        return ()
    for at, name in enumerate(returned_names(fn.body)):
        if name is None or ctx.scope.find(name) is None:
            own = "result" if name is None else name
            align = aligns[at] if at < len(aligns) else None
            slots.setdefault(name or f"#{at}", Slot(ctx.making.namer.unique(own), "result", align))
    ctx.slots = slots
    try:
        return body(ctx, fn.body, fn.results, fn.name.span)
    except TexprError as raised:
        ctx.making.keep(raised)
        return ()


class _Header:
    """Elaborates the header of a function into the scope of `ctx`."""

    def __init__(self, ctx: Context, fn: Fn):
        self.ctx, self.fn = ctx, fn
        self.params: list[Buffer] = []
        self.sizes: list[Sym] = []
        self.directives = ()

    def read(self) -> None:
        """Constants first: they may stand in any shape. Then sizes, in the order in which shapes name them."""
        for param in self.fn.params:
            if isinstance(param, ConstParam):
                self._guarded(lambda param=param: self._const(param), param.name)
        for param in self.fn.params:
            if isinstance(param, Param):
                for e in (*param.type.shape, *(param.stride or ())):
                    for name in names_in(e):
                        self._size(name)
        for param in self.fn.params:
            if isinstance(param, Param):
                self._guarded(lambda param=param: self._param(param), param.name)
        for clause in (part for exp in self.fn.where for part in conjuncts(exp)):
            self._guarded(lambda clause=clause: self.ctx.making.learn(comparison(self.ctx, clause)))
        for clause in self.fn.assumes:
            self._guarded(lambda clause=clause: self.ctx.making.assumes.append(assumption(self.ctx, clause)))
        self._guarded(self._pragmas)

    def sizes_alone(self) -> Context:
        """A context with the sizes and consts, without parameters."""
        scope = Scope()
        scope.names = {name: found for name, found in self.ctx.scope.names.items() if isinstance(found.entity, Affine)}
        return Context(self.ctx.making, scope, [])

    def _guarded(self, read: Callable[[], None], name: Ident | None = None) -> None:
        try:
            read()
        except TexprError as raised:
            self.ctx.making.keep(raised)
            if name is not None and self.ctx.scope.find(name.name) is None:
                self.ctx.scope.declare(name, Broken(), "the parameter")

    def _pragmas(self) -> None:
        self.directives = pragmas(self.fn.pragmas)

    def _const(self, param: ConstParam) -> None:
        dtype = lookup_type(param.dtype)
        if not dtype.is_integer:
            raise error(
                "E0316", param.dtype.span, f"a `const` is an integer, not {dtype}", help="write the number in the program"
            )
        name = param.name.name
        given = self.ctx.file.consts.get(name)
        if given is not None:
            found = constant(given)
        elif param.default is not None:
            found = Affine(plain_index(self.ctx, param.default, "a default"))
        else:
            symbol = Sym(self.ctx.making.namer.unique(name))
            self.ctx.making.consts.append((symbol, None))
            found = Affine(expr(symbol))
        self.ctx.scope.declare(param.name, found, "the constant")

    def _size(self, name: Ident) -> None:
        if self.ctx.scope.find(name.name) is None:
            symbol = Sym(self.ctx.making.namer.unique(name.name))
            self.sizes.append(symbol)
            self.ctx.scope.declare(name, Affine(expr(symbol)), "the size")

    def _param(self, param: Param) -> None:
        name = param.name
        self.ctx.scope.check_free(name)
        dtype = lookup_type(param.type.dtype)
        shape = self._exprs(param.type.shape, "a shape")
        strides = None if param.stride is None else self._exprs(param.stride, "a stride")
        if strides is not None and len(strides) != len(shape):
            message = f"`{name.name}` has rank {len(shape)} and {len(strides)} strides"
            raise error("E0301", param.span, message)
        if len(shape) > views.MAX_RANK:
            raise error("E0301", param.span, f"`{name.name}` has more than {views.MAX_RANK} dimensions")
        align = alignment(param.align)
        role = "inout" if param.inout else "input"
        own = self.ctx.making.namer.unique(name.name)
        buffer = Buffer(own, dtype, shape, role, strides, align, name.span)
        self.params.append(buffer)
        self.ctx.scope.declare(name, views.whole(buffer), "the parameter")

    def _exprs(self, exps: tuple[Exp, ...], what: str) -> tuple[Expr, ...]:
        return tuple(plain_index(self.ctx, e, what) for e in exps)


def alignment(written: Number | None) -> int | None:
    """The bytes of `align(16)`."""
    if written is None:
        return None
    align = int(written.value)
    if align < 1 or align & (align - 1):
        raise error("E0306", written.span, f"an alignment is a power of two, not {align}")
    return align


def check_name(name: Ident) -> None:
    """Refuses a function with the name of a builtin."""
    if name.name in RESERVED:
        raise error("E0210", name.span, f"`{name.name}` is built in and cannot be defined", help="choose another name")
