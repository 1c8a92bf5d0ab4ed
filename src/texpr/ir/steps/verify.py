"""The verifier of the steps form. A violation is a bug of the compiler, and is reported with the name of the rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import TypeAlias

from texpr.affine.expr import ZERO, Expr, Sym
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.ir.operation import Agent, Brings, Closes, Operation
from texpr.ir.program.verify import body_complaints
from texpr.ir.steps import AtBarrier, Branch, Dealt, InGroup, Loop, Node, Part, Reduction, Step, Steps, below, leaves, program
from texpr.ir.steps.digits import Digit, radix
from texpr.ir.steps.names import names_in
from texpr.ir.steps.plain import plain, touches
from texpr.ir.steps.work import Decide, Does, End, Half, Issue, Middle, Order, Partial, Points, Spread, Total
from texpr.ir.value import Buffer
from texpr.ir.value.scanner import is_name
from texpr.ir.value.structure import same
from texpr.ir.value.verify import Scope
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace

Rule: TypeAlias = Callable[[Steps], Iterator[str]]
"""Yields the complaints about a form."""


def verify(steps: Steps) -> None:
    """Checks the rules of the form. Raises CompilerBug for a violation."""
    for rule in RULES:
        for complaint in rule(steps):
            raise CompilerBug(f"steps {steps.name}: {rule.__name__}: {complaint}")


def names_are_words(steps: Steps) -> Iterator[str]:
    """Names are words of the text form."""
    yield from (f"{name!r} is no name" for name in names_in(steps) if not is_name(name))


def names_differ(steps: Steps) -> Iterator[str]:
    """Locals have distinct names, and so has memory of the kernel; a local has no name of global memory."""
    machine = [*(b.name for b in steps.buffers), *(a.buffer.name for a in steps.arrays), *(m.name for m in steps.maps)]
    locals = [buffer.name for buffer, place in steps.places if place.buffer not in steps.buffers]
    own = [*(b.name for b in steps.buffers), *locals]
    for names in (machine, own):
        yield from (f"{name} stands for {count} things" for name, count in Counter(names).items() if count > 1)


def threads_are_of_the_team(steps: Steps) -> Iterator[str]:
    """The size of a team divides that of a block, or vice versa; a step is executed by all threads of the team, or by one."""
    if steps.threads < 1 or steps.team < 1 or (steps.threads % steps.team and steps.team % steps.threads):
        yield f"teams of {steps.team} in blocks of {steps.threads} threads"
    yield from _in_roles(steps)
    apart = {id(leaf): node.role for node in _all(steps.nodes) if isinstance(node, Part) for leaf in leaves(node.body)}
    for step in leaves(steps.nodes):
        role, who = apart.get(id(step)), step.threads.of(steps.team)
        first, end = (role.first * steps.warp, (role.first + role.warps) * steps.warp) if role else (0, steps.team)
        if not who or (not step.threads.is_all and (who[0] < first or who[-1] >= end)):
            yield f"{step.threads} are not of a team of {steps.team}"
        elif not (step.threads.is_all or step.threads.is_one):
            yield f"{step.threads} take a step, which are neither all nor one"


def _in_roles(steps: Steps) -> Iterator[str]:
    """Roles are of the team, or of warps behind it, which no other role has; in none is another one."""
    parts = [node for node in _all(steps.nodes) if isinstance(node, Part)]
    roles = {part.role for part in parts}
    if any(isinstance(inner, Part) for part in parts for inner in _all(part.body)):
        yield "a role is in another one"
    for one, other in combinations(roles, 2):
        if one.name == other.name or (one.first < other.first + other.warps and other.first < one.first + one.warps):
            yield f"roles {one.name} and {other.name} have warps in common"
    own = steps.team if steps.groups == 1 else steps.threads
    if roles and sum(role.warps for role in roles if role.first * steps.warp < own) * steps.warp != own:
        yield "the roles of the team are not of all of it"
    if steps.groups > 1 and (steps.threads != steps.groups * steps.team or not roles):
        yield f"{steps.groups} groups of {steps.team} threads take turns in blocks of {steps.threads}"


def digits_fit(steps: Steps) -> Iterator[str]:
    """The digits of a loop are parts of a thread's number that do not overlap; a tile is a multiple of their radix."""
    for along in steps.grid:
        if along.tile < 1 or along.tile % radix(along.digits):
            yield f"a tile of {along.tile} and {radix(along.digits)} threads along {along.loop.sym}"
        yield from _overlaps(along.loop.sym, along.digits, max(steps.threads, 1))
    for dealt in steps.loops:
        yield from _overlaps(dealt.sym, dealt.digits, steps.team)


def _overlaps(sym: Sym, digits: Sequence[Digit], threads: int) -> Iterator[str]:
    ordered = sorted(digits, key=lambda digit: digit.stride)
    if any(d.radix < 1 or d.stride < 1 or d.weight < 1 for d in ordered):
        yield f"a digit of {sym} is no digit"
    if any(one.radix * one.stride > other.stride for one, other in pairwise(ordered)):
        yield f"digits of {sym} overlap"
    if ordered and ordered[-1].radix * ordered[-1].stride > threads:
        yield f"digits of {sym} go beyond {threads} threads"


def loops_are_dealt(steps: Steps) -> Iterator[str]:
    """A loop that is distributed has digits; its iterations reduce into accumulators exactly if the step is a reduction."""
    for name, count in Counter(dealt.sym for dealt in steps.loops).items():
        if count > 1:
            yield f"{name} is dealt out in {count} ways"
    for step in leaves(steps.nodes):
        if isinstance(step.work, Spread | Half):
            if len(step.stmts) != 1 or not isinstance(step.stmt, ir.Par):
                yield f"{step.work.NAME} of what is no loop"
            elif (dealt := steps.dealt.get(step.stmt.sym)) is None or dealt.meets is not isinstance(step.work, Half):
                yield f"{step.work.NAME} of a loop over {step.stmt.sym}, {_told(dealt)}"


def _told(dealt: Dealt | None) -> str:
    return "which is not dealt out" if dealt is None else f"whose iterations {'meet' if dealt.meets else 'do not meet'}"


def indices_are_coordinates(steps: Steps) -> Iterator[str]:
    """The index of each loop of the grid is a hardware coordinate, a variable computed from those, or runs over points of a
    tile."""
    made = {axis.sym for axis in steps.axes}
    made |= {new.sym for op in steps.coordinates if isinstance(op, Operation) for new in op.bound}
    for along in steps.grid:
        if along.block not in made:
            yield f"no coordinate is called {along.block}"
        if along.points == 1 and along.loop.sym not in made:
            yield f"no coordinate says {along.loop.sym}"


def statements_are_well_formed(steps: Steps) -> Iterator[str]:
    """Statements keep the rules of programs, inside the loops of the host and of the grid, and have no annotations."""
    body: tuple[ir.Stmt, ...] = (*steps.lets, *program(steps.nodes))
    for along in reversed(steps.grid):
        body = (replace(along.loop, body=body),)
    given = frozenset((*steps.sizes, *(sym for sym, _ in steps.hosts), *(along.block for along in steps.grid)))
    globals = {buffer.name: buffer for buffer in steps.buffers}
    yield from (f"{complaint}, at {stmt.span}" for stmt, complaint in body_complaints(body, Scope(globals, given)))
    for step in leaves(steps.nodes):
        if not same(plain(step.stmts), step.stmts):
            yield f"there is more in statements than counts, in a step of {step.work.NAME}"


def heads_have_no_bodies(steps: Steps) -> Iterator[str]:
    """The bodies of loops of the grid or team, and of branches, are nodes; their statements have empty bodies."""
    yield from (f"the loop over {along.loop.sym} has a body" for along in steps.grid if along.loop.body)
    for node in _all(steps.nodes):
        match node:
            case Loop(stmt) if stmt.body:
                yield f"the loop over {stmt.sym} has a body"
            case Branch(stmt, decided) if stmt.then or stmt.orelse:
                yield f"the branch by {decided} has a body"
            case Step(work=Decide(symbol)) if not isinstance(node.stmt, ir.If) or node.stmt.then or node.stmt.orelse:
                yield f"what decides {symbol} is no condition alone"
            case _:
                pass


def _all(nodes: tuple[Node, ...]) -> Iterator[Node]:
    for node in nodes:
        yield node
        for inner in below(node):
            yield from _all(inner)


def locals_have_places(steps: Steps) -> Iterator[str]:
    """Each declared local has a place, in memory of the kernel, with a subscript for each dimension of that."""
    memory = {*steps.buffers, *(array.buffer for array in steps.arrays)}
    made = {stmt.buffer for stmt in ir.walk(program(steps.nodes)) if isinstance(stmt, ir.New)}
    placed = dict(steps.places)
    yield from (f"{buffer.name} has no place" for buffer in made if buffer not in placed)
    for buffer, place in steps.places:
        if place.register is not None:
            continue
        if place.buffer not in memory:
            yield f"{buffer.name} lives in {place.buffer.name}, which the kernel has not"
        elif (found := _rank(buffer, place.index, place.dealt is None)) not in (None, place.buffer.rank):
            yield f"{buffer.name} has {found} subscripts in {place.buffer.name}, of {place.buffer.rank} dimensions"
        elif place.dealt is not None and not len(place.dealt.slots) == len(place.dealt.shape) == place.buffer.rank:
            yield f"{buffer.name} has {len(place.dealt.slots)} slots in {place.buffer.name}"


def _rank(buffer: Buffer, index: Callable[[tuple[Expr, ...]], tuple[Expr, ...]], counts: bool) -> int | None:
    return len(index(tuple(ZERO for _ in buffer.shape))) if counts else None


def effects_are_told(steps: Steps) -> Iterator[str]:
    """The accesses of a step are those of its statements, with their proxies."""
    for step in leaves(steps.nodes):
        for word, told, found in zip(("reads", "writes"), (step.reads, step.writes), touches(step), strict=True):
            if told != found:
                names = [", ".join(f"{t.buffer.name} ({t.proxy.value})" for t in each) or "nothing" for each in (told, found)]
                yield f"a step of {step.work.NAME} says that it {word} {names[0]}; it {word} {names[1]}"


def branches_are_decided(steps: Steps) -> Iterator[str]:
    """A branch directly follows the step that evaluates its condition in all threads; only order steps may be in between."""
    for nodes in _lists(steps):
        for at, node in enumerate(nodes):
            if isinstance(node, Branch):
                before = next(
                    (n for n in reversed(nodes[:at]) if not (isinstance(n, Step) and isinstance(n.work, Order))), None
                )
                if not isinstance(before, Step) or before.work != Decide(node.decided, _alike(before)):
                    yield f"{node.decided} is not decided right before its branch"
                elif before.stmt is not node.stmt or not before.threads.is_all:
                    yield f"{node.decided} is decided by another condition, or not by all"


def _alike(step: Node) -> bool:
    return isinstance(step, Step) and isinstance(step.work, Decide) and step.work.alike


def reductions_are_whole(steps: Steps) -> Iterator[str]:
    """A reduction has registers and arrays for each accumulator, and its steps are a partial, a middle if needed, and a
    total."""
    found = {each.sym: each for each in steps.reductions}
    warps = min(steps.team, steps.threads) > steps.warp
    for nodes in _lists(steps):
        halves = [n for n in nodes if isinstance(n, Step) and isinstance(n.work, Half)]
        for sym in dict.fromkeys(n.stmt.sym for n in halves if isinstance(n.stmt, ir.Par)):
            own = [n for n in halves if isinstance(n.stmt, ir.Par) and n.stmt.sym == sym]
            middle = (Middle,) if steps.blocks > 1 and warps else ()
            if tuple(type(n.work) for n in own) != (Partial, *middle, Total):
                yield f"the parts of the reduction over {sym} are {', '.join(n.work.NAME for n in own)}"
            elif sym not in found or not _is_fit(found[sym], own[0], steps.blocks, warps):
                yield f"the reduction over {sym} has not what its accumulators need"


def _is_fit(reduction: Reduction, share: Step, blocks: int, warps: bool) -> bool:
    assert isinstance(share.work, Half)
    counts = [len(a.targets) for a in share.work.accumulators]
    arrays = ((reduction.warps, warps), (reduction.blocks, blocks > 1))
    return [len(own) for own in reduction.own] == counts and all(
        [len(each) for each in found] == (counts if wanted else []) for found, wanted in arrays
    )


def engines_are_told(steps: Steps) -> Iterator[str]:
    """Work of an engine is started by one thread, with operations that complete as the step does."""
    barriers, maps = [array.buffer for array in steps.arrays if array.barrier], {map.name: map for map in steps.maps}
    for step in leaves(steps.nodes):
        if not isinstance(step.work, Issue):
            if step.agent is not Agent.THREAD or isinstance(step.completion, AtBarrier):
                yield f"{step.work.NAME} is no work of an engine"
            continue
        every = [stmt for stmt in k.walk(step.work.does) if isinstance(stmt, Operation)]
        unknown = next((name for stmt in every if (name := _map(stmt)) is not None and name not in maps), None)
        if step.agent is not Agent.ENGINE or not step.threads.is_one:
            yield f"an engine is told by {step.threads}, for {step.agent.value}"
        elif unknown is not None:
            yield f"there is no map {unknown}"
        else:
            yield from _completes(step, [stmt.completion(maps) for stmt in every], barriers)


def _map(stmt: Operation) -> str | None:
    return getattr(stmt, "map", None)


def _completes(step: Step, found: Sequence[object], barriers: Sequence[Buffer]) -> Iterator[str]:
    match step.completion:
        case AtBarrier(barrier):
            if barrier not in barriers:
                yield f"{barrier.name} holds no barriers"
            elif not all(each.at.buffer is barrier for each in found if isinstance(each, Brings)):
                yield f"copies arrive elsewhere than at {barrier.name}"
        case InGroup(group):
            if Closes(group) not in found:
                yield f"no group of {group.value} copies is closed"
        case None:
            yield "nothing says when an engine is done"


def order_is_by_operations(steps: Steps) -> Iterator[str]:
    """Order steps write no memory; those in which threads synchronise are executed by all."""
    for step in leaves(steps.nodes):
        if not isinstance(step.work, Order):
            continue
        every = [stmt for stmt in k.walk(step.work.does) if isinstance(stmt, Operation)]
        if not every or step.stmts:
            yield "order of nothing, or with statements"
        if any(stmt.writes for stmt in every):
            yield "memory is written for the sake of order"
        if not step.threads.is_all and any(stmt.meets is not None for stmt in every):
            yield f"{step.threads} alone come to where threads meet"


def ends_are_last(steps: Steps) -> Iterator[str]:
    """A team of one thread has only a step of points, and no other team has one; a team of several blocks ends with an end
    step."""
    works = [step.work for step in leaves(steps.body)]
    if (steps.team == 1) != any(isinstance(work, Points) for work in works) or (steps.team == 1 and len(steps.body) != 1):
        yield "points are for threads that have an iteration each"
    ends = [at for at, work in enumerate(works) if isinstance(work, End)]
    after = [work for at, work in enumerate(works) if ends and at > ends[0]]
    if len(ends) != (1 if steps.blocks > 1 else 0) or not all(isinstance(work, Does) for work in after):
        yield f"{len(ends)} ends in {steps.blocks} blocks"


def _lists(steps: Steps) -> Iterator[tuple[Node, ...]]:
    yield from (steps.begin, steps.body, steps.end)
    for node in _all(steps.nodes):
        yield from below(node)


RULES: tuple[Rule, ...] = (
    names_are_words,
    names_differ,
    threads_are_of_the_team,
    digits_fit,
    loops_are_dealt,
    indices_are_coordinates,
    heads_have_no_bodies,
    statements_are_well_formed,
    locals_have_places,
    effects_are_told,
    branches_are_decided,
    reductions_are_whole,
    engines_are_told,
    order_is_by_operations,
    ends_are_last,
)
"""All rules."""
