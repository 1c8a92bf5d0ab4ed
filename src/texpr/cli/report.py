"""What a report of a fault should say of the machine: versions and tools, without the names of persons and their folders."""

from __future__ import annotations

import os
import platform
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path

from texpr import __version__
from texpr.toolchain.doctor import Finding
from texpr.toolchain.hardware import last_level_cache, processor
from texpr.toolchain.machine import usable_cores

PACKAGES = ("numpy", "ml_dtypes", "islpy", "click", "rich", "msgspec")
"""What texpr needs."""

MORE = ("pygls", "starlette", "uvicorn", "cryptography", "ortools", "ziglang", "numba", "torch", "cupy", "jax")
"""Extras, and what arrays may come from."""

VARIABLES = ("CXX", "NVCC", "CUDA_VISIBLE_DEVICES")
FAMILIES = ("TEXPR_", "OMP_")
"""Variables of the environment that change what texpr does, and how their names begin."""

_HOMES = re.compile(r"/(?:home|Users)/[^/\s:;,()]+")


def versions(packages: Sequence[str]) -> dict[str, str]:
    """The version of each package that is installed."""
    found: dict[str, str] = {}
    for name in packages:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def report(findings: Sequence[Finding], environment: Mapping[str, str], home: Path) -> str:
    """The block of text. `home`: the user's folder, which is written as `~`."""
    return anonymous("\n".join(_lines(findings, environment)), home, environment)


def _lines(findings: Sequence[Finding], environment: Mapping[str, str]) -> Iterator[str]:
    libc = " ".join(platform.libc_ver()).strip()
    where = f"{platform.system()} {platform.release()} {platform.machine()}{f', {libc}' if libc else ''}"
    yield f"texpr {__version__}, {platform.python_implementation()} {platform.python_version()}, {where}"
    own = "a virtual environment" if sys.prefix != sys.base_prefix else "no virtual environment"
    cache = last_level_cache() >> 10
    yield f"{processor()}, {usable_cores()} of {os.cpu_count()} cores, largest cache {cache} KiB, {own}"
    needed, more = versions(PACKAGES), versions(MORE)
    yield f"packages: {', '.join(f'{name} {version}' for name, version in needed.items())}"
    yield f"beside them: {', '.join(f'{name} {version}' for name, version in more.items()) or 'none'}"
    said = [name for name in sorted(environment) if name in VARIABLES or name.startswith(FAMILIES)]
    yield f"environment: {', '.join(f'{name}={environment[name]}' for name in said) or 'nothing of it matters'}"
    for each in findings:
        yield f"{each.subject}: {each.state.value}: {each.detail}"


def anonymous(text: str, home: Path, environment: Mapping[str, str]) -> str:
    """`text` without home folders, the user's and others', and without the user's name as a part of a path."""
    for folder in (str(home), str(home.resolve())):
        if folder not in ("/", "."):
            text = re.sub(rf"{re.escape(folder)}(?=/|$|[\s:;,()'\"])", "~", text, flags=re.MULTILINE)
    text = _HOMES.sub("~", text)
    names = {home.name, *(environment.get(variable, "") for variable in ("USER", "LOGNAME", "USERNAME"))}
    for name in sorted(names - {"", "root"}):
        text = re.sub(rf"(?<=/){re.escape(name)}(?=/|$|[\s:;,()'\"])", "USER", text, flags=re.MULTILINE)
    return text
