"""Values that are evaluated once, where they are named: `let`s for values, for data in extents, and for data in views."""

from __future__ import annotations

from texpr.affine.expr import Expr, Sym, expr
from texpr.frontend.elaboration.context import Context
from texpr.frontend.elaboration.drafts import Draft, Typed
from texpr.frontend.elaboration.expressions import Data, index
from texpr.frontend.elaboration.views import View
from texpr.frontend.tree import Exp
from texpr.ir.program import Let
from texpr.ir.value import Cast, Index, Literal, Load, Ref, Value
from texpr.support.record import replace
from texpr.support.span import Span


def read_once(ctx: Context, name: str, draft: Draft, span: Span) -> Draft:
    """The draft, evaluated here under a symbol called like `name`, unless it contains no load."""
    if not isinstance(draft, Typed) or isinstance(draft.value, Index | Literal | Ref):
        return draft
    ref = let(ctx, name, draft.value, span)
    exact = draft.affine if draft.affine is not None else expr(ref.sym)
    return Typed(ref, exact if draft.dtype.is_integer else None)


def let(ctx: Context, name: str, value: Value, span: Span) -> Ref:
    """`let name = value` here; the value as a reference to it."""
    symbol = ctx.symbol(name)
    ctx.out.append(Let(symbol, value, span))
    return Ref(symbol, value.dtype)


def index_once(ctx: Context, e: Exp) -> Expr:
    """`e` as an index expression over visible symbols; its loads are evaluated here."""
    data = Data()
    found = index(ctx, e, data)
    return found.substitute(_lets(ctx, data.entries, e.span))


def view_once(ctx: Context, view: View, span: Span) -> View:
    """The view, with the loads of its index map and paddings evaluated here."""
    if view.data:
        lets = _lets(ctx, view.data, span)
        paddings = tuple(
            replace(p, bounds=tuple(replace(b, expr=b.expr.substitute(lets)) for b in p.bounds)) for p in view.paddings
        )
        place, shape = (tuple(e.substitute(lets) for e in part) for part in (view.index, view.shape))
        view = View(view.buffer, shape, place, (), paddings)
    if view.paddings:
        fills = (read_once(ctx, "fill", Typed(p.fill), span) for p in view.paddings)
        kept = (replace(p, fill=f.value) for p, f in zip(view.paddings, fills, strict=True) if isinstance(f, Typed))
        view = replace(view, paddings=tuple(kept))
    return view


def _lets(ctx: Context, data: tuple[tuple[Sym, Value], ...], span: Span) -> dict[Sym, Sym]:
    """A `let` for each load; and the symbols that are replaced by them."""
    found: dict[Sym, Sym] = {}
    for symbol, meaning in data:
        found[symbol] = meaning.sym if isinstance(meaning, Ref) else let(ctx, _base(meaning, symbol), meaning, span).sym
    return found


def _base(meaning: Value, symbol: Sym) -> str:
    while isinstance(meaning, Cast):
        meaning = meaning.arg
    return f"{meaning.buffer.name.split(chr(39), 1)[0]}_at" if isinstance(meaning, Load) else symbol.base
