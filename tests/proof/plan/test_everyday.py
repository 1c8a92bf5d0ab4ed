"""Kernels as users bring them, mapped as they stand and by the schedule that is found: each is proved for every size."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.proof.plan.verdicts import is_held_to, open_of

from texpr import driver
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.selection import AUTO
from texpr.proof.search import proved

FILES = sorted((Path(__file__).parent / "everyday").glob("*.te"))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("schedule", [AUTO, None], ids=["auto", "none"])
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_is_proved(file: Path, schedule: str | None, target: str) -> None:
    (function,) = driver.load(file).functions
    made = driver.lower(function, target, schedule=AUTO if schedule else None)
    assert open_of(proved(made.function, made.plan)) == []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("p[i, j] = p_own", "p[0, j] = p_own"),
        ("p[i, j] = p_own", "p[i, 0] = p_own"),
        ("max(top_own, p[i, j'1])", "max(top_own, p[0, j'1])"),
        ("max(top_own, p[i, j'1])", "max(top_own, p[i, 0])"),
        ("p[i, (s / 2)]", "p[i, 0]"),
    ],
)
def test_a_copy_of_another_iteration_is_not_its_own(right: str, wrong: str) -> None:
    (function,) = driver.load(Path(__file__).parent / "everyday" / "row_of_products.te").functions
    made = driver.lower(function, "sm_90a")
    text = plan_text(made.plan)
    assert text.count(right) == 1
    assert open_of(proved(made.function, parse_plan(text))) == []
    assert open_of(proved(made.function, parse_plan(text.replace(right, wrong)))) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("s[h, j] = (s[h, j]", "s[h, j + 1] = (s[h, j + 1]"),
        ("s: f32[H, L]", "s: f32[H, L - 1]"),
        ("s: f32[H, L]", "s: f32[H - 1, L]"),
    ],
)
def test_copies_of_what_data_index_are_in_bounds_as_the_program_is(right: str, wrong: str) -> None:
    (function,) = driver.load(Path(__file__).parent / "everyday" / "decode_attention.te").functions
    made = driver.lower(function, "sm_90a")
    assert is_held_to(made, right, wrong)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("id'1: i32 = id[i, 16 * k_group_1 + lane_2]", "id'1: i32 = id[i, 16 * k_group_1]"),
        ("id'1: i32 = id[i, k]", "id'1: i32 = id[i, w - 1]"),
        ("id'1: i32 = id[i, k]", "id'1: i32 = id[0, k]"),
    ],
)
def test_data_that_is_tested_in_lanes_is_of_its_own_iteration(right: str, wrong: str) -> None:
    """The loop is cut, so its index has other names: what is read says which iteration it is, and is not believed."""
    (function,) = driver.load(Path(__file__).parent / "everyday" / "embedding_bag.te").functions
    made = driver.lower(function, "cpu")
    text = plan_text(made.plan)
    assert text.count(right) == 1
    assert open_of(proved(made.function, parse_plan(text))) == []
    assert open_of(proved(made.function, parse_plan(text.replace(right, wrong)))) != []


@pytest.mark.parametrize(("right", "wrong"), [("s[w] = s_own", "s[0] = s_own"), ("s[w'1] = select", "s[0] = select")])
def test_an_element_that_is_changed_later_is_stored_in_its_own_place(right: str, wrong: str) -> None:
    (function,) = driver.load(Path(__file__).parent / "everyday" / "masked_scores.te").functions
    made = driver.lower(function, "cpu")
    text = plan_text(made.plan)
    assert text.count(right) == 1
    assert open_of(proved(made.function, parse_plan(text.replace(right, wrong)))) != []


def test_a_test_of_data_is_asked_once_for_all_that_it_chooses() -> None:
    """The second element of a tuple is chosen by what the first was, not by what it is then."""
    (function,) = driver.load(Path(__file__).parent / "everyday" / "top1_gate.te").functions
    made = driver.lower(function, "cpu")
    text = plan_text(made.plan)
    (asked,) = [line.strip().split("  --")[0] for line in text.splitlines() if line.strip().startswith("if (((next")]
    first = "top = next  -- line 11\n"
    assert text.count(first) == 1
    assert open_of(proved(made.function, parse_plan(text))) == []
    assert open_of(proved(made.function, parse_plan(text.replace(first, f"{first} }} {asked} \n")))) != []


@pytest.mark.planted
@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", ["recurrent", "recurrent_rows"])
def test_a_sum_of_two_loops_is_moved_whole_to_its_own_element(name: str, target: str) -> None:
    """In memory that the turns of a loop have one after the other."""
    (function,) = driver.load(Path(__file__).parent / "everyday" / f"{name}.te").functions
    made = driver.lower(function, target)
    text = plan_text(made.plan)
    stored = next(line for line in text.splitlines() if "g[" in line and "] = g_own_1" in line)
    place = stored.strip().split(" = ")[0]
    first, second = place[2:-1].split(", ")
    for wrong in (
        text.replace(f"{stored}\n", ""),
        text.replace(stored, stored.replace("g_own_1", "g_own")),
        text.replace(stored, f"{stored}\n{stored.replace('g_own_1', 'g_own')}"),
        text.replace(f"{place} =", f"g[0, {second}] ="),
        text.replace(f"{place} =", f"g[{first}, 0] ="),
        text.replace("let g_own_1: f32 = g_own ", "let g_own_1: f32 = 0:f32 "),
    ):
        assert wrong != text
        assert open_of(proved(made.function, parse_plan(wrong))) != []
