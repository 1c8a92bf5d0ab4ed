"""The texts of the emulator: what a kernel is compiled with, and the core that runs it."""

from __future__ import annotations

from importlib.resources import files

CORE = "core.cpp"
"""The one source of the core; it includes the other texts of `core_texts` by plain name."""

_INCLUDE = ("texpr_emulator.h", "texpr_emulator_abi.h", "texpr_emulator_tensor.h")
_CORE = (
    *("fiber.hpp", "machine.hpp", "schedule.hpp", "report.hpp", "count.hpp", "barriers.hpp", "lanes.hpp", "memory.hpp"),
    *("tensor.hpp", "detect.hpp", "phases.hpp", "copies.hpp", "engine.hpp", "launch.hpp", "driver.hpp"),
)


def headers() -> dict[str, str]:
    """File name and text of the headers that take the place of CUDA; `texpr_device.h` includes the first."""
    folder = files("texpr.emulator") / "include"
    return {name: (folder / name).read_text(encoding="utf-8") for name in _INCLUDE}


def core_texts() -> dict[str, str]:
    """File name and text of everything the core is compiled from, all in one folder."""
    folder = files("texpr.emulator") / "core"
    shared = {name: text for name, text in headers().items() if name == "texpr_emulator_abi.h"}
    return {**{name: (folder / name).read_text(encoding="utf-8") for name in (CORE, *_CORE)}, **shared}
