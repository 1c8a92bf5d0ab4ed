"""The public functions of a plan for a CPU: checks, the host's steps, and the validation of assumptions about data.

Inner functions have parameters of the types that kernels take: sizes, once checked, are `int`; small floating-point numbers are
structs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from texpr.affine.expr import Sym, expr
from texpr.affine.typed import typed
from texpr.backends.c.arguments import Argument, arguments, function_name, is_scalar, kernel_arguments
from texpr.backends.c.body import INDENT, signature
from texpr.backends.c.checks import argument_checks, bytes_text, condition_text, count_text, size_checks
from texpr.backends.c.index import index_text, integer_text
from texpr.backends.c.names import Taken
from texpr.backends.c.scope import Scope
from texpr.backends.c.status import (
    ASSUMPTION_FAILS,
    BAD_SIZE,
    MISALIGNED,
    NO_MEMORY,
    NO_WORKSPACE,
    NULL_POINTER,
    OK,
    UNSUPPORTED_DEVICE,
)
from texpr.backends.c.text import Binds, Text
from texpr.backends.c.types import C_NAMES, PUBLIC_NAMES
from texpr.backends.c.value import element_text
from texpr.ir.kernel import HostIf, HostLoop, HostStep, Kernel, Launch, Plan
from texpr.ir.kernel.knowledge import every_element, host_knowledge, host_loop
from texpr.ir.program import Assume, Injective, InRange, Monotone
from texpr.ir.value import Buffer, Load
from texpr.ir.value.types import TF32
from texpr.support.limits import Width
from texpr.support.record import Record, replace

ALIGNMENT = 256
"""The alignment of a workspace and of each buffer in it, in bytes."""


def entry_lines(plan: Plan) -> list[str]:
    """The public functions of `plan`, and their inner functions."""
    return _Entry(plan, function_name(plan), arguments(plan)).lines()


class _Entry(Record):
    plan: Plan
    name: str
    given: tuple[Argument, ...]

    def lines(self) -> list[str]:
        whole = [a.declaration for a in self.given]
        sizes = [a.declaration for a in self.given if isinstance(a.key, Sym)]
        public = ["void *stream", "void *workspace", *whole]
        status = "static texpr_status"
        return [
            *_function(f"{status} {self.name}_check", whole, [*argument_checks(self.plan), f"return {OK.macro};"]), "",
            *_function(f"{status} {self.name}_memory", [*sizes, "uint64_t *texpr_result"], self._memory()), "",
            *_function(f"static void {self.name}_steps", ["char *workspace", *self._inner()], self._steps()), "",
            *self._assumed(status),
            *_function(f"TX_PUBLIC texpr_status {self.name}", public, self._run()), "",
            *_function(f"TX_PUBLIC texpr_status {self.name}_validate", public, self._validate()), "",
            f"TX_PUBLIC texpr_status {self.name}_workspace_bytes({', '.join([*sizes, 'uint64_t *texpr_result'])}) {{",
            f"{INDENT}return {self._call('memory', [*self._sizes(), 'texpr_result'])};",
            "}", "",
            *(f"TX_PUBLIC texpr_status {self.name}_{verb} {{ return {OK.macro}; }}" for verb in _ALWAYS_FINE),
            *(f"TX_PUBLIC texpr_status {self.name}_{verb} {{ {_SUPPORTED} return {OK.macro}; }}" for verb in _ASKING),
        ]  # fmt: skip

    def _sizes(self) -> list[str]:
        return [a.name for a in self.given if isinstance(a.key, Sym)]

    def _call(self, part: str, args: list[str]) -> str:
        return f"{self.name}_{part}({', '.join(args)})"

    def _run(self) -> Iterator[str]:
        yield "(void)stream;"
        yield _SUPPORTED
        yield f"texpr_status texpr_found = {self._call('check', [a.name for a in self.given])};"
        yield f"if (texpr_found != {OK.macro}) return texpr_found;"
        yield "uint64_t texpr_bytes = 0;"
        yield f"texpr_found = {self._call('memory', [*self._sizes(), '&texpr_bytes'])};"
        yield f"if (texpr_found != {OK.macro}) return texpr_found;"
        yield f"if (texpr_bytes > 0 && workspace == nullptr) return {NO_WORKSPACE.macro};"
        yield f"if (texpr_bytes > 0 && (uintptr_t)workspace % {ALIGNMENT} != 0) return {MISALIGNED.macro};"
        yield f"{self._call('steps', ['static_cast<char *>(workspace)', *map(_converted, self.given)])};"
        yield f"return {OK.macro};"

    def _validate(self) -> Iterator[str]:
        yield "(void)stream, (void)workspace;"
        yield f"texpr_status const texpr_found = {self._call('check', [a.name for a in self.given])};"
        yield f"if (texpr_found != {OK.macro}) return texpr_found;"
        assumed = self._call("assumed", list(map(_converted, self.given))) if self.plan.assumes else OK.macro
        yield f"return {assumed};"

    def _memory(self) -> Iterator[str]:
        """The bytes of workspace; sizes are checked first, so that the sum is exact."""
        yield f"if (texpr_result == nullptr) return {NULL_POINTER.macro};"
        yield from size_checks(self.plan)
        scope = self._scope()[0]
        total = " + ".join(f"texpr_aligned({bytes_text(buffer, scope)})" for buffer in self.plan.workspace)
        yield f"texpr_wide const texpr_total = {total or 0};"
        yield f"if (texpr_total > TEXPR_MOST_BYTES) return {BAD_SIZE.macro};"
        yield "*texpr_result = (uint64_t)texpr_total;"
        yield f"return {OK.macro};"

    def _scope(self) -> tuple[Scope, list[Argument]]:
        """The scope of the inner functions, and the arguments by their names there."""
        scope = replace(Scope.empty(host_knowledge(self.plan, Width.INT, checked=True)), taken=Taken(("workspace",)))
        found: list[Argument] = []
        for argument in self.given:
            match argument.key:
                case Sym() as sym:
                    scope, variable = scope.known_as(sym, scope.here)
                    found.append(replace(argument, name=str(variable.text)))
                case Buffer() as buffer:
                    scope, name = scope.scalar(buffer) if is_scalar(buffer) else scope.name(buffer)
                    found.append(replace(argument, name=name))
        return scope, found

    def _inner(self) -> list[str]:
        return [_typed(argument) for argument in self._scope()[1]]

    def _steps(self) -> Iterator[str]:
        scope, _ = self._scope()
        yield "(void)workspace;"
        for buffer in self.plan.workspace:
            ctype = C_NAMES[buffer.dtype]
            scope, name = scope.name(buffer)
            yield f"{ctype} *const {name} = reinterpret_cast<{ctype} *>(workspace);"
            yield f"workspace += texpr_aligned({bytes_text(buffer, scope)});"
        for step in self.plan.steps:
            yield from _step(step, self.plan, scope)

    def _assumed(self, status: str) -> list[str]:
        """The function that checks the data, if the text has assumptions about them."""
        scope, _ = self._scope()
        body: list[str] = []
        for assume in self.plan.assumes:
            body += ["{", *(INDENT + line for line in _assumption(assume, scope.inner())), "}"]
        whole = _function(f"{status} {self.name}_assumed", self._inner(), [*body, f"return {OK.macro};"])
        return [*whole, ""] if body else []


_ALWAYS_FINE = ("unload(void)",)
_ASKING = ("load(int)", "supported(int)")
"""A CPU needs no preparation, but must have the features that the code was built for."""

_SUPPORTED = f"if (!tx_is_supported()) return {UNSUPPORTED_DEVICE.macro};"


def _function(head: str, parameters: list[str], body: list[str] | Iterator[str]) -> list[str]:
    return [*signature(head, parameters), *(INDENT + line for line in body), "}"]


def _typed(argument: Argument) -> str:
    """A parameter of an inner function."""
    match argument.key:
        case Sym():
            return f"int const {argument.name}"
        case Buffer() as buffer if argument.is_pointer:
            return f"{C_NAMES[buffer.dtype]} {'' if argument.written else 'const '}*const {argument.name}"
        case Buffer() as buffer:
            return f"{C_NAMES[buffer.dtype]} const {argument.name}"


def _converted(argument: Argument) -> str:
    """A public argument as an argument of the inner functions."""
    match argument.key:
        case Sym():
            return f"(int){argument.name}"
        case Buffer(dtype=dtype) if C_NAMES[dtype] == PUBLIC_NAMES[dtype]:
            return argument.name
        case Buffer(dtype=dtype) if argument.is_pointer:
            return f"reinterpret_cast<{C_NAMES[dtype]} {'' if argument.written else 'const '}*>({argument.name})"
        case Buffer(dtype=dtype):
            return f"tx_to<tx_tf32>({argument.name})" if dtype == TF32 else f"{C_NAMES[dtype]}{{{argument.name}}}"


def _step(step: HostStep, plan: Plan, scope: Scope) -> Iterator[str]:
    match step:
        case Launch():
            yield _launch(step.kernel, plan, scope)
        case HostLoop():
            yield from _host_loop(step, plan, scope)
        case HostIf():
            yield f"if ({condition_text(step.conditions, scope)}) {{"
            yield from (INDENT + line for inner in step.steps for line in _step(inner, plan, scope.inner()))
            yield "}"
        case _:
            assert_never(step)


def _host_loop(loop: HostLoop, plan: Plan, scope: Scope) -> Iterator[str]:
    extent = typed(loop.extent, scope.here)  # at most an `int` by a bound on sizes, or negative
    inner, variable = scope.inner().known_as(loop.sym, host_loop(loop.sym, loop.extent, scope.here))
    end = integer_text(extent, scope).at(Binds.SHIFT)
    yield f"for (int {variable.text} = 0; {variable.text} < {end}; ++{variable.text}) {{"
    yield from (INDENT + line for step in loop.steps for line in _step(step, plan, inner))
    yield "}"


def _launch(kernel: Kernel, plan: Plan, scope: Scope) -> str:
    _, wanted = kernel_arguments(kernel, plan)
    keys = (argument.key for argument in wanted)
    names = (str(scope.names[key]) if isinstance(key, Sym) else scope.named[key] for key in keys)
    return f"{kernel.name}({', '.join(names)});"


def _assumption(assume: Assume, scope: Scope) -> Iterator[str]:
    """Statements that check every element of a buffer, and return if one violates the assumption."""
    match assume:
        case InRange():
            value = scope.taken.take("value")
            lo, hi = (index_text(end, scope).at(Binds.SHIFT) for end in (assume.lo, assume.hi))
            test = f"if ({value} < {lo} || {value} >= {hi}) return {ASSUMPTION_FAILS.macro};"
            yield from _each(assume.buffer, scope, lambda element: [f"texpr_wide const {value} = {element};", test])
        case Injective():
            seen, count = scope.taken.take("seen"), scope.taken.take("count")
            yield f"int64_t const {count} = (int64_t)({count_text(assume.buffer, scope)});"
            yield f"tx_numbers {seen}({count});"
            yield f"if (!{seen}.ok()) return {NO_MEMORY.macro};"
            yield from _each(assume.buffer, scope, lambda element: [f"{seen}.add((int64_t){element});"])
            yield f"if (!{seen}.distinct()) return {ASSUMPTION_FAILS.macro};"
        case Monotone():
            first, most, value = (scope.taken.take(name) for name in ("first", "most", "value"))
            yield f"texpr_wide {most} = 0;"
            yield f"int {first} = 1;"
            test = f"if (!{first} && {value} < {most}) return {ASSUMPTION_FAILS.macro};"
            keep = [f"{most} = {value};", f"{first} = 0;"]
            yield from _each(assume.buffer, scope, lambda element: [f"texpr_wide const {value} = {element};", test, *keep])
        case _:
            assert_never(assume)


def _each(buffer: Buffer, scope: Scope, body: Callable[[Text], list[str]]) -> Iterator[str]:
    """Loops over every element of `buffer`, with `body` of the element's text inside."""
    syms, here = every_element(buffer, scope.here)
    for dimension, (sym, extent) in enumerate(zip(syms, buffer.shape, strict=True)):
        end = index_text(extent, scope).at(Binds.SHIFT)
        scope, variable = scope.known_as(sym, here)
        name = variable.text
        yield INDENT * dimension + f"for ({variable.ctype} {name} = 0; {name} < {end}; ++{name}) {{"
    index = tuple(expr(sym) for sym in syms)
    yield from (INDENT * buffer.rank + line for line in body(element_text(Load(buffer, index), scope)))
    yield from (INDENT * depth + "}" for depth in reversed(range(buffer.rank)))
