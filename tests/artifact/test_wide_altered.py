"""Wide plans that somebody altered, with all that follows from it: texts, programs, launchers, hashes. Each is refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from tests.planner.bare import PRODUCT, TURNED

import texpr
from texpr import artifact, delivery
from texpr.artifact.check.recheck import recheck
from texpr.artifact.texts.sources import Part
from texpr.support.record import replace

from .forging import forged, refusal, swap

APART = """
fn apart(x: bf16[m, n] stride(ld, 1), b: bf16[n], by: i32[]): bf16[m, n]
    where ld >= n
    assume by in 0..4
{
    new y: bf16[m, n]
    par m, n |i, j| { y[i, j] = x[i, j] + b[j] * bf16(f32(by)) }
    return y
}
"""
TEXT = f"{APART}{PRODUCT}{TURNED}"
Swap = tuple[str, str]
Edits = Mapping[str, Sequence[Swap]]

ALTERED: Mapping[str, tuple[str, Edits]] = {
    "a kernel adds something else": ("apart", {"plan": [("(v_x_3 + (v_b_3 *", "(v_x_3 + (v_b_2 *")]}),
    "a kernel stores elsewhere": ("apart", {"plan": [("vector y[i, 8 * j_part] =", "vector y[i, 0] =")]}),
    "a kernel leaves rows out": ("apart", {"plan": [("grid.y i_block < ((m + 7) / 8)", "grid.y i_block < (m / 8)")]}),
    "rows may begin anywhere": (
        "apart",
        {"plan": [("    require (ld % 8) == 0\n", "")], "te": [("    where ld % 8 == 0\n", "")]},
    ),
    "rows may end anywhere": (
        "apart",
        {"plan": [("    require (n % 8) == 0\n", "")], "te": [("    where n % 8 == 0\n", "")]},
    ),
    "half of it is asked for": (
        "apart",
        {"plan": [("(n % 8) == 0", "(n % 4) == 0")], "te": [("where n % 8 == 0", "where n % 4 == 0")]},
    ),
    "an array may begin at half of it": (
        "apart",
        {
            "plan": [("b: bf16[n] align 16", "b: bf16[n] align 8")],
            "te": [("b: bf16[n] align(16)", "b: bf16[n] align(8)")],
        },
    ),
    "a result may begin anywhere": (
        "apart",
        {
            "plan": [
                ("result y: bf16[m, n] align 16", "result y: bf16[m, n]"),
                ("y: bf16[m, n] align 16 role", "y: bf16[m, n] role"),
            ]
        },
    ),
    "it is for what a launcher does not look at": (
        "apart",
        {"plan": [("assume by in 0..4", "assume by in 0..1")], "te": [("assume by in 0 .. 4", "assume by in 0 .. 1")]},
    ),
    "a turn is not waited for": ("product", {"plan": [("wait 1 covers", "wait 2 covers")]}),
    "copies are of half a vector": ("product", {"plan": [("count 8", "count 4")]}),
    "rows of A may begin anywhere": (
        "product",
        {"plan": [("    require (p % 8) == 0\n", "")], "te": [("    where p % 8 == 0\n", "")]},
    ),
    "rows of B may begin anywhere": (
        "product",
        {"plan": [("    require (n % 8) == 0\n", "")], "te": [("    where n % 8 == 0\n", "")]},
    ),
    "rows of boxes may begin anywhere": (
        "boxes",
        {"plan": [("    require (p % 8) == 0\n", "")], "te": [("    where p % 8 == 0\n", "")]},
    ),
    "nobody waits": ("turned", {"plan": [("    barrier block covers RAW A_s", "    -- ")]}),
}
"""The plan, and what is changed of the texts of its wide one: in both programs what is under `te`."""

OF = {
    "apart": ("apart", "sm_90a"),
    "product": ("product", "sm_80"),
    "boxes": ("product", "sm_90a"),
    "turned": ("turned", "sm_90a"),
}
"""The function and the target of each plan."""


@pytest.fixture(scope="module")
def parts() -> Mapping[str, Part]:
    program = texpr.parse(TEXT)
    return {name: delivery.parts([program[function]], [target])[0] for name, (function, target) in OF.items()}


def changed(text: str, swaps: Sequence[Swap], must: bool = True) -> str:
    for old, new in swaps:
        assert old in text or not must, old
        text = text.replace(old, new)
    return text


def altered(part: Part, edits: Edits) -> Part:
    """With a wide plan and its programs changed."""
    wide = part.shown[0].wide
    assert wide is not None and wide.written is not None
    of = edits.get("te", ())
    made = replace(
        wide,
        plan=changed(wide.plan, edits.get("plan", ())),
        program=changed(wide.program, of),
        written=changed(wide.written, of),
    )
    return replace(part, shown=(replace(part.shown[0], wide=made),))


def test_what_nobody_altered_is_right(parts: Mapping[str, Part]) -> None:
    for part in parts.values():
        wrong, proofs = recheck([part])
        assert not wrong and "wide" in proofs[part.target][0]


@pytest.mark.parametrize("name", ALTERED)
def test_an_altered_plan_is_refused(parts: Mapping[str, Part], name: str) -> None:
    """By what is proved of it, whatever the files around it say."""
    plan, edits = ALTERED[name]
    wrong, _ = recheck([altered(parts[plan], edits)])
    assert any(f"{OF[plan][0]}.wide." in each for each in wrong), wrong


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, cuda_tools: object) -> Path:
    directory = tmp_path_factory.mktemp("wide") / "out"
    texpr.build(texpr.parse(TEXT)["turned"], ("sm_90a",), directory)
    return directory


def _launched_always(out: Path) -> None:
    swap(out, "src/turned.c", "if (tx_check_0_wide(", "if (TEXPR_OK == TEXPR_OK || tx_check_0_wide(")


def _of_smaller_multiples(out: Path) -> None:
    swap(out, "src/turned.c", "16", "4", count=-1)


def _another_kernel(out: Path) -> None:
    swap(out, "src/turned.c", "turned_B_wide", "turned_B", count=-1)


def _without_proof(out: Path) -> None:
    for path in (out / "proof" / "sm_90a").glob("turned.wide.*"):
        path.unlink()


def _without_tags(out: Path) -> None:
    (out / "proof" / "sm_90a" / "turned.wide.tags").unlink()


def _of_the_other_plan(out: Path) -> None:
    for path in (out / "proof" / "sm_90a").glob("turned.wide.*"):
        shutil.copy(path.with_name(path.name.replace(".wide", "")), path)


def _said_to_be_less(out: Path) -> None:
    swap(out, "proof.json", '"wide"', '"narrow"')


def _source(out: Path) -> None:
    (file,) = (path for path in (out / "src").glob("*.cu") if "turned_B_wide" in path.read_text(encoding="utf-8"))
    text = file.read_text(encoding="utf-8")
    head, mark, tail = text.partition("turned_B_wide(")
    file.write_text(head + mark + tail.replace("__syncthreads();", "", 1), encoding="utf-8")


EDITS: Mapping[Callable[[Path], None], str] = {
    _launched_always: "src/turned.c",
    _of_smaller_multiples: "src/turned.c",
    _another_kernel: "src/turned.c",
    _without_proof: "src/turned.c",
    _without_tags: "turned.wide.tags",
    _of_the_other_plan: "turned",
    _said_to_be_less: "proof.json",
    _source: ".cu",
}


def test_what_was_built_is_verified(built: Path) -> None:
    assert "wide" in artifact.verify(built).proofs["sm_90a"][0]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.__name__)
def test_an_altered_file_is_refused(built: Path, tmp_path: Path, edit: Callable[[Path], None]) -> None:
    """Hashes fit, and it is told of which file."""
    assert any(EDITS[edit] in each for each in refusal(forged(built, tmp_path / "out", edit)))
