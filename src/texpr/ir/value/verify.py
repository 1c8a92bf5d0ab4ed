"""The rules of well-formed scalar values, for programs and kernels alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, operands
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BOOL, DType
from texpr.support.record import Record, field


class Scope(Record):
    """The names in scope at a program point: buffers by name, index symbols, and variables with their types."""

    buffers: Mapping[str, Buffer] = field(default_factory=dict[str, Buffer])
    indices: frozenset[Sym] = frozenset()
    variables: Mapping[Sym, DType] = field(default_factory=dict[Sym, DType])

    def with_buffer(self, buffer: Buffer) -> Scope:
        """This scope with one more buffer."""
        return Scope({**self.buffers, buffer.name: buffer}, self.indices, self.variables)

    def with_indices(self, *syms: Sym) -> Scope:
        """This scope with more index symbols."""
        return Scope(self.buffers, self.indices.union(syms), self.variables) if syms else self

    def with_variable(self, sym: Sym, dtype: DType) -> Scope:
        """This scope with one more variable."""
        return Scope(self.buffers, self.indices, {**self.variables, sym: dtype})

    def unknown(self, exprs: Iterable[Expr]) -> list[Sym]:
        """The symbols in index expressions that are neither index symbols nor integer variables in scope."""
        syms = {s for e in exprs for s in e.syms()} - self.indices
        return sorted((s for s in syms if not self._is_integer(s)), key=str)

    def _is_integer(self, sym: Sym) -> bool:
        dtype = self.variables.get(sym)
        return dtype is not None and dtype.is_integer


ValueRule: TypeAlias = Callable[[Value, Scope], Iterator[str]]
"""Yields the complaints about one node of a value, without its operands."""


def literal_fits_its_type(value: Value, scope: Scope) -> Iterator[str]:
    """Literals of an integer type are integers in its range; a bool is 0 or 1."""
    if not isinstance(value, Literal) or value.dtype.is_float:
        return
    lo, hi = value.dtype.limits
    if not isinstance(value.value, int) or not lo <= value.value <= hi:
        yield f"{value.value} is no {value.dtype}"


def operation_is_known(value: Value, scope: Scope) -> Iterator[str]:
    """The name is one of `OPS`, and it has that many operands."""
    if isinstance(value, Op):
        info = OPS.get(value.name)
        if info is None:
            yield f"there is no operation {value.name}"
        elif len(value.args) != info.arity:
            yield f"{value.name} takes {info.arity} operands, not {len(value.args)}"


def operands_agree(value: Value, scope: Scope) -> Iterator[str]:
    """The operands have one type; the first of `select` is a bool."""
    if isinstance(value, Op) and _is_complete(value):
        args = [arg.dtype for arg in value.args]
        if value.name == "select":
            condition, *args = args
            if condition != BOOL:
                yield f"select decides by {condition}, not bool"
        if len(set(args)) > 1:
            yield f"{value.name} has operands of types {', '.join(map(str, args))}"


def operation_takes_its_operands(value: Value, scope: Scope) -> Iterator[str]:
    """The operation is defined for the type of its operands."""
    if isinstance(value, Op) and _is_complete(value):
        wanted, dtype = OPS[value.name].takes, value.args[-1].dtype
        number = dtype.is_float or dtype.is_integer
        fits = {"any": True, "number": number, "integer": dtype.is_integer, "float": dtype.is_float, "bool": dtype == BOOL}
        if not fits[wanted]:
            yield f"{value.name} is not for {dtype}"


def operation_gives_its_type(value: Value, scope: Scope) -> Iterator[str]:
    """The type of a comparison is bool, that of any other operation is that of its operands."""
    if isinstance(value, Op) and _is_complete(value):
        natural = OPS[value.name].result([arg.dtype for arg in value.args])
        if value.dtype != natural:
            yield f"{value.name} gives {natural}, not {value.dtype}"


def _is_complete(value: Op) -> bool:
    return value.name in OPS and len(value.args) == OPS[value.name].arity


def variable_is_declared(value: Value, scope: Scope) -> Iterator[str]:
    """A `Ref` names a variable in scope."""
    if isinstance(value, Ref) and value.sym not in scope.variables:
        yield f"variable {value.sym} is not declared here"


def variable_has_its_type(value: Value, scope: Scope) -> Iterator[str]:
    """A `Ref` has the type of the variable."""
    if isinstance(value, Ref) and scope.variables.get(value.sym, value.dtype) != value.dtype:
        yield f"variable {value.sym} is {scope.variables[value.sym]}, not {value.dtype}"


def buffer_is_in_scope(value: Value, scope: Scope) -> Iterator[str]:
    """The buffer is the object in scope, not another one of the same name."""
    if isinstance(value, Load) and scope.buffers.get(value.buffer.name) is not value.buffer:
        yield f"buffer {value.buffer.name} is not in scope"


def element_has_its_rank(value: Value, scope: Scope) -> Iterator[str]:
    """There is an index for each dimension of the buffer."""
    if isinstance(value, Load) and len(value.index) != value.buffer.rank:
        yield f"{value.buffer.name} has rank {value.buffer.rank} and {len(value.index)} indices"


def symbols_are_in_scope(value: Value, scope: Scope) -> Iterator[str]:
    """Index expressions use indices, sizes and integer variables in scope; those of a load also its data-dependent symbols."""
    match value:
        case Load():
            inside = scope.with_indices(*(sym for sym, _ in value.data))
            unknown = inside.unknown(value.index)
        case Index():
            unknown = scope.unknown((value.expr,))
        case _:
            return
    if unknown:
        yield f"no {', '.join(map(str, unknown))} in scope"


def index_is_a_number(value: Value, scope: Scope) -> Iterator[str]:
    """An index used as a value has a numeric type."""
    if isinstance(value, Index) and value.dtype == BOOL:
        yield f"index {value.expr} is no bool"


def data_are_new_integers(value: Value, scope: Scope) -> Iterator[str]:
    """A data-dependent symbol is bound to an integer, and shadows no index or variable."""
    if isinstance(value, Load):
        seen: set[Sym] = set()
        for sym, meaning in value.data:
            if not meaning.dtype.is_integer:
                yield f"{sym} stands for a {meaning.dtype}, not an integer"
            if sym in scope.indices or sym in scope.variables or sym in seen:
                yield f"{sym} has a meaning already"
            seen.add(sym)


RULES_OF: Mapping[type[Value], tuple[ValueRule, ...]] = {
    Literal: (literal_fits_its_type,),
    Op: (operation_is_known, operands_agree, operation_takes_its_operands, operation_gives_its_type),
    Ref: (variable_is_declared, variable_has_its_type),
    Load: (buffer_is_in_scope, element_has_its_rank, symbols_are_in_scope, data_are_new_integers),
    Index: (symbols_are_in_scope, index_is_a_number),
    Cast: (),
}
"""The rules of each kind of node."""

VALUE_RULES = tuple(dict.fromkeys(rule for rules in RULES_OF.values() for rule in rules))


def complaints(value: Value, scope: Scope) -> Iterator[str]:
    """The complaints about `value` and its operands, each with the name of its rule, innermost first."""
    if isinstance(value, Load):
        inside = scope
        for sym, meaning in value.data:
            yield from complaints(meaning, inside)
            inside = inside.with_indices(sym)
    else:
        for operand in operands(value):
            yield from complaints(operand, scope)
    for rule in RULES_OF[type(value)]:
        for complaint in rule(value, scope):
            yield f"{rule.__name__}: {complaint}"
