"""What nvcc makes of a source: machine code, what ptxas says of it, and that it keeps nothing in memory of a thread's own.

Only where a tool is not on this machine is a test skipped: a source that nvcc refuses fails it.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from texpr.backends.cuda.headers import headers
from texpr.support.diagnostic import TexprError
from texpr.toolchain.cuda import CudaBinary, compile_cuda, disassemble, find_nvcc
from texpr.toolchain.machine import this_machine

ABSENT = ("E0603", "E0604", "E0609")
"""No nvcc, one that does not know the target, one without the tools beside it."""


@contextmanager
def _here() -> Generator[None]:
    try:
        yield
    except TexprError as reason:
        if reason.diagnostics[0].code in ABSENT:
            pytest.skip(str(reason))
        raise


def built(source: str, target: str = "sm_90a") -> CudaBinary:
    """The kernels of a source, compiled."""
    with _here():
        return compile_cuda(this_machine(), find_nvcc(this_machine()), source, headers(), target)


def code_of(binary: CudaBinary) -> str:
    """Their machine code."""
    with _here():
        return disassemble(this_machine(), find_nvcc(this_machine()), binary)


def spills_nothing(binary: CudaBinary) -> bool:
    """Whether no thread has a stack, or spills registers."""
    return all((each.stack_bytes, each.spill_stores, each.spill_loads) == (0, 0, 0) for each in binary.kernels)


def serialised(binary: CudaBinary) -> list[str]:
    """What ptxas says where it waits behind each product of a warpgroup by itself (C7510 and others)."""
    nvcc = find_nvcc(this_machine())
    words = [
        str(nvcc.program),
        *nvcc.host,
        f"-arch={binary.target}",
        "-Xptxas",
        "-v",
        "-cubin",
        "kernel.ptx",
        "-o",
        "kernel.cubin",
    ]
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "kernel.ptx").write_bytes(binary.ptx)
        said = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True, timeout=600)
    return re.findall(r".*(?:C75\d\d|serializ).*", said.stdout + said.stderr)
