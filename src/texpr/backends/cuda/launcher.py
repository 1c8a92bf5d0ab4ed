"""The host's side of a plan, as plain C11: it loads the code on a device and launches a function's kernels in order.

Code that does not depend on the function is in texpr_driver.h. One launcher serves several targets: each has an image (a cubin
or PTX), and plans that differ between targets are variants, each with its own sequence of launches.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import assert_never

from texpr.affine.expr import Sym
from texpr.backends.c.arguments import Argument, arguments, distinct, function_name, kernel_arguments
from texpr.backends.c.body import INDENT
from texpr.backends.c.checks import argument_checks, argument_scope, bytes_text, condition_text, size_checks
from texpr.backends.c.index import index_text
from texpr.backends.c.scope import Scope
from texpr.backends.c.status import NULL_POINTER
from texpr.backends.c.text import Binds, comment, string
from texpr.backends.cuda.tensors import tensor_text
from texpr.backends.cuda.together import blocks_text, most_lines
from texpr.backends.cuda.validate import validate_headers, validation
from texpr.ir.kernel import Axis, HostIf, HostLoop, HostStep, Kernel, Launch, Level, Plan, kernels
from texpr.ir.kernel.knowledge import host_knowledge, host_loop
from texpr.ir.kernel.together import dynamic_bytes, grid, joint, joint_bytes, together
from texpr.ir.operation.maps import TensorMap
from texpr.ir.value import Buffer
from texpr.ir.value.types import TF32
from texpr.support.limits import LARGEST_SIZE, LAST_BLOCK, Width
from texpr.support.record import Record


class Image(Record):
    """Code for one target: its compute capability, suffix ("a" for one device only), and the number of its variant; PTX or a
    cubin.

    `symbol`: the name of the C array that contains it.
    """

    major: int
    minor: int
    suffix: str
    ptx: bool
    variant: int
    symbol: str


def driver_headers() -> dict[str, str]:
    """File name and text of the headers that a launcher includes."""
    name = "texpr_driver.h"
    return {name: (files("texpr.backends.cuda") / name).read_text(encoding="utf-8"), **validate_headers()}


def print_launcher(plans: Sequence[Plan], images: Sequence[Image], header: str) -> str:
    """The launcher of one function: `plans` are its variants, which differ in kernels, steps and workspace only.

    `header` declares the public functions. With the macro TEXPR_EMULATE it runs the first variant's kernels in the emulator.
    """
    kernels_of = [
        tuple(k for each in plan.versions for k in (*distinct(kernels(each.steps)), *map(joint, together(each.steps))))
        for plan in plans
    ]
    lines = [
        f"/* Launches {comment(plans[0].name)}. */",
        f"#define TEXPR_KERNELS {max(1, *map(len, kernels_of))}",
        '#include "texpr_driver.h"',
        "",
        f"#include <texpr/{header}>",
        "",
        *_images(images, plans, kernels_of),
    ]
    for number, plan in enumerate(plans):
        lines += ["", *_Variant(plan, str(number)).lines()]
    return "\n".join([*lines, "", *_public(plans), ""])


_BYTES = tuple(f"{byte}," for byte in range(256))


def print_image(symbol: str, data: bytes) -> str:
    """A C source with `data` as the array `symbol`, followed by a 0, which terminates PTX."""
    rows = (data[at : at + 24] for at in range(0, len(data), 24))
    body = "".join("    " + "".join(map(_BYTES.__getitem__, row)) + "\n" for row in rows)
    kind = "_Alignas(64) unsigned char const"
    hidden = '__attribute__((visibility("hidden")))'
    return f"extern {hidden} unsigned char const {symbol}[];\n{kind} {symbol}[{len(data) + 1}] = {{\n{body}    0}};\n"


def _images(images: Sequence[Image], plans: Sequence[Plan], kernels_of: Sequence[Sequence[Kernel]]) -> list[str]:
    lines: list[str] = []
    for number, (plan, found) in enumerate(zip(plans, kernels_of, strict=True)):
        loops = tuple(together(plan.steps))
        listed = ", ".join(string(kernel.name) for kernel in found) or "NULL"
        joints = {kernel: joint_bytes(loop) for kernel, loop in zip(found[len(found) - len(loops) :], loops, strict=True)}
        meeting = ", ".join(str(kernel.threads if kernel in joints else 0) for kernel in found) or "0"
        shared = ", ".join(str(joints.get(kernel, dynamic_bytes(kernel))) for kernel in found) or "0"
        lines.append(f"static char const *const tx_kernels_{number}[] = {{{listed}}};")
        lines.append(f"static int const tx_shared_{number}[] = {{{shared}}};")
        lines.append(f"static int const tx_together_{number}[] = {{{meeting}}};")
    lines += ["#if defined(TEXPR_EMULATE)", "static struct tx_image const tx_images[] = {"]
    lines += [f"    {{0, 0, 0, 1, 0, NULL, tx_kernels_0, tx_shared_0, tx_together_0, {len(kernels_of[0])}}},", "};", "#else"]
    lines += [f'extern __attribute__((visibility("hidden"))) unsigned char const {image.symbol}[];' for image in images]
    lines.append("static struct tx_image const tx_images[] = {")
    for image in images:
        exact, portable, variant = int(image.suffix != "" and not image.ptx), int(image.ptx), image.variant
        told = f"tx_kernels_{variant}, tx_shared_{variant}, tx_together_{variant}"
        code = f"{image.symbol}, {told}, {len(kernels_of[variant])}"
        lines.append(f"    {{{image.major}, {image.minor}, {exact}, {portable}, {variant}, {code}}},")
    return [*lines, "};", "#endif", "#define TEXPR_IMAGES (int)(sizeof tx_images / sizeof tx_images[0])"]


class _Variant(Record):
    """One plan's workspace and sequence of launches, as C functions whose names end with its number.

    Local names begin with `tx_`, as no name of a user does. `first`: the number of the first kernel. A wide plan is
    another variant, `checked` by its caller.
    """

    plan: Plan
    number: str
    first: int = 0
    checked: bool = False

    @property
    def wide(self) -> _Variant | None:
        """The variant of the wide plan."""
        plan = self.plan.wide
        return None if plan is None else _Variant(plan, _wide(self.number), len(distinct(kernels(self.plan.steps))), True)

    def lines(self) -> list[str]:
        wide = [] if self.wide is None else [*self.wide.lines(), ""]
        return [*wide, *self._check(), "", *self._workspace(), "", *self._steps(), "", *self._run()]

    def _check(self) -> list[str]:
        """The function that checks the arguments."""
        given = arguments(self.plan)
        values = [f"(void){a.name};" for a in given if not a.is_pointer]
        return _function(
            f"tx_check_{self.number}", _declared(given), [*values, *argument_checks(self.plan), "return TEXPR_OK;"]
        )

    def _workspace(self) -> list[str]:
        """The function that returns the bytes of workspace."""
        sizes = _sizes(self.plan)
        scope = argument_scope(self.plan, sizes, checked=True)
        total = " + ".join(f"tx_aligned({bytes_text(b, scope)})" for b in self.plan.workspace) or "0"
        body = [
            *size_checks(self.plan),
            f"texpr_wide const tx_total = {total};",
            "if (tx_total > TEXPR_MOST_BYTES) return TEXPR_BAD_SIZE;",
            "*tx_needed = (uint64_t)tx_total;",
            "return TEXPR_OK;",
        ]
        return _function(f"tx_workspace_{self.number}", [*_declared(sizes), "uint64_t *tx_needed"], body)

    def _steps(self) -> list[str]:
        """The launches in order. Sizes have been checked, and kernels take them as `int`."""
        scope, given = _plan_scope(self.plan)
        body = ["int tx_behind = 0;"]
        body += [f"(void){name};" for name in ("tx_here", "stream", "tx_dry", "tx_behind", "workspace", *_names(given))]
        body += [f"{a.name} = tx_to_tf32({a.name});" for a in given if _is_tf32(a)]
        if self.plan.workspace:
            body.append("char *tx_at = workspace;")
        for buffer in self.plan.workspace:
            scope, name = scope.name(buffer)
            body += [f"void *{name} = (void *)tx_at;", f"tx_at += tx_aligned({bytes_text(buffer, scope)});"]
        listed = (*distinct(kernels(self.plan.steps)), *together(self.plan.steps))
        numbers = {each: number for number, each in enumerate(listed, self.first)}
        body += [line for step in self.plan.steps for line in self._step(step, scope, numbers)]
        parameters = ["struct tx_loaded const *tx_here", "texpr_stream stream", "int tx_dry", "void *workspace"]
        return _function(f"tx_steps_{self.number}", [*parameters, *map(_checked, given)], [*body, "return TEXPR_OK;"])

    def _step(self, step: HostStep, scope: Scope, numbers: Mapping[Kernel | HostLoop, int]) -> Iterator[str]:
        match step:
            case Launch():
                yield from self._launch(step, scope, numbers[step.kernel])
            case HostLoop() if step in numbers:
                yield from self._together(step, scope, numbers)
            case HostLoop():
                extent = index_text(step.extent, scope).at(Binds.SHIFT)
                inner, variable = scope.inner().known_as(step.sym, host_loop(step.sym, step.extent, scope.here))
                yield f"if ({extent} > {LARGEST_SIZE}) return TEXPR_BAD_SIZE;"
                yield f"for (int {variable.text} = 0; {variable.text} < {extent}; ++{variable.text}) {{"
                yield from (INDENT + line for inside in step.steps for line in self._step(inside, inner, numbers))
                yield "}"
            case HostIf():
                yield f"if ({condition_text(step.conditions, scope)}) {{"
                yield from (INDENT + line for inside in step.steps for line in self._step(inside, scope.inner(), numbers))
                yield "}"
            case _:
                assert_never(step)

    def _together(self, loop: HostLoop, scope: Scope, numbers: Mapping[Kernel | HostLoop, int]) -> Iterator[str]:
        """A loop as one launch, if the device holds all blocks of its largest step at once."""
        kernel, number = joint(loop), numbers[loop]
        assert loop.together is not None
        _, wanted = kernel_arguments(kernel, self.plan)
        places = _listed(f"(void *)&{_name(argument.key, scope)}" for argument in wanted)
        fields = (
            f"{number}, {{tx_most, 1, 1}}, {{{_threads(kernel)}}}, {{NULL, NULL, NULL}}, {joint_bytes(loop)}, {{1, 1, 1}}, 0"
        )
        call = f"tx_launch_together(tx_here, stream, &tx_one, {scope.named[loop.together.meeting]}, tx_arguments)"
        yield f"{{ /* {comment(kernel.name)} */"
        yield f"{INDENT}int64_t tx_most = 0;"
        yield from (INDENT + line for line in most_lines(loop, scope))
        yield f"{INDENT}if (!tx_dry && tx_most > 0 && tx_most <= tx_here->held[{number}]) {{"
        yield f"{INDENT * 2}void *tx_arguments[] = {{{places}}};"
        yield f"{INDENT * 2}struct tx_launch const tx_one = {{{fields}}};"
        yield f"{INDENT * 2}TEXPR_TRY({call});"
        yield f"{INDENT * 2}tx_behind = 1;"
        yield f"{INDENT}}} else {{"
        rest = {each: at for each, at in numbers.items() if each is not loop}
        yield from (INDENT * 2 + line for line in self._step(loop, scope.inner(), rest))
        yield f"{INDENT}}}"
        yield "}"

    def _launch(self, step: Launch, scope: Scope, number: int) -> Iterator[str]:
        """A block of C that launches one kernel; slab bases are local variables, which the driver layer sets."""
        kernel, scope, bases = step.kernel, scope.inner(), dict[Sym, str]()
        yield f"{{ /* {comment(kernel.name)} */"
        for axis in kernel.axes:
            if axis.base is not None:
                scope, variable = scope.integer(axis.base, (0, LAST_BLOCK))
                bases[axis.base] = str(variable.text)
                yield f"{INDENT}int {variable.text} = 0;"
        for map in kernel.maps:
            scope, name = scope.name(map)
            yield f"{INDENT}struct tx_tensor_map {name};"
        _, wanted = kernel_arguments(kernel, self.plan)
        places = _listed(f"(void *)&{_name(argument.key, scope)}" for argument in wanted)
        axes = grid(kernel)
        slabs = _listed(_slab(axes.get(dim), bases) for dim in "xyz")
        yield f"{INDENT}void *tx_arguments[] = {{{places or 'NULL'}}};"
        shared = dynamic_bytes(kernel)
        cluster = _listed(str(blocks) for blocks in kernel.cluster)
        fields = f"{number}, {{{blocks_text(kernel, scope)}}}, {{{_threads(kernel)}}}, {{{slabs}}}, {shared}, {{{cluster}}}"
        fields += f", {int(step.dependent)}"
        yield f"{INDENT}struct tx_launch const tx_one = {{{fields}}};"
        for at, map in enumerate(kernel.maps):
            yield f"{INDENT}struct tx_tensor const tx_tensor_{at} = {tensor_text(map, scope)};"
            yield f"{INDENT}TEXPR_TRY(tx_encode(&tx_one, tx_dry, &tx_tensor_{at}, &{scope.named[map]}));"
        yield f"{INDENT}TEXPR_TRY(tx_launch(tx_here, stream, tx_dry, &tx_one, tx_arguments, &tx_behind));"
        yield "}"

    def _run(self) -> list[str]:
        """The checks, then the launches: all launches are checked before the first is made."""
        given = arguments(self.plan)
        steps = _listed(f"(int){a.name}" if isinstance(a.key, Sym) else a.name for a in given)
        checked = f"TEXPR_TRY(tx_check_{self.number}({_listed(_names(given))}));"
        body = [
            *_where_wide(self.wide, _names(given)),
            *(() if self.checked else (checked,)),
            "uint64_t tx_needed = 0;",
            f"TEXPR_TRY(tx_workspace_{self.number}({_listed((*_names(_sizes(self.plan)), '&tx_needed'))}));",
            "TEXPR_TRY(tx_check_workspace(workspace, tx_needed));",
            f"TEXPR_TRY(tx_steps_{self.number}({_listed(('tx_here', 'stream', '1', 'workspace', steps))}));",
            f"return tx_steps_{self.number}({_listed(('tx_here', 'stream', '0', 'workspace', steps))});",
        ]
        parameters = ["struct tx_loaded const *tx_here", "texpr_stream stream", "void *workspace", *_declared(given)]
        return _function(f"tx_run_{self.number}", parameters, body)


def _wide(number: object) -> str:
    return f"{number}_wide"


def _where_wide(wide: _Variant | None, names: Sequence[str]) -> list[str]:
    """The wide plan is run where its checks, which are those of the plan and more, find nothing."""
    if wide is None:
        return []
    whole = _listed(("tx_here", "stream", "workspace", *names))
    return [f"if (tx_check_{wide.number}({_listed(names)}) == TEXPR_OK) return tx_run_{wide.number}({whole});"]


def _plan_scope(plan: Plan) -> tuple[Scope, tuple[Argument, ...]]:
    """The scope with a plan's arguments, sizes as `int`, and the arguments."""
    scope = Scope.empty(host_knowledge(plan, Width.INT, checked=True))
    given = arguments(plan)
    for argument in given:
        match argument.key:
            case Sym():
                scope, _ = scope.known_as(argument.key, scope.here)
            case Buffer():
                scope, _ = scope.name(argument.key)
    return scope, given


def _sizes(plan: Plan) -> tuple[Argument, ...]:
    return tuple(a for a in arguments(plan) if isinstance(a.key, Sym))


def _function(name: str, parameters: Sequence[str], body: Iterable[str], result: str = "static texpr_status") -> list[str]:
    return [f"{result} {name}({_listed(parameters) or 'void'}) {{", *(INDENT + line for line in body), "}"]


def _declared(given: Iterable[Argument]) -> list[str]:
    return [a.declaration for a in given]


def _names(given: Iterable[Argument]) -> list[str]:
    return [a.name for a in given]


def _checked(argument: Argument) -> str:
    return f"int {argument.name}" if isinstance(argument.key, Sym) else argument.declaration


def _is_tf32(argument: Argument) -> bool:
    return isinstance(argument.key, Buffer) and not argument.is_pointer and argument.key.dtype == TF32


def _name(key: Buffer | Sym | TensorMap, scope: Scope) -> str:
    return str(scope.names[key]) if isinstance(key, Sym) else scope.named[key]


def _listed(parts: Iterable[str]) -> str:
    return ", ".join(part for part in parts if part)


def _threads(kernel: Kernel) -> str:
    block = {axis.dim: axis.extent.constant for axis in kernel.axes if axis.level is Level.BLOCK}
    return _listed(str(block.get(dim, 1)) for dim in "xyz")


def _slab(axis: Axis | None, bases: Mapping[Sym, str]) -> str:
    return "NULL" if axis is None or axis.base is None else f"&{bases[axis.base]}"


def _public(plans: Sequence[Plan]) -> list[str]:
    """The functions that the header declares."""
    name, given, sizes = function_name(plans[0]), arguments(plans[0]), _sizes(plans[0])
    whole = ["texpr_stream stream", "void *workspace", *_declared(given)]
    functions: list[tuple[str, Sequence[str], Iterable[str]]] = [
        ("", whole, _dispatch(plans, _names(given))),
        ("_workspace_bytes", [*_declared(sizes), "uint64_t *tx_result"], _most(plans, _names(sizes))),
        ("_validate", whole, _validate(plans[0], _names(given))),
        ("_load", ["int device"], ["return tx_load_module(tx_images, TEXPR_IMAGES, device);"]),
        ("_unload", [], ["return tx_unload_modules();"]),
        ("_supported", ["int device"], _SUPPORTED),
    ]
    return [line for suffix, ps, body in functions for line in (*_function(name + suffix, ps, body, "texpr_status"), "")][:-1]


_SUPPORTED = ("int found, chosen;", "return tx_choose(tx_images, TEXPR_IMAGES, device, &found, &chosen);")


def _dispatch(plans: Sequence[Plan], names: Sequence[str]) -> list[str]:
    lines = ["struct tx_loaded *tx_here = NULL;", "TEXPR_TRY(tx_loaded_here(&tx_here));"]
    given = _listed(("tx_here", "stream", "workspace", *names))
    lines += [f"if (tx_here->variant == {n}) return tx_run_{n}({given});" for n in range(1, len(plans))]
    return [*lines, f"return tx_run_0({given});"]


def _most(plans: Sequence[Plan], names: Sequence[str]) -> list[str]:
    """The greatest workspace of all variants, as the device of the call is unknown."""
    lines = [f"if (tx_result == NULL) return {NULL_POINTER.macro};", "uint64_t tx_needed = 0;", "*tx_result = 0;"]
    for number in range(len(plans)):
        lines.append(f"TEXPR_TRY(tx_workspace_{number}({_listed((*names, '&tx_needed'))}));")
        lines.append("if (tx_needed > *tx_result) *tx_result = tx_needed;")
        wide = plans[number].wide
        if wide is not None and wide.workspace:
            call = f"tx_workspace_{_wide(number)}({_listed((*names, '&tx_needed'))}) == TEXPR_OK"
            lines.append(f"if ({call} && tx_needed > *tx_result) *tx_result = tx_needed;")
    return [*lines, "return TEXPR_OK;"]


def _validate(plan: Plan, names: Sequence[str]) -> list[str]:
    unused = ["(void)stream, (void)workspace;"]
    lines = [*unused, f"TEXPR_TRY(tx_check_0({_listed(names)}));", "TEXPR_TRY(tx_need_driver());"]
    return [*lines, *validation(plan), "return TEXPR_OK;"]


def same_launches(a: Plan, b: Plan) -> bool:
    """Whether two plans with equal kernels also have equal checks and launches."""
    return _Variant(a, "0").lines() == _Variant(b, "0").lines()
