"""The tensor map that a compiled function of CuTe DSL gives to its first kernel, without a device.

CuTe DSL encodes maps by itself, on the host, so its host code is linked with launches that keep what they are given. Who calls
no driver needs none.
"""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from pathlib import Path
from typing import Any

BYTES = 64
"""Those of a map that CuTe writes; the rest of its 128 are the driver's own."""

LAUNCHES = "_cudaLaunchKernelEx"

KEEPS = f"""
#include <string.h>
__attribute__((visibility("default"))) unsigned char seen[{BYTES}];
int {LAUNCHES}(void *how, void *kernel, void **arguments) {{
    (void)how, (void)kernel;
    memcpy(seen, arguments[0], sizeof seen);
    return 0;
}}
"""


def symbols(object: Path) -> list[list[str]]:
    """What `nm` says, a line each."""
    said = subprocess.run(["nm", str(object)], check=True, capture_output=True, text=True).stdout
    return [line.split() for line in said.splitlines()]


def map_of(compiled: Any) -> str:
    """The map of an array at address 0, as words of 32 bits."""
    with tempfile.TemporaryDirectory(prefix="texpr-peers-") as folder:
        made, source, library = (Path(folder, name) for name in ("made.o", "keeps.c", "made.so"))
        made.write_bytes(compiled.dump_to_object("tx"))
        named = symbols(made)
        lacks = [each[1] for each in named if each[0] == "U" and each[1].startswith("_cu") and each[1] != LAUNCHES]
        source.write_text(KEEPS + "".join(f"int {name}(void) {{ return 0; }}\n" for name in lacks), encoding="utf-8")
        command = ["cc", "-shared", "-fPIC", "-Wl,-Bsymbolic", "-o", str(library), str(made), str(source)]
        subprocess.run(command, check=True)
        (entry,) = (each[2] for each in named if each[1] == "T" and each[2].startswith("_mlir_tx__mlir_ciface_"))
        loaded = ctypes.CDLL(str(library))
        array, status = (ctypes.c_uint64 * 16)(), ctypes.c_int(-1)
        arguments = (ctypes.c_void_p * 2)(ctypes.addressof(array), ctypes.addressof(status))
        getattr(loaded, entry)(arguments, 2)
        assert status.value == 0
        seen = bytes((ctypes.c_ubyte * BYTES).in_dll(loaded, "seen"))
    return " ".join(f"{int.from_bytes(seen[at : at + 4], 'little'):08x}" for at in range(0, BYTES, 4))
