"""Built once a session: a fake driver, launchers on it, and artifacts of the gallery's saxpy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from texpr import driver
from texpr.artifact import Part, build
from texpr.artifact.texts.header import common_header, print_header, status_source
from texpr.artifact.texts.platform import CUDA
from texpr.backends.c.arguments import arguments, function_name
from texpr.backends.cuda.launcher import Image, driver_headers, print_image, print_launcher
from texpr.ir.kernel import Plan, kernels
from texpr.support.diagnostic import TexprError
from texpr.support.record import Mutable, field
from texpr.toolchain import Toolchain, this_machine

ROOT = Path(__file__).parents[2]
TARGETS = ("sm_80", "sm_90a", "sm_100a")


@pytest.fixture(scope="session")
def tools() -> Toolchain:
    """This machine's compilers, with its own cache: entries are found by content."""
    return Toolchain(this_machine())


@pytest.fixture(scope="session")
def cuda_tools(tools: Toolchain) -> Toolchain:
    """The same, where there is an nvcc."""
    try:
        _ = tools.nvcc
    except TexprError as reason:
        pytest.skip(str(reason))
    return tools


@pytest.fixture(scope="session")
def fake_driver(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fake driver, under the name of the real one, alone in its folder."""
    text = (ROOT / "tests/fake_driver/fake_driver.c").read_text()
    built = tools.loadable("fake_driver", {"fake_driver.c": text}, {}, flags=("-Wextra", "-Werror"), libraries=("pthread",))
    path = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    path.write_bytes(built.read_bytes())
    return path


class Log(Mutable):
    """What the fake driver recorded: lines of `call key=value …`."""

    path: Path
    seen: int = 0
    setenv: Callable[[str, str], None] = field(default=lambda name, value: None)

    def lines(self) -> list[str]:
        """Every line since the last call."""
        every = self.path.read_text().splitlines() if self.path.exists() else []
        new, self.seen = every[self.seen :], len(every)
        return new

    def launches(self) -> list[dict[str, str]]:
        """The launches since the last call."""
        lines = [line.split() for line in self.lines()]
        return [dict(word.split("=", 1) for word in line[1:]) for line in lines if line[0] == "cuLaunchKernel"]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    """A fresh log, and a driver that behaves."""
    for name in ("CAPABILITY", "DEVICES", "GRID", "KERNELS", "FAIL"):
        monkeypatch.delenv(f"FAKE_DRIVER_{name}", raising=False)
    monkeypatch.setenv("FAKE_DRIVER_LOG", str(tmp_path / "log"))
    return Log(tmp_path / "log", setenv=lambda name, value: monkeypatch.setenv(f"FAKE_DRIVER_{name}", value))


class Launcher:
    """A launcher loaded into this process, above the fake driver."""

    def __init__(self, path: Path, plan: Plan):
        self.library = ctypes.CDLL(str(path))
        self.plan = plan
        whole: list[type[ctypes._SimpleCData[Any]]] = [ctypes.c_void_p, ctypes.c_void_p]  # pyright: ignore[reportPrivateUsage]
        for argument in arguments(plan):
            scalar = {"float": ctypes.c_float}.get(argument.declaration.split()[0], ctypes.c_int64)
            whole.append(ctypes.c_void_p if argument.is_pointer else scalar)
        for suffix in ("", "_validate"):
            self.entry(suffix).argtypes = whole

    def entry(self, suffix: str) -> ctypes._NamedFuncPointer:  # pyright: ignore[reportPrivateUsage]
        """A function of the launcher."""
        return getattr(self.library, function_name(self.plan) + suffix)

    def __call__(self, *given: object, workspace: int | None = None, stream: int | None = None) -> int:
        return int(self.entry("")(stream, workspace, *given))

    def validate(self, *given: object) -> int:
        """Check what is assumed."""
        return int(self.entry("_validate")(None, None, *given))

    def load(self, device: int = 0) -> int:
        """Load on a device."""
        return int(self.entry("_load")(device))

    def unload(self) -> int:
        """Unload everywhere."""
        return int(self.entry("_unload")())

    def workspace_bytes(self, *sizes: int) -> tuple[int, int]:
        """Status and bytes."""
        needed = ctypes.c_uint64(77)
        status = self.entry("_workspace_bytes")(*(ctypes.c_int64(s) for s in sizes), ctypes.byref(needed))
        return int(status), needed.value


Make = Callable[..., Launcher]


@pytest.fixture(scope="session")
def make_launcher(tools: Toolchain, fake_driver: Path) -> Make:
    """Build a launcher of plans (variants) and images; an image's code is PTX that names the kernels and no more."""

    def make(plans: Sequence[Plan], images: Sequence[Image] | None = None, library: str | None = None) -> Launcher:
        images = images or [Image(9, 0, "a", False, 0, "image_0")]
        plan = plans[0]
        sources = {
            "launcher.c": print_launcher(plans, images, "made.h"),
            "texpr_status.c": status_source(),
            **{f"{image.symbol}.c": print_image(image.symbol, pretended(plans[image.variant])) for image in images},
        }
        headers = {
            **driver_headers(),
            "texpr/texpr.h": common_header(),
            "texpr/made.h": print_header("made", (plan,), CUDA),
        }
        flags = (
            f'-DTEXPR_DRIVER_LIBRARY="{library or fake_driver}"',
            "-Wextra",
            "-Wconversion",
            "-Werror",
            "-Wno-sign-conversion",
        )
        return Launcher(tools.loadable("made", sources, headers, flags=flags, libraries=("dl", "pthread")), plan)

    return make


def pretended(plan: Plan) -> bytes:
    """What the fake driver takes for PTX with the plan's kernels."""
    names = [kernel.name for each in plan.versions for kernel in kernels(each.steps)]
    return b".version 8.0\n" + b"".join(f".visible .entry {name}()\n".encode() for name in names)


@pytest.fixture(scope="session")
def saxpy_parts() -> Callable[..., list[Part]]:
    """The gallery's saxpy, lowered for some targets."""

    def parts(*targets: str) -> list[Part]:
        function = driver.load(ROOT / "examples/saxpy.te").functions[0]
        return [Part(target, (driver.lower(function, target).plan,)) for target in targets]

    return parts


@pytest.fixture(scope="session")
def cpu_artifact(tools: Toolchain, saxpy_parts: Callable[..., list[Part]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """saxpy for the CPU."""
    directory = tmp_path_factory.mktemp("cpu") / "saxpy"
    return build(tools, "saxpy", saxpy_parts("cpu"), directory).directory


@pytest.fixture(scope="session")
def cuda_artifact(
    cuda_tools: Toolchain, saxpy_parts: Callable[..., list[Part]], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Path]:
    """saxpy for three generations of GPUs."""
    directory = tmp_path_factory.mktemp("cuda") / "saxpy"
    yield build(cuda_tools, "saxpy", saxpy_parts(*TARGETS), directory).directory
