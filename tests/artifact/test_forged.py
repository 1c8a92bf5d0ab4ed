"""Artifacts that somebody edited who then made the hashes fit: nothing of what is emitted is believed."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import texpr
from texpr.artifact.record import read_record
from texpr.backends.cuda import print_kernels
from texpr.ir.kernel.origin import printed_plan
from texpr.isa.registry import resolve

from .forging import forged, refusal, swap

TEXT = """
fn flip(a: f32[n], b: f32[n]): f32[n] {
    new y: f32[n]
    par n / 256 |i| {
        new t: f32[256]
        par 256 |j| { t[j] = a[256 * i + j] }
        par 256 |j| { y[256 * i + j] = t[255 - j] - b[256 * i + j] }
    }
    return y
}
"""
TEXT = TEXT.replace("n] {\n    new y", "n] where n % 256 == 0 {\n    new y", 1)


@pytest.fixture(scope="module")
def cuda(tmp_path_factory: pytest.TempPathFactory, cuda_tools: object) -> Path:
    directory = tmp_path_factory.mktemp("cuda") / "out"
    texpr.build(texpr.parse(TEXT)["flip"], "sm_90a", directory)
    return directory


@pytest.fixture(scope="module")
def cpu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("cpu") / "out"
    texpr.build(texpr.parse(TEXT)["flip"], "cpu", directory)
    return directory


def continued(out: Path) -> None:
    swap(out, "src/flip.cu", "    __syncthreads();", "    // joined \\\n    __syncthreads();")


def behind_a_mark(out: Path) -> None:
    swap(out, "src/flip.cu", "    TX_AT(6)", "    TX_AT(6) y[0] = 3.0f;")


def defined_away(out: Path) -> None:
    swap(out, "src/flip.cu", "#include", "#define __syncthreads() ((void)0)\n#include")


def decoy(out: Path) -> None:
    shutil.copy(out / "src/flip.cu", out / "src/flip_decoy.cu")
    swap(out, "src/flip.cu", "255 - ", "254 - ")


def without_proof(out: Path) -> None:
    shutil.rmtree(out / "proof")
    (out / "proof.json").unlink()


def without_program(out: Path) -> None:
    for end in ("te", "tags"):
        (out / f"proof/sm_90a/flip.{end}").unlink()


def swapped(text: str, clause: str) -> str:
    """A plan of which the first and the last line of a kind, in its kernel, stand in each other's place."""
    head, kernel = text.split("kernel ", 1)
    lines = kernel.split("\n")
    at = [i for i, line in enumerate(lines) if line.startswith(f"    {clause} ")]
    lines[at[0]], lines[at[-1]] = lines[at[-1]], lines[at[0]]
    return f"{head}kernel " + "\n".join(lines)


def swapped_parameters(out: Path) -> None:
    """In the plan and in its print, but not where the kernel is launched: an input would be overwritten."""
    plan = out / "proof/sm_90a/flip.plan"
    plan.write_text(swapped(plan.read_text(), "buffer"))
    origin = read_record(json.loads((out / "manifest.json").read_text())).origins["flip"]
    (out / "src/flip.cu").write_text(print_kernels(printed_plan(plan.read_text(), "", origin), resolve("sm_90a")))


def launcher(out: Path) -> None:
    swap(out, "src/flip.c", "TEXPR_BAD_SIZE", "TEXPR_OK")


def device_header(out: Path) -> None:
    swap(out, "src/texpr_device.h", "#define TX_AT(", "#define TX_OFF(")


def manifest_target(out: Path) -> None:
    swap(out, "manifest.json", '"sm_90a"', '"sm_100a"')


def note(out: Path) -> None:
    (out / "README.txt").write_text("Trust me.\n")


def empty_folder(out: Path) -> None:
    (out / "src" / "more").mkdir()


FORGERIES: list[Callable[[Path], None]] = [
    continued, behind_a_mark, defined_away, decoy, without_proof, without_program, swapped_parameters, launcher, device_header,
    manifest_target, note, empty_folder,
]  # fmt: skip


@pytest.mark.parametrize("edit", FORGERIES, ids=lambda edit: edit.__name__)
def test_a_forged_artifact_is_refused(cuda: Path, tmp_path: Path, edit: Callable[[Path], None]) -> None:
    assert refusal(forged(cuda, tmp_path / "out", edit))


@pytest.mark.parametrize(
    "end", ["proof/cpu/flip.te", "proof/cpu/flip.tags", "proof/cpu/flip.plan", "proof.json", "manifest.json"]
)
def test_what_a_proof_needs_is_there(cpu: Path, tmp_path: Path, end: str) -> None:
    refusal(forged(cpu, tmp_path / "out", lambda out: (out / end).unlink()), "E0820" if end == "manifest.json" else "E0821")


@pytest.mark.parametrize("kind", ["link", "zero", "fifo", "folder link"])
def test_what_is_no_plain_file_is_refused(cpu: Path, tmp_path: Path, kind: str) -> None:
    def edit(out: Path) -> None:
        path = out / "src/flip.cpp"
        match kind:
            case "link":
                shutil.copy(path, tmp_path / "flip.cpp")
                path.unlink()
                path.symlink_to(tmp_path / "flip.cpp")
            case "zero":
                path.unlink()
                path.symlink_to("/dev/zero")
            case "fifo":
                path.unlink()
                os.mkfifo(path)
            case _:
                shutil.move(out / "src", tmp_path / "src")
                (out / "src").symlink_to(tmp_path / "src")

    if kind in ("zero", "fifo"):
        shutil.copytree(cpu, tmp_path / "out")
        edit(tmp_path / "out")
        assert refusal(tmp_path / "out")
    else:
        assert refusal(forged(cpu, tmp_path / "out", edit))
