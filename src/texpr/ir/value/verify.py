"""What makes a scalar value well formed, rule by rule. Both forms are checked with these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from texpr.affine.expr import Expr, Sym
from texpr.ir.value import Buffer, Cast, Index, Literal, Load, Op, Ref, Value, operands
from texpr.ir.value.operators import OPS
from texpr.ir.value.types import BOOL, DType
from texpr.support.record import Record, field


class Scope(Record):
    """What may be named at a place: buffers by name, index symbols, and variables with their types."""

    buffers: Mapping[str, Buffer] = field(default_factory=dict[str, Buffer])
    indices: frozenset[Sym] = frozenset()
    variables: Mapping[Sym, DType] = field(default_factory=dict[Sym, DType])

    def with_buffer(self, buffer: Buffer) -> Scope:
        """This scope and a buffer."""
        return Scope({**self.buffers, buffer.name: buffer}, self.indices, self.variables)

    def with_indices(self, *syms: Sym) -> Scope:
        """This scope and some index symbols."""
        return Scope(self.buffers, self.indices.union(syms), self.variables) if syms else self

    def with_variable(self, sym: Sym, dtype: DType) -> Scope:
        """This scope and a variable."""
        return Scope(self.buffers, self.indices, {**self.variables, sym: dtype})

    def unknown(self, exprs: Iterable[Expr]) -> list[Sym]:
        """Symbols of index expressions that are neither index symbols nor integer variables here."""
        syms = {s for e in exprs for s in e.syms()} - self.indices
        return sorted((s for s in syms if not self._is_integer(s)), key=str)

    def _is_integer(self, sym: Sym) -> bool:
        dtype = self.variables.get(sym)
        return dtype is not None and dtype.is_integer


ValueRule: TypeAlias = Callable[[Value, Scope], Iterator[str]]
"""Yields what is wrong with one node of a value; what lies below it is not its business."""


def literal_fits_its_type(value: Value, scope: Scope) -> Iterator[str]:
    """Integers are within range, and whole; a bool is 0 or 1."""
    if not isinstance(value, Literal) or value.dtype.is_float:
        return
    lo, hi = value.dtype.limits
    if not isinstance(value.value, int) or not lo <= value.value <= hi:
        yield f"{value.value} is no {value.dtype}"


def operation_is_known(value: Value, scope: Scope) -> Iterator[str]:
    """The name is one of `OPS`, with as many operands as it takes."""
    if isinstance(value, Op):
        info = OPS.get(value.name)
        if info is None:
            yield f"there is no operation {value.name}"
        elif len(value.args) != info.arity:
            yield f"{value.name} takes {info.arity} operands, not {len(value.args)}"


def operands_agree(value: Value, scope: Scope) -> Iterator[str]:
    """Operands have one type; `select`'s first is a bool."""
    if isinstance(value, Op) and _is_complete(value):
        args = [arg.dtype for arg in value.args]
        if value.name == "select":
            condition, *args = args
            if condition != BOOL:
                yield f"select decides by {condition}, not bool"
        if len(set(args)) > 1:
            yield f"{value.name} has operands of types {', '.join(map(str, args))}"


def operation_takes_its_operands(value: Value, scope: Scope) -> Iterator[str]:
    """Operands are of a kind that the operation is for."""
    if isinstance(value, Op) and _is_complete(value):
        wanted, dtype = OPS[value.name].takes, value.args[-1].dtype
        number = dtype.is_float or dtype.is_integer
        fits = {"any": True, "number": number, "integer": dtype.is_integer, "float": dtype.is_float, "bool": dtype == BOOL}
        if not fits[wanted]:
            yield f"{value.name} is not for {dtype}"


def operation_gives_its_type(value: Value, scope: Scope) -> Iterator[str]:
    """A comparison gives bool, everything else the type of its operands."""
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
    """The very buffer: another one of the same name is not it."""
    if isinstance(value, Load) and scope.buffers.get(value.buffer.name) is not value.buffer:
        yield f"buffer {value.buffer.name} is not in scope"


def element_has_its_rank(value: Value, scope: Scope) -> Iterator[str]:
    """As many indices as the buffer has dimensions."""
    if isinstance(value, Load) and len(value.index) != value.buffer.rank:
        yield f"{value.buffer.name} has rank {value.buffer.rank} and {len(value.index)} indices"


def symbols_are_in_scope(value: Value, scope: Scope) -> Iterator[str]:
    """Index expressions name indices, sizes and integer variables that are there; an element's data count for its index."""
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
    """An index used as a value has a type of numbers."""
    if isinstance(value, Index) and value.dtype == BOOL:
        yield f"index {value.expr} is no bool"


def data_are_new_integers(value: Value, scope: Scope) -> Iterator[str]:
    """What a data-dependent symbol stands for is an integer, and the symbol hides no index, and no variable."""
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
    """Everything wrong with `value`, each with its rule, innermost first."""
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
