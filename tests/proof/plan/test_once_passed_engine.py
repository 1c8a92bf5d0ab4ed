"""Plans that are wrong and once were proved: what is moved at once, and what blocks of a cluster have in common."""

from __future__ import annotations

import pytest
from tests.proof.plan.sound_engine import ENGINE, PRODUCT, VECTOR, shared, tiles
from tests.proof.plan.verdicts import is_proved
from tests.schedule.laid import laid

from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.proof.plan import prove, question
from texpr.proof.search import proved, search
from texpr.support.record import replace


def is_right(program: str, schedule: str, *changes: tuple[str, str], to: str | None = None) -> bool:
    """Whether what is lowered, with changes to its text, is proved; of the program `to`, laid out without vectors or copies,
    where one is given."""
    made = laid(program, schedule)
    lines = [line.split("  -- line")[0] for line in plan_text(made.plan).splitlines()]
    text = "\n".join(lines)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return is_proved(proved(made.function if to is None else laid(to, _plain(schedule)).function, parse_plan(text)))


def _plain(schedule: str) -> str:
    """The same loops, moved element by element."""
    return schedule.split("vectorize")[0].replace("via=bulk", "via=ld").replace("via=cp_async", "via=ld")


NARROW, WIDE = (
    f"""
fn f(x: i32[n, {width}] align(16)): i32[n, 8] {{
    new y: i32[n, 8]
    par n |i| {{ par 8 |j| {{ y[i, j] = x[i, j] }} }}
    return y
}}"""
    for width in (10, 12)
)
STAGED = "bind(i, grid.x) stage(x, at=i, in=shared, via={}) -> xs "
MOVED = {
    "a vector": "bind(i, grid.x) split(j, 4) -> (o, v) bind(o, block.x) vectorize(v, 4)",
    "vectors": STAGED.format("ld") + "vectorize(xs_1, 4)",
    "a copy": STAGED.format("cp_async") + "vectorize(xs_1, 4)",
    "a run": STAGED.format("bulk"),
}


@pytest.mark.parametrize("name", MOVED)
def test_what_is_moved_at_once_is_aligned(name: str) -> None:
    """Rows of 48 bytes begin at multiples of 16, those of 40 bytes do not: lowering knew, and nobody asked again."""
    assert is_right(WIDE, MOVED[name])
    assert not is_right(WIDE, MOVED[name], ("i32[n, 12]", "i32[n, 10]"), to=NARROW)


@pytest.mark.parametrize("by", [1, 2, 4])
def test_a_run_is_aligned_in_shared_memory(by: int) -> None:
    wide, run = ("i32[1, 8]", "i32[1, 12]"), ("bulk xs[0, 0]", f"bulk xs[0, {by} * (i % 2)]")
    read = "xs[0, j]", f"xs[0, j + {by} * (i % 2)]"
    assert is_right(WIDE, MOVED["a run"], wide, run, read) is (by == 4)


def test_tiles_of_a_ring_are_aligned() -> None:
    """Stages lie 128 bytes apart, of which a tile takes 32."""
    assert is_right(*ENGINE["ring for two"])
    assert not is_right(*ENGINE["ring for two"], ("i32[2, 4, 8]", "i32[2, 1, 8]"))
    rows = ("ws[(k % 2), 0, 0]", "ws[0, (k % 2), 0]"), ("ws[((k + 1) % 2), 0, ", "ws[0, ((k + 1) % 2), ")
    assert not is_right(*ENGINE["ring for two"], ("i32[2, 4, 8]", "i32[1, 4, 8]"), *rows)


def few(count: int) -> str:
    return f"""
fn f(x: i32[2, 8] align(16)): i32[2, {count}] {{
    new y: i32[2, {count}]
    par 2 |b| {{ par {count} |j| {{ y[b, j] = x[b, j] }} }}
    return y
}}"""


@pytest.mark.parametrize("count", [4, 7, 8])
def test_a_run_of_a_length_that_is_computed_is_of_whole_chunks(count: int) -> None:
    schedule, own = "bind(b, grid.x) stage(x, at=b, in=shared, via=bulk) -> xs", f"{count} + min(b, 0)"
    changes = ("count 8 arrives", f"count 8 exactly {own} arrives"), ("bytes 32", f"bytes 32 exactly 4 * ({own})")
    fewer = ("y: i32[2, 8]", f"y: i32[2, {count}]"), ("i32(8)", f"i32({count})")
    assert is_right(few(8), schedule, *changes, *fewer, to=few(count)) is (count % 4 == 0)


FLOATS = """
fn f(x: f32[n, 8] align(16)): f32[n, 8] {
    new y: f32[n, 8]
    par n |i| { par 8 |j| { y[i, j] = x[i, j] } }
    return y
}"""


@pytest.mark.parametrize("element", ["float32_ftz", "tfloat32", "tfloat32_ftz"])
@pytest.mark.parametrize("map", ["x_map", "y_map"])
def test_numbers_are_moved_as_they_are(map: str, element: str) -> None:
    """As some types of the driver's, numbers are rounded on their way."""
    schedule = STAGED.format("tma") + "stage(y, at=i, in=shared, via=tma) -> ys"
    (line,) = (each for each in plan_text(laid(FLOATS, schedule).plan).splitlines() if f"map {map} of" in each)
    assert is_right(FLOATS, schedule, (line, f"{line} as float32"))
    assert not is_right(FLOATS, schedule, (line, f"{line} as {element}"))


@pytest.mark.parametrize("extent", ["2 * ((n + 1) / 2) + 1", "n", "2 * ((n + 1) / 2) * 3 - 1"])
def test_a_grid_has_whole_clusters(extent: str) -> None:
    """Else there is no launch."""
    assert is_right(*ENGINE["vector for two"], ("2 * ((n + 1) / 2)", "2 * ((n + 3) / 2)"))
    assert not is_right(*ENGINE["vector for two"], ("2 * ((n + 1) / 2)", extent))


KEPT = VECTOR.replace("{ par 8 |j|", "{ new a: i32[8] par 8 |p| { a[p] = x[i, p] } par 8 |j|").replace("= x[i, j]", "= a[j]")
GUARD = "    if (i32(i) < i32(n)) uniform {\n        let p: i32", "    if (0:i32 == 0:i32) uniform {\n        let p: i32"


def test_a_block_that_fills_a_cluster_reads_what_is_there() -> None:
    """It does nothing that anyone sees, so what it reads was taken for the program's own elements."""
    schedule = f"place(a, shared) {shared('i')}"
    assert is_right(KEPT, schedule)
    assert not is_right(KEPT, schedule, GUARD)


def test_a_box_for_it_is_of_the_tensor() -> None:
    """The same of its boxes, which begin behind the columns that there are: a map with more of them ends behind the tensor."""
    schedule = tiles("cluster(bj, 2) cluster(bi, 2)", ", multicast=bi")
    assert is_right(PRODUCT, schedule)
    assert not is_right(PRODUCT, schedule, ("sizes [max(4 * m, 1), 8]", "sizes [max(4 * m, 1) + 4, 8]"))


HALVES = {
    "a tile": (
        """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| { y[i] = x[i] * 3 }
    return y
}""",
        "split(i, 4) -> (b, t)  bind(t, block.x)  stage(x, at=b, in=shared) -> kept",
        "y[4 * b + t_1] = (kept[t_1] * 3:i32)",
        "kept[t_1] = x[0]",
    ),
    "a register": (
        """
fn f(x: i32[n, 4]): i32[n] {
    new y: i32[n]
    par n |i| { new kept: i32 = 0  seq 4 |q| reduce(kept) { kept += x[i, q] }  y[i] = kept }
    return y
}""",
        "split(i, 4) -> (b, t)  split(q, 2) -> (o, v)  reorder(b, o, t, v)",
        "y[4 * b + t_2_1] = kept",
        "kept = 0:i32",
    ),
}


@pytest.mark.parametrize("name", HALVES)
def test_an_arm_is_no_block_that_fills_a_cluster(name: str) -> None:
    """What one arm writes again was taken for the statement of the other arm, in blocks that do nothing: nobody saw it."""
    program, schedule, line, again = HALVES[name]
    made = laid(program, f"{schedule}  bind(b, grid.x)  cluster(b, 2)  partition(b)")
    text = "\n".join(each.split("  -- line")[0] for each in plan_text(made.plan).splitlines())
    assert line in text
    right, plan = parse_plan(text), parse_plan(text.replace(line, f"{again}  {line}"))
    asked = question(made.function, right)
    tags = search(asked)
    assert is_proved(prove(asked, right, tags))
    at = len(tags.events) - 1  # what stores the result in the other arm
    ends = (*tags.ends[:at], (), *tags.ends[at:])
    for tag in {tag for tag in tags.events if tag is not None}:
        more = replace(tags, events=(*tags.events[:at], tag, *tags.events[at:]), ends=ends)
        assert not is_proved(prove(question(made.function, plan), plan, more))
