"""What a build leaves: all of it or nothing, the same bytes each time, headers that stand alone, hashes that hold."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from texpr import driver
from texpr.affine.expr import maximum, minimum, sym, xor
from texpr.artifact import Part, build, place, verify
from texpr.artifact.texts.rust import expression
from texpr.support.codes import TITLES
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.toolchain import CudaBinary, Toolchain

from .conftest import ROOT, TARGETS
from .forging import put
from .plans import gather, named, plan, saxpy, sweep

Parts = Callable[..., list[Part]]


def code(raised: pytest.ExceptionInfo[TexprError]) -> str:
    """The code of the only diagnostic, which has a title."""
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code in TITLES
    return diagnostic.code


def everything(directory: Path) -> dict[str, bytes]:
    """Every file by path."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_what_lies_in_a_cuda_artifact(cuda_artifact: Path) -> None:
    files = everything(cuda_artifact)
    wanted = {
        *("include/texpr/texpr.h", "include/texpr/saxpy.h", "include/texpr/saxpy.hpp", "src/saxpy.cu", "src/saxpy.c"),
        *("src/texpr_device.h", "src/texpr_driver.h", "src/CMakeLists.txt", "src/emulator/core.cpp"),
        *("lib/saxpy.sm_80.cubin", "lib/saxpy.sm_90a.ptx", "lib/saxpy.sm_100a.cubin", "lib/libtexpr_saxpy.so"),
        *("lib/libtexpr_saxpy.a", "lib/cmake/texpr_saxpy/texpr_saxpyConfig.cmake", "lib/pkgconfig/texpr_saxpy.pc"),
        *("rust/Cargo.toml", "rust/build.rs", "rust/src/lib.rs", "manifest.json", "SHA256SUMS"),
    }
    assert wanted <= files.keys()
    assert b".target sm_90a" in files["lib/saxpy.sm_90a.ptx"] and files["lib/saxpy.sm_80.cubin"].startswith(b"\x7fELF")
    assert [name for name in files if name.endswith(".cu")] == ["src/saxpy.cu"], "the same for all targets"
    manifest = json.loads(files["manifest.json"])
    assert manifest["targets"] == list(TARGETS)
    (function,) = manifest["functions"]
    assert [argument["name"] for argument in function["arguments"]] == ["a", "x", "y", "z", "n"]
    assert all(kernel["registers"] > 0 for found in function["targets"].values() for kernel in found)


def test_the_hashes_are_those_that_sha256sum_reads(cpu_artifact: Path) -> None:
    done = subprocess.run(["sha256sum", "-c", "--strict", "SHA256SUMS"], cwd=cpu_artifact, capture_output=True, check=False)
    assert done.returncode == 0
    listed = {line.split("  ", 1)[1] for line in (cpu_artifact / "SHA256SUMS").read_text().splitlines()}
    assert listed | {"SHA256SUMS"} == everything(cpu_artifact).keys()


def test_building_twice_gives_the_same_bytes(tools: Toolchain, saxpy_parts: Parts, cpu_artifact: Path, tmp_path: Path) -> None:
    machine = replace(tools.machine, cache=tmp_path / "another cache")
    again = build(Toolchain(machine), "saxpy", saxpy_parts("cpu"), tmp_path / "deeper" / "saxpy")
    assert everything(again.directory) == everything(cpu_artifact)
    assert not any(str(tmp_path).encode() in data for data in everything(again.directory).values())


def test_building_a_cuda_artifact_twice(cuda_tools: Toolchain, cuda_artifact: Path, tmp_path: Path) -> None:
    """From a copy of the text in another folder, into another, with another cache."""
    shutil.copy(ROOT / "examples/saxpy.te", tmp_path)
    function = driver.load(tmp_path / "saxpy.te").functions[0]
    parts = [Part(t, (driver.lower(function, t).plan,)) for t in TARGETS]
    machine = replace(cuda_tools.machine, cache=tmp_path / "another cache")
    again = build(Toolchain(machine), "saxpy", parts, tmp_path / "out")
    assert everything(again.directory) == everything(cuda_artifact)


def test_a_build_replaces_an_artifact_whole(tools: Toolchain, saxpy_parts: Parts, cpu_artifact: Path, tmp_path: Path) -> None:
    target = tmp_path / "saxpy"
    shutil.copytree(cpu_artifact, target)
    (target / "lib/libtexpr_saxpy.so").write_bytes(b"damaged")
    build(tools, "saxpy", saxpy_parts("cpu"), target)
    assert everything(target) == everything(cpu_artifact)
    assert [path.name for path in tmp_path.iterdir()] == ["saxpy"]


@pytest.mark.parametrize("what", ["file", "folder", "stray", "link"])
def test_what_no_build_made_is_never_deleted(
    tools: Toolchain, saxpy_parts: Parts, cpu_artifact: Path, tmp_path: Path, what: str
) -> None:
    target = tmp_path / "out"
    match what:
        case "file":
            target.write_text("mine")
        case "folder":
            target.mkdir()
            (target / "thesis.tex").write_text("mine")
        case "stray":
            shutil.copytree(cpu_artifact, target)
            (target / "src" / "mine.c").write_text("mine")
        case _:
            (tmp_path / "real").mkdir()
            target.symlink_to(tmp_path / "real")
    before = everything(tmp_path)
    with pytest.raises(TexprError) as raised:
        build(tools, "saxpy", saxpy_parts("cpu"), target)
    assert code(raised) == "E0810" and everything(tmp_path) == before


@pytest.mark.parametrize(
    ("number", "wanted", "told"),
    [(errno.ENOSPC, "E0812", "the disk is full"), (errno.EROFS, "E0811", "Read-only"), (errno.EACCES, "E0811", "Permission")],
)
def test_what_cannot_be_written_leaves_nothing(
    cpu_artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, wanted: str, told: str
) -> None:
    target = tmp_path / "saxpy"
    shutil.copytree(cpu_artifact, target)
    before = everything(tmp_path)
    written: list[Path] = []
    really = Path.write_bytes

    def write(path: Path, data: bytes) -> int:
        written.append(path)
        if len(written) == 3:
            raise OSError(number, os.strerror(number), str(path))
        return really(path, data)

    monkeypatch.setattr(Path, "write_bytes", write)
    with pytest.raises(TexprError, match=told) as raised:
        place.publish(target, {f"file{i}": b"x" for i in range(5)} | {"SHA256SUMS": b""})
    assert code(raised) == wanted and len(written) == 3 and everything(tmp_path) == before


def test_a_folder_below_a_file(tools: Toolchain, saxpy_parts: Parts, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TexprError, match="cannot be written") as raised:
        build(tools, "saxpy", saxpy_parts("cpu"), tmp_path / "file" / "saxpy")
    assert code(raised) == "E0811"


def test_an_interrupted_swap_puts_back_what_was_there(
    cpu_artifact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "saxpy"
    shutil.copytree(cpu_artifact, target)
    before = everything(tmp_path)
    really = Path.rename

    def rename(path: Path, to: Path) -> Path:
        if path.name == "new":
            raise OSError(errno.EIO, "input/output error")
        return really(path, to)

    monkeypatch.setattr(Path, "rename", rename)
    with pytest.raises(TexprError):
        place.publish(target, {"SHA256SUMS": b""})
    assert everything(tmp_path) == before


@pytest.mark.parametrize("change", ["changed", "missing", "not listed", "format", "gone"])
def test_verify_sees_every_change(cpu_artifact: Path, tmp_path: Path, change: str) -> None:
    target = tmp_path / "saxpy"
    shutil.copytree(cpu_artifact, target)
    library = target / "lib/libtexpr_saxpy.so"
    match change:
        case "changed":
            library.write_bytes(library.read_bytes()[:-1] + b"!")
        case "missing":
            library.unlink()
        case "not listed":
            (target / "lib" / "new.so").write_bytes(b"")
        case "format":
            put(target, {"manifest.json": '{"format": "another"}'})
        case _:
            (target / "SHA256SUMS").unlink()
    with pytest.raises(TexprError) as raised:
        verify(target)
    assert code(raised) == ("E0821" if change in ("changed", "missing", "not listed") else "E0820")
    if change in ("changed", "missing", "not listed"):
        assert [note.text.split(":")[0] for note in raised.value.diagnostics[0].notes] == [change]


def test_what_cannot_be_one_artifact(tools: Toolchain, saxpy_parts: Parts, tmp_path: Path) -> None:
    both = [*saxpy_parts("cpu"), *saxpy_parts("sm_90a")]
    for parts, name, wanted in (
        (both, "saxpy", "E0805"),
        ([Part("cpu", (named("f", *"nxzk"), named("f_load", *"nxzk")))], "both", "E0807"),
        ([], "saxpy", "E0806"),
        (saxpy_parts("cpu"), "my-artifact", "E0807"),
        (saxpy_parts("cpu"), "int", "E0807"),
        ([Part("cpu", saxpy_parts("cpu")[0].plans * 2)], "saxpy", "E0807"),
    ):
        with pytest.raises(TexprError) as raised:
            build(tools, name, parts, tmp_path / "out")
        assert code(raised) == wanted
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "help"), [("texpr", "call it my_texpr, say"), ("int", "call it my_int, say"), ("a-b", "use letters, digits and _")]
)
def test_a_name_that_is_refused_says_why(tools: Toolchain, saxpy_parts: Parts, tmp_path: Path, name: str, help: str) -> None:
    with pytest.raises(TexprError) as raised:
        build(tools, name, saxpy_parts("cpu"), tmp_path / "out")
    (found,) = raised.value.diagnostics
    assert found.help is not None and found.help.startswith(help)
    assert ("has that name for something else" in found.message) == help.startswith("call it")


NAMES = (
    ("count", "shape", "self", "texpr_here", "type"),
    ("status", "loaded", "status_", "at", "n"),
    ("call", "bytes", "launch", "arguments", "count"),
    ("size", "device", "stream", "workspace", "copy"),
    ("span", "texpr_result", "match", "None", "stride"),
    ("class", "int", "fn", "i", "i128"),
)


@pytest.fixture(scope="session", params=["cpu", "cuda"])
def named_artifact(request: pytest.FixtureRequest, tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Functions and arguments with names that mean something elsewhere. What a device would run does not matter here."""
    directory = tmp_path_factory.mktemp("named") / "named"
    plans = tuple(named(*names) for names in NAMES)
    if request.param == "cpu":
        plans = tuple(replace(plan, steps=()) for plan in plans)
        return build(tools, "named", [Part("cpu", plans)], directory).directory
    return build(Pretending(tools), "named", [Part("sm_90a", plans)], directory).directory


class Pretending:
    """Compilers of which nvcc is none."""

    def __init__(self, tools: Toolchain):
        self.versions, self.openmp, self.library, self.flags = tools.versions, tools.openmp, tools.library, tools.flags
        self.versions = lambda device: {"host": "any"}

    def devices(self, wanted: Sequence[tuple[str, str]], headers: Mapping[str, str]) -> Sequence[CudaBinary]:
        """Nothing, compiled."""
        return [CudaBinary(target, b"cubin", b"ptx", ()) for _, target in wanted]

    def fatbin(self, codes: Sequence[tuple[str, bytes, bytes]]) -> None:
        """No fatbinary either."""


@pytest.fixture(scope="session")
def odd_artifact(tools: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Functions with workspace, strides and steps of the host, one different for each target."""
    directory = tmp_path_factory.mktemp("odd") / "odd"
    parts = [Part("sm_80", (saxpy(), sweep(), gather())), Part("sm_90a", (saxpy(factor=2), sweep(), gather()))]
    return build(Pretending(tools), "odd", parts, directory).directory


def test_no_name_is_misunderstood(named_artifact: Path, tmp_path: Path) -> None:
    include = f"-I{named_artifact / 'include'}"
    for compiler, header in (("gcc -std=c11 -x c", "named.h"), ("g++ -std=c++17 -x c++", "named.hpp")):
        (tmp_path / "only").write_text(f"#include <texpr/{header}>\n")
        words = [
            *compiler.split(),
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            "-fsyntax-only",
            include,
            str(tmp_path / "only"),
        ]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    cargo = shutil.which("cargo")
    if cargo is None:
        pytest.skip("no cargo")
    crate = tmp_path / "artifact"
    shutil.copytree(named_artifact, crate)
    words = [cargo, "build", "--offline", "--quiet", "--manifest-path", str(crate / "rust/Cargo.toml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "warning" not in done.stderr, done.stderr


def test_plans_that_differ_between_targets_are_both_there(odd_artifact: Path) -> None:
    kernels = sorted(path.name for path in (odd_artifact / "src").glob("*.cu"))
    assert kernels == ["gather.cu", "saxpy.cu", "saxpy.sm_90a.cu", "sweep.cu"]


@pytest.mark.parametrize("compiler", [("gcc", "-std=c11", "-x", "c"), ("g++", "-std=c++17", "-x", "c++")])
def test_headers_stand_alone_and_warn_of_nothing(
    odd_artifact: Path, cpu_artifact: Path, compiler: tuple[str, ...], tmp_path: Path
) -> None:
    for artifact, name in ((odd_artifact, "odd"), (cpu_artifact, "saxpy")):
        header = f"{name}.hpp" if compiler[0] == "g++" else f"{name}.h"
        source = tmp_path / "only.c"
        source.write_text(f"#include <texpr/{header}>\n#include <texpr/{header}>\nint main(void) {{ return TEXPR_OK; }}\n")
        flags = ("-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only", f"-I{artifact / 'include'}")
        done = subprocess.run([*compiler, *flags, str(source)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_pkg_config_finds_it_wherever_it_lies(cpu_artifact: Path) -> None:
    if shutil.which("pkg-config") is None:
        pytest.skip("no pkg-config")
    environment = {**os.environ, "PKG_CONFIG_PATH": str(cpu_artifact / "lib/pkgconfig")}
    words = ["pkg-config", "--define-prefix", "--cflags", "--libs", "texpr_saxpy"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "-ltexpr_saxpy" in done.stdout


def test_the_library_exports_only_its_functions(odd_artifact: Path) -> None:
    done = subprocess.run(["nm", "-D", "--defined-only", odd_artifact / "lib/libtexpr_odd.so"], capture_output=True, text=True)
    names = {line.split()[-1] for line in done.stdout.splitlines()}
    suffixes = ("", "_load", "_supported", "_unload", "_validate", "_workspace_bytes")
    functions = {f"texpr_{f}{s}" for f in ("saxpy", "sweep", "gather") for s in suffixes}
    assert names == functions | {"texpr_status_string"}


def test_a_function_with_no_kernel(tools: Toolchain, tmp_path: Path) -> None:
    empty = plan("nothing", (), (), (), sizes=())
    assert build(tools, "nothing", [Part("cpu", (empty,))], tmp_path / "nothing").targets == ("cpu",)


def test_expressions_in_rust() -> None:
    n = sym("n")
    assert expression(n * 2 - 3) == "2i128 * i128::from(n) + -3i128"
    assert expression((n + 1) // 4) == "size::floordiv(i128::from(n) + 1i128, 4i128)"
    assert expression(n - n) == "0i128"
    assert "size::modulo(" in expression(n % 5)
    assert expression(xor(n, 5, 3)) == "(i128::from(n) ^ 5i128 & 7)"
    assert "i128::min(" in expression(minimum(n, 4)) and "i128::max(" in expression(maximum(n, 4))
