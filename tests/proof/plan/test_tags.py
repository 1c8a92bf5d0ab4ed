"""Tags are not believed: whatever they say, a plan with a bug is not proved, and most wrong ones make a proof fail."""

import random
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from tests.proof.plan.mutants import mutants
from tests.proof.plan.test_engine import bugs as engine_bugs
from tests.proof.plan.test_other_arm import ADD, DOUBLE, PLAN, PROGRAM
from tests.proof.plan.verdicts import is_proved

from texpr import driver
from texpr.affine.expr import Expr, expr
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program.selection import Selected
from texpr.ir.proof.tags import TURNS, End, Instance, Joined, Moved, Parcel, Statement, Step, Tag, Turn
from texpr.proof.plan import Question, Tags, prove, question
from texpr.proof.search import proved, search
from texpr.support.record import replace

EXAMPLES = Path(__file__).parents[3] / "examples"


def altered(tags: Tags, actions: int, rng: random.Random) -> Tags:
    """Tags with one thing changed: two exchanged, one dropped, another statement, other indices, a part for what is none."""
    events: list[Tag | None] = list(tags.events)
    at = rng.randrange(len(events))
    tag = events[at]
    match rng.randrange(5):
        case 0:
            other = rng.randrange(len(events))
            events[at], events[other] = events[other], events[at]
        case 1:
            events[at] = None
        case 2 if isinstance(tag, Statement | Moved):
            events[at] = replace(tag, action=rng.randrange(actions))
        case 3 if isinstance(tag, Statement | Moved) and tag.indices:
            changed = list(tag.indices)
            moved = rng.randrange(len(changed))
            changed[moved] = rng.choice([changed[moved] + 1, expr(0), changed[0], changed[-1] * 2])
            events[at] = replace(tag, indices=tuple(changed))
        case _:
            events[at] = rng.choice((Step(), Joined("add"), Joined("max")))
    return replace(tags, events=tuple(events))


def nudged(some: tuple[Expr, ...], rng: random.Random) -> tuple[Expr, ...]:
    """One of some coordinates is another one; one more, where there is none."""
    if not some:
        return (expr(rng.randrange(2)),)
    at = rng.randrange(len(some))
    return (*some[:at], rng.choice([some[at] + 1, some[at] - 1, expr(0), some[-1], some[at] * 2]), *some[at + 1 :])


def moved(one: Instance, others: int, rng: random.Random) -> Instance:
    """Another signal or step, the same at other coordinates, or for others that name it."""
    if not one.at or rng.random() < 0.3:
        return replace(one, of=rng.randrange(others))
    if rng.random() < 0.2:
        return replace(one, where=rng.choice([(), nudged(one.where, rng)]))
    return replace(one, at=nudged(one.at, rng))


def another(some: tuple[Instance, ...], others: int, rng: random.Random) -> tuple[Instance, ...]:
    """Instances with one dropped, moved, said twice, or in another order."""
    if not some:
        return (Instance(rng.randrange(others), ()),)
    at = rng.randrange(len(some))
    return rng.choice([
        (*some[:at], *some[at + 1 :]), (*some[:at], moved(some[at], others, rng), *some[at + 1 :]),
        (*some, some[at]), some[::-1],
    ])  # fmt: skip


def repacked(parcel: Parcel, others: int, rng: random.Random) -> Parcel:
    """A parcel with one of its fields changed."""
    match rng.randrange(3):
        case 0:
            return replace(parcel, copies=another(parcel.copies, others, rng))
        case 1:
            return replace(parcel, box=rng.choice([(), (*parcel.box, expr(2)), nudged(parcel.box, rng)]))
        case _:
            return replace(parcel, bytes=rng.choice([parcel.bytes + 16, expr(0), parcel.bytes * 2, parcel.bytes + TURNS[0]]))


def turned(turn: Turn, others: int, rng: random.Random) -> Turn:
    """A turn with one of its fields changed."""
    field = rng.choice(["begun", "seen", "parcels", "turn"])
    match field:
        case "parcels":
            some = turn.parcels
            if not some:
                return replace(turn, parcels=(Parcel((), (), expr(16)),))
            at = rng.randrange(len(some))
            lost, twice, less = (*some[:at], *some[at + 1 :]), (*some, some[at]), repacked(some[at], others, rng)
            return replace(turn, parcels=rng.choice([lost, twice, some[::-1], (*some[:at], less, *some[at + 1 :])]))
        case "turn":
            return replace(
                turn, turn=rng.choice([(), (*turn.turn, expr(0)), nudged(turn.turn, rng), (expr(TURNS[0]), expr(TURNS[0]))])
            )
        case _:
            return replace(turn, **{field: another(getattr(turn, field), others, rng)})


def ended(end: End, others: int, rng: random.Random) -> End:
    """Another end of a copy, or with other groups before it."""
    if rng.random() < 0.5:
        return replace(end, step=moved(end.step, others, rng))
    return replace(end, groups=another(end.groups, others, rng))


def misled(tags: Tags, steps: int, rng: random.Random) -> Tags:
    """Tags of which one says another turn of a barrier, or another end of a copy."""
    turns, ends = list(tags.turns), list(tags.ends)
    some = [at for at, each in enumerate(ends) if each]
    if some and rng.random() < 0.4:
        at = rng.choice(some)
        own = list(ends[at])
        which = rng.randrange(len(own))
        own[which] = ended(own[which], steps, rng)
        ends[at] = tuple(own)
    elif turns:
        at = rng.randrange(len(turns))
        turns[at] = rng.choice([turned(turns[at], len(turns), rng), turns[rng.randrange(len(turns))]])
    return replace(tags, turns=tuple(turns), ends=tuple(ends))


WAITS = (
    "parity", "phase", "bytes", "arrives", "stage", "fence", "wait", "barrier", "commit", "group", "copied twice", "expect",
    "dropped: init", "later", "earlier", "arrivals",
)  # fmt: skip
"""Words of bugs in what waits for copies."""


def misled_bugs(name: str, turns: int, every: int) -> Iterator[tuple[str, bool]]:
    """Bugs in what waits for copies, with tags that lead astray; and whether one of those was a proof."""
    rng = random.Random(name)
    chosen = (each for each in engine_bugs(name) if any(word in each[0].kind for word in WAITS))
    for bug, function in islice(chosen, 0, None, every):
        asked = question(function, bug.plan)
        tags = search(asked)
        if is_proved(prove(asked, bug.plan, tags)):
            continue  # it changes nothing
        for _ in range(turns):
            said = misled(tags, len(asked.reading.steps) or 1, rng)
            yield f"{bug.kind} in {bug.name}", is_proved(prove(asked, bug.plan, said))


def test_tags_of_turns_prove_no_bug() -> None:
    found = [*misled_bugs("copy", 6, 1), *misled_bugs("stencil", 4, 2)]
    assert len(found) > 100
    assert not [each for each in found if each[1]]


@pytest.mark.long
@pytest.mark.parametrize("name", ["matmul_ring", "cluster", "im2col_conv", "reduce_add", "padded_batch"])
def test_tags_of_turns_prove_no_bug_in_larger_kernels(name: str) -> None:
    found = list(misled_bugs(name, 8, 1))
    assert len(found) > 50
    assert not [each for each in found if each[1]]


def test_wrong_turns_fail() -> None:
    """What barriers and waits are said to be of is needed: most of what is said wrong is no proof."""
    rng, wrong, kept = random.Random(3), 0, 0
    (function,) = driver.load(EXAMPLES / "tma" / "copy.te").functions
    for schedule in function.schedules:
        compiled = driver.lower(function, "sm_90a", schedule=schedule)
        question_ = question(compiled.function, compiled.plan)
        tags = search(question_)
        assert is_proved(prove(question_, compiled.plan, tags))
        for _ in range(60):
            other = misled(tags, len(question_.reading.steps), rng)
            if other != tags and is_proved(prove(question_, compiled.plan, other)):
                kept += (
                    1  # of copies alone is `turn` asked, and of arrivals `parcels`; another end that comes later does as well
                )
            elif other != tags:
                wrong += 1
    assert wrong > kept


def asked(name: str, target: str, schedule: Selected) -> Iterator[tuple[Question, k.Plan, driver.Compiled]]:
    for function in driver.load(EXAMPLES / f"{name}.te").functions:
        compiled = driver.lower(function, target, schedule=schedule)
        yield question(compiled.function, compiled.plan), compiled.plan, compiled


@pytest.mark.parametrize(
    ("name", "target", "schedule"),
    [("saxpy", "sm_90a", None), ("transpose", "sm_90a", None), ("matmul", "cpu", None), ("cholesky", "sm_90a", None),
     ("softmax", "sm_90a", None), ("matmul", "sm_90a", "auto")],
)  # fmt: skip
def test_wrong_tags_fail(name: str, target: str, schedule: Selected) -> None:
    rng = random.Random(f"{name} {target}")
    wrong = kept = 0
    for question_, plan, _ in asked(name, target, schedule):
        tags = search(question_)
        assert is_proved(prove(question_, plan, tags))
        for _ in range(12):
            other = altered(tags, len(question_.program.actions), rng)
            if other == tags:
                continue
            if is_proved(prove(question_, plan, other)):
                kept += 1  # what is said is right, too: a name for a value, or an index of a loop with one turn
            else:
                wrong += 1
    assert wrong > 2 * kept


def bugs(names: tuple[tuple[str, str], ...], turns: int) -> Iterator[tuple[str, str, bool]]:
    """Mutants, each with the tags of the right plan and with altered ones; and whether one of those was a proof."""
    rng = random.Random(7)
    for name, target in names:
        for question_, _, compiled in asked(name, target, None):
            tags = search(question_)
            for mutant in mutants(compiled.plan):
                if is_proved(proved(compiled.function, mutant.plan)):
                    continue  # it changes no result
                bad = question(compiled.function, mutant.plan)
                for turn in range(turns):
                    said = tags if turn == 0 else altered(tags, len(bad.program.actions), rng)
                    if len(said.events) == len(bad.reading.events):
                        yield name, mutant.name, is_proved(prove(bad, mutant.plan, said))


def test_no_tags_prove_a_bug() -> None:
    found = list(bugs((("saxpy", "sm_90a"), ("transpose", "sm_90a"), ("sum", "sm_90a")), 3))
    assert len(found) > 100
    assert not [each for each in found if each[2]]


@pytest.mark.long
def test_no_tags_prove_any_bug() -> None:
    found = list(bugs((("cholesky", "sm_90a"), ("softmax", "sm_90a"), ("matmul", "cpu"), ("argmax", "cpu")), 6))
    assert len(found) > 500
    assert not [each for each in found if each[2]]


def test_a_result_that_stays_in_a_register_is_missed() -> None:
    """A statement may be done in a register, so that each is done says nothing of what is stored."""
    text = "fn f(x: f32[n]): f32[n] { new y: f32[n]  par n |i| { y[i] = x[i] * 2.0 } return y }"
    compiled = driver.lower(driver.parse(text)["f"], "cpu", schedule=None)
    tags = search(question(compiled.function, compiled.plan))
    plan = parse_plan(plan_text(compiled.plan).replace("y[i] = ", "let t: f32 = "))
    asked_ = question(compiled.function, plan)
    assert len(asked_.reading.events) == len(tags.events)
    assert prove(asked_, plan, tags).counts["refused"]


def test_what_lanes_exchange_is_no_copy() -> None:
    """Tags of a plan that copies within a thread say nothing of one that takes the same from the lane beside."""
    text = """fn f(x: f32[256]): f32[256] {
        new y: f32[256]
        par 256 |i| {
            new v: f32 = x[i]
            new w: f32
            w = v
            y[i] = w
        }
        return y
    }"""
    compiled = driver.lower(driver.parse(text)["f"], "sm_90a", schedule=None)
    tags = search(question(compiled.function, compiled.plan))
    first, second, third = tags.events
    assert isinstance(second, Statement)
    plan = parse_plan(plan_text(compiled.plan).replace("let w: f32 = v", "exchange w = v ^ 1"))
    asked_ = question(compiled.function, plan)
    assert [event.kind for event in asked_.reading.events] == ["plain", "exchange", "plain"]
    for said in (second, Moved(0, second.indices, 1, ())):
        assert not is_proved(prove(asked_, plan, replace(tags, events=(first, said, third))))


def test_a_statement_of_which_not_every_index_is_said() -> None:
    text = "fn f(x: i32[n, m]): i32[n, m] { new y: i32[n, m]\n par n |i| { par m |j| { y[i, j] = x[i, j] } }\n return y }"
    compiled = driver.lower(driver.parse(text)["f"], "sm_90a")
    asked = question(compiled.function, compiled.plan)
    tags = search(asked)
    ((at, tag),) = [(at, tag) for at, tag in enumerate(tags.events) if isinstance(tag, Statement) and len(tag.indices) == 2]
    for indices in ((), tag.indices[:1], (*tag.indices, expr(0))):
        events = list(tags.events)
        events[at] = replace(tag, indices=indices)
        assert not is_proved(prove(asked, compiled.plan, replace(tags, events=tuple(events))))


def test_a_copy_of_an_element_of_another_rank() -> None:
    """It is an answer, and no error, where a tag says too few subscripts, or too many."""
    function = driver.parse(PROGRAM.format(ADD, DOUBLE))["f"]
    plan = parse_plan(PLAN.format("let u: i32 = 0:i32  u = v", "v = (v + 1:i32) y[i] = v", "u = (u * 2:i32) y[i] = u"))
    asked_ = question(function, plan)
    tags = search(asked_)
    at, copy = next((at, tag) for at, tag in enumerate(tags.events) if isinstance(tag, Moved))
    for element in ((), (expr(0),)):
        told = replace(tags, events=(*tags.events[:at], replace(copy, action=1, element=element), *tags.events[at + 1 :]))
        assert is_proved(prove(asked_, plan, told)) == (element == copy.element)
