"""Plans that are wrong and once were proved, each with what it was that nobody asked. Random alterations found most of them."""

import pytest
from tests.proof.plan.sound_memory import ASKED, MEMORY
from tests.proof.plan.sound_programs import ATOMICS, LENGTHS
from tests.proof.plan.verdicts import is_proved
from tests.schedule.laid import laid, lowered

from texpr import driver
from texpr.affine.expr import sym
from texpr.frontend import parse
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.proof.tags import Moved, Statement
from texpr.isa.levels import Space
from texpr.proof.plan import prove, question
from texpr.proof.search import proved, search
from texpr.support.record import replace

TESTED = """
fn f(x: i32[n]): (i32[n], i32[n]) {
    new y: i32[n]
    new z: i32[n]
    par n |i| {
        y[i] = 3
        if x[i] > 0 { y[i] = y[i] * 2 }
        z[i] = y[i]
    }
    return (y, z)
}"""
SUMMED = """
fn f(x: i32[n, n]): i32[n, n] {
    new y: i32[n, n]
    par n |i| { par n |j| {
        y[i, j] = 0
        seq i + 1 |k| { y[i, j] = y[i, j] + x[i, k] * x[k, j] }
    } }
    return y
}"""
GUARDED = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        y[i] = 0
        if i + 2 < n { y[i] = x[i + 2] }
    }
    return y
}"""


KEPT = """
fn f(x: i32[n]): (i32[n], i32[n]) {
    new y: i32[n]
    new z: i32[n]
    par n |i| {
        new p: i32
        new t: i32
        p = 0
        t = x[i] + p
        p = 1
        y[i] = x[i] + p
        z[i] = t + p
    }
    return (y, z)
}"""


def is_right(program: str, *changes: tuple[str, str]) -> bool:
    """Whether what is lowered of `program`, with changes to its text, is proved."""
    made = driver.lower(driver.parse(program)["f"], "sm_90a")
    text = plan_text(made.plan)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return is_proved(proved(made.function, parse_plan(text)))


OWN = ("        y[i] = 3:i32", "        let own: i32 = 0:i32\n        y[i] = 3:i32")
DOUBLED = (
    "            y[i] = (y[i] * 2:i32)",
    "            own = y[i]\n            own = (own * 2:i32)\n            y[i] = own",
)


EARLY = ("if (i64(i + 2)", "let e: i32 = x[i + 2]\n        if (i64(i + 2)"), ("y[i] = x[i + 2]", "y[i] = e")


MOVING = (
    ("{\n    let i:", "    array local k: i32[2]\n{\n    let i:"),
    ("let t: i32", "k[p % 2]"),
    ("(t + p)", "(k[p % 2] + p)"),
)
ROWS = """
fn f(first: i32[m + 1], x: i32[nnz]): i32[m]
    assume first in 0..nnz + 1
{
    new y: i32[m]
    par m |i| {
        new s: i32
        s = 0
        seq first[i + 1] - first[i] |k| { s = s * 2 + x[min(first[i] + k, nnz - 1)] }
        y[i] = s
    }
    return y
}"""

CHOSEN = """
fn f(x: i32[n, m], t: i32): i32[n] {
    new y: i32[n]
    par n |i| {
        new s: i32 = 0
        seq m |j| { s = select(s < t, s + x[i, j], s) }
        y[i] = s
    }
    return y
}"""
EACH = ("s = select((s < t[]), (s + x[i, j]), s)", "if (s < t[]) { s = (s + x[i, j]) }")
ONCE = (
    ("for j in 0..m {  -- line 6\n            s = select((s < t[]), (s + x[i, j]), s)", "if (s < t[]) {"),
    ("  -- line 6\n        }\n", "\n            for j in 0..m { s = (s + x[i, j]) }\n        }\n"),
)


@pytest.mark.parametrize(
    ("program", "changes"),
    [
        # a copy under a test of data was taken for one that is always made
        (TESTED, (OWN, DOUBLED, ("z[i] = y[i]", "z[i] = own"))),
        # of a result that no statement touches nothing was asked
        (SUMMED, (("        y[i, j] = y_own", ""), ("    writes y\n", ""))),
        # a register in a subscript was taken for one number at all times
        (KEPT, MOVING),
        # where a register names the end of a loop, it was taken for what the program calls so
        (ROWS, (("= first[i + 1]", "= first[i]"),)),
        (ROWS, (("= first[i + 1]", "= 7:i32"),)),
        # what is read before the guard under which alone it is wanted, was asked about under the guard alone
        (GUARDED, EARLY),
        # and what is wanted nowhere, nowhere
        (GUARDED, (("        y[i] = 0:i32", "        let e: i32 = x[i + 2]\n        y[i] = 0:i32"),)),
        (GUARDED, (("        y[i] = 0:i32", "        if (x[i + 2] > 0:i32) {\n        }\n        y[i] = 0:i32"),)),
        # a test of data that chooses what is stored was taken to be asked wherever that is stored, each time
        (CHOSEN, ONCE),
    ],
    ids=[
        "tested", "unwritten", "moving", "another end", "an end of its own", "before its guard", "unwanted", "unwanted test",
        "asked once",
    ],
)  # fmt: skip
def test_what_once_passed_is_refused(program: str, changes: tuple[tuple[str, str], ...]) -> None:
    assert is_right(program)
    assert not is_right(program, *changes)


def test_what_is_stored_may_be_chosen_each_time() -> None:
    assert is_right(CHOSEN, EACH)


def test_what_is_read_early_may_be_right() -> None:
    early = ("        y[i] = 0:i32", "        let e: i32 = x[i]\n        y[i] = 0:i32")
    assert is_right(GUARDED, early)
    assert is_right(GUARDED, ("        y[i] = 0:i32", "        if (x[i] > 0:i32) {\n        }\n        y[i] = 0:i32"))


def test_sums_of_two_statements_have_an_order() -> None:
    """Updates of one `reduce` may come in any order, but those of the next one are others."""
    made = driver.lower(driver.parse(ATOMICS)["f"], "sm_90a")
    text = plan_text(made.plan).replace(" dependent\n", "\n")
    head, *kernels = text.split("\nkernel ")
    first, second = (body[body.index("{\n") + 2 : body.rindex("}")] for body in kernels[-2:])
    name = kernels[-1].split()[0]
    joined = head.replace(f"    launch {name}\n", ""), *kernels[:-2], kernels[-2].replace(first, first + second)
    assert is_proved(proved(made.function, made.plan))
    assert not is_proved(proved(made.function, parse_plan("\nkernel ".join(joined))))


NAMED = """
fn f(x: i32[n, m], v: i32[n, 4]): i32[n]
    assume x in 0..4
{
    new y: i32[n]
    par n |i| {
        new t: i32[4]
        new s: i32
        seq 4 |q| { t[q] = v[i, q] }
        s = 0
        seq m |k| { s = s + t[x[i, k] % 4] }
        y[i] = s
    }
    return y
}"""


def test_no_tag_says_which_element_data_names() -> None:
    """An element that is read once, before the loop in which data names another one each time."""
    made = driver.lower(driver.parse(NAMED)["f"], "sm_90a")
    text = plan_text(made.plan)
    element = text[text.index("(s + t[") + 5 : text.index("]])") + 2]
    early = f"let c: i32 = 0:i32\n        c = {element.replace('x[i, k]', 'x[i, 0]')}\n        for k in"
    plan = parse_plan(text.replace(element, "c").replace("for k in", early))
    asked = question(made.function, plan)
    tags = search(asked)
    start, zero, last = tags.events[0], tags.events[1], sym("k")
    assert isinstance(start, Statement) and isinstance(zero, Statement)
    events = list(tags.events)
    (i,) = zero.indices
    events[3] = Moved(0, (i,), 1, (sym("x'd1") % 4,), zero.inverse)
    events[4] = Statement(2, (i, last), (*zero.inverse, last))
    assert not is_proved(prove(asked, plan, replace(tags, events=tuple(events))))


TWO = """
fn f(x: i32[n]): i32[n] {
    new y: i32[n]
    par n |i| {
        new a: i32
        new b: i32
        a = x[i]
        a = a + 3
        b = x[i] * 2
        b = b + 5
        y[i] = FIRST + SECOND
    }
    return y
}"""

ONE = """        let a: i32 = x[i]
        a = (a + 3:i32)
        a = (x[i] * 2:i32)
        a = (a + 5:i32)
        y[i] = (a + a)
    }
}
"""


@pytest.mark.parametrize(
    ("meant", "right"),
    [
        (("a", "b"), False),  # of two registers one is left
        (("b", "b"), True),  # what the first kept, nobody wants any more
    ],
)
def test_one_register_for_two(meant: tuple[str, str], right: bool) -> None:
    made = driver.lower(driver.parse(TWO.replace("FIRST", meant[0]).replace("SECOND", meant[1]))["f"], "sm_90a")
    text = plan_text(made.plan)
    assert is_proved(proved(made.function, parse_plan(text[: text.index("        let a")] + ONE))) is right


WAITED = """
fn f(x: i32[n, 8], z: i32[n]): (i32[n, 8], i32[n, 8]) {
    new y: i32[n, 8]
    new w: i32[n, 8]
    par n |i| #bind(grid.x) {
        par 8 |o| { y[i, o] = 1 }
        new a: i32[8]
        par 8 |p| #async { a[p] = x[i, p] }
        if z[i] > 0 { par 8 |q| { y[i, q] = 2 * a[7 - q] } }
        par 8 |r| { w[i, r] = a[7 - r] }
    }
    return (y, w)
}"""
OWN_TEST = "(z[i] > 0:i32)", "(z[max(i - thread, 0)] > 0:i32)"


def is_laid_right(program: str, schedule: str, *changes: tuple[str, str]) -> bool:
    """The same of a plan under a schedule, or as pragmas say; lines are told by how they begin."""
    (function,) = parse(program, "t.te").functions
    made = laid(program, schedule) if schedule else lowered(function, function)
    lines = [line.split("  -- line")[0] for line in plan_text(made.plan).splitlines()]
    text = "\n".join(line.split(" covers ")[0] for line in lines)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    return is_proved(proved(made.function, parse_plan(text)))


def test_data_decides_whether_a_copy_is_waited_for() -> None:
    """A wait was believed to be there wherever indices say so."""
    wait, decided = "    wait 0\n    barrier warp\n", "    if decided uniform {\n"
    assert is_laid_right(WAITED, "")
    assert not is_laid_right(WAITED, "", (wait, ""), (decided, f"{decided}    {wait}"))


def test_each_thread_asks_a_test_of_its_own() -> None:
    """A test that is the program's where one thread does a statement, was taken for the program's in all threads."""
    schedule, alone = (
        "bind(i, grid.x) stage(x, at=u, in=shared) -> xs",
        "        if (i32(thread) == 0:i32) {\n            w[i] = 1:i32",
    )
    assert is_laid_right(ASKED, schedule, OWN_TEST)
    assert is_laid_right(ASKED, schedule, (alone, f"        barrier warp\n{alone}"))
    assert not is_laid_right(ASKED, schedule, OWN_TEST, (alone, f"        barrier warp\n{alone}"))


def test_a_thread_that_does_not_wait_reads_no_box() -> None:
    """The same of waits for the engine: the thread that starts the copy waits for it, and others read it."""
    end, again = "parity (u % 2)\n", "        }\n    }\n    if (z[i] > 0:i32) {\n        for v in 0..1 uniform {\n"
    cut, test = (end, end + again), ("let decided_1: bool = (z[i] ", "let decided_1: bool = (z[max(i - thread, 0)] ")
    schedule = "bind(i, grid.x) stage(x, at=u, in=shared, via=tma) -> xs"
    assert is_laid_right(ASKED, schedule, cut)
    assert not is_laid_right(ASKED, schedule, cut, test)


@pytest.mark.parametrize("space", [Space.SHARED, Space.LOCAL], ids=["shared", "local"])
def test_what_a_caller_gives_is_no_array_of_a_kernel(space: Space) -> None:
    """Where a kernel makes it, nothing was asked of what is read: it was taken for what the caller gave."""
    text = "fn f(x: i32[8]): i32[8] { new y: i32[8]\n par 8 |i| { y[i] = x[i] }\n return y }"
    made = driver.lower(driver.parse(text)["f"], "sm_90a")
    (kernel,), (x,) = k.kernels(made.plan.steps), made.plan.params
    own = replace(kernel, buffers=tuple(b for b in kernel.buffers if b is not x), arrays=(k.Array(x, space),))
    assert is_proved(proved(made.function, made.plan))
    assert not is_proved(proved(made.function, replace(made.plan, steps=(k.Launch(own),))))


@pytest.mark.parametrize("by", [-1, 1, 2])
def test_barriers_of_the_engine_are_in_bounds(by: int) -> None:
    """All signals at barriers agreed on which that is, but their array has none there."""
    text = MEMORY["ring of tiles"][0]
    schedule = "bind(b, grid.x) stage(x, at=i, in=shared, via=tma) -> xs pipeline(i, stages=2)"
    assert is_laid_right(text, schedule)
    init = tuple((f"init xs_full[{n}]", f"init xs_full[{n + by}]") for n in ((1, 0) if by > 0 else (0, 1)))
    used = (("xs_full[(i % 2)]", f"xs_full[(i % 2) + {by}]"),) * 2
    assert not is_laid_right(text, schedule, *init, *used, ("xs_full[((i + 1) % 2)]", f"xs_full[((i + 1) % 2) + {by}]"))


def test_a_wait_ends() -> None:
    """What arrives at a barrier was asked to come before who waits for it, but not what brings its bytes."""
    text, schedule = MEMORY["stored"]
    load = "            tensor load xs[0, 0] = x_map[8 * i] arrives xs_full[0]\n"
    commit = "            commit_bulk\n"
    assert is_laid_right(text, schedule)
    assert not is_laid_right(text, schedule, (load, ""), (commit, load + commit))


BEHIND = """
fn f(x: i32[n, 64]): i32[n, 64] {
    new y: i32[n, 64]
    par n |i| {
        new a: i32[64]
        par 64 |p| { a[p] = x[i, p] }
        par 64 |q| { y[i, q] = a[63 - q] }
    }
    return y
}"""
MET = "    barrier block\n"


@pytest.mark.parametrize(("turns", "right"), [("2", True), ("n", True), ("k", False)])
def test_a_loop_that_is_over_says_nothing_of_another_s_end(turns: str, right: bool) -> None:
    """A register may be called as the loop was in which an element is written: its number is not that loop's."""
    written = "    a[p] = x[i, p]\n", "    for k in 1..2 uniform {\n        a[p] = x[i, p]\n    }\n    let k: i32 = i32(0)\n"
    met = MET, f"    for r in 0..{turns} uniform {{\n    {MET}    }}\n"
    schedule = "place(a, shared) bind(i, grid.x) bind(p, block.x) bind(q, block.x)"
    assert is_laid_right(BEHIND, schedule, written)
    assert is_laid_right(BEHIND, schedule, ("    writes y", "    size n\n    writes y"), written, met) is right


@pytest.mark.parametrize("number", ["i32(thread % 2)", "x[i, thread]"])
def test_threads_turn_a_loop_as_often(number: str) -> None:
    """That they begin and end it alike was asked, but not how far apart its turns are: so some meet more often than others."""
    schedule, own = "place(a, shared) bind(i, grid.x) bind(p, block.x) bind(q, block.x)", f"    let z: i32 = {number}\n"
    assert is_laid_right(BEHIND, schedule, (MET, f"{own}    for r in 0..2 by 1 uniform {{\n    {MET}    }}\n"))
    assert not is_laid_right(BEHIND, schedule, (MET, f"{own}    for r in 0..2 by max(1, z) uniform {{\n    {MET}    }}\n"))


@pytest.mark.parametrize("scope", ["block", "cluster"])
def test_blocks_know_nothing_of_updates_at_another_scope(scope: str) -> None:
    """That nothing comes between the reading and the writing of an update was believed whatever its scope."""
    text = plan_text(driver.lower(driver.parse(ATOMICS)["f"], "sm_90a").plan)
    (line,) = (each.split("  -- line")[0] for each in text.splitlines() if "atomic" in each and "add" in each)
    assert is_right(ATOMICS, (line, f"{line} at grid"))
    assert not is_right(ATOMICS, (line, f"{line} at {scope}"))


def test_what_is_promised_is_checked() -> None:
    """A plan that does not check what callers promise was proved by what they promise."""
    made = driver.lower(driver.parse(LENGTHS)["f"], "sm_90a")
    assert is_proved(proved(made.function, made.plan))
    assert not is_proved(proved(made.function, replace(made.plan, requires=())))
    assert not is_proved(proved(made.function, replace(made.plan, assumes=())))


@pytest.mark.parametrize("base", ["i_block_base", "0"])
def test_what_is_done_is_the_same_in_all_slabs_of_a_grid(base: str) -> None:
    """Where a slab begins was one number for all blocks, though a launch has many slabs: here rows from the last one on."""
    text = "fn f(x: f32[n, m]): f32[n, m] { new y: f32[n, m]\n par n |i| { par m |j| { y[i, j] = x[i, j] } }\n return y }"
    store = "        y[i, j] = x[i, j]"
    other = store.replace("[i, j]", "[n - 1 - i, j]")
    test = f"        if (i32({base}) < i32(1)) {{\n    {store}\n        }} else {{\n    {other}\n        }}"
    assert is_right(text, (store, test)) is (base == "0")
