"""The C++17 side of an artifact: texpr.hpp, and NAME.hpp on top of the C header. Header only; nothing throws."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.affine.expr import Sym
from texpr.backends.c.arguments import Argument, arguments, function_name
from texpr.backends.c.checks import argument_scope
from texpr.backends.c.index import index_text
from texpr.backends.c.names import identifier
from texpr.backends.c.text import comment
from texpr.backends.c.types import PUBLIC_NAMES
from texpr.ir.kernel import Plan
from texpr.ir.value import Buffer

_TAKEN = frozenset({"status", "span", "loaded", "detail", "call", "validate", "workspace_bytes", "supported"})


def print_cxx(name: str, plans: Sequence[Plan]) -> str:
    """NAME.hpp: a struct for each function of the artifact, with its call and auxiliary functions."""
    guard = f"TEXPR_{name.upper()}_HPP"
    lines = [
        f"/* {comment(name)} for C++17. Arrays know their lengths, which are checked; all else is as in {name}.h. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        f"#include <texpr/{name}.h>",
        "#include <texpr/texpr.hpp>",
        "",
        "namespace texpr {",
    ]
    for plan in plans:
        lines += ["", *_struct(plan)]
    return "\n".join([*lines, "", "} // namespace texpr", "", "#endif", ""])


def _struct(plan: Plan) -> Iterator[str]:
    name, given = function_name(plan), arguments(plan)
    parameters = ", ".join(("texpr_stream stream", "void *workspace", *map(_parameter, given)))
    passed = ", ".join(("stream", "workspace", *(f"{a.name}.data()" if a.is_pointer else a.name for a in given)))
    sizes = [a for a in given if isinstance(a.key, Sym)]
    counted = ", ".join((*(a.declaration for a in sizes), "std::uint64_t &tx_result"))
    names = ", ".join((*(a.name for a in sizes), "&tx_result"))
    sized = ", ".join((*(a.name for a in sizes), "&tx_bytes"))
    yield f"/* {comment(plan.name)} */"
    yield f"struct {_struct_name(plan)} {{"
    yield "    /* Ready on a device while such an object lives. */"
    yield f"    using loaded = texpr::loaded<&{name}_load, &{name}_unload>;"
    yield ""
    for verb, suffix in (("call", ""), ("validate", "_validate")):
        yield f"    static texpr::status {verb}({parameters}) noexcept {{"
        if any(a.is_pointer for a in given):  # lengths are computed from checked sizes
            yield "        std::uint64_t tx_bytes = 0;"
            yield f"        texpr_status const tx_sizes = {name}_workspace_bytes({sized});"
            yield "        if (tx_sizes != TEXPR_OK) return texpr::status{tx_sizes};"
        for argument in given:
            yield from (f"        {line}" for line in _length(argument, plan, sizes))
        yield f"        return {name}{suffix}({passed});"
        yield "    }"
    yield f"    static texpr::status workspace_bytes({counted}) noexcept {{ return {name}_workspace_bytes({names}); }}"
    yield f"    static texpr::status supported(int device = 0) noexcept {{ return {name}_supported(device); }}"
    yield "};"


def _struct_name(plan: Plan) -> str:
    """The function's name, unless texpr.hpp or a member has it (which would be a constructor's)."""
    name = identifier(plan.name)
    return f"{name}_" if name in _TAKEN else name


def _parameter(argument: Argument) -> str:
    if not argument.is_pointer:
        return argument.declaration
    assert isinstance(argument.key, Buffer)
    constant = "" if argument.written else " const"
    return f"texpr::span<{PUBLIC_NAMES[argument.key.dtype]}{constant}> {argument.name}"


def _length(argument: Argument, plan: Plan, sizes: Sequence[Argument]) -> Iterator[str]:
    """A check that an array has the required number of elements."""
    if not isinstance(argument.key, Buffer) or not argument.is_pointer:
        return
    buffer, scope = argument.key, argument_scope(plan, sizes)
    shape = ", ".join(str(index_text(e, scope)) for e in buffer.shape) or "1"
    yield "{"
    yield f"    texpr_wide const tx_shape[] = {{{shape}}};"
    stride = "nullptr"
    if buffer.strides is not None:
        stride = "tx_stride"
        yield f"    texpr_wide const tx_stride[] = {{{', '.join(str(index_text(e, scope)) for e in buffer.strides)}}};"
    rank = max(buffer.rank, 1)
    yield f"    if (!texpr::detail::holds({argument.name}.size(), {rank}, tx_shape, {stride})) return TEXPR_BAD_SIZE;"
    yield "}"
