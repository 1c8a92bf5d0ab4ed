"""The host compiler: found in order, building, and failing with the right one to blame."""

from __future__ import annotations

import ctypes
import shutil
from pathlib import Path

import pytest

from texpr.support.codes import TITLES
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace
from texpr.toolchain import HostJob, Machine, build_host, doctor, find_host
from texpr.toolchain.process import run

from .conftest import Script

EXPORT = 'extern "C" __attribute__((visibility("default"))) '
ADD = {
    "add.cpp": '#include "one.h"\n' + EXPORT + "int add(int a) { return a + one(); }\n",
    "one.c": "int one(void) { return 1; }\n",
}
ONE = {"one.h": 'extern "C" int one(void);\n'}


def code(raised: pytest.ExceptionInfo[TexprError]) -> str:
    """The code of an error, which must have a title and say what helps."""
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code in TITLES
    return diagnostic.code


def test_builds_c_and_cxx_into_one_library(machine: Machine) -> None:
    binary = build_host(machine, find_host(machine), HostJob("sum", ADD, ONE, static=True))
    assert ctypes.CDLL(str(binary.path)).add(41) == 42
    assert binary.static is not None and binary.static.startswith(b"!<arch>")
    assert binary.warnings == ""


def test_the_same_job_is_built_once_and_alike_elsewhere(machine: Machine, tmp_path: Path) -> None:
    host = find_host(machine)
    job = HostJob("sum", ADD, ONE, static=True)
    first = build_host(machine, host, job)
    stamp = first.path.stat().st_ino
    assert build_host(machine, host, job).path.stat().st_ino == stamp
    shutil.rmtree(machine.cache)
    assert build_host(machine, host, job).shared == first.shared
    elsewhere = build_host(replace(machine, cache=tmp_path / "other"), host, job)
    assert (elsewhere.shared, elsewhere.static) == (first.shared, first.static)


def test_a_changed_header_is_another_build(machine: Machine) -> None:
    host = find_host(machine)
    build_host(machine, host, HostJob("sum", ADD, ONE))
    binary = build_host(machine, host, HostJob("sum", {**ADD, "one.c": "int one(void) { return 2; }\n"}, ONE))
    assert ctypes.CDLL(str(binary.path)).add(1) == 3


def test_without_a_cache_it_still_builds(machine: Machine, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    binary = build_host(replace(machine, cache=tmp_path / "file"), find_host(machine), HostJob("sum", ADD, ONE))
    assert ctypes.CDLL(str(binary.path)).add(1) == 2
    shutil.rmtree(binary.path.parent)


def test_cxx_is_used_first(bare: Machine, script: Script, real_path: str) -> None:
    script("g++", "echo wrong; exit 1")
    chosen = script("mine", f'PATH={real_path} exec g++ "$@"')
    machine = replace(bare, environment={**bare.environment, "CXX": f"{chosen} -DX"})
    assert find_host(machine).command == (str(chosen), "-DX")


def test_no_compiler(bare: Machine) -> None:
    with pytest.raises(TexprError, match="no C\\+\\+ compiler is found") as raised:
        find_host(bare)
    assert code(raised) == "E0601"
    assert "ziglang" in str(raised.value.diagnostics[0].help) or "[zig]" in str(raised.value.diagnostics[0].help)


def test_cxx_that_is_not_there(bare: Machine) -> None:
    with pytest.raises(TexprError, match="CXX is 'nope', which is not a program") as raised:
        find_host(replace(bare, environment={"PATH": "", "CXX": "nope"}))
    assert code(raised) == "E0602"


def test_a_program_that_cannot_be_started(bare: Machine, script: Script, tmp_path: Path) -> None:
    script("g++", "").write_bytes(b"\x7fELF not really")
    with pytest.raises(TexprError, match="cannot start") as raised:
        find_host(bare)
    assert code(raised) == "E0605"


def test_a_tool_that_hangs_is_stopped_with_its_children(bare: Machine, script: Script, real_path: str) -> None:
    program = script("slow", f"export PATH={real_path}; sleep 60 & wait")
    with pytest.raises(TexprError, match=r"took longer than 0\.2 s") as raised:
        run(bare, (program,), seconds=0.2)
    assert code(raised) == "E0606"


def test_a_compiler_that_cannot_compile_anything_is_the_machines_fault(bare: Machine, script: Script) -> None:
    script("g++", 'case "$*" in *--version*) echo 1.0;; *) echo "cannot execute cc1plus" >&2; exit 1;; esac')
    with pytest.raises(TexprError, match="does not compile even a small program") as raised:
        build_host(bare, find_host(bare), HostJob("sum", ADD, ONE))
    assert code(raised) == "E0607"
    assert any("cc1plus" in note.text for note in raised.value.diagnostics[0].notes)


def test_a_killed_compiler_is_the_machines_fault(bare: Machine, script: Script) -> None:
    script("g++", 'case "$*" in *--version*) echo 1.0;; *) kill -9 $$;; esac')
    with pytest.raises(TexprError, match="killed by signal 9") as raised:
        build_host(bare, find_host(bare), HostJob("sum", ADD, ONE))
    assert code(raised) == "E0607"


def test_a_full_disk_is_the_machines_fault(bare: Machine, script: Script) -> None:
    script("g++", 'case "$*" in *--version*) echo 1.0;; *) echo "error writing: No space left on device" >&2; exit 1;; esac')
    with pytest.raises(TexprError, match="the disk is full") as raised:
        build_host(bare, find_host(bare), HostJob("sum", ADD, ONE))
    assert code(raised) == "E0608"


def test_a_source_of_ours_that_does_not_compile_is_a_bug_and_is_kept(machine: Machine) -> None:
    with pytest.raises(CompilerBug, match="refuses a source") as raised:
        build_host(machine, find_host(machine), HostJob("bad", {"bad.c": "int f( {"}))
    (kept,) = (machine.cache / "refused").iterdir()
    assert (kept / "bad.c").read_text() == "int f( {" and str(kept) in str(raised.value)


def test_no_archiver(machine: Machine) -> None:
    host = replace(find_host(machine), archiver=None)
    with pytest.raises(TexprError, match="no `ar` is found") as raised:
        build_host(machine, host, HostJob("sum", ADD, ONE, static=True))
    assert code(raised) == "E0609"


def test_the_doctor_on_a_bare_machine_says_what_to_do(bare: Machine) -> None:
    findings = {f.subject: f for f in doctor(bare)}
    assert findings["C++ compiler"].state.value == findings["target cpu"].state.value == "missing"
    assert findings["C++ compiler"].help and findings["CUDA compiler"].help
    assert all(f.state.value == "missing" for s, f in findings.items() if s.startswith("target"))


def test_the_doctor_here_finds_the_compiler_that_is_used(machine: Machine) -> None:
    findings = {f.subject: f for f in doctor(machine)}
    assert find_host(machine).command[0] in findings["C++ compiler"].detail
    assert findings["target cpu"].state.value == "ok"
