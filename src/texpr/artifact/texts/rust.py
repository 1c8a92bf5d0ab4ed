"""The Rust side of an artifact: a crate without dependencies that links its static library."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from texpr.affine.expr import Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor
from texpr.artifact.texts.header import described
from texpr.artifact.texts.platform import Platform
from texpr.artifact.texts.template import template
from texpr.backends.c.arguments import Argument, arguments, function_name
from texpr.backends.c.names import identifier
from texpr.backends.c.status import STATUSES
from texpr.ir.kernel import Plan
from texpr.ir.value import Buffer
from texpr.ir.value.types import DType, Kind

_KEYWORDS = re.split(
    r"\s+",
    "as async await become box break const continue crate do dyn else enum extern false final fn for gen if impl in let loop "
    "macro match mod move mut override priv pub ref return self Self static struct super trait true try type typeof unsafe "
    "unsized use virtual where while yield abstract bool char str size Status Device None Some Ok Err Option Result core alloc",
)
"""Keywords of Rust, and names that the crate uses."""


def print_crate(name: str, plans: Sequence[Plan], on: Platform, version: str, libraries: Sequence[str]) -> Mapping[str, str]:
    """The crate's files by path. `on`: where its functions run; `libraries` are linked in addition to the static library."""
    dashed = name.replace("_", "-")
    codes = (f"    /// {s.text}\n    pub const {s.macro.removeprefix('TEXPR_')}: Status = Status({s.code});" for s in STATUSES)
    memory = template("device.rs") if on.device else ""
    modules = ["\n".join(_module(plan, on)) + "\n" for plan in plans]
    return {
        "Cargo.toml": template("Cargo.toml", NAME=name, DASHED=dashed, VERSION=version),
        "build.rs": template(
            "build.rs", NAME=name, ON=on.name, UPPER=name.upper(), LIBRARIES=", ".join(f'"{library}"' for library in libraries)
        ),
        "src/lib.rs": "\n".join([template("lib.rs", NAME=name, CODES="\n".join(codes), MEMORY=memory), *modules]),
    }


def _module(plan: Plan, on: Platform) -> Iterator[str]:
    given = arguments(plan)
    sizes = [a for a in given if isinstance(a.key, Sym)]
    yield f"/// `{plan.name}`"
    yield f"pub mod {rust_name(identifier(plan.name))} {{"
    yield "    use super::*;"
    yield ""
    yield from _externs(plan, given, sizes)
    yield ""
    yield from _call(plan, given, on)
    yield ""
    yield "    /// Bytes of workspace that a call with these sizes needs, at a multiple of 256."
    listed = ", ".join(f"{rust_name(a.name)}: i64" for a in sizes)
    passed = ", ".join((*(rust_name(a.name) for a in sizes), "&mut tx_result"))
    yield f"    pub fn workspace_bytes({listed}) -> Result<u64, Status> {{"
    yield "        let mut tx_result = 0;"
    yield "        // SAFETY: the library writes one u64."
    yield f"        Status::check(unsafe {{ {function_name(plan)}_workspace_bytes({passed}) }})?;"
    yield "        Ok(tx_result)"
    yield "    }"
    for verb, what in (("load", "Make the function ready on a device."), ("supported", "Whether it can run on a device.")):
        yield ""
        yield f"    /// {what}"
        yield f"    pub fn {verb}(device: i32) -> Result<(), Status> {{"
        yield "        // SAFETY: takes a number."
        yield f"        Status::check(unsafe {{ {function_name(plan)}_{verb}(device) }})"
        yield "    }"
    yield ""
    yield "    /// Undo every `load`."
    yield "    ///"
    yield "    /// # Safety"
    yield "    /// No call is under way, here or on a device."
    yield "    pub unsafe fn unload() -> Result<(), Status> {"
    yield f"        Status::check({function_name(plan)}_unload())"
    yield "    }"
    yield "}"


def _externs(plan: Plan, given: Sequence[Argument], sizes: Sequence[Argument]) -> Iterator[str]:
    name = function_name(plan)
    whole = ", ".join(("stream: *mut c_void", "workspace: *mut c_void", *(f"{rust_name(a.name)}: {_c_type(a)}" for a in given)))
    counted = ", ".join((*(f"{rust_name(a.name)}: i64" for a in sizes), "tx_result: *mut u64"))
    yield '    extern "C" {'
    yield f"        fn {name}({whole}) -> i32;"
    yield f"        fn {name}_validate({whole}) -> i32;"
    yield f"        fn {name}_workspace_bytes({counted}) -> i32;"
    yield f"        fn {name}_load(device: i32) -> i32;"
    yield f"        fn {name}_supported(device: i32) -> i32;"
    yield f"        fn {name}_unload() -> i32;"
    yield "    }"


def _call(plan: Plan, given: Sequence[Argument], on: Platform) -> Iterator[str]:
    """`call` and `validate`: safe on a CPU, where slices delimit the accessed memory; unsafe on a device."""
    safety = " unsafe" if on.device else ""
    parameters = [f"{rust_name(a.name)}: {_safe_type(a, on)}" for a in given]
    stream = ["stream: *mut c_void", "workspace: *mut c_void"] if on.device else ["workspace: &mut [u8]"]
    pointers = [
        f"{rust_name(a.name)}.as_mut_ptr()" if a.written else f"{rust_name(a.name)}.as_ptr()" for a in given if a.is_pointer
    ]
    queue = iter(pointers)
    passed = [next(queue) if a.is_pointer else rust_name(a.name) for a in given]
    first = ["stream", "workspace"] if on.device else ["std::ptr::null_mut()", "tx_workspace"]
    for verb, suffix, what in (
        ("call", "", f"Run `{plan.name}`."),
        ("validate", "_validate", "Check what the text assumes of the data."),
    ):
        yield f"    /// {what}"
        yield "    ///"
        yield from (f"    /// * `{line}`" for line in described(plan, given))
        if on.device:
            yield "    ///"
            yield "    /// # Safety"
            yield "    /// `stream` and `workspace` are null or the driver's; what is written, nothing else uses meanwhile."
        yield f"    pub{safety} fn {verb}({', '.join((*stream, *parameters))}) -> Result<(), Status> {{"
        if not on.device:
            yield from _aligned(plan, given)
        else:  # lengths are computed from checked sizes
            yield f"        workspace_bytes({', '.join(rust_name(a.name) for a in given if isinstance(a.key, Sym))})?;"
        for argument in given:
            yield from _length(argument)
        if not on.device:
            yield "        // SAFETY: every array has the elements that the sizes ask for."
            yield f"        Status::check(unsafe {{ {function_name(plan)}{suffix}({', '.join((*first, *passed))}) }})"
        else:
            yield f"        Status::check({function_name(plan)}{suffix}({', '.join((*first, *passed))}))"
        yield "    }"


def _aligned(plan: Plan, given: Sequence[Argument]) -> Iterator[str]:
    """The workspace starts at the first multiple of 256 in the given bytes, which must leave room after it."""
    sizes = ", ".join(rust_name(a.name) for a in given if isinstance(a.key, Sym))
    yield f"        let tx_needed = workspace_bytes({sizes})?;"
    yield "        let tx_skip = workspace.as_ptr().align_offset(256);"
    yield "        if tx_needed > 0 && (workspace.len() as u64) < (tx_skip as u64).saturating_add(tx_needed) {"
    yield "            return Err(Status::NO_WORKSPACE);"
    yield "        }"
    yield "        let tx_workspace: *mut c_void = if tx_needed == 0 {"
    yield "            std::ptr::null_mut()"
    yield "        } else {"
    yield "            workspace[tx_skip..].as_mut_ptr().cast()"
    yield "        };"


def _length(argument: Argument) -> Iterator[str]:
    if not isinstance(argument.key, Buffer) or not argument.is_pointer:
        return
    buffer = argument.key
    shape = ", ".join(map(expression, buffer.shape)) or "1"
    stride = "None" if buffer.strides is None else f"Some(&[{', '.join(map(expression, buffer.strides))}])"
    yield f"        match size::span(&[{shape}], {stride}) {{"
    yield f"            Some(tx_count) if tx_count <= {rust_name(argument.name)}.len() as i128 => {{}}"
    yield "            _ => return Err(Status::BAD_SIZE),"
    yield "        }"


def expression(value: Expr) -> str:
    """An expression of sizes in Rust, exact in i128 for sizes that a call accepts."""
    terms = [
        " * ".join((*(() if coefficient == 1 else (f"{coefficient}i128",)), *map(_atom, monomial)))
        for monomial, coefficient in value.terms
    ]
    return " + ".join((*terms, *((f"{value.constant}i128",) if value.constant or not terms else ())))


def _atom(atom: Atom) -> str:
    match atom:
        case Sym():
            return f"i128::from({rust_name(identifier(atom.name))})"
        case FloorDiv():
            return f"size::floordiv({expression(atom.num)}, {expression(atom.den)})"
        case Mod():
            return f"size::modulo({expression(atom.num)}, {expression(atom.den)})"
        case Min() | Max():
            function = "min" if isinstance(atom, Min) else "max"
            return reduce(lambda first, other: f"i128::{function}({first}, {other})", map(expression, atom.args))
        case Xor():
            return f"({expression(atom.value)} ^ {expression(atom.mask)} & {(1 << atom.bits) - 1})"


def rust_name(name: str) -> str:
    """`name`, or where Rust or the crate has that for something else, with `_` behind it."""
    return f"{name}_" if name in _KEYWORDS else name


def _element(dtype: DType) -> str:
    match dtype.kind:
        case Kind.FLOAT:
            return {16: "u16", 8: "u8", 32: "f32", 64: "f64"}[dtype.bits]
        case Kind.INT:
            return f"i{dtype.bits}"
        case Kind.UINT:
            return f"u{dtype.bits}"
        case Kind.BOOL:
            return "bool"


def _c_type(argument: Argument) -> str:
    match argument.key:
        case Sym():
            return "i64"
        case Buffer():
            element = _element(argument.key.dtype)
            return element if not argument.is_pointer else f"*{'mut' if argument.written else 'const'} {element}"


def _safe_type(argument: Argument, on: Platform) -> str:
    if not isinstance(argument.key, Buffer) or not argument.is_pointer:
        return _c_type(argument)
    element = _element(argument.key.dtype)
    if on.device:
        return f"Device<{element}>"
    return f"&{'mut ' if argument.written else ''}[{element}]"
