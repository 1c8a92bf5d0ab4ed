"""The verifier of programs. A violation is a bug of the frontend or of a pass, and is reported with the name of the rule.

The rules are those of the form; legality (bounds, independence, reads before writes) is checked by `texpr.checks`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

from texpr.affine.expr import Sym
from texpr.ir import program as ir
from texpr.ir.value import Buffer
from texpr.ir.value.types import BOOL, DType
from texpr.ir.value.verify import Scope, complaints
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import Record, replace

UPDATES = {"add": "number", "sub": "number", "mul": "number", "max": "number", "min": "number", "and": "bits", "or": "bits"}
"""The built-in updates, and the types that they take."""

_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">="})


class Place(Record):
    """The context of a statement: the scope, whether it is in a `fully par`, and the sums that are to be rounded as IEEE 754
    says."""

    scope: Scope
    fully: bool = False
    ieee: frozenset[Buffer] = frozenset()

    def inside(self, stmt: ir.Stmt) -> Place:
        """The context of the statements directly in `stmt`."""
        match stmt:
            case ir.Par() | ir.Seq():
                fully = self.fully or (isinstance(stmt, ir.Par) and stmt.fully)
                ieee = self.ieee | {*stmt.reduce} if stmt.ieee else self.ieee
                return Place(self.scope.with_indices(stmt.sym), fully, ieee)
            case _:
                return self

    def after(self, stmt: ir.Stmt) -> Place:
        """The context after `stmt`, in the same block."""
        match stmt:
            case ir.New():
                return replace(self, scope=self.scope.with_buffer(stmt.buffer))
            case ir.Let():
                return replace(self, scope=self.scope.with_variable(stmt.sym, stmt.value.dtype))
            case _:
                return self


FunctionRule: TypeAlias = Callable[[ir.Function], Iterator[str]]
"""Yields the complaints about a function's head."""

StmtRule: TypeAlias = Callable[[ir.Stmt, Place], Iterator[str]]
"""Yields the complaints about one statement, without its nested ones."""


def verify(program: ir.Program) -> None:
    """Checks the rules of programs. Raises CompilerBug for a violation."""
    for name, count in Counter(function.name for function in program.functions).items():
        if count > 1:
            raise CompilerBug(f"functions_differ: {count} functions are called {name}")
    for function in program.functions:
        verify_function(function)


def verify_function(function: ir.Function) -> None:
    """Checks the rules of functions. Raises CompilerBug for a violation."""
    for rule in FUNCTION_RULES:
        for complaint in rule(function):
            raise CompilerBug(f"fn {function.name}: {rule.__name__}: {complaint}")
    start = Scope({b.name: b for b in function.params}, frozenset(_constants(function)))
    for stmt, complaint in body_complaints(function.body, start):
        raise CompilerBug(f"fn {function.name}: {complaint}, at {stmt.span}")


def _constants(function: ir.Function) -> tuple[Sym, ...]:
    return (*function.sizes, *(sym for sym, _ in function.consts))


def names_differ(function: ir.Function) -> Iterator[str]:
    """Sizes, consts, loop indices and `let`s have distinct names, and so have buffers."""
    named = [s.sym for s in ir.walk(function.body) if isinstance(s, ir.Par | ir.Seq | ir.Let)]
    for sym, count in Counter([*_constants(function), *named]).items():
        if count > 1:
            yield f"{count} symbols are called {sym}"
    for name, count in Counter(buffer.name for buffer in ir.buffers(function)).items():
        if count > 1:
            yield f"{count} buffers are called {name}"


def parameters_are_given(function: ir.Function) -> Iterator[str]:
    """The roles of parameters are input and inout."""
    yield from (f"parameter {b.name} is {b.role}" for b in function.params if b.role not in ("input", "inout"))


def results_are_made(function: ir.Function) -> Iterator[str]:
    """A result is an inout parameter, or declared by a `new` in the function's outermost block; no other `new` declares one."""
    made = [stmt.buffer for stmt in function.body if isinstance(stmt, ir.New)]
    for buffer in function.results:
        if buffer.role == "result":
            if buffer not in made:
                yield f"result {buffer.name} is not made in the function's own block"
        elif buffer.role != "inout" or buffer not in function.params:
            yield f"result {buffer.name} is {buffer.role}"
    for stmt in ir.walk(function.body):
        if isinstance(stmt, ir.New) and stmt.buffer.role == "result" and stmt.buffer not in function.results:
            yield f"{stmt.buffer.name} is called a result, but is not returned"


def heads_are_in_sizes(function: ir.Function) -> Iterator[str]:
    """Shapes and strides of parameters and results, and promises, use sizes and consts only."""
    known = set(_constants(function))
    exprs = [e for b in (*function.params, *function.results) for e in (*b.shape, *(b.strides or ()))]
    exprs += [e for fact in function.where for e in (fact.left, fact.right)]
    exprs += [e for a in function.assumes if isinstance(a, ir.InRange) for e in (a.lo, a.hi)]
    unknown = {s for e in exprs for s in e.syms()} - known
    if unknown:
        yield f"{_listed(unknown)} is no size"


def comparisons_are_known(function: ir.Function) -> Iterator[str]:
    """The comparisons of `where` are == != < <= > >=."""
    yield from (f"{fact.op} is no comparison" for fact in function.where if fact.op not in _COMPARISONS)


def assumptions_are_of_parameters(function: ir.Function) -> Iterator[str]:
    """`assume` is about integer parameters."""
    for assume in function.assumes:
        if assume.buffer not in function.params:
            yield f"{assume.buffer.name} is no parameter"
        elif not assume.buffer.dtype.is_integer:
            yield f"{assume.buffer.name} holds {assume.buffer.dtype}"
        elif isinstance(assume, ir.Monotone) and assume.buffer.rank != 1:
            yield f"{assume.buffer.name} has rank {assume.buffer.rank}, and an order is of rank 1"


def strides_have_their_rank(function: ir.Function) -> Iterator[str]:
    """There is a stride for each dimension."""
    for buffer in ir.buffers(function):
        if buffer.strides is not None and len(buffer.strides) != buffer.rank:
            yield f"{buffer.name} has {buffer.rank} dimensions and {len(buffer.strides)} strides"


FUNCTION_RULES: tuple[FunctionRule, ...] = (
    names_differ,
    parameters_are_given,
    results_are_made,
    heads_are_in_sizes,
    comparisons_are_known,
    assumptions_are_of_parameters,
    strides_have_their_rank,
)


def values_are_well_formed(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """The values keep the rules of `ir.value.verify`."""
    for value in ir.values(stmt):
        yield from complaints(value, at.scope)


def targets_are_well_formed(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """The targets of binds and the operands of instructions keep the rules of values."""
    match stmt:
        case ir.Bind(targets=targets) | ir.Instruction(operands=targets):
            for target in targets:
                yield from complaints(target, at.scope)
        case _:
            return


def extents_are_in_scope(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """Extents of loops and shapes of `new`s use sizes, outer indices and earlier integer `let`s."""
    match stmt:
        case ir.Par() | ir.Seq():
            unknown = at.scope.unknown((stmt.extent,))
        case ir.New(buffer):
            unknown = at.scope.unknown((*buffer.shape, *(buffer.strides or ())))
        case _:
            return
    if unknown:
        yield f"no {_listed(unknown)} in scope"


def reduced_buffers_are_in_scope(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """Reduced buffers, and those with running values, are declared outside the loop."""
    if isinstance(stmt, ir.Par | ir.Seq):
        yield from _not_there((*stmt.reduce, *(stmt.scan if isinstance(stmt, ir.Seq) else ())), at)


def fully_par_is_constant_and_alone(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """The extent of a `fully par` is constant, as all iterations execute concurrently, and none is in another."""
    if isinstance(stmt, ir.Par) and stmt.fully:
        if not stmt.extent.is_constant:
            yield f"extent {stmt.extent} of a fully par"
        if at.fully:
            yield f"a fully par over {stmt.sym} inside another"


def made_memory_is_local(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """`new` declares locals and results."""
    if isinstance(stmt, ir.New) and stmt.buffer.role not in ("local", "result"):
        yield f"{stmt.buffer.name} is {stmt.buffer.role}"


def inputs_are_not_bound(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """Inputs are never written."""
    if isinstance(stmt, ir.Bind):
        yield from (f"input {t.buffer.name} is bound" for t in stmt.targets if t.buffer.role == "input")


def bound_values_have_the_types(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """There is a value for each target, of its type."""
    if isinstance(stmt, ir.Bind):
        if not stmt.targets or len(stmt.targets) != len(stmt.values):
            yield f"{len(stmt.targets)} targets and {len(stmt.values)} values"
        for target, value in zip(stmt.targets, stmt.values, strict=False):
            if target.dtype != value.dtype:
                yield f"{target.buffer.name} holds {target.dtype}, the value is {value.dtype}"


def updates_are_known(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """An update is one of `UPDATES` for the type, or a combiner for it; of several targets, a maximum or minimum."""
    if not isinstance(stmt, ir.Bind) or stmt.update is None or not stmt.targets:
        return
    update, dtype = stmt.update, stmt.targets[0].dtype
    if isinstance(update, ir.Combiner):
        if len(stmt.targets) > 1 or update.dtype != dtype:
            yield f"{update.name} joins one {update.dtype}, not {', '.join(str(t.dtype) for t in stmt.targets)}"
        yield from (f"in {update.name}: {wrong}" for wrong in _combiner_complaints(update))
    elif update not in UPDATES:
        yield f"no update is called {update}"
    elif not _takes(UPDATES[update], dtype):
        yield f"no update {update} of {dtype}"
    elif len(stmt.targets) > 1 and update not in ("max", "min"):
        yield f"{update} of several targets"


def _takes(wanted: str, dtype: DType) -> bool:
    return dtype.is_integer or (dtype.is_float if wanted == "number" else dtype == BOOL)


def _combiner_complaints(combiner: ir.Combiner) -> Iterator[str]:
    """A combiner's value uses its two operands only, its identity no variable; both have its type."""
    inside = Scope().with_variable(combiner.a, combiner.dtype).with_variable(combiner.b, combiner.dtype)
    for value, scope in ((combiner.value, inside), (combiner.identity, Scope())):
        yield from complaints(value, scope)
        if value.dtype != combiner.dtype:
            yield f"a value of type {value.dtype}, not {combiner.dtype}"


def condition_is_bool(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """The condition of an `if` is a bool."""
    if isinstance(stmt, ir.If) and stmt.condition.dtype != BOOL:
        yield f"the condition is {stmt.condition.dtype}"


def marked_sums_are_rounded_so(stmt: ir.Stmt, at: Place) -> Iterator[str]:
    """No instruction adds in its own arithmetic to a sum of a loop that is marked `#ieee`."""
    if isinstance(stmt, ir.Instruction):
        yield from (f"{stmt.name} adds to {buffer.name}, of `#ieee`" for buffer in ir.summed_by(stmt) if buffer in at.ieee)


STMT_RULES: tuple[StmtRule, ...] = (
    values_are_well_formed,
    targets_are_well_formed,
    extents_are_in_scope,
    reduced_buffers_are_in_scope,
    fully_par_is_constant_and_alone,
    made_memory_is_local,
    inputs_are_not_bound,
    bound_values_have_the_types,
    updates_are_known,
    condition_is_bool,
    marked_sums_are_rounded_so,
)


def body_complaints(body: tuple[ir.Stmt, ...], scope: Scope) -> Iterator[tuple[ir.Stmt, str]]:
    """The complaints about statements in `scope`, each with the name of its rule."""
    yield from _complaints(body, Place(scope))


def _complaints(body: tuple[ir.Stmt, ...], at: Place) -> Iterator[tuple[ir.Stmt, str]]:
    for stmt in body:
        for rule in STMT_RULES:
            for complaint in rule(stmt, at):
                yield stmt, f"{rule.__name__}: {complaint}"
        inside = at.inside(stmt)
        for block in ir.blocks(stmt):
            yield from _complaints(block, inside)
        at = at.after(stmt)


def _not_there(buffers: Iterable[Buffer], at: Place) -> Iterator[str]:
    for buffer in buffers:
        if at.scope.buffers.get(buffer.name) is not buffer:
            yield f"buffer {buffer.name} is not in scope"


def _listed(syms: Iterable[Sym]) -> str:
    return ", ".join(sorted(map(str, syms)))
