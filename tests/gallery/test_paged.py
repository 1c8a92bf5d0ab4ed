"""Attention over pages: bugs planted in its plan are not proved, and change results; what is refused of such programs."""

from __future__ import annotations

from functools import cache

import ml_dtypes
import numpy as np
import pytest
from tests.gallery.test_tensor import FOLDER
from tests.lowering.emulated import run_plan
from tests.planted import Bug, is_proved, plain, with_bug

from texpr.checks import check
from texpr.driver import Compiled, load, lower
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.support.diagnostic import TexprError

SIZES = {"B": 3, "L": 2, "Hk": 1, "P": 5, "M": 2}
LENGTHS = (2, 65, 128)

BUGS = {
    "the page of the neighbour": Bug("= table[b, j_2_b]\n", "= table[b, min(j_2_b + 1, M - 1)]\n"),
    "always the first page": Bug("= table[b, j_2_b]\n", "= table[b, 0]\n"),
    "one key too many": Bug(" - 64) < i64(keys))", " - 64) < i64(keys + 1))", shown=False),  # it is behind all queries
    "the length of another sequence": Bug("let keys: i32 = length[b]", "let keys: i32 = length[0]"),
    "a block of keys too few": Bug("((keys + 63) / 64)", "(keys / 64)"),
    "a key behind the query": Bug("- 64) <= i64(128 * i_b + keys +", "- 64) <= i64(1 + 128 * i_b + keys +"),
}


@cache
def made() -> Compiled:
    return lower(load(FOLDER / "paged.te").functions[0], "sm_90a", {}, schedule="auto")


@cache
def given() -> dict[str, np.ndarray]:
    """Whole numbers; weights are powers of two."""
    rng = np.random.default_rng(5)
    shapes = {"Q": (3, 2, 4, 128), "K": (5, 64, 1, 128), "V": (5, 64, 1, 128)}
    found = {name: rng.integers(-1, 2, shape).astype(ml_dtypes.bfloat16) for name, shape in shapes.items()}
    found["Q"][..., 4:] = 0
    table = np.array([[4, 1], [0, 3], [2, 0]], np.int32)
    return found | {"table": table, "length": np.array(LENGTHS, np.int32), "scale": np.array(1.0, np.float32)}


def wanted() -> np.ndarray:
    """By NumPy."""
    of, result = {name: np.asarray(value, np.float64) for name, value in given().items()}, np.zeros((3, 2, 4, 128))
    for b, length in enumerate(LENGTHS):
        keys, values = (np.concatenate([of[n][int(p), :, 0] for p in of["table"][b]])[:length] for n in "KV")
        scores = np.einsum("ihd,jd->hij", of["Q"][b], keys)
        hidden = np.arange(length)[None] + 2 > length + np.arange(2)[:, None]
        scores[:, hidden] = -np.inf
        weights = 2.0 ** (scores - scores.max(-1, keepdims=True))
        result[b] = np.einsum("hij,jd->ihd", weights / weights.sum(-1, keepdims=True), values)
    return result


def result_of(plan: k.Plan, seed: int = 1) -> np.ndarray | None:
    """By the emulator; None where it reports a fault."""
    ran = run_plan(made().function, plan, given(), SIZES, seed=seed)
    return None if ran.reports else np.asarray(ran.arrays["O"]).astype(np.float64)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_close_to_numpy(seed: int) -> None:
    found = result_of(made().plan, seed)
    assert found is not None
    np.testing.assert_allclose(found, wanted(), rtol=2.0**-8, atol=2.0**-10)


@pytest.mark.long
@pytest.mark.planted
@pytest.mark.parametrize("name", BUGS)
def test_a_planted_bug_is_not_proved_and_is_shown(name: str) -> None:
    bug = with_bug(plain(made().plan), BUGS[name])
    assert not is_proved(made(), lambda: bug)
    found = result_of(bug) if BUGS[name].shown else None
    assert found is None or not np.allclose(found, wanted(), rtol=2.0**-8, atol=2.0**-10)


def test_keys_of_several_pages_are_no_block() -> None:
    text = (FOLDER / "paged.te").read_text(encoding="utf-8") + "schedule paged for sm_90a { online(j'2, 128) -> b_1 }\n"
    (function,) = parse(text).functions
    with pytest.raises(TexprError, match="data say what a key reads") as raised:
        lower(function, "sm_90a", {}, schedule=function.schedules[0])
    assert raised.value.diagnostics[0].code == "E0905"


@pytest.mark.parametrize(("old", "new"), [("table in 0..P", "table in 0..P + 1"), ("64 * M + 1", "64 * M + 65")])
def test_what_is_not_promised_is_out_of_bounds(old: str, new: str) -> None:
    """A page that there is not, and an entry of the table."""
    text = (FOLDER / "paged.te").read_text(encoding="utf-8")
    assert text.count(old) == 1
    codes = {each.code for each in check(parse(text.replace(old, new)).functions[0])}
    assert codes and codes <= {"E0401", "E0501"}
