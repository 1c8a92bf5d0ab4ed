"""Arguments of kernels and of emitted functions: their order, their C types and their names."""

from __future__ import annotations

from collections.abc import Iterable

from texpr.affine.expr import Sym
from texpr.backends.c.names import identifier
from texpr.backends.c.scope import Scope, Variable
from texpr.backends.c.types import PUBLIC_NAMES
from texpr.ir.kernel import Axis, Kernel, Plan
from texpr.ir.kernel.knowledge import axis_knowledge, kernel_knowledge
from texpr.ir.operation.maps import TensorMap
from texpr.ir.value import Buffer
from texpr.support.record import Record


class Argument(Record):
    """One argument of the emitted function `texpr_NAME`, after `stream` and `workspace`.

    `key`: the buffer (a pointer, or a scalar by value) or the size; `written`: whether the function writes through the pointer.
    """

    name: str
    key: Buffer | Sym
    written: bool = False

    @property
    def is_pointer(self) -> bool:
        """Whether it is an array."""
        return isinstance(self.key, Buffer) and not is_scalar(self.key)

    @property
    def declaration(self) -> str:
        """The parameter's declaration in plain C."""
        match self.key:
            case Sym():
                return f"int64_t {self.name}"
            case Buffer():
                ctype = PUBLIC_NAMES[self.key.dtype]
                if not self.is_pointer:
                    return f"{ctype} {self.name}"
                return f"{ctype} {'' if self.written else 'const '}*{self.name}"


def is_scalar(buffer: Buffer) -> bool:
    """Whether a parameter is passed by value: a scalar input."""
    return buffer.role == "input" and buffer.rank == 0


_TAKEN = frozenset(
    {
        "status",
        "status_string",
        "stream",
        "wide",
        "span",
        "floordiv",
        "mod",
        "min",
        "max",
        "plus",
        "times",
        "distinct",
        "aligned",
    }
)
"""The headers of an emitted function use these names after `texpr_`."""


def function_name(plan: Plan) -> str:
    """The name of the emitted function, which is the prefix of all functions that belong to it."""
    name = identifier(plan.name)
    return f"texpr_{name}_" if name in _TAKEN else f"texpr_{name}"


def arguments(plan: Plan) -> tuple[Argument, ...]:
    """The arguments after `stream` and `workspace`: parameters in the order written, results, then sizes that are not fixed."""
    fixed = {sym for sym, _ in plan.fixed}
    buffers = (*plan.params, *(b for b in plan.results if b not in plan.params))
    sizes = tuple(sym for sym in plan.sizes if sym not in fixed)
    scope, found = Scope.empty(), list[Argument]()
    for key in (*buffers, *sizes):
        scope, name = scope.name(key)
        found.append(Argument(name, key, isinstance(key, Buffer) and key.role != "input"))
    return tuple(found)


class KernelArgument(Record):
    """One argument of a kernel: a scalar by value, a pointer, a size (an `int`), or a map."""

    name: str
    key: Buffer | Sym | TensorMap
    scalar: bool = False


def kernel_arguments(kernel: Kernel, plan: Plan) -> tuple[Scope, tuple[KernelArgument, ...]]:
    """The scope with the names of the arguments, and the arguments in order: scalars, buffers, sizes, maps."""
    scope = Scope.empty(kernel_knowledge(kernel, plan))
    found: list[KernelArgument] = []
    for buffer in kernel.scalars:
        scope, name = scope.scalar(buffer)
        found.append(KernelArgument(name, buffer, scalar=True))
    for buffer in kernel.buffers:
        scope, name = scope.name(buffer)
        found.append(KernelArgument(name, buffer))
    for size in kernel.sizes:
        scope, variable = scope.known_as(size, scope.here)
        found.append(KernelArgument(str(variable.text), size))
    for map in kernel.maps:
        scope, name = scope.name(map)
        found.append(KernelArgument(name, map))
    return scope, tuple(found)


def axis_variable(axis: Axis, scope: Scope) -> tuple[Scope, Variable]:
    """The scope with a name for an axis, and its variable."""
    return scope.known_as(axis.sym, axis_knowledge(axis, scope.here))


def distinct(found: Iterable[Kernel]) -> tuple[Kernel, ...]:
    """Each kernel once, in order of first use."""
    return tuple(dict.fromkeys(found))
