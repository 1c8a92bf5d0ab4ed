"""What a user takes away: a kernel to call, or an artifact to ship.

kernel = compile(module["matmul"], target="cpu", sizes={"K": 4096});  C = kernel(A, B)
build(module["matmul"], target=("sm_80", "sm_90a"), directory="out")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import NoneType

from texpr import __version__, artifact, runtime
from texpr.driver import Compiled, lower
from texpr.ir import program as ir
from texpr.ir.program import Function
from texpr.ir.proof import UNPROVED
from texpr.ir.selection import AUTO, select_schedule
from texpr.isa.registry import resolve
from texpr.isa.target import Target
from texpr.schedule.builder import Schedule
from texpr.support.expect import expect
from texpr.toolchain import Toolchain, this_machine
from texpr.witness import proved

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
    """`function` as something to call, built for this machine: its CPU, its GPU, or with `emulate` a GPU that it need not have.

    `sizes` fixes sizes and consts; the rest are taken from the arrays at each call, or given by name. `schedule`: a `Schedule`,
    one of `function.schedules`, the name of one, "auto" for the one that fits the target, or "none". Raises `TexprError` where
    the program is wrong, cannot be decided, or cannot be built here.
    """
    expect(function, Function, _FUNCTION)
    expect(target, str, _TARGET)
    expect(sizes, (Mapping, NoneType), _SIZES)
    tools = Toolchain(this_machine())
    machine = _at_hand(resolve(target), tools)
    compiled = lower(function, machine.name, sizes, schedule=select_schedule(function, _record(schedule), machine))
    unproved = any(directive.name == UNPROVED for directive in function.directives)
    proved(compiled.function, compiled.plan).require(unproved)
    if compiled.target.family == "cpu":
        return runtime.load_cpu(tools, compiled.function, compiled.plan)
    if emulate:
        return runtime.load_emulated(tools, compiled.function, compiled.plan, target)
    return runtime.load_cuda(tools, compiled.function, compiled.plan, target)


def build(
    functions: Function | Sequence[Function],
    target: str | Sequence[str],
    directory: str | Path,
    *,
    sizes: Mapping[str, int] | None = None,
    schedule: Schedule | ir.Schedule | str = AUTO,
    name: str | None = None,
) -> artifact.Artifact:
    """An artifact with `functions` for every `target`, in `directory`, whole or not at all.

    `sizes` fixes sizes and consts of the functions that have them. `schedule` is chosen for each function and target, as
    `compile` does. `name` is the package's, the first function's where it is not given. Raises `TexprError` as `compile` does,
    and where the folder is not ours to write (E081x).
    """

    def lowered(function: Function, machine: Target) -> Compiled:
        laid_out = select_schedule(function, _record(schedule), machine)
        return lower(function, machine.name, own(function, sizes), schedule=laid_out)

    expect(functions, (Function, Sequence), _FUNCTION)
    chosen = (functions,) if isinstance(functions, Function) else tuple(functions)
    for each in chosen:
        expect(each, Function, _FUNCTION)
    expect(target, (str, Sequence), _TARGET)
    expect(sizes, (Mapping, NoneType), _SIZES)
    targets = [resolve(t) for t in ((target,) if isinstance(target, str) else dict.fromkeys(target))]
    built = {machine.name: [lowered(f, machine) for f in chosen] for machine in targets}
    parts = [artifact.Part(made, tuple(c.plan for c in each), tuple(c.function for c in each)) for made, each in built.items()]
    title = name if name is not None else chosen[0].name if chosen else "empty"
    return artifact.build(Toolchain(this_machine()), title, parts, Path(directory), version=__version__)


def _at_hand(target: Target, tools: Toolchain) -> Target:
    """`target`, or what is known of this processor beyond it."""
    return resolve("cpu_avx512") if target.name == "cpu" and tools.has("__AVX512F__") else target


def _record(schedule: Schedule | ir.Schedule | str) -> ir.Schedule | str:
    expect(schedule, (Schedule, ir.Schedule, str), _SCHEDULE)
    return schedule.record if isinstance(schedule, Schedule) else schedule


def own(function: Function, sizes: Mapping[str, int] | None) -> dict[str, int]:
    """The entries of `sizes` that `function` has."""
    names = {s.name for s in function.sizes} | {s.name for s, _ in function.consts}
    return {name: value for name, value in (sizes or {}).items() if name in names}
