"""The products for a user: a kernel to call, or an artifact to ship.

kernel = compile(module["matmul"], target="cpu", sizes={"K": 4096});  C = kernel(A, B)
build(module["matmul"], target=("sm_80", "sm_90a"), directory="out")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from texpr import __version__, artifact, runtime
from texpr.checks import faults
from texpr.ir import program as ir
from texpr.ir.program import Function
from texpr.ir.program.rounded import given_away
from texpr.ir.program.selection import AUTO, Selected, select_schedule
from texpr.ir.proof import UNPROVED
from texpr.isa.registry import resolve
from texpr.isa.target import Target
from texpr.kept import again, keep, name_of, plans
from texpr.proof.schedule import as_marked, faithful, require_kept
from texpr.proof.search import proved
from texpr.sizes import fix, own
from texpr.sources import read_bytes
from texpr.support.diagnostic import CompilerBug, Limitation, TexprError
from texpr.support.expect import expect
from texpr.support.lazy import Module
from texpr.support.record import replace
from texpr.toolchain import Cache, Toolchain, shared, this_machine

if TYPE_CHECKING:
    from texpr import driver, spilled
    from texpr.driver import Compiled
    from texpr.schedule import builder
    from texpr.schedule.builder import Schedule
else:  # imported on first use: a kept plan needs none of what makes plans
    driver, spilled, builder = Module("texpr.driver"), Module("texpr.spilled"), Module("texpr.schedule.builder")

T = TypeVar("T")
Progress: TypeAlias = Callable[[str], None]

_FUNCTION = "function must be one of a program's, such as `texpr.load(file)['saxpy']`"
_TARGET = "target must be a name such as 'cpu' or 'sm_90a'"
_SCHEDULE = "schedule must be a texpr.Schedule, one of a function's schedules, or the name of one"
_SIZES = "sizes must be a mapping of names to integers, such as {'n': 4096}"


def compile(
    function: Function,
    target: str = "cpu",
    sizes: Mapping[str, int] | None = None,
    *,
    schedule: Schedule | ir.Schedule | str = AUTO,
    emulate: bool = False,
) -> runtime.Kernel:
    """`function` as a callable, built for this machine: its CPU, its GPU, or with `emulate` an emulated GPU.

    `sizes` fixes sizes and consts; the rest are taken from the arrays at each call, or given by name. `schedule`: a
    `Schedule`, one of `function.schedules`, the name of one, "auto" for the one that fits the target, or "none". Raises
    `TexprError` where the program is wrong, cannot be decided, or cannot be built here.
    """
    expect(function, Function, _FUNCTION)
    expect(target, str, _TARGET)
    expect(sizes, (Mapping, NoneType), _SIZES)
    tools = Toolchain(this_machine())
    machine = _at_hand(resolve(target), tools)
    unproved = any(directive.name == UNPROVED for directive in function.directives)
    chosen = select_schedule(function, _record(schedule), machine)
    compiled = lowered(function, machine.name, sizes, chosen, unproved, None if emulate else tools)
    return loaded(compiled, tools, emulate)


def lowered(
    function: Function,
    target: str,
    sizes: Mapping[str, int] | None,
    schedule: Selected,
    unproved: bool = False,
    tools: Toolchain | None = None,
) -> Compiled:
    """`function` for `target`, which is that of the code, as `driver.lower` makes it, and proved. `unproved`: whether what is
    undecided is believed. `tools`: those that it will be compiled by. Raises `TexprError` as `compile` does."""

    def kept(compiled: Compiled) -> Compiled:
        if compiled.written is not None:
            require_kept(faithful(compiled.written, compiled.function), unproved)
        proved(compiled.function, compiled.plan).require(unproved)
        return compiled

    return _kept(function, resolve(target), sizes, schedule, kept, tools)[0]


def loaded(compiled: Compiled, tools: Toolchain, emulate: bool = False) -> runtime.Kernel:
    """What was `lowered`, built and loaded for this machine, or with `emulate` an emulated GPU."""
    if not compiled.target.is_launched:
        return runtime.load_cpu(tools, compiled.function, compiled.plan, compiled.target.name)
    if emulate:
        return runtime.load_emulated(tools, compiled.function, compiled.plan, compiled.target.name)
    return runtime.load_cuda(tools, compiled.function, compiled.plan, compiled.target.name)


def at_hand(target: str, tools: Toolchain) -> str:
    """The target that code for `target` is of on this machine: for a CPU, with the features of this processor."""
    return _at_hand(resolve(target), tools).name


def build(
    functions: Function | Sequence[Function],
    target: str | Sequence[str],
    directory: str | Path,
    *,
    sizes: Mapping[str, int] | None = None,
    schedule: Schedule | ir.Schedule | str = AUTO,
    name: str | None = None,
    jobs: int = 1,
    progress: Progress = lambda done: None,
    sign: str | Path | None = None,
    consts: Mapping[str, int] | None = None,
    torch: bool = False,
    tuned: str | Path | None = None,
) -> artifact.Artifact:
    """An artifact with `functions` for every `target`, in `directory`, written atomically.

    `sizes` fixes sizes and consts of the functions that have them. `schedule` is chosen for each function and target, as in
    `compile`. `name` is the package's, by default the first function's. `jobs`: the limit of parallel processes, which does
    not affect the result; they are forks of this one, so other running threads disable them. `progress` is called with each
    finished step. `sign`: a file with a private key, which signs the hashes. `consts`: those passed to `load`, recorded for a
    comparison of the artifact with the text. `torch`: adds sources of operators of PyTorch. `tuned`: the `tune.json` of a
    search, which goes along. Raises `TexprError` as `compile` does, for a folder that is not an artifact (E081x), for the key
    (E0823, E0824), for what no operator can be (E0846), and for what is no report of a search (E0847).
    """
    expect(functions, (Function, Sequence), _FUNCTION)
    chosen = (functions,) if isinstance(functions, Function) else tuple(functions)
    for each in chosen:
        expect(each, Function, _FUNCTION)
    expect(target, (str, Sequence), _TARGET)
    expect(sizes, (Mapping, NoneType), _SIZES)
    expect(jobs, int, "jobs must be an integer")
    targets = (target,) if isinstance(target, str) else tuple(dict.fromkeys(target))
    report = None if tuned is None else read_bytes(Path(tuned))
    signer = None if sign is None else artifact.signer(Path(sign))
    title = name if name is not None else chosen[0].name if chosen else "empty"
    tools = Toolchain(this_machine(jobs), progress)
    artifact.refuse_early(tools, targets if chosen else (), Path(directory))
    made = parts(chosen, targets, sizes, _record(schedule), jobs, progress, plans(tools.machine.cache), tools)
    progress("the compilers of this machine")
    return artifact.build(
        tools, title, made, Path(directory), version=__version__, sign=signer, consts=consts, torch=torch, tuned=report
    )


def shown(
    function: Function,
    target: str,
    sizes: Mapping[str, int] | None = None,
    schedule: ir.Schedule | str = AUTO,
    tools: Toolchain | None = None,
) -> Compiled:
    """`function` compiled for `target` as in an artifact, which `tools` would build, and proved. Raises `TexprError` as `build`
    does."""
    return examined(function, target, sizes, schedule, tools)[0]


def examined(
    function: Function,
    target: str,
    sizes: Mapping[str, int] | None = None,
    schedule: ir.Schedule | str = AUTO,
    tools: Toolchain | None = None,
) -> tuple[Compiled, artifact.Shown]:
    """The same beside the texts that an artifact ships of it, and their proof."""
    machine = resolve(target)
    chosen = select_schedule(function, schedule, machine)
    compiled, found, wide = _kept(function, machine, own(function, sizes), chosen, _show, tools)
    return compiled, replace(found, wide=wide)


def parts(
    functions: Sequence[Function],
    targets: Sequence[str],
    sizes: Mapping[str, int] | None = None,
    schedule: ir.Schedule | str = AUTO,
    jobs: int = 1,
    progress: Progress = lambda done: None,
    kept: Cache | None = None,
    tools: Toolchain | None = None,
) -> list[artifact.Part]:
    """The inputs of an artifact: each function compiled for each target, and proved, by `jobs` parallel processes.

    `kept`: plans of earlier builds, which are proved again where they are for the same functions. `tools`: the compilers of
    kernels, which have a say in automatic plans.
    """
    machines = [resolve(target) for target in targets]
    wanted: list[tuple[Function, Target, Selected]] = [
        (function, machine, select_schedule(function, schedule, machine)) for machine in machines for function in functions
    ]

    def made(at: int) -> bytes:
        function, machine, chosen = wanted[at]
        given = own(function, sizes)
        name = None if kept is None else name_of(function, machine, chosen, given, _compiler(machine, tools))
        shown = None if kept is None or name is None else again(kept, name, fix(function, given)[0], machine)
        if shown is None:
            _, found, wide = _kept(function, machine, given, chosen, _show, tools)
            shown = replace(found, wide=wide)
            if kept is not None and name is not None:
                keep(kept, name, shown)
        return json.dumps(shown.data).encode()

    names = [f"`{function.name}` for {machine.name}" for function, machine, _ in wanted]
    found: list[artifact.Shown] = []
    for name, answer in zip(names, shared(made, names, jobs), strict=True):
        found.append(artifact.Shown.of(json.loads(answer)))
        progress(f"{name}, {len(found)} of {len(names)}")
    each = len(functions)
    return [artifact.shipped(machine.name, found[at * each : (at + 1) * each]) for at, machine in enumerate(machines)]


def _at_hand(target: Target, tools: Toolchain) -> Target:
    """`target`, refined by the features of this processor."""
    macro, refined = target.refined or ("", target.name)
    return _at_hand(resolve(refined), tools) if macro and tools.has(macro) else target


def _record(schedule: Schedule | ir.Schedule | str) -> ir.Schedule | str:
    if isinstance(schedule, ir.Schedule | str):
        return schedule
    expect(schedule, builder.Schedule, _SCHEDULE)
    return schedule.record


def _show(compiled: Compiled) -> artifact.Shown:
    return artifact.show(compiled.function, compiled.plan, compiled.written)


def _kept(
    function: Function,
    machine: Target,
    sizes: Mapping[str, int] | None,
    chosen: Selected,
    proved: Callable[[Compiled], T],
    tools: Toolchain | None,
) -> tuple[Compiled, T, T | None]:
    """`function` compiled, and the results of `proved` of it and of its wide plan. If the equivalence of an automatic schedule
    is not proved, then with one in which all warps do the same, or of candidates that are proved one by one, or without any; so
    its wide plan, too. `tools`: the compilers of kernels, whose report decides between candidates."""
    compiled = driver.lower(function, machine.name, sizes, schedule=chosen)
    if tools is not None and machine.is_launched and compiled.planned is not None:
        again = partial(driver.lower, function, machine.name, sizes, schedule=chosen)
        compiled = spilled.kept_in_registers(compiled, lambda way: again(way=way), spilled.report_of(tools, machine.name))
    try:
        found = _legal(compiled, proved)
    except Limitation as reason:
        if compiled.planned is None or reason.diagnostics[0].code != "E0509":
            raise
        compiled, found = next(_proved_ones(function, machine, sizes, chosen, proved))
    if compiled.wide is None:
        return compiled, found, None
    for wide in _wide_plans(function, compiled, sizes):
        try:
            return compiled.with_wide(wide), found, _legal(wide, proved)
        except Limitation:
            continue
    return compiled.with_wide(None), found, None


def _proved_ones(
    function: Function, machine: Target, sizes: Mapping[str, int] | None, chosen: Selected, proved: Callable[[Compiled], T]
) -> Iterator[tuple[Compiled, T]]:
    """The function with other schedules that are proved, the best first. Raises Limitation."""

    def accepted(made: Compiled) -> object:
        return _legal(made, proved)

    for accepts in (None, accepted):
        try:
            compiled = driver.lower(
                function, machine.name, sizes, schedule=chosen, way=driver.Way(driver.Every(), proved=accepts)
            )
            yield compiled, _legal(compiled, proved)
        except Limitation:
            continue
    compiled = driver.lower(function, machine.name, sizes, schedule=None)
    yield replace(compiled, wide=None), _legal(compiled, proved)


def _wide_plans(function: Function, compiled: Compiled, sizes: Mapping[str, int] | None) -> Iterator[Compiled]:
    """The wide plan, and then one in which all warps do the same."""
    if compiled.wide is not None:
        yield compiled.wide
    plain = driver.lower(function, compiled.target.name, sizes, schedule=AUTO, way=driver.Way(driver.Every())).wide
    if plain is not None:
        yield plain


def _compiler(machine: Target, tools: Toolchain | None) -> str:
    """The compiler of kernels that has a say in plans, for the name of what is kept."""
    if tools is None or not machine.is_launched:
        return ""
    try:
        return tools.nvcc.release
    except TexprError:
        return ""


def _legal(compiled: Compiled, proved: Callable[[Compiled], T]) -> T:
    """The result of `proved`. Raises CompilerBug where directives made an illegal program from a legal one."""
    _require_legal(compiled, kept=not artifact.may_be_open(compiled.function))
    try:
        return proved(compiled)
    except Limitation:
        _require_legal(compiled)
        raise


def _require_legal(compiled: Compiled, kept: bool = False) -> None:
    """Raises CompilerBug where directives made an illegal program from a legal one, against which the plan is compared.
    `kept`: nothing is built unless it is proved that they kept what it computes."""
    for found in faults(compiled.function, kept) if compiled.laid_out is not None else ():
        raise CompilerBug(f"a schedule made a wrong program of a right one: {found.code}: {found.message}")
    written = None if compiled.written is None else as_marked(compiled.written, compiled.function)[0]
    for wrong in () if written is None else given_away(written, compiled.function):
        raise CompilerBug(f"a schedule gave away what it may not: {wrong}")
