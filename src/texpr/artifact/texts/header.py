"""The C side of an artifact: texpr.h, identical in all artifacts, the header of one, and the texts of status codes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from texpr.affine.expr import Sym
from texpr.artifact.texts.platform import Platform
from texpr.backends.c.arguments import Argument, arguments, function_name
from texpr.backends.c.status import STATUSES, print_statuses
from texpr.backends.c.text import comment, string
from texpr.ir.kernel import Plan
from texpr.ir.program.promises import assume_text
from texpr.ir.value import Buffer

DRIVER_CODES = {
    1: "invalid value",
    2: "out of memory",
    3: "not initialized",
    100: "no device",
    101: "invalid device",
    200: "invalid image",
    201: "invalid context",
    209: "no code for this device",
    218: "invalid PTX",
    400: "invalid handle",
    500: "named symbol not found",
    700: "illegal address",
    701: "too many resources requested for launch",
    702: "the launch took too long",
    716: "misaligned address",
    719: "launch failure",
    900: "not permitted while a stream is captured",
}
"""The meanings of the most frequent codes of the CUDA driver (CUDA driver API, CUresult)."""


def common_header() -> str:
    """texpr.h: the types of every artifact's interface."""
    return f"""\
/* Types that every function built by texpr shares. Plain C11, and C++. */
#ifndef TEXPR_H
#define TEXPR_H

#include <stdbool.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TEXPR_API __attribute__((visibility("default")))
#else
#define TEXPR_API
#endif

#ifdef __cplusplus
extern "C" {{
#endif

typedef int32_t texpr_status; /* 0: fine; above 0: the driver's own code; below 0: one of these */
{print_statuses()}
typedef void *texpr_stream; /* a CUstream or cudaStream_t; code for a CPU takes no notice of it */

/* What a status means, in English; never NULL. */
TEXPR_API char const *texpr_status_string(texpr_status status);

#ifdef __cplusplus
}}
#endif

#endif
"""


def status_source() -> str:
    """texpr_status.c: `texpr_status_string`, weak, as every artifact in a program defines it."""
    cases = [f"    case {status.macro}: return {string(status.text)};" for status in STATUSES]
    cases += [f"    case {code}: return {string('CUDA driver: ' + text)};" for code, text in DRIVER_CODES.items()]
    return "\n".join(
        [
            "#include <texpr/texpr.h>",
            "",
            "__attribute__((weak)) char const *texpr_status_string(texpr_status status) {",
            "    switch (status) {",
            *cases,
            '    default: return status > 0 ? "CUDA driver: an error, see CUresult in its documentation" : "unknown status";',
            "    }",
            "}",
            "",
        ]
    )


def print_header(name: str, plans: Sequence[Plan], on: Platform) -> str:
    """NAME.h: the functions of an artifact. `on`: where they run, and their arrays are."""
    guard = f"TEXPR_{name.upper()}_H"
    where = "the device's memory" if on.device else "the host's memory"
    lines = [
        f"/* Functions of {comment(name)}, built by texpr. Arrays are in {where}. C11; no other header is needed. */",
        f"#ifndef {guard}",
        f"#define {guard}",
        "",
        "#include <texpr/texpr.h>",
        "",
        f"#define TEXPR_{name.upper()}_ON_{on.name.upper()} 1",
        "",
        "#ifdef __cplusplus",
        'extern "C" {',
        "#endif",
    ]
    for plan in plans:
        lines += ["", *_function(plan)]
    return "\n".join([*lines, "", "#ifdef __cplusplus", "}", "#endif", "", "#endif", ""])


def _function(plan: Plan) -> list[str]:
    name, given = function_name(plan), arguments(plan)
    whole = _parameters(["texpr_stream stream", "void *workspace", *(a.declaration for a in given)])
    sizes = _parameters([*(a.declaration for a in given if isinstance(a.key, Sym)), "uint64_t *tx_result"])
    return [
        f"/* {comment(plan.name)}",
        *(f"     {line}" for line in described(plan, given)),
        "   Nothing is printed, allocated, thrown or waited for; everything is checked before the first launch. */",
        f"TEXPR_API texpr_status {name}{whole};",
        "",
        "/* Bytes of workspace that a call with these sizes needs, at a multiple of 256. */",
        f"TEXPR_API texpr_status {name}_workspace_bytes{sizes};",
        "",
        "/* Check what the text assumes of the data. Takes the call's arguments; may wait for the stream, and allocate. */",
        f"TEXPR_API texpr_status {name}_validate{whole};",
        "",
        "/* Make the function ready on a device, in the calling thread's context if that is on it, else in the primary one. */",
        f"TEXPR_API texpr_status {name}_load(int device);",
        "",
        "/* Undo every `load`. No call may be under way. */",
        f"TEXPR_API texpr_status {name}_unload(void);",
        "",
        "/* TEXPR_OK if the function can run on the device, else why not. */",
        f"TEXPR_API texpr_status {name}_supported(int device);",
    ]


def _parameters(declarations: Sequence[str]) -> str:
    joined = ", ".join(declarations)
    return f"({joined})" if len(joined) < 90 else "(\n    " + ",\n    ".join(declarations) + ")"


def described(plan: Plan, given: Iterable[Argument]) -> list[str]:
    """One line for each argument: its shape and strides in elements, alignment, type; and the conditions on it."""
    lines: list[str] = []
    for argument in given:
        if isinstance(argument.key, Buffer):
            lines.append(comment(f"{argument.name}: {describe(argument.key)}"))
    lines += [comment(f"fixed: {sym} = {value}") for sym, value in plan.fixed]
    lines += [comment(f"where {fact.left} {fact.op} {fact.right}") for fact in plan.requires]
    lines += [comment(f"refused unless {bound.left} {bound.op} {bound.right}") for bound in plan.bounds]
    lines += [comment(f"assume {assume_text(assume)}") for assume in plan.assumes]
    return [line.replace("*/", "* /").replace("/*", "/ *") for line in lines]


def describe(buffer: Buffer) -> str:
    """`f32[M, K] stride(lda, 1) align(16), inout`."""
    shape = f"[{', '.join(map(str, buffer.shape))}]" if buffer.shape or buffer.role != "input" else ""
    stride = f" stride({', '.join(map(str, buffer.strides))})" if buffer.strides is not None else ""
    align = f" align({buffer.align})" if buffer.align is not None else ""
    return f"{buffer.dtype}{shape}{stride}{align}, {buffer.role}"
