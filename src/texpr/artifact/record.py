"""The inputs of an artifact's texts that do not follow from its plans, recorded in manifest.json and parsed from it.

Verification derives every text again from the plans and this record. So the record is small and plain: names, numbers, lines
of a source; and enumerated values are checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

from texpr.artifact.tools import Made
from texpr.backends.c.names import identifier
from texpr.ir.kernel.origin import Origin
from texpr.isa.registry import TARGETS
from texpr.support.record import Record, field

Data: TypeAlias = Mapping[str, Any]

DEEPEST = 32
"""The limit of nesting in an artifact's JSON."""

HOST_LIBRARIES = ("dl", "pthread")
"""The libraries that a launcher needs on every host."""

CPU_LIBRARIES = (("m",), ("gomp", "m"), ("omp", "m"))
"""The possible libraries of CPU code: OpenMP's is that of the compiler, if it has one."""

RESOURCES = ("registers", "spill_stores", "spill_loads", "stack_bytes", "shared_bytes", "barriers", "serialised")
"""The figures of ptxas for a kernel."""


class Recorded(Record):
    """The inputs of an artifact beside its plans.

    `functions`: their names, in order; `origins`: their source files, and the lines of these that the generated sources show,
    by function; `libraries`: what is linked in addition; `fatbin`: whether one could be made; `torch`: whether there are
    operators of PyTorch; `tuned`: whether there is the report of a search. The rest is only for the manifest: `tools` and
    `flags`, versions of compilers and their flags; `consts`: the values of the text's consts; `used`: the device resources of
    a kernel, by function, target and kernel.
    """

    name: str
    version: str
    targets: tuple[str, ...]
    functions: tuple[str, ...]
    origins: Mapping[str, Origin]
    libraries: tuple[str, ...]
    fatbin: bool = False
    tools: Mapping[str, str] = field(default_factory=dict[str, str])
    flags: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    consts: Mapping[str, int] = field(default_factory=dict[str, int])
    used: Mapping[tuple[str, str, str], Mapping[str, int]] = field(
        default_factory=dict[tuple[str, str, str], Mapping[str, int]]
    )
    torch: bool = False
    tuned: bool = False

    @property
    def on(self) -> str:
        """The backend of its targets."""
        return TARGETS[self.targets[0]].backend


def recorded(
    name: str, version: str, targets: Sequence[str], functions: Sequence[str], origins: Mapping[str, Origin], made: Made,
    consts: Mapping[str, int], torch: bool = False, tuned: bool = False,
) -> Recorded:  # fmt: skip
    """The record of a build."""
    used = {
        (function, target, usage.kernel): dict(usage.numbers())
        for (function, target), code in made.codes.items()
        for usage in code.kernels
    }
    flags = {what: tuple(told) for what, told in made.flags.items()}
    names, libraries, tools = tuple(functions), tuple(made.libraries), dict(made.tools)
    return Recorded(
        name, version, tuple(targets), names, origins, libraries, made.fatbin, tools, flags, dict(consts), used, torch, tuned
    )


def load_json(data: bytes) -> object:
    """The value of a JSON text with limited nesting. Raises ValueError."""
    text = data.decode("utf-8")
    depth = deepest = 0
    for mark in re.findall(r'"(?:[^"\\]|\\.)*"|[\[\]{}]', text):
        if mark in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif mark in "]}":
            depth -= 1
    if deepest > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} deep")
    return json.loads(text, parse_constant=_refused)


def _refused(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def read_record(manifest: Data) -> Recorded:
    """The record in a manifest. Raises ValueError for a record that no build writes."""
    functions = [_mapping(each) for each in _list(manifest.get("functions"))]
    names = tuple(_text(each.get("name")) for each in functions)
    targets = tuple(_one_of(each, TARGETS) for each in _list(manifest.get("targets")))
    if not names or not targets or len({TARGETS[each].backend for each in targets}) != 1:
        raise ValueError("it is for no function, or no target, or for a mixture of targets")
    for kind, each in (("functions", names), ("targets", targets)):
        if len(set(each)) != len(each):
            raise ValueError(f"two of its {kind} are the same")
    origins = {
        name: _origin(_mapping(each["source"])) for name, each in zip(names, functions, strict=True) if each.get("source")
    }
    name, libraries = _text(manifest.get("name")), tuple(map(_text, _list(manifest.get("libraries"))))
    if identifier(name) != name or not name.isascii():
        raise ValueError(f"no artifact is called {name!r}")
    on_host = not TARGETS[targets[0]].is_launched
    if libraries not in (CPU_LIBRARIES if on_host else (HOST_LIBRARIES,)):
        raise ValueError(f"no artifact needs the libraries {', '.join(libraries) or 'none'}")
    return Recorded(
        name, _text(manifest.get("texpr")), targets, names, origins, libraries,
        manifest.get("fatbin") is True,
        {_text(what): _text(said) for what, said in _mapping(manifest.get("tools")).items()},
        {_text(what): tuple(map(_text, _list(said))) for what, said in _mapping(manifest.get("flags")).items()},
        {_text(const): _integer(value) for const, value in _mapping(manifest.get("consts")).items()},
        dict(found for name, each in zip(names, functions, strict=True) for found in _used(name, each)),
        manifest.get("torch") is True,
        manifest.get("tuned") is True,
    )  # fmt: skip


def _used(function: str, described: Data) -> Sequence[tuple[tuple[str, str, str], dict[str, int]]]:
    found: list[tuple[tuple[str, str, str], dict[str, int]]] = []
    for target, kernels in _mapping(described.get("targets")).items():
        for kernel in map(_mapping, _list(kernels)):
            numbers = {what: _number(kernel[what]) for what in RESOURCES if what in kernel}
            if numbers:
                found.append(((function, target, _text(kernel.get("name"))), numbers))
    return found


def _origin(source: Data) -> Origin:
    lines = {
        int(number): _text(line) for number, line in _mapping(source.get("lines")).items() if re.fullmatch("[0-9]{1,6}", number)
    }
    return Origin(_text(source.get("file")), lines)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"expected a text, found {type(value).__name__}")
    return value


def _number(value: object) -> int:
    number = _integer(value)
    if number < 0:
        raise ValueError("expected what is not negative")
    return number


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(2**63) <= value < 2**63:
        raise ValueError("expected an integer of 64 bits")
    return value


def _one_of(value: object, those: Mapping[str, object]) -> str:
    if _text(value) not in those:
        raise ValueError(f"there is no target {value!r}")
    return _text(value)


def _list(value: object) -> Sequence[object]:
    if not isinstance(value, list):
        raise ValueError(f"expected a list, found {type(value).__name__}")
    return cast("list[object]", value)


def _mapping(value: object) -> Data:
    if not isinstance(value, dict):
        raise ValueError(f"expected an object, found {type(value).__name__}")
    return cast("dict[str, Any]", value)
