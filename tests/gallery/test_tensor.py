"""The gallery of tensor cores: each program is given to the instruction that its page names, proved, and right in the emulator.

Numbers on the pages are those of `texpr explain`: bounds of the model, and no times.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from tests.lowering.emulated import results, run_plan
from tests.machine_code import built, code_of, serialised, spills_nothing
from tests.proofs import undecided

from texpr.checks import check
from texpr.cli import main
from texpr.driver import Compiled, load, lower
from texpr.interp import run
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.support.record import Record

ROOT = Path(__file__).parents[2]
FOLDER, PAGES = ROOT / "examples" / "tensor", ROOT / "docs" / "gallery" / "tensor"
KINDS = {
    "f8e4m3": ml_dtypes.float8_e4m3fn, "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32, "i8": np.int8,
    "u8": np.uint8, "i32": np.int32,
}  # fmt: skip


class Case(Record):
    """`given`: the instructions by target; `sizes`: some to run it at; `code`: what machine code calls the unit; `scales`:
    arrays of powers of two, all others are of whole numbers; `apart`: how far results may be from those of the interpreter;
    `known`: sizes that machine code is looked at for, where it is not that of open ones."""

    given: Mapping[str, str]
    sizes: tuple[dict[str, int], ...]
    code: str
    scales: tuple[str, ...] = ()
    apart: float = 0.0
    known: tuple[tuple[str, int], ...] = ()


def sizes(names: str, *every: tuple[int, ...]) -> tuple[dict[str, int], ...]:
    return tuple(dict(zip(names.split(), each, strict=True)) for each in every)


CASES = {
    "bf16": Case(
        {"sm_90a": "wgmma_m64n256k16_f32_bf16_bn", "sm_80": "mma_m16n8k16_f32_bf16"},
        sizes("M N K", (67, 16, 136), (1, 8, 8), (3, 8, 0)), "HGMMA",
    ),
    "tf32": Case(
        {"sm_90a": "wgmma_m64n256k8_f32_tf32", "sm_80": "mma_m16n8k8_f32_tf32"},
        sizes("M N K", (67, 13, 68), (1, 1, 4), (3, 5, 0)), "HGMMA",
    ),
    "int8": Case(  # at open sizes, where lanes store: by the model warpgroups take 2 % more then
        {"sm_90a": "mma_m16n8k32_i32_i8", "sm_80": "mma_m16n8k32_i32_i8"},
        sizes("M N K", (67, 16, 272), (1, 8, 16), (3, 8, 0)), "IMMA", ("a", "b"),
    ),
    "fp8": Case(
        {"sm_90a": "wgmma_m64n128k32_f32_f8e4m3"}, sizes("M N K", (67, 1, 2), (1, 1, 1), (3, 1, 0)), "QGMMA", ("a", "b")
    ),
    "conv": Case(
        {"sm_90a": "wgmma_m64n256k16_f32_bf16_bn", "sm_80": "mma_m16n8k16_f32_bf16"},
        sizes("B H W C F", (1, 2, 3, 64, 8), (1, 1, 1, 64, 8), (1, 2, 2, 0, 8)), "HGMMA",
    ),
    "fused": Case(
        {"sm_90a": "wgmma_m64n256k16_f32_bf16", "sm_80": "mma_m16n8k16_f32_bf16"},
        sizes("M N K", (67, 16, 72), (1, 8, 8), (3, 8, 0)), "HGMMA", apart=2.0**-7,
    ),
    "weights4": Case(  # weights have sizes that are known; ptxas waits for each product where the sum has any length
        {"sm_90a": "wgmma_m64n128k16_f32_bf16_ar", "sm_80": "mma_m16n8k16_f32_bf16"},
        sizes("M N G", (67, 48, 2), (1, 16, 1), (3, 16, 0)), "HGMMA", ("scale",), known=(("N", 4096), ("G", 32)),
    ),
    "paged": Case(  # `scale` is a whole number, so weights are powers of two
        {"sm_90a": "wgmma_m64n64k16_f32_bf16 wgmma_m64n128k16_f32_bf16_ar_bn"},
        sizes("B L Hk P M", (3, 3, 1, 4, 2), (1, 66, 1, 1, 1)), "HGMMA", apart=2.0**-8,
    ),
}  # fmt: skip
EACH = [(name, target) for name, case in CASES.items() for target in case.given]


@cache
def compiled(name: str, target: str, known: tuple[tuple[str, int], ...] = ()) -> Compiled:
    (function,) = load(FOLDER / f"{name}.te").functions
    return lower(function, target, dict(known), schedule="auto")


def arguments(name: str, at: Mapping[str, int]) -> dict[str, np.ndarray]:
    """Whole numbers, so that sums are exact; scales are powers of two, and tables as is promised."""
    rng, found = np.random.default_rng(3), dict[str, np.ndarray]()
    (function,) = load(FOLDER / f"{name}.te").functions
    at = {**{sym.name: value for sym, value in function.consts if value is not None}, **at}
    ends = {each.buffer: (each.lo, each.hi) for each in function.assumes if isinstance(each, ir.InRange)}
    for buffer in function.params:
        shape = tuple(e.evaluate({s: at[s.name] for s in e.syms()}) for e in buffer.shape)
        made = 2.0 ** rng.integers(-2, 1, shape) if buffer.name in CASES[name].scales else rng.integers(-3, 4, shape)
        made = rng.integers(0, 256, shape) if buffer.dtype.name == "u8" else made
        if buffer in ends:
            low, high = (e.evaluate({s: at[s.name] for s in e.syms()}) for e in ends[buffer])
            made = rng.integers(low, high, shape)
        found[buffer.name] = np.asarray(made).astype(KINDS[buffer.dtype.name])
    return found


def test_each_program_has_a_page_and_a_case() -> None:
    assert {path.stem for path in FOLDER.glob("*.te")} == CASES.keys() == {p.stem for p in PAGES.glob("*.md")} - {"README"}
    listed = (PAGES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.md)" in listed for name in CASES)


@pytest.mark.parametrize("name", CASES)
def test_the_page_shows_the_program(name: str) -> None:
    text = (FOLDER / f"{name}.te").read_text(encoding="utf-8")
    assert f"```te\n{text}```" in (PAGES / f"{name}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", CASES)
def test_is_legal(name: str) -> None:
    assert [*check(load(FOLDER / f"{name}.te").functions[0])] == []


@pytest.mark.parametrize(("name", "target"), EACH)
def test_given_to_its_instruction_and_proved(name: str, target: str) -> None:
    made = compiled(name, target)
    used = {instr.name for kernel in k.kernels(made.plan.steps) for instr in kernel.instrs if instr.sums or "i32" in instr.name}
    assert {each for each in used if "mma" in each} == {*CASES[name].given[target].split()}
    assert [*undecided(made.function, made.plan)] == []


@pytest.mark.parametrize(("name", "target"), EACH)
def test_emulated(name: str, target: str) -> None:
    made, (function,) = compiled(name, target), load(FOLDER / f"{name}.te").functions
    for at in CASES[name].sizes:
        given = arguments(name, at)
        wanted = run(function, given, at)
        ran = run_plan(made.function, made.plan, given, at, seed=1)
        assert not ran.reports, (at, ran.reports[0])
        for result, value in results(made.function, ran).items():
            got, meant = np.asarray(value).astype(np.float64), np.asarray(wanted[result]).astype(np.float64)
            none = np.isnan(got) & np.isnan(meant)
            assert np.all(none | (np.abs(got - meant) <= CASES[name].apart * np.abs(meant))), (result, at)


def test_whole_numbers_go_to_warpgroups_at_sizes_of_a_network() -> None:
    """Where sizes are known the engine stores, and warpgroups are ahead."""
    (function,) = load(FOLDER / "int8.te").functions
    made = lower(function, "sm_90a", {"M": 4096, "N": 4096, "K": 4096}, schedule="auto")
    found = built(made.source)
    assert spills_nothing(found) and serialised(found) == [] and "IGMMA.64x256x32.S8.S8" in code_of(found)


@pytest.mark.parametrize("name", CASES)
def test_machine_code(name: str) -> None:
    """The tensor core is used, and nothing spills or waits where it was not to."""
    found = built(compiled(name, "sm_90a", CASES[name].known).source)
    assert spills_nothing(found) and serialised(found) == [] and CASES[name].code in code_of(found)


LABEL = re.compile(r" {2,4}[^ ].*:  ")


def shown(told: str) -> str:
    """Of what `explain` says: the bound, and what goes to tensor cores. Other lines depend on what tools are there."""
    lines = told.splitlines()
    starts = [at for at, line in enumerate(lines) if line.startswith(("  bound:", "  tensor cores:"))]
    found = [lines[0]]
    for at in (starts[0], *(at for at in starts if lines[at].startswith("  tensor"))):
        rest = lines[at + 1 :]
        end = next((n for n, line in enumerate(rest) if not line.startswith("     ")), len(rest))
        found += ["  …", *lines[at : at + 1 + end]]
    return "\n".join(found) + "\n"


@pytest.mark.parametrize("name", CASES)
def test_the_page_says_what_explain_says(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, golden: Callable[[Path, str], None]
) -> None:
    monkeypatch.chdir(ROOT)
    path = PAGES / f"{name}.md"
    page = path.read_text(encoding="utf-8")
    found = re.search(r"^```console\n\$ texpr (explain [^\n]*)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    main(found[1].split())
    told = shown(capsys.readouterr().out)
    golden(path, page[: found.start(2)] + told + page[found.end(2) :])
