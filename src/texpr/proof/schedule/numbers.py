"""Data-dependent subscripts that read parameters: the row `index[i]` is a function of i, the same wherever it is read, of which
is known what is promised of the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from texpr.affine.expr import Expr, Number, Rules, Sym, expr, number_of
from texpr.ir import program as ir
from texpr.ir.program.rewrite import Rewriter, replace_loads, substitute_block, substitute_load, with_blocks
from texpr.ir.value import Buffer, Cast, Load, Value
from texpr.ir.value.types import widens
from texpr.presburger.formula import Formula, between
from texpr.proof.read.tables import rules_of
from texpr.support.record import Record, replace


def by_number(function: ir.Function) -> ir.Function:
    """`function` with subscripts, and `let`s, that read input parameters replaced by a named function: `index⟨i⟩`."""
    naming = _Naming({b: rules_of(b, function.assumes) for b in function.params if b.role == "input" and b.dtype.is_integer})
    rewriter = Rewriter(value=lambda value: replace_loads(value, naming.named), target=naming.named)
    return replace(function, body=naming.without_lets(rewriter.block(function.body)))


def within(index: Sequence[Expr], shape: Sequence[Expr], exactly: bool = False) -> Iterator[Formula]:
    """That there is such an element, and each element of a table that says where. Of a row that a table names alone it is taken
    as said, unless `exactly`, that there is one."""
    for e, size in zip(index, shape, strict=True):
        said = [sym for sym in e.syms() if isinstance(sym, Number) and sym.rules is not None]
        if exactly or e.as_sym not in said:
            yield between(0, e, size)
        for sym in said:
            yield from () if sym.rules is None else within(sym.args, sym.rules.shape, exactly)


class _Naming(Record):
    """Tables, with what is promised of each."""

    rules: Mapping[Buffer, Rules]

    def number(self, source: Load) -> Number:
        """An element of a table."""
        return number_of(f"{source.buffer.name}[]", source.index, self.rules.get(source.buffer))

    def named(self, load: Load) -> Load:
        """An element with numbers in its subscripts."""
        known, left = dict[Sym, Expr](), list[tuple[Sym, Value]]()
        for sym, meaning in load.data:
            source = self.source(meaning)
            if source is None:
                left.append((sym, meaning))
            else:
                known[sym] = expr(self.number(substitute_load(source, known)))
        return substitute_load(replace(load, data=tuple(left)), known) if known else load

    def source(self, meaning: Value) -> Load | None:
        """The load in a subscript, if it is of a parameter, at an index that does not depend on other data."""
        match meaning:
            case Cast(inner) if inner.dtype.is_integer and widens(inner.dtype, meaning.dtype):
                return self.source(inner)
            case Load(buffer) if buffer.role == "input":
                named = self.named(meaning)
                return None if named.data else named
            case _:
                return None

    def without_lets(self, body: tuple[ir.Stmt, ...]) -> tuple[ir.Stmt, ...]:
        """Statements in which an integer that a `let` reads so is that function, too, and not one of the `let`."""
        found, rest = list[ir.Stmt](), list(body)
        for at in range(len(rest)):
            stmt = rest[at]
            source = self.source(stmt.value) if isinstance(stmt, ir.Let) and stmt.value.dtype.is_integer else None
            if isinstance(stmt, ir.Let) and source is not None:
                rest[at + 1 :] = substitute_block(tuple(rest[at + 1 :]), {stmt.sym: self.number(source)})
            found.append(with_blocks(stmt, tuple(map(self.without_lets, ir.blocks(stmt)))))
        return tuple(found)
