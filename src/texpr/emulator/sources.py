"""The texts of the emulator: the headers for kernels, and the core."""

from __future__ import annotations

from importlib.resources import files

CORE = "core.cpp"
"""The one source of the core; it includes the other texts of `core_texts` by plain name."""

OPERATIONS = "texpr_emulator_ops.h"
"""The header that includes every file of `include/ops`: the operations of `texpr.ir.ops`, one family a file."""

_INCLUDE = ("texpr_emulator.h", "texpr_emulator_abi.h", "texpr_emulator_places.h")
_CORE = (
    *("fiber.hpp", "machine.hpp", "schedule.hpp", "report.hpp", "count.hpp", "barriers.hpp", "lanes.hpp", "memory.hpp"),
    *(
        "tensor.hpp",
        "launches.hpp",
        "detect.hpp",
        "phases.hpp",
        "copies.hpp",
        "engine.hpp",
        "warpgroup.hpp",
        "columns.hpp",
        "launch.hpp",
        "driver.hpp",
    ),
)


def headers() -> dict[str, str]:
    """File name and text of the headers that replace CUDA; `texpr_device.h` includes the first."""
    folder = files("texpr.emulator") / "include"
    texts = {name: (folder / name).read_text(encoding="utf-8") for name in _INCLUDE}
    own = [each for each in (folder / "ops").iterdir() if each.name.endswith(".h")]
    operations = {f"texpr_emulator_{each.name}": each.read_text(encoding="utf-8") for each in own}
    included = "".join(f'#include "{name}"\n' for name in sorted(operations))
    return {**texts, **operations, OPERATIONS: included}


def core_texts() -> dict[str, str]:
    """File name and text of every source of the core, all in one folder."""
    folder = files("texpr.emulator") / "core"
    shared = {name: text for name, text in headers().items() if name == "texpr_emulator_abi.h"}
    return {**{name: (folder / name).read_text(encoding="utf-8") for name in (CORE, *_CORE)}, **shared}
