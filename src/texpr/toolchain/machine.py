"""The properties of a machine, read once: search path, environment, cache folder, folders of Python packages.

Nothing below `cli` and `driver` reads the environment itself; a `Machine` is passed in, and tests pass their own.
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from texpr.support.record import Record

FORCED = {"LC_ALL": "C", "SOURCE_DATE_EPOCH": "0", "ZERO_AR_DATE": "1"}
"""Set for every tool: messages in one language, no clock in the output."""


class Machine(Record):
    """An environment and the paths that follow from it.

    `cache`: the folder of cached builds; `packages`: possible folders of wheels from PyPI; `toolkits`: conventional folders
    of CUDA; `architecture`: as `uname -m`; `jobs`: the limit of parallel processes.
    """

    environment: Mapping[str, str]
    cache: Path
    packages: tuple[Path, ...]
    python: str
    architecture: str
    toolkits: tuple[Path, ...] = (Path("/usr/local/cuda"),)
    jobs: int = 1

    def __repr__(self) -> str:
        return f"Machine({self.cache}, {self.python}, {self.architecture})"  # an environment may hold secrets

    def variable(self, name: str) -> str | None:
        """The environment variable `name`; an empty one counts as unset."""
        return self.environment.get(name) or None

    def which(self, name: str) -> Path | None:
        """The program `name`: a path unchanged, a bare name from the search path."""
        if os.sep in name:
            return Path(name) if _is_program(Path(name)) else None
        for folder in (self.variable("PATH") or "").split(os.pathsep):
            if folder and _is_program(Path(folder) / name):
                return Path(folder) / name
        return None

    def tool_environment(self) -> dict[str, str]:
        """The environment of tools."""
        zig = str(self.cache / "zig")  # by default it writes into the current folder
        return {**self.environment, **FORCED, "ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig}


def this_machine(jobs: int = 1) -> Machine:
    """The machine of this process, with a limit of `jobs` parallel processes."""
    environment = dict(os.environ)
    cache = environment.get("TEXPR_CACHE") or None
    base = environment.get("XDG_CACHE_HOME") or None
    home = Path(base) if base else Path.home() / ".cache"
    return Machine(
        environment=environment,
        cache=Path(cache) if cache else home / "texpr",
        packages=tuple(Path(entry) for entry in sys.path if entry.endswith(("site-packages", "dist-packages"))),
        python=sys.executable,
        architecture=platform.machine(),
        jobs=jobs,
    )


def usable_cores(groups: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> int:
    """The cores that this process may use: those of its affinity, or fewer by a quota of its control group.

    `groups`: the mount point of control groups; `own`: the file with this process' groups (cgroups(7)).
    """
    cores = len(os.sched_getaffinity(0))
    return max(1, min([cores, *(int(quota) for quota in _quotas(groups, own))]))


def _quotas(groups: Path, own: Path) -> Iterator[float]:
    """The quotas of a process, in cores: of its group and the enclosing ones, for cgroups v2 and v1."""
    try:
        lines = own.read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "cpu" not in controllers.split(","):
            continue
        place = Path(path.lstrip("/"))
        for group in (place, *place.parents):
            yield from _quota(groups / group if not controllers else groups / "cpu" / group)


def _quota(group: Path) -> Iterator[float]:
    """The quota of one group, if it has one: microseconds of processor time in a period, divided by the period."""
    for files in (("cpu.max",), ("cpu.cfs_quota_us", "cpu.cfs_period_us")):
        with contextlib.suppress(OSError, ValueError):
            quota, period = (float(word) for file in files for word in (group / file).read_text().split())
            if quota > 0 and period > 0:
                yield quota / period


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)
