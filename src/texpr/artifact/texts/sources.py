"""The sources of an artifact, for each target, by path below src/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from texpr.artifact.texts.header import common_header, print_header, status_source
from texpr.artifact.texts.platform import Platform
from texpr.artifact.tools import DeviceCode
from texpr.backends.c.headers import check_headers
from texpr.backends.c.names import identifier
from texpr.backends.cpu import headers as cpu_headers
from texpr.backends.cuda import headers as cuda_headers
from texpr.backends.cuda.launcher import Image, driver_headers, print_image, print_launcher, same_launches
from texpr.backends.printing import print_source
from texpr.emulator import core_texts
from texpr.emulator import headers as emulator_headers
from texpr.ir.kernel import Plan
from texpr.ir.kernel.origin import Origin, printed_plan
from texpr.isa.registry import resolve
from texpr.support.diagnostic import CompilerBug, error
from texpr.support.record import Record, as_dict, replace


class Shown(Record):
    """A function for one target, proved, in a form that can be sent to another process: its plan, the program after its
    schedule, and the tags of the plan's proof, as texts; and the proof, as written.

    `written`: the program before a schedule, with `notes` that relate its statements to those of the other. `origin`: the
    source file, and the lines of it that the plan mentions; None where it has none. `hints`: of the proofs of the plan and of
    the schedule, which are not shipped. `wide`: the same of the wide plan.
    """

    plan: str
    program: str
    tags: str
    proof: dict[str, Any]
    origin: dict[str, Any] | None = None
    written: str | None = None
    notes: str | None = None
    hints: dict[str, Any] | None = None
    wide: Shown | None = None

    def printed(self) -> Plan:
        """The plan, parsed for a printer."""
        plan = printed_plan(self.plan, "<plan>", None if self.origin is None else read_origin(self.origin))
        return plan if self.wide is None else replace(plan, wide=self.wide.printed())

    @property
    def data(self) -> dict[str, Any]:
        """Plain data, which `of` reads."""
        return {**as_dict(self), "wide": None if self.wide is None else self.wide.data}

    @staticmethod
    def of(data: Mapping[str, Any]) -> Shown:
        """What `data` gives."""
        wide = data["wide"]
        own: dict[str, Any] = {name: value for name, value in data.items() if name != "wide"}
        return Shown(**own, wide=None if wide is None else Shown.of(wide))


class Part(Record, dict=True):
    """The build of one target: a plan for each function, in the same order for every target.

    `shown`: the shipped texts of each; none if there is to be no proof.
    """

    target: str
    plans: tuple[Plan, ...]
    shown: tuple[Shown, ...] = ()

    def source(self, at: int) -> str:
        """The source of the function `at`."""
        return self._sources[at]

    @cached_property
    def _sources(self) -> tuple[str, ...]:
        """Libraries, texts and hashes ask for each of them."""
        target = resolve(self.target)
        return tuple(print_source(plan, target) for plan in self.plans)


def shipped(target: str, shown: Sequence[Shown]) -> Part:
    """The part for functions of which only the shipped texts are known."""
    return Part(target, tuple(each.printed() for each in shown), tuple(shown))


def read_origin(data: Mapping[str, Any]) -> Origin:
    """The origin for its plain form `data`."""
    return Origin(str(data["name"]), {int(number): str(line) for number, line in data["lines"].items()})


class Variant(Record):
    """A `.cu` of one function: its text, its plan, and the targets that share it."""

    plan: Plan
    text: str
    targets: tuple[str, ...]

    def path(self, number: int) -> str:
        """Its name below src/; the first of a function has no number."""
        name = identifier(self.plan.name)
        return f"{name}.cu" if number == 0 else f"{name}.{self.targets[0]}.cu"


def backend_of(targets: Sequence[str]) -> str:
    """The backend of some targets. Raises `TexprError` E0805 for a mixture, which one C interface cannot serve, or for none."""
    on = {resolve(target).backend for target in targets}
    if len(on) == 1:
        return on.pop()
    if not on:
        raise error("E0806", None, "there is nothing to build: no function, or no target")
    help = "build two artifacts; their functions have the same C interface"
    raise error("E0805", None, "an artifact is for a CPU or for CUDA devices, not for both", help=help)


def variants(parts: Sequence[Part], function: int) -> tuple[Variant, ...]:
    """The different `.cu` of one function, in order of first target."""
    found: list[Variant] = []
    for part in parts:
        plan = part.plans[function]
        text = part.source(function)
        for at, known in enumerate(found):
            if known.text == text and same_launches(known.plan, plan):
                found[at] = Variant(known.plan, known.text, (*known.targets, part.target))
                break
        else:
            found.append(Variant(plan, text, (part.target,)))
    return tuple(found)


def public_headers(name: str, plans: Sequence[Plan], on: Platform) -> dict[str, str]:
    """The C headers, by path below include/."""
    given = {"texpr.h": common_header(), f"{name}.h": print_header(name, plans, on), **check_headers()}
    return {f"texpr/{file}": text for file, text in given.items()}


def cpu_sources(part: Part) -> dict[str, str]:
    """The C++ of a CPU artifact."""
    texts = {f"{identifier(plan.name)}.cpp": part.source(at) for at, plan in enumerate(part.plans)}
    return {**texts, "texpr_status.c": status_source()}


def cpu_source_headers() -> dict[str, str]:
    """The headers beside it."""
    return cpu_headers()


def launchers(name: str, functions: Sequence[tuple[Variant, ...]]) -> dict[str, str]:
    """The host's C of a CUDA artifact, without the embedded code."""
    texts = {"texpr_status.c": status_source()}
    for found in functions:
        plan = found[0].plan
        texts[f"{identifier(plan.name)}.c"] = print_launcher([v.plan for v in found], image_table(found), f"{name}.h")
    return texts


def image_table(found: Sequence[Variant]) -> list[Image]:
    """The code of one function: a cubin for each target, then PTX for those that newer devices can translate."""
    cubins: list[Image] = []
    ptx: list[Image] = []
    for number, variant in enumerate(found):
        for target in variant.targets:
            machine = resolve(target)
            (major, minor), suffix = machine.capability, "a" if machine.exact else ""
            stem = f"texpr_{identifier(variant.plan.name)}_{target}"
            cubins.append(Image(major, minor, suffix, False, number, f"{stem}_cubin"))
            if not suffix:
                ptx.append(Image(major, minor, suffix, True, number, f"{stem}_ptx"))
    return [*cubins, *ptx]


def image_sources(found: Sequence[Variant], binaries: Mapping[str, DeviceCode]) -> dict[str, str]:
    """The code of one function as C arrays, a source each."""
    codes = {
        (target, kind): code for target, each in binaries.items() for kind, code in (("ptx", each.ptx), ("cubin", each.cubin))
    }
    return {path: print_image(symbol, codes[target, kind]) for path, (symbol, target, kind) in image_files(found).items()}


def image_files(found: Sequence[Variant]) -> dict[str, tuple[str, str, str]]:
    """The sources with embedded code of one function, by path: the name of the array, the target, and whether it is "ptx" or
    "cubin"."""
    files: dict[str, tuple[str, str, str]] = {}
    for image in image_table(found):
        target, kind = f"sm_{image.major}{image.minor}{image.suffix}", "ptx" if image.ptx else "cubin"
        files[f"{identifier(found[0].plan.name)}.{target}.{kind}.c"] = (image.symbol, target, kind)
    return files


def cuda_source_headers() -> dict[str, str]:
    """The headers beside a `.cu` and a launcher."""
    return {**cuda_headers(), **driver_headers()}


def emulator_sources() -> dict[str, str]:
    """The emulator, by path below src/emulator/."""
    texts = {**core_texts(), **emulator_headers()}
    if "core.cpp" not in texts:
        raise CompilerBug("the emulator has no core.cpp")
    return texts
