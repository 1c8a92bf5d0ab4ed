"""Attribution of a failed compile: to the machine, or to this compiler."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from texpr.support.diagnostic import CompilerBug, Note, TexprError, error
from texpr.toolchain.cache import key
from texpr.toolchain.machine import Machine
from texpr.toolchain.process import Finished

ASSEMBLER = "asm volatile("
"""How assembler that the text of a program has begins in a source; headers have others."""

TOO_FEW = "(C7600)"
"""What ptxas says where instructions of a warpgroup find no registers for what they sum up."""

LONGEST = 4000
"""The characters of a tool's output shown in a message."""


def failure(
    machine: Machine, finished: Finished, sources: Mapping[str, str], works: Callable[[], bool]
) -> TexprError | CompilerBug:
    """The exception for a compiler that refused `sources`.

    `works` tells whether the same compiler accepts a small correct program: if so, our text is wrong, and is kept for a
    report; if not, the compiler is broken or cannot work on this machine.
    """
    if finished.code < 0:
        return error(
            "E0607",
            None,
            f"{Path(finished.argv[0]).name} was killed by signal {-finished.code}",
            Note(finished.command),
            help="most often the machine ran out of memory",
        )
    if "No space left on device" in finished.output:
        return error("E0608", None, "the disk is full", Note(finished.command), help=f"free space in {tempfile.gettempdir()}")
    if not works():
        return error(
            "E0607",
            None,
            f"{Path(finished.argv[0]).name} does not compile even a small program known to be right",
            Note(finished.command),
            Note(_shortened(finished.output)),
            help="the compiler is not installed whole, or is too old; `texpr doctor` shows what is used",
        )
    if TOO_FEW in finished.output:
        return error(
            "E0613",
            None,
            f"{Path(finished.argv[0]).name} has too few registers for what a kernel keeps in them",
            Note(_shortened(finished.output)),
            help="give its threads more: by `roles`, the second number of `registers=`; by `launch_bounds`, fewer blocks",
        )
    if any(ASSEMBLER in text for name, text in sources.items() if name.endswith(".cu")):
        return error(
            "E0612",
            None,
            f"{Path(finished.argv[0]).name} refuses the assembler of an `instr`",
            Note(_shortened(finished.output)),
            help="templates are given to it as they stand: registers, types and target must be those of the instruction",
        )
    kept = keep(machine, sources)
    return CompilerBug(
        f"{Path(finished.argv[0]).name} refuses a source that this compiler printed; it is kept in {kept}\n"
        f"{finished.command}\n{_shortened(finished.output)}"
    )


def keep(machine: Machine, sources: Mapping[str, str]) -> Path:
    """A folder with the refused sources: in the cache, or a temporary one where that cannot be written."""
    name = key(part for item in sorted(sources.items()) for part in item)[:16]
    folder = machine.cache / "refused" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="texpr-refused-"))
    try:
        for file, text in sources.items():
            (folder / file).write_text(text)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
    return folder


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[:LONGEST] + "\n… (more)"
