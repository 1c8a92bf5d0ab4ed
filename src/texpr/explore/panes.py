"""The panes of a page: each a part of the compiler's answer, made when it is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from texpr.draw.kinds import Undrawable, drawn
from texpr.driver import Compiled
from texpr.explain import explain, form
from texpr.explain.kernels import built
from texpr.explain.machine import machine_code
from texpr.explore import lines
from texpr.explore.look import Look
from texpr.explore.page.html import Content, Element, element
from texpr.explore.page.views import fault, folded, listing, note, picture, row, table, title, tree
from texpr.ir.program import Function
from texpr.ir.proof import Verdict
from texpr.isa.registry import resolve
from texpr.sizes import own
from texpr.support.diagnostic import TexprError
from texpr.support.faults import told_of
from texpr.support.record import Record
from texpr.support.render import render
from texpr.toolchain.machine import this_machine

Show = Callable[[Look, Compiled], Iterator[Content]]


class Pane(Record):
    """`title`: the word on its tab. `show`: its content, of what was compiled. `pictured`: whether it is one picture."""

    title: str
    show: Show
    pictured: bool = False


def contents(seen: Look, name: str) -> tuple[Content, ...]:
    """A pane by its name. What fails is told in it: no exception escapes but those that end a process."""
    pane = PANES.get(name)
    if pane is None:
        return (note("there is no such pane"),)
    if seen.compiled is None:
        return (note("nothing to show yet: see what is wrong with the program"),)
    try:
        return tuple(pane.show(seen, seen.compiled))
    except TexprError as wrong:
        return tuple(element("pre", render(each).rstrip("\n"), kind="problem error") for each in wrong.diagnostics)
    except Exception as raised:
        return (fault(*told_of(raised)),)


def _program(seen: Look, compiled: Compiled) -> Iterator[Content]:
    yield from _planned(compiled)
    yield from _laid_out(compiled.function)
    if compiled.wide is not None:
        yield title("for callers whose arrays begin at whole vectors")
        yield from _laid_out(compiled.wide.function)


def _laid_out(function: Function) -> Iterator[Content]:
    """The function, and behind it, folded, the instructions and combiners that its text begins with."""
    found = lines.laid_out(function)
    first = next(at for at, line in enumerate(found) if line.text.startswith("fn "))
    yield listing(found[first:], "the program after its schedule", first + 1)
    if first:
        yield folded("the instructions and combiners that it uses", listing(found[:first], "instructions and combiners"))


def _planned(compiled: Compiled) -> Iterator[Content]:
    if compiled.schedule is None:
        yield note("laid out as it is written: there is no schedule")
    elif compiled.planned is None:
        name = compiled.schedule.name
        yield note(f"laid out by the schedule “{name}” of the program" if name else "laid out by the schedule of the program")
    else:
        yield note("laid out by a schedule that the compiler found; the pane of decisions has its text and its reasons")


def _form(name: str) -> Show:
    def show(seen: Look, compiled: Compiled) -> Iterator[Content]:
        yield listing(lines.marked(form(compiled, name)), name)

    return show


def _source(seen: Look, compiled: Compiled) -> Iterator[Content]:
    yield listing(lines.emitted(compiled.source), "the source")


def _machine(seen: Look, compiled: Compiled) -> Iterator[Content]:
    if not compiled.target.is_launched:
        yield note("machine code is shown for GPUs; that of a CPU is up to its compiler")
        return
    resources, text = built(compiled, this_machine())
    if text is None:
        yield note("this needs nvcc and nvdisasm: pip install 'texpr-compiler[cuda]'; `texpr doctor` says what is found")
        return
    program = [line.text for line in lines.written(seen.asked.text)]
    for each in machine_code(compiled, text, resources):
        yield title(each["kernel"])
        found = resources.get(each["kernel"])
        sizes = ", ".join(f"{name} = {size}" for name, size in each["sizes"].items())
        assumed = (
            f", of which {', '.join(each['assumed'])} {'is' if len(each['assumed']) == 1 else 'are'} assumed"
            if each["assumed"]
            else ""
        )
        yield note(f"at {sizes or 'these sizes'}{assumed}{'' if each['whole'] else '; not all turns of loops were counted'}")
        if found is not None:
            yield note(f"{found.registers} registers, {found.spill_stores + found.spill_loads} bytes spilled")
        yield _asked_by_lines(each["lines"], program)
        yield folded(f"{len(each['code'])} instructions", _instructions(each["code"]), opened=True)


def _asked_by_lines(found: Mapping[int, Mapping[str, Any]], program: list[str]) -> Element:
    """What each line asks alone, with a bar."""
    most = max((each["us"] or 0.0 for each in found.values()), default=0.0)
    rows: list[Element] = []
    for line, each in found.items():
        text = program[line - 1].strip() if 0 < line <= len(program) else "(no line of the program)"
        bar: Content = "–"
        if each["us"] is not None and most:
            bar = element("meter", min="0", max="1", value=f"{each['us'] / most:.3f}")
        us = "–" if each["us"] is None else f"{each['us']:.4g}"
        cells = (str(line or ""), element("code", text[:120]), str(each["instructions"]), us, each["unit"], bar)
        rows.append(row(cells, (line,)))
    return table(("line", "program", "instructions", "bound alone, µs", "by", ""), rows)


def _instructions(code: list[Mapping[str, Any]]) -> Element:
    rows = (
        row(
            (
                f"{each['address']:04x}",
                element("code", each["text"]),
                "–" if each["times"] is None else f"{each['times']:.6g}",
                each["unit"] or "unknown",
            ),
            (each["line"],),
        )
        for each in code
    )
    return table(("address", "instruction", "warps that run it", "unit"), rows)


def _proof(seen: Look, compiled: Compiled) -> Iterator[Content]:
    if seen.proof is None:
        yield note("not all of it could be proved: see what is wrong with the program")
        return
    shown = seen.proof
    yield from _obligations(shown.proof, shown.plan, compiled)
    if shown.wide is not None and compiled.wide is not None:
        yield title("for callers whose arrays begin at whole vectors")
        yield from _obligations(shown.wide.proof, shown.wide.plan, compiled.wide)


def _obligations(proof: Mapping[str, Any], plan: str, compiled: Compiled) -> Iterator[Content]:
    yield note(_counted("the plan does what the program says", proof["counts"]))
    yield folded("what is taken for granted", element("ul", *(element("li", each) for each in proof["premises"])))
    yield from _grouped(proof["obligations"], lines.marked(plan))
    schedule = proof.get("schedule")
    if schedule is not None:
        yield title("the schedule")
        yield note(_counted("the program after its schedule computes what is written", schedule["counts"]))
        yield from _grouped(schedule["obligations"], lines.laid_out(compiled.function))


def _counted(claim: str, counts: Mapping[str, int]) -> str:
    return f"{claim}: " + ", ".join(f"{number} {verdict}" for verdict, number in counts.items() if number)


def _grouped(obligations: list[Mapping[str, Any]], text: tuple[lines.Line, ...]) -> Iterator[Element]:
    """Obligations by kernel and kind; groups with one that is not proved are open. `text`: what their lines are lines of."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for each in obligations:
        groups.setdefault((each["kernel"], each["what"]), []).append(each)
    for (kernel, what), found in groups.items():
        counts = Counter(each["verdict"] for each in found)
        opened = set(counts) != {Verdict.PROVED.value}
        head = (
            f"{kernel + ': ' if kernel else ''}{what} ({', '.join(f'{count} {verdict}' for verdict, count in counts.items())})"
        )
        rows = (_obligation(each, text) for each in found)
        yield folded(head, table(("verdict", "about", "because"), rows), opened=opened)


def _obligation(each: Mapping[str, Any], text: tuple[lines.Line, ...]) -> Element:
    at: int = each["line"]
    origin = text[at - 1].origin if 0 < at <= len(text) else ()
    kind = "" if each["verdict"] == Verdict.PROVED.value else "open"
    return row((each["verdict"], element("code", each["about"]), each["how"]), origin, kind)


def _decisions(seen: Look, compiled: Compiled) -> Iterator[Content]:
    told = explain(compiled, this_machine())
    planned = told["planned"]
    if planned is not None and planned["text"] is not None:
        yield title("the schedule that was found")
        yield element("pre", planned.pop("text").rstrip(), kind="code")
    kernels = told.pop("kernels")
    yield tree(told)
    for kernel in kernels:
        yield title(f"kernel {kernel['name']}")
        yield tree(kernel)


def _picture(what: str) -> Show:
    def show(seen: Look, compiled: Compiled) -> Iterator[Content]:
        asked, function = seen.asked, seen.function
        assert function is not None
        machine, sizes = resolve(asked.target), own(function, dict(asked.sizes))
        try:
            svg = drawn(function, what, machine, sizes, asked.schedule, None)
        except Undrawable as reason:
            yield note(f"{reason}")
            return
        yield picture(svg)

    return show


PANES: Mapping[str, Pane] = {
    "program": Pane("Laid out", _program),
    "steps": Pane("Steps", _form("steps")),
    "kernel": Pane("Kernel", _form("kernel")),
    "source": Pane("CUDA, C++", _source),
    "machine": Pane("Machine code", _machine),
    "proof": Pane("Proof", _proof),
    "decisions": Pane("Decisions", _decisions),
    "domain": Pane("IterDomains", _picture("domain"), True),
    "layout": Pane("Memory", _picture("layout"), True),
    "mapping": Pane("Mapping", _picture("mapping"), True),
    "fragment": Pane("Fragments", _picture("fragment"), True),
    "tma": Pane("Boxes", _picture("tma"), True),
    "timeline": Pane("Timeline", _picture("timeline"), True),
}
"""Every pane by name: the forms in the order of the passes, what is known of them, and every kind of picture."""
