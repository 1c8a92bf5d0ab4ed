"""Lines of `.te` in cubins: there, the same anywhere, and no instruction other than without them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from texpr import driver
from texpr.backends.cuda import headers, print_kernels
from texpr.isa.registry import resolve
from texpr.support.record import replace
from texpr.toolchain import Machine, compile_cuda, cuda, disassemble, find_nvcc, this_machine
from texpr.toolchain.lines import with_lines, without_folders

EXAMPLES = Path(__file__).parents[2] / "examples"
INSTRUCTION = re.compile(r"/\*[0-9a-f]{4,}\*/.*")


@pytest.fixture(scope="module")
def machine() -> Machine:
    return this_machine()


def source(name: str, target: str) -> str:
    function = driver.load(EXAMPLES / name).functions[0]
    return print_kernels(driver.lower(function, target).plan, resolve(target))


@pytest.mark.parametrize(
    ("name", "target"), [("softmax.te", "sm_80"), ("tma/matmul_ring.te", "sm_90a"), ("layernorm.te", "sm_100a")]
)
def test_lines_change_no_instruction(
    name: str, target: str, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nvcc, text = find_nvcc(machine), source(name, target)
    found = [compile_cuda(replace(machine, cache=tmp_path / place), nvcc, text, headers(), target) for place in ("a", "bb")]
    assert found[0] == found[1], "built twice, in two folders"
    assert Path(name).name.encode() in found[0].cubin and b"/tmp" not in found[0].cubin + found[0].ptx
    assert str(tmp_path).encode() not in found[0].cubin + found[0].ptx
    monkeypatch.setattr(cuda, "FLAGS", tuple(flag for flag in cuda.FLAGS if flag != "-lineinfo"))
    monkeypatch.setattr(cuda, "TO_CUBIN", tuple(flag for flag in cuda.TO_CUBIN if flag != "-lineinfo"))
    monkeypatch.setattr(cuda, "with_lines", lambda text: text)
    plain = compile_cuda(replace(machine, cache=tmp_path / "plain"), nvcc, text, headers(), target)
    assert found[0].kernels == plain.kernels
    ours, theirs = (INSTRUCTION.findall(disassemble(machine, nvcc, binary)) for binary in (found[0], plain))
    assert len(ours) > 20 and ours == theirs


def test_which_lines() -> None:
    text = source("softmax.te", "sm_90a")
    numbered = with_lines(text).splitlines()
    at = {int(number) for number in re.findall(r"TX_AT\((\d+)\)", text)}
    assert {int(line.split()[1]) for line in numbered if line.startswith("#line") and "softmax.te" in line} == at
    assert [line for line in numbered if not line.startswith("#line")] == text.splitlines(), "the text is as it was"


def test_names_without_folders() -> None:
    """Those of files, and of functions that nvcc keeps to a module, which are bytes in a section."""
    made, said = (
        "".join(f"{byte}," for byte in f"_ZN39_INTERNAL_{digits}_9_k".encode()) for digits in ("eeb448a8", "00000000")
    )
    ptx = f'\t.file\t1 "/tmp/x y/kernel.cu", 17, 4\n\t.file 2 "f.te"\n.b8 {made}0\n'
    assert without_folders(ptx) == f'\t.file\t1 "kernel.cu"\n\t.file 2 "f.te"\n.b8 {said}0\n'
