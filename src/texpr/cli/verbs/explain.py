"""`texpr explain`: every decision with its reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from texpr.cli.console import Console
from texpr.cli.program import FILE, FUNCTION, JSON, SCHEDULE, SIZE, legal_function, parse_sizes
from texpr.cli.speed import function_lines, kernel_lines
from texpr.cli.tensor import column_lines, tensor_lines
from texpr.delivery import shown
from texpr.explain import FORMS, Data, explain, form
from texpr.ir.program import Function
from texpr.planner.nest import NOMINAL
from texpr.toolchain import Toolchain
from texpr.toolchain.machine import this_machine


@click.command("explain")
@FILE
@FUNCTION
@click.option(
    "--for", "targets", multiple=True, metavar="TARGET", help="cpu, sm_80, sm_90a or sm_100a; may be given several times."
)
@SIZE
@SCHEDULE
@click.option(
    "--dump",
    type=click.Choice(list(FORMS)),
    help="Print a form of the function instead: the program as it is laid out, the steps of its kernels, the plan, the source.",
)
@JSON
@click.pass_obj
def command(
    console: Console,
    file: Path,
    name: str | None,
    targets: tuple[str, ...],
    sizes: tuple[str, ...],
    schedule: str,
    dump: str | None,
    json: bool,
) -> int:
    """Show every decision, with its reason: launches, mapping, buffers, barriers, guards, the cost of each access."""
    function, fixed = legal_function(file, name, parse_sizes(sizes))
    machine = this_machine()
    tools, found = Toolchain(machine), list[Data]()
    if dump is not None:
        return _dump(console, function, targets or ("sm_90a",), fixed, schedule, dump, tools)
    for target in targets or ("sm_90a",):
        with console.working(f"compiling {function.name} for {target}"):
            found.append(explain(shown(function, target, fixed, schedule, tools), machine))
    for each in found:
        _show(console, each)
    console.data(found[0] if len(found) == 1 else {"targets": found})
    return 0


def _dump(
    console: Console,
    function: Function,
    targets: tuple[str, ...],
    fixed: dict[str, int],
    schedule: str,
    dump: str,
    tools: Toolchain,
) -> int:
    texts: dict[str, str] = {}
    for target in targets:
        with console.working(f"compiling {function.name} for {target}"):
            texts[target] = form(shown(function, target, fixed, schedule, tools), dump)
    for text in texts.values():
        console.say(text.rstrip("\n"))
    console.data(texts)
    return 0


def _show(console: Console, data: Data) -> None:
    kernels = data["kernels"]
    count = f"{len(kernels)} {'kernel' if len(kernels) == 1 else 'kernels'}"
    console.say(f"{data['function']} for {data['target']}{_scheduled(data['schedule'])}: {count}")
    _entry(console, "open sizes", [", ".join(data["sizes"])] if data["sizes"] else [])
    _entry(
        console,
        "fixed sizes",
        [", ".join(f"{name} = {value}" for name, value in data["fixed"].items())] if data["fixed"] else [],
    )
    _entry(console, "checked before a launch", data["requires"])
    _entry(console, "workspace", data["workspace"])
    _entry(console, "loops of the host", [_host_loop(each) for each in data["launches"]])
    _entry(console, "bound", list(function_lines(data["speed"])))
    _entry(console, "no tensor cores", [f"line {each['line']}: {each['reason']}" for each in data["untaken"]])
    if data["planned"] is not None:
        _planned(console, data["planned"])
    if data["layout"] is not None and any(data["layout"].values()):
        console.say("")
        _layout(console, data["layout"])
    _kernels(console, data)
    if data["wide"] is not None:
        _wide(console, data["wide"])


def _kernels(console: Console, data: Data) -> None:
    for kernel in data["kernels"]:
        console.say("")
        _kernel(console, kernel, data["speed"])
        _entry(console, "bound", list(kernel_lines(data["speed"], kernel["name"])))


def _wide(console: Console, data: Data) -> None:
    """What is launched instead, and where."""
    aligned: dict[int, list[str]] = {}
    for name, begins in data["align"].items():
        aligned.setdefault(begins, []).append(name)
    asked = [f"{', '.join(names)} {'begins' if len(names) == 1 else 'begin'} at a multiple of {begins} bytes"
             for begins, names in aligned.items()]  # fmt: skip
    console.say("")
    console.say("launched instead, where a launcher finds that")
    _entry(console, "addresses", asked)
    _entry(console, "sizes", data["where"])
    _entry(console, "bound", list(function_lines(data["speed"])))
    _kernels(console, data)


def _early(data: Data) -> str:
    arrays = data["waits_for"]
    waits = f"before it touches {', '.join(arrays)}" if arrays else "at its end, as they have nothing in common"
    return f"while the launch before it ends, and waits for that {waits}"


def _host_loop(data: Data) -> str:
    said = f"{data['loop']} < {data['extent']}: "
    if data["together"] is not None:
        return said + f"one launch, {data['together']}, where the device holds its blocks at once; else each step is one"
    return said + f"each step is a launch{'' if data['why_not'] is None else ': ' + data['why_not']}"


def _scheduled(name: str | None) -> str:
    return "" if name is None else f', schedule "{name}"' if name else ", by its schedule"


def _planned(console: Console, data: Data) -> None:
    if data["text"] is None and data["failed"] is None and all(nest["tile"] is None for nest in data["nests"]):
        return
    console.say("")
    console.say("automatic schedule")
    for nest in data["nests"]:
        _entry(console, f"nest of line {nest['line']}", [nest["reason"]] if nest["tile"] is None else list(_tile_lines(nest)))
        _entry(console, "  refused", nest["refused"])
    _entry(console, "given up", [data["failed"]] if data["failed"] else [])
    if data["text"] is not None:
        console.say("")
        console.say(data["text"].rstrip())


def _turn_lines(turn: Data | None) -> Iterator[str]:
    """What a search finds of the turn of a loop, beside what it takes as it is laid out."""
    if turn is None:
        return
    least = f"units need {turn['units']:.0f} ({turn['unit']}), circles {turn['circles']:.0f}"
    if turn["interval"] is None:
        yield f"a turn: {turn['clocks']:.0f} clocks; {least}; nothing found within {turn['limit']} parts of a search"
        return
    reached = "as many as needed" if turn["bound_reached"] else "the best there is"
    order = [each["writes"] + " of the turn before" * each["late"] for each in turn["order"]]
    teams = f"each of {turn['teams']} warpgroups" if turn["teams"] > 1 else "one warpgroup"
    yield f"a turn: {turn['clocks']:.0f} clocks of {teams}; {least}"
    parts = f"{turn['searched']} of {turn['limit']} parts of a search"
    yield f"found: {turn['interval']:.0f} clocks, {reached}, in {parts}: {' | '.join(order)}"
    if "slots_needed" in turn:
        yield f"slots: {turn['slots']}, of which {turn['slots_needed']} are needed for that"


def _tile_lines(nest: Data) -> Iterator[str]:
    own = {name: size for name, size in nest.get("own", {}).items() if size > 1}
    thread = f", {' × '.join(f'{size} {name}' for name, size in own.items())} a thread" if own else ""
    yield f"tile {' × '.join(f'{size} {name}' for name, size in nest['tile'].items())}{thread}"
    if "instruction" in nest:
        part = " × ".join(f"{size} {name}" for name, size in nest["warp"].items())
        team, turns = nest.get("team", "warp"), f"operands of {nest['stages']} turns in shared memory"
        turns += "; turns overlap" if nest.get("overlaps") else ""
        yield f"{part} a {team}, by {nest['instruction']}; {turns}"
        yield from _turn_lines(nest.get("turn"))
        if max(nest.get("cluster", (1,))) > 1:
            shared = "multiply together, each with half of the columns' operand" if nest.get("pairs") else "share copies"
            yield f"{' × '.join(map(str, nest['cluster']))} blocks in a cluster, which {shared}"
        if nest.get("blocks"):
            yield f"{nest['blocks']} blocks go through all tiles, and a warp of each copies for the next one meanwhile"
        if nest.get("stored"):
            yield "results leave through shared memory, by the engine"
    if "of_core" in nest:
        yield f"by {nest['of_core']} of a core, of rows that are packed for each block, and filled with zero"
    if "panels" in nest:
        yield f"{', '.join(nest['panels'])}: {nest['panel_bytes']} bytes, packed for each block"
        yield f"{nest['reads']:.2g} reads of memory for each vector of products"
    for each in nest.get("staged", ()):
        box = " × ".join(map(str, each["box"]))
        yield f"{each['buffer']}: box {box}, {each['bytes']} bytes, brought {each['times']} times"
    if "reuse" in nest:
        read, moved = f"{nest['reuse']:.3g}", f"{nest['bytes_moved']:.3g}"
        yield f"each element brought is read {read} times; {moved} bytes of global memory (open sizes: {NOMINAL})"


def _layout(console: Console, data: Data) -> None:
    console.say("schedule")
    for nest in data["nests"]:
        _entry(console, f"nest of line {nest['line']}", [", ".join(nest["loops"]), *nest["transforms"]])
        _entry(console, "  kept", nest["kept"])
        _entry(console, "  not needed", [_removed(each) for each in nest["removed"]])
    for each in data["allocations"]:
        lines = [
            *each["transforms"],
            f"{' × '.join(each['allocated'])}: {each['elements']} elements, {each['holes']} of them holes",
        ]
        _entry(console, f"memory of {each['buffer']}", lines)
    for each in data["staged"]:
        start = f", from ({', '.join(each['base'])})" if each["base"] else ""
        lines = [
            f"part of {each['of']} at {each['at']}{start}, by {each['via']}{_ahead(each)}",
            f"holes: {each['fill']}; needed: {each['needed']}",
        ]
        _entry(console, each["buffer"], lines)


def _ahead(each: Data) -> str:
    stages = each["stages"]
    return "" if stages == 1 else f", {_counted(each['ahead'], 'turn')} ahead in a ring of {stages} slots"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''}"


def _removed(each: Data) -> str:
    return f"{each['predicate']}: {each['theorem']}" + (f", from {', '.join(each['by'])}" if each["by"] else "")


def _kernel(console: Console, kernel: Data, speed: Data | None) -> None:
    launch = kernel["launch"]
    shape = "; ".join(f"{level} {_shape(extents)}" for level, extents in launch.items() if extents)
    console.say(f"kernel {kernel['name']} (line {kernel['line']}): {shape or 'one thread'}")
    _entry(console, "starts", [] if kernel["dependent"] is None else [_early(kernel["dependent"])])
    _entry(console, "mapping", [_loop(loop) for loop in kernel["mapping"]])
    _entry(console, "σ", [_sigma(each) for each in kernel["sigma"] if each["requests"]])
    _entry(console, "buffers", [_buffer(buffer) for buffer in kernel["buffers"]])
    _entry(console, "  together", [] if kernel["sharing"] is None else [_sharing(kernel["sharing"])])
    _entry(console, "barriers", [_barrier(barrier) for barrier in kernel["barriers"]])
    _entry(console, "  their cost", [] if kernel["barrier_cost"] is None else [_cost(kernel["barrier_cost"])])
    _entry(console, "copies", [_copy(copy) for copy in kernel["copies"]])
    _entry(console, "guards kept", kernel["predicates"]["kept"])
    _entry(console, "vectors", [f"{v['kind']} of {v['width']} of {v['buffer']} (line {v['line']})" for v in kernel["vectors"]])
    _entry(console, "instructions", [_instruction(each) for each in kernel["instructions"]])
    _entry(console, "tensor cores", list(tensor_lines(kernel["tensor"], speed, kernel["name"])))
    _entry(console, "tensor memory", list(column_lines(kernel["tensor_memory"])))
    _entry(console, "accesses", [_access(access) for access in kernel["accesses"]])
    if kernel["registers"] is not None:
        registers, spilled, shared = kernel["registers"], kernel["spill_bytes"], kernel["shared_bytes"]
        _entry(console, "takes", [f"{registers} registers, {spilled} bytes spilled, {shared} bytes of shared memory"])


def _instruction(each: Data) -> str:
    registers = ", ".join(f"{name} {count}" for name, count in each["registers"].items() if count)
    if each["alone"]:
        return f"{each['name']}, {each['uses']} of them, by one thread for {each['lanes']} lanes of tensor memory"
    return f"{each['name']}, {each['uses']} of them, by {each['lanes']} lanes with registers {registers} each"


def _buffer(buffer: Data) -> str:
    told = f"{buffer['buffer']} in {buffer['space']}, {buffer['bytes']} bytes"
    if buffer["lives"] is not None:
        told += f" from {buffer['at']} on, in lines {buffer['lives'][0]} to {buffer['lives'][1]}"
    return f"{told}: {buffer['reason']}"


def _sharing(sharing: Data) -> str:
    """The sharing of bytes by arrays, whether less memory is possible, and its cost."""
    told = f"{sharing['bytes']} bytes instead of {sharing['apart']}"
    told += ", the least" if sharing["bytes"] == sharing["bound"] else f", {sharing['bound']} at least"
    more = f"{sharing['cost']:g} arrivals of warps more" if sharing["cost"] > 0 else "no barrier more"
    return f"{told}; {more}"


def _entry(console: Console, title: str, lines: list[str]) -> None:
    """The title once, and each line once with its number of occurrences."""
    counted = Counter(lines)
    for at, (line, times) in enumerate(counted.items()):
        often = f" ({times} times)" if times > 1 else ""
        console.say(f"  {title + ':' if at == 0 else '':<24} {line}{often}")


def _shape(extents: dict[str, object]) -> str:
    return " × ".join(f"{dim} {extent}" for dim, extent in extents.items())


def _loop(loop: Data) -> str:
    steps = "1 step" if loop["steps"] == "1" else f"{loop['steps']} steps"
    who = "blocks" if loop["level"] in ("cluster", "cluster, reduced") else "threads"
    shared = f"{loop['threads']} {who}, {steps} each" if loop["threads"] > 1 else steps
    return f"{loop['loop']} < {loop['extent']} (line {loop['line']}): {loop['level']}; {shared}; σ = {loop['sigma']}"


def _sigma(each: Data) -> str:
    others = (("least", each["least"]), ("by φ", each["by_phi"]), ("by shape", each["by_shape"]))
    known = ", ".join(f"{name} {sectors:g}" for name, sectors in others if sectors is not None)
    least = f" ({known})" if each["least"] is not None else ""
    limits = "".join(f"; the {title} met its limit of work" for title in each["limits"])
    moved = f"a warp moves {each['sectors']:g} sectors{least} of {each['lines']:g} lines"
    banks = f", waits {each['conflicts']:g} rounds for banks" if each["conflicts"] else ""
    spent = f"{moved}{banks}, takes {each['arithmetic']:g} instructions for indices"
    return f"threads are {' · '.join(each['lanes'])}, fastest first; {spent}: {each['certificate']}{limits}"


def _barrier(barrier: Data) -> str:
    covers = [f"{c['kind']} on {c['buffer']}, line {c['from_line']}{_until(c)}{_around(c)}" for c in barrier["covers"]]
    left = "" if barrier["pending"] is None else f", {barrier['pending']} groups left"
    return f"{barrier['kind']}{left}: {'; '.join(covers) or 'as the text says'}"


def _until(cover: Data) -> str:
    return "" if cover["kind"] == "END" else f" to {cover['to_line']}"


def _cost(each: Data) -> str:
    least = {
        "payments": "none cost less: what dependences pay adds up to it",
        "search": f"none cost less: {each['tried']} steps ruled all others out",
        "limit": f"at least {each['bound']:g} is needed: the search stopped at its limit",
    }
    number, needs = each["barriers"], each["dependences"]
    barriers = f"{number} barrier{'' if number == 1 else 's'} for {needs} dependence{'' if needs == 1 else 's'}"
    return f"{each['cost']:g} arrivals of warps, {barriers}; {least[each['proof']]}"


def _copy(copy: Data) -> str:
    when = "" if copy["when"] is None else f", {copy['otherwise']} but where {copy['when']}"
    copied = f"{copy['from']} to {copy['to']} (line {copy['line']}): {copy['engine']} of {copy['bytes']} bytes{when}"
    if "exactly" in copy:
        fewer = "" if copy["exactly"] is None else f", of which {copy['exactly']}"
        return f"{copied}{fewer}" + ("" if copy["reduce"] is None else f", combined by {copy['reduce']}")
    return f"{copied}{_tile(copy)}" if "map" in copy else copied


def _tile(copy: Data) -> str:
    of = copy["map"]
    box = " × ".join(map(str, of["box"])) + (" in im2col mode" if "corners" in of else "")
    swizzle = f", swizzle of {of['swizzle']} bytes" if of["swizzle"] else ""
    combined = "" if copy["reduce"] is None else f", combined by {copy['reduce']}"
    return f", box {box} of {of['name']}{swizzle}{combined}{_blocks(copy['blocks'])}"


def _blocks(blocks: Data | None) -> str:
    """The blocks of a cluster that a copy is for."""
    if blocks is None:
        return ""
    first = "" if blocks["first"] == "0" else f" << {blocks['first']}"
    return f", to {blocks['count']} blocks of the cluster, mask {blocks['mask']:#b}{first}"


def _around(covered: Data) -> str:
    return "" if covered["carried_by"] is None else f", around the loop over {covered['carried_by']}"


def _access(access: Data) -> str:
    what = f"{access['kind']} {access['buffer']} (line {access['line']}), {access['space']}"
    if access["sectors"] is not None:
        return f"{what}: {access['sectors']} sectors for {access['lanes']} lanes, {access['least']} at least"
    if access["conflicts"] is not None:
        return f"{what}: {access['conflicts']} bank conflicts"
    return f"{what}: not known"
