"""The two example programs, three ways: on the CPU, as emulated CUDA, and with the real launcher on a recording driver."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from .conftest import ROOT, Log

CONSUMERS = ROOT / "examples" / "consumers"
RIGHT = "elements is right\n"


def run(words: Sequence[str | Path], **environment: str) -> str:
    """Run a program; returns what it prints."""
    done = subprocess.run(
        [str(word) for word in words], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def cmake() -> str:
    """CMake, or a reason to skip."""
    found = shutil.which("cmake")
    return found or pytest.skip("no cmake")


@pytest.fixture(scope="session")
def cargo() -> str:
    """cargo, or a reason to skip."""
    found = shutil.which("cargo")
    return found or pytest.skip("no cargo")


def build_cpp(cmake: str, artifact: Path, build: Path, *more: str) -> Path:
    """The C++ program against `artifact`."""
    run([cmake, "-S", CONSUMERS / "cpp", "-B", build, f"-DCMAKE_PREFIX_PATH={artifact}", *more])
    run([cmake, "--build", build])
    return build / "consumer"


def build_rust(cargo: str, artifact: Path, folder: Path, environment: Mapping[str, str] | None = None) -> Path:
    """The Rust program against `artifact`, without the network."""
    shutil.copytree(CONSUMERS / "rust", folder, ignore=shutil.ignore_patterns("artifact", "target"))
    (folder / "artifact").symlink_to(artifact)
    words = [cargo, "build", "--offline", "--quiet", "--manifest-path", folder / "Cargo.toml"]
    run(words, CARGO_TARGET_DIR=str(folder / "target"), **(environment or {}))
    return folder / "target" / "debug" / "consumer"


@pytest.fixture(scope="session")
def emulated_cpp(cmake: str, cuda_artifact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The C++ program with emulated CUDA; its folder has the emulated library and the emulator, too."""
    return build_cpp(cmake, cuda_artifact, tmp_path_factory.mktemp("emulated") / "build", "-DTEXPR_EMULATE=ON")


@pytest.mark.parametrize("n", ["0", "1", "1000", "100003"])
def test_cpp_on_the_cpu(cmake: str, cpu_artifact: Path, tmp_path_factory: pytest.TempPathFactory, n: str) -> None:
    build = tmp_path_factory.getbasetemp() / "cpp-cpu"
    program = build / "consumer" if build.exists() else build_cpp(cmake, cpu_artifact, build)
    assert run([program, n]) == f"saxpy of {n} {RIGHT}"


@pytest.mark.parametrize("n", ["0", "1", "1003"])
def test_cpp_emulated(emulated_cpp: Path, n: str) -> None:
    assert run([emulated_cpp, n]) == f"saxpy of {n} {RIGHT}"


def test_cpp_with_the_real_launcher(cmake: str, cuda_artifact: Path, fake_driver: Path, log: Log, tmp_path: Path) -> None:
    program = build_cpp(cmake, cuda_artifact, tmp_path / "build")
    driver = {"LD_LIBRARY_PATH": str(fake_driver.parent)}
    check_recorded(program, driver, log)
    log.setenv("CAPABILITY", "9.0")
    done = subprocess.run([program, "10"], env={**os.environ, **driver}, capture_output=True, text=True)
    assert done.returncode == 1 and "is -1, not" in done.stderr, "numbers are compared"


def test_rust_on_the_cpu(cargo: str, cpu_artifact: Path, tmp_path: Path) -> None:
    program = build_rust(cargo, cpu_artifact, tmp_path / "rust")
    assert [run([program, n]) for n in ("0", "1", "1003")] == [f"saxpy of {n} {RIGHT}" for n in (0, 1, 1003)]


def test_rust_emulated(cargo: str, cuda_artifact: Path, emulated_cpp: Path, tmp_path: Path) -> None:
    built = emulated_cpp.parent / "texpr_saxpy"
    (emulator,) = built.glob("*emulator.so")
    program = build_rust(cargo, cuda_artifact, tmp_path / "rust", {"TEXPR_LIBRARY_DIR": str(built)})
    driver = {"LD_LIBRARY_PATH": str(built), "TEXPR_DRIVER_LIBRARY": str(emulator)}
    assert [run([program, n], **driver) for n in ("0", "1003")] == [f"saxpy of {n} {RIGHT}" for n in (0, 1003)]


def test_rust_with_the_real_launcher(cargo: str, cuda_artifact: Path, fake_driver: Path, log: Log, tmp_path: Path) -> None:
    program = build_rust(cargo, cuda_artifact, tmp_path / "rust")
    check_recorded(program, {"LD_LIBRARY_PATH": str(fake_driver.parent)}, log)


def check_recorded(program: Path, driver: Mapping[str, str], log: Log) -> None:
    """What the real launcher asks of the driver for 1003 elements, and where no code suits the device."""
    log.setenv("KERNELS", "saxpy_z:4,8,8,8,4")
    run([program, "1003", "--no-check"], **driver)
    lines = [line.split()[0] for line in log.lines()]
    assert lines.count("cuLaunchKernel") == 1 and lines.count("cuModuleLoadData") == lines.count("cuModuleUnload") == 1
    log.seen = 0
    (launch,) = log.launches()
    assert (launch["name"], launch["grid"], launch["block"], launch["stream"]) == ("saxpy_z", "4,1,1", "256,1,1", "(nil)")
    assert launch["arguments"].split(",")[0] == "40400000" and launch["arguments"].split(",")[-1] == "3eb"
    run([program, "0", "--no-check"], **driver)
    assert log.launches() == []
    log.setenv("CAPABILITY", "7.5")
    done = subprocess.run([program, "10", "--no-check"], env={**os.environ, **driver}, capture_output=True, text=True)
    assert done.returncode != 0 and "none of those" in done.stderr
