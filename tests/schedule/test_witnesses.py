"""Two instances and an element that a refusal names: forced past the proof, these two touch that element in the wrong order.

Each statement gets a tag, a read whose subscripts are the indices of its loops, by which an instance is known again in loops of
another shape. Before and after are walked through, iteration by iteration (`tests.schedule.walker`).
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import pytest
from tests.schedule.generate import Drawer
from tests.schedule.subjects import extra, generated
from tests.schedule.walker import Event, Touch, events, order

from texpr.affine.expr import expr
from texpr.driver import parse
from texpr.ir import program as ir
from texpr.ir.program.text import print_function
from texpr.ir.program.uses import loads
from texpr.ir.value import Buffer, Load, Op, Ref
from texpr.ir.value import walk as value_walk
from texpr.ir.value.types import BOOL
from texpr.isa.registry import resolve
from texpr.schedule.apply import follow, laid_out, start
from texpr.schedule.directives import distribute, reorder, resize
from texpr.schedule.state import State
from texpr.schedule.tree import loops, path_to
from texpr.support.diagnostic import Diagnostic, Limitation, TexprError
from texpr.support.record import Record, replace

TARGET = resolve("sm_90a")
TAG = "tag"
KINDS = ("split", "merge", *("reorder",) * 4, *("distribute",) * 3, "resize")

# name: parameters and body, then directives of which the last is refused
PROGRAMS: Mapping[str, tuple[str, str]] = {
    "wavefront": (
        "(inout x: i32[n, m]) where n >= 1, m >= 1 { seq n - 1 |i| { seq m - 1 |j| { x[i + 1, j] += x[i, j + 1] } } }",
        "reorder(j, i)",
    ),
    "wavefront by tiles": (
        "(inout x: i32[n, m]) where n >= 1, m >= 1 { seq n - 1 |i| { seq m - 1 |j| { x[i + 1, j] += x[i, j + 1] } } }",
        "split(i, 4) -> (a, b)  split(j, 4) -> (c, d)  reorder(a, c, b, d)",
    ),
    "a sum in order": (
        "(x: i32[n, m], inout y: i32[1]) { seq n |i| { seq m |j| { y[0] += x[i, j] } } }",
        "reorder(j, i)",
    ),
    "a product in order": (
        "(x: i32[n, m], inout y: i32[n]) { par n |i| { seq m |j| { y[i] = 2 * y[i] + x[i, j] } } }",
        "split(j, 3) -> (o, t)  reorder(t, o)",
    ),
    "the last one wins": (
        "(x: i32[n, m], inout y: i32[1]) { seq n |i| { seq m |j| { y[0] = x[i, j] } } }",
        "reorder(j, i)",
    ),
    "the last one wins, once merged": (
        "(x: i32[n, m], inout y: i32[m + n]) { seq n |i| { seq m |j| { y[i + j] = x[i, j] } } }",
        "split(i, 2) -> (a, b)  split(b, 1) -> (c, d)  reorder(c, a)",
    ),
    "read before it is overwritten": (
        "(inout x: i32[n + 1], inout y: i32[n]) { seq n |i| { y[i] = x[i + 1]  x[i] = i32(i) } }",
        "split(i, 4) -> (c, d)  reorder(d, c)",
    ),
    "written, then read by the next": (
        "(inout x: i32[n + 1], inout y: i32[n]) { seq n |i| { y[i] = x[i]  x[i + 1] = i32(i) } }",
        "distribute(i)",
    ),
    "overwritten by the one before": (
        "(w: i32[n], inout x: i32[n + 1]) { seq n |i| { x[i] = w[i]  x[i + 1] = 2 * w[i] } }",
        "distribute(i)",
    ),
    "a reader that must come first": (
        "(inout x: i32[n + 1], inout y: i32[n]) { seq n |i| { x[i] = 7  y[i] = x[i + 1] } }",
        "distribute(i)",
    ),
    "steps of time": (
        "(inout a: i32[n], inout b: i32[n]) where n >= 2 { seq 3 |t| {\n"
        "par n - 2 |i| { b[i + 1] = a[i] + a[i + 2] }\npar n |j| { a[j] = b[j] } } }",
        "reorder(i, t)",
    ),
    "steps of time, apart": (
        "(inout a: i32[n], inout b: i32[n]) where n >= 2 { seq 3 |t| {\n"
        "par n - 2 |i| { b[i + 1] = a[i] + a[i + 2] }\npar n |j| { a[j] = b[j] } } }",
        "distribute(t)",
    ),
    "a local that is kept": (
        "(x: i32[n, m], inout y: i32[1]) { seq n |i| { new s: i32  s = y[0]\nseq m |j| { s = 2 * s + x[i, j] }\ny[0] = s } }",
        "reorder(j, i)",
    ),
    "a triangle": (
        "(x: i32[n, n], inout y: i32[2 * n]) { seq n |i| { seq n |j| { if j <= i { y[i + j] = x[i, j] } } } }",
        "reorder(j, i)",
    ),
    "three deep": (
        "(inout x: i32[n, n, n]) where n >= 1 {\n"
        "seq n - 1 |i| { seq n - 1 |j| { seq n - 1 |k| { x[i + 1, j, k] = x[i, j + 1, k + 1] } } } }",
        "reorder(k, j, i)",
    ),
    "columns in order": (
        "(x: i32[n, m], inout y: i32[m]) { seq n |i| { par m |j| { y[j] = y[j] + x[i, j] } } }",
        "split(i, 4) -> (o, t)  reorder(j, t, o)",
    ),
}


class Refused(Record, dict=True):
    """A directive that is refused at `state`, to which `original` was brought, and what is said."""

    original: ir.Function
    state: State
    directive: ir.Directive
    said: Diagnostic


def tagged(function: ir.Function) -> ir.Function:
    """`function`, where every assignment also reads the element of a tag that its loops' indices name."""
    tags: dict[int, Buffer] = {}

    def tag(bind: ir.Bind, around: tuple[ir.Loop, ...]) -> ir.Bind:
        first, *others = bind.values
        depth = len(around)
        buffer = tags.setdefault(depth, Buffer(f"{TAG}{depth}", first.dtype, (expr(1 << 20),) * depth, "input"))
        load = Load(replace(buffer, dtype=first.dtype), tuple(expr(loop.sym) for loop in around))
        made = Op("or" if first.dtype == BOOL else "add", (first, load), first.dtype)
        return replace(bind, values=(made, *others))

    def block(body: tuple[ir.Stmt, ...], around: tuple[ir.Loop, ...]) -> tuple[ir.Stmt, ...]:
        found: list[ir.Stmt] = []
        for stmt in body:
            match stmt:
                case ir.Bind():
                    found.append(tag(stmt, around))
                case ir.Par() | ir.Seq():
                    found.append(replace(stmt, body=block(stmt.body, (*around, stmt))))
                case ir.If():
                    found.append(replace(stmt, then=block(stmt.then, around), orelse=block(stmt.orelse, around)))
                case _:
                    found.append(stmt)
        return tuple(found)

    body = block(function.body, ())
    return replace(function, body=body, params=(*function.params, *tags.values()))


def tag_of(event: Event) -> tuple[int, tuple[int, ...]]:
    """By what an instance is known: where its statement is written, and the indices that it had at first."""
    (found,) = (touch for touch in event.touches() if touch.buffer.startswith(TAG))
    assert found.element is not None
    return event.stmt.span.start, found.element


def named(text: str) -> dict[str, int]:
    """The values that a message gives: `i = 0, j = 1`."""
    return {name: int(value) for name, value in re.findall(r"([\w']+) = (-?\d+)", text)}


def sizes_of(function: ir.Function, message: str) -> dict[str, int]:
    """The sizes of the witness; those that it leaves out play no part."""
    found = named(message)
    return {s.name: found.get(s.base, 2) for s in function.sizes}


def element_of(message: str) -> tuple[str, tuple[int, ...]]:
    """The element that a refusal of order names."""
    found = re.search(r"meet in `([\w']+)(?:\[(.*?)\])?`", message)
    assert found is not None
    return found[1], tuple(map(int, found[2].split(", "))) if found[2] else ()


def forced(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> ir.Function:
    """The function after the directive that was refused."""

    def nothing(*_: object) -> None:
        pass

    with monkeypatch.context() as patch:
        for module in (reorder, distribute):
            patch.setattr(module, "require_order", nothing)
        patch.setattr(resize, "_require_whole", nothing)
        return laid_out(follow(refused.state, refused.directive)).function


def instance(every: list[Event], note: str, written: int) -> tuple[Event, Touch]:
    """The run that a note names by its indices, and its access that is written there."""
    wanted = named(note)
    found = [
        (event, touch)
        for event in every
        if event.loops == wanted
        for touch in event.touches()
        if touch.written == written and not touch.buffer.startswith(TAG)
    ]
    assert found, f"no instance {note}"
    return found[-1]


def confirm_order(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The two instances touch the element, the first one first; and when forced, not so any more."""
    before = laid_out(refused.state).function
    message, notes = refused.said.message, refused.said.notes
    sizes = sizes_of(before, message)
    name, element = element_of(message)
    every = list(events(before, sizes))
    ends: list[Event] = []
    touches: list[Touch] = []
    for note in notes[:2]:
        assert note.span is not None
        event, touch = instance(every, note.text, note.span.start)
        assert (touch.buffer, touch.element) == (name, element)
        ends.append(event)
        touches.append(touch)
    assert any(touch.writes for touch in touches)
    assert order(ends[0], ends[1]) == "first"
    later = list(events(forced(refused, monkeypatch), sizes))
    moved = [[event for event in later if tag_of(event) == tag_of(end)] for end in ends]
    assert all(len(found) == 1 for found in moved), "an instance is lost, or there twice"
    first, second = moved[0][0], moved[1][0]
    one, other = (
        {touch.element for touch in event.touches() if (touch.buffer, touch.written) == (name, end.written)}
        for event, end in zip((first, second), touches, strict=True)
    )
    assert any(e is not None and e[len(e) - len(element) :] == element for e in one & other), "they do not meet any more"
    assert order(first, second) != "first"
    return True


def confirm_left_out(refused: Refused, monkeypatch: pytest.MonkeyPatch) -> bool:
    """The iteration that is named runs something before, and nothing when forced.

    False where a test of the program itself keeps everything in that iteration from running, so that nothing can be seen.
    """
    found = re.search(r"the iteration \((.*)\) = \((.*?)\)", refused.said.message)
    assert found is not None
    wanted = dict(zip(found[1].split(", "), map(int, found[2].split(", ")), strict=True))
    sizes = sizes_of(refused.original, refused.said.message.partition(" where ")[2])
    changed = next(s for s in loops(refused.state.function.body) if s.sym.name == refused.directive.args[0].value)
    inside = {stmt.span.start for stmt in ir.walk((changed,)) if isinstance(stmt, ir.Bind)}
    runs = [event for event in events(refused.original, sizes) if event.stmt.span.start in inside]
    original = [tag_of(event) for event in runs if wanted.items() <= event.loops.items()]
    if not original and any(isinstance(stmt, ir.If) for stmt in ir.walk((changed,))):
        return False
    assert original, "there is no such iteration"
    ran = {tag_of(event) for event in events(laid_out(refused.state).function, sizes)}
    later = {tag_of(event) for event in events(forced(refused, monkeypatch), sizes)}
    assert set(original) <= ran
    assert not set(original) & later
    return True


def program(name: str) -> tuple[ir.Function, tuple[ir.Directive, ...]]:
    """A program of `PROGRAMS` with tags, and its directives."""
    text, directives = PROGRAMS[name]
    (function,) = parse(f"fn f{text}\nschedule f for cuda {{ {directives} }}\n").functions
    return tagged(function), function.schedules[0].directives


def refusal(function: ir.Function, directives: Sequence[ir.Directive]) -> Refused:
    """The last of `directives`, which is refused; the others are not."""
    state = start(function, TARGET)
    for directive in directives[:-1]:
        state = follow(state, directive)
    with pytest.raises(TexprError) as found:
        follow(state, directives[-1])
    (said,) = found.value.diagnostics
    return Refused(function, state, directives[-1], said)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_witness_of_an_order_is_true(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = refusal(*program(name))
    assert refused.said.code == "E0906"
    confirm_order(refused, monkeypatch)


@pytest.mark.parametrize(
    ("text", "directives"),
    [
        ("(x: i32[n], inout y: i32[n]) { par n |i| { y[i] = x[i] } }", "resize(i, 0, -1)"),
        ("(x: i32[n], inout y: i32[n]) { par n |i| { y[i] = x[i] } }", "split(i, 4) -> (o, t)  resize(t, -1, 0)"),
        ("(x: i32[15], inout y: i32[15]) { par 15 |i| { y[i] = x[i] } }", "split(i, 4) -> (o, t)  resize(o, 0, -1)"),
        ("(x: i32[5, n], inout y: i32[5, n]) { par 5 |i| { par n |j| { y[i, j] = x[i, j] } } }",
         "merge(i, j) -> p  resize(p, 1, -2)"),
        ("(x: i32[n], inout y: i32[n]) { par n |i| { y[i] = x[i] } }", "resize(i, 2, 3) -> p  resize(p, -2, -4)"),
    ],
)  # fmt: skip
def test_the_iteration_that_is_named_is_left_out(text: str, directives: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (function,) = parse(f"fn f{text}\nschedule f for cuda {{ {directives} }}\n").functions
    refused = refusal(tagged(function), function.schedules[0].directives)
    assert refused.said.code == "E0915"
    assert confirm_left_out(refused, monkeypatch)


def refusals(seed: int) -> Iterator[Refused]:
    """Refusals with a witness among directives drawn at random for a program."""
    numbers = random.Random(seed)
    function = tagged((generated(numbers.randrange(400)) if seed % 2 else numbers.choice(extra())).function)
    drawer = Drawer(numbers)
    state = start(function, TARGET)
    for _ in range(6):
        directive = drawer.draw(numbers.choice(KINDS), state)
        if directive is None:
            continue
        try:
            state = follow(state, directive)
        except Limitation:
            continue
        except TexprError as refused:
            (said,) = refused.diagnostics
            if said.code in ("E0906", "E0915"):
                yield Refused(function, state, directive, said)


def depends_on_data(function: ir.Function, said: Diagnostic) -> bool:
    """Whether an access that `said` names lies behind an `if` on data, which a witness does not choose."""
    named_places = {note.span.start for note in said.notes if note.span is not None}
    for stmt in ir.walk(function.body):
        touched = [load for load in loads(stmt) if load.span.start in named_places]
        if touched and any(
            isinstance(step, ir.If) and any(isinstance(node, Load | Ref) for node in value_walk(step.condition))
            for step in (path_to(function.body, stmt) or ())[:-1]
        ):
            return True
    return False


def confirm(seeds: range, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Every refusal of `seeds` confirmed; how many there were of each code."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        for refused in refusals(seed):
            check = confirm_order if refused.said.code == "E0906" else confirm_left_out
            try:
                confirmed = check(refused, monkeypatch)
            except AssertionError as wrong:
                if str(wrong).startswith("no instance") and depends_on_data(refused.state.function, refused.said):
                    seen["unseen"] += 1  # these data take the other branch
                    continue
                raise AssertionError(
                    f"seed {seed}: {wrong}: {refused.said}\n{print_function(refused.state.function)}"
                ) from wrong
            seen[refused.said.code if confirmed else "unseen"] += 1
    return seen


def test_witnesses_of_random_schedules_are_true(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = confirm(range(80), monkeypatch)
    assert seen["E0906"] >= 8, seen
    assert seen["E0915"] >= 8, seen
    assert seen["unseen"] <= 5, seen


@pytest.mark.long
@pytest.mark.parametrize("start_at", range(80, 1580, 100))
def test_witnesses_of_many_random_schedules_are_true(start_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = confirm(range(start_at, start_at + 100), monkeypatch)
    assert seen["E0906"], seen


# A witness that is not true is noticed.


def test_instances_the_other_way_round_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = refusal(*program("wavefront"))
    first, second = refused.said.notes
    said = replace(refused.said, notes=(second, first))
    with pytest.raises(AssertionError):
        confirm_order(replace(refused, said=said), monkeypatch)


def test_another_element_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = refusal(*program("wavefront"))
    said = replace(refused.said, message=refused.said.message.replace("x[1, 1]", "x[1, 2]"))
    assert said != refused.said
    with pytest.raises(AssertionError):
        confirm_order(replace(refused, said=said), monkeypatch)


def test_an_order_that_stays_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is claimed of a reorder that moves nothing."""
    refused = refusal(*program("wavefront"))
    directive = replace(refused.directive, args=refused.directive.args[::-1])
    with pytest.raises(AssertionError):
        confirm_order(replace(refused, directive=directive), monkeypatch)


def test_an_iteration_that_still_runs_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    (function,) = parse(
        "fn f(x: i32[n], inout y: i32[n]) { par n |i| { y[i] = x[i] } }\nschedule f for cuda { resize(i, 0, -1) }"
    ).functions
    refused = refusal(tagged(function), function.schedules[0].directives)
    said = replace(refused.said, message=refused.said.message.replace("n = 1", "n = 2"))
    assert said != refused.said
    with pytest.raises(AssertionError):
        confirm_left_out(replace(refused, said=said), monkeypatch)
