"""The indices for which an event may execute a statement: solutions of the equations of their comparison."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from texpr.affine.expr import ONE, Expr, FloorDiv, Max, Min, Mod, Sym, children, combination, expr, term
from texpr.ir.program import Loop
from texpr.ir.program.marked import level_of
from texpr.ir.value import Buffer, Cast, Literal, Load, Op, Ref, Value, walk
from texpr.isa.levels import Level, Space
from texpr.presburger.formula import Ge
from texpr.presburger.solve.products import parted
from texpr.presburger.solve.relaxed import flat
from texpr.proof.plan.match import Match, Pairing, home_of, subscripts
from texpr.proof.read.actions import Action, Spot, indices
from texpr.proof.read.events import Event, Site
from texpr.support.record import Record, field

PARTS = 16
"""The greatest number of boxes along a dimension."""

Turns = Collection[tuple[Sym, Expr]]
"""Indices of the program's loops, as found for other events of a launch."""


class Guess(Pairing):
    """A pairing whose equations are tentative. `renamed`: the number of registers for a `let` of another name."""

    hints: list[tuple[Expr, Expr]] = field(default_factory=list[tuple[Expr, Expr]])
    renamed: int = 0

    def indirect(self, given: Value, meant: Value, site: Site, spot: Spot) -> None:
        """As in `Pairing`, and counts renamed registers."""
        if isinstance(given, Ref) and isinstance(meant, Ref):
            self.renamed += (
                given.sym in self.reading.variables and self.reading.variables[given.sym].name.name != meant.sym.name
            )
        Pairing.indirect(self, given, meant, site, spot)


def laid_out_alike(given: Load | Ref, meant: Load | Ref) -> Iterator[tuple[Expr, Expr]]:
    """The equations by a place in an array named like one of the program, if it has the same layout."""
    if not (isinstance(given, Load) and isinstance(meant, Load) and given.buffer.name == meant.buffer.name):
        return
    if given.buffer is not meant.buffer and given.buffer.role == "local" and len(given.index) == len(meant.index):
        yield from zip(meant.index, given.index, strict=True)


def by_updates(event: Event, action: Action, held: Load | Ref, updates: Sequence[Match]) -> Iterator[tuple[Expr, Expr]]:
    """The equations by an update of the same place of an array in other loops."""
    for match in (m for m in updates if m.action is action):
        there = zip(subscripts(match.event.target), subscripts(held), strict=False)
        own: dict[Sym, Expr] = {x.as_sym: y for x, y in there if x.as_sym is not None}
        around = {*event.site.launch.blocks, *event.site.launch.threads, *own}
        yield from ((expr(s), e.substitute(own)) for s, e in match.indices.items() if e.syms() <= around)


def enclosing(event: Event, action: Action, held: Load | Ref, updates: Sequence[Match]) -> int:
    """The number of loops around `action` that may be around `event`, a copy at the place `held`, by its updates.

    A loop of one iteration needs no equation; if updates are inside of it and the copy is not, the copy is outside of it.
    """
    loops, counts = action.spot.loops, list[int]()
    for match in (m for m in updates if m.action is action):
        there = zip(subscripts(match.event.target), subscripts(held), strict=False)
        known = {*event.site.dims, *(x.as_sym for x, _ in there)}
        ones = (at for at, loop in enumerate(loops) if loop.extent is ONE and not match.indices[loop.sym].syms() <= known)
        counts.append(next(ones, len(loops)))
    return max(counts, default=len(loops))


def of_a_thread(
    event: Event, source: Load | Ref, spaces: Mapping[Buffer, Space], scopes: Collection[Buffer | Sym]
) -> tuple[Load, Load | Ref, Sequence[Buffer | Sym], bool] | None:
    """What a copy moves to, or from, an array of one thread: the element there, the other place, the program memory of the
    array's name, and whether it is moved there."""
    for plain, held in ((event.target, source), (source, event.target)):
        if isinstance(plain, Load) and not plain.data and spaces.get(plain.buffer) is Space.LOCAL:
            return plain, held, [each for each in scopes if each.name == plain.buffer.name], plain is event.target
    return None


class Kept(Record):
    """Memory of a kernel holds, at `index`, the element `meant` of the program's `stored`; indices of its instance come
    first."""

    home: Buffer | Sym
    index: tuple[Expr, ...]
    stored: Buffer | Sym
    meant: tuple[Expr, ...]

    @property
    def in_parts(self) -> bool:
        """Whether the elements are distributed over the blocks of a cluster."""
        shapes = [b.shape for b in (self.home, self.stored) if isinstance(b, Buffer)]
        return len(self.index) > 0 and len(shapes) == 2 and shapes[0] != shapes[1] and len(shapes[0]) == len(shapes[1])

    @property
    def in_copies(self) -> bool:
        """Whether the instances of the program's memory, one for each iteration, are in one array at plain subscripts.

        Iterations of a host loop may share an instance, one after the other.
        """
        shapes = [b.shape for b in (self.home, self.stored) if isinstance(b, Buffer)]
        places = {e.as_sym for e in self.index}
        plain = None not in places and len(places) == len(self.index) <= len(self.meant)
        if len(shapes) < 2 or self.home.name != self.stored.name or not plain:
            return False
        turned = shapes[0] != shapes[1] and {*shapes[0]} == {*shapes[1]}
        return len(self.index) > len(shapes[1]) or (turned and len(self.index) == len(shapes[1]))

    def applied(self, given: Load | Ref, meant: Load | Ref, around: Sequence[Sym]) -> Iterator[tuple[Expr, Expr]]:
        """The equations for another element of this memory."""
        if home_of(given) != self.home or not isinstance(meant, Load) or meant.buffer != self.stored:
            return
        element = (*map(expr, around), *meant.index)
        places = given.index if isinstance(given, Load) else ()
        if self.in_parts and any(e.as_sym is None for e in self.index):  # the prefix of a part is constant within it
            for theirs, mine in zip(element, self.meant, strict=True):
                for own, other in zip(self.index, places, strict=True):
                    if own.syms() and (mine - own).syms().isdisjoint(own.syms()):
                        yield theirs, mine - own + other
            return
        values: dict[Sym, Expr] = {}
        for own, other in zip(self.index, given.index if isinstance(given, Load) else (), strict=True):
            sym = own.as_sym
            if sym is not None and sym not in values:
                values[sym] = other
        yield from ((theirs, mine.substitute(values)) for theirs, mine in zip(element, self.meant, strict=True))


def keeps(match: Match, scopes: Mapping[Buffer | Sym, int]) -> Iterator[Kept]:
    """The contents of memory that follow from a match."""
    pairs = [(match.event.target, match.action.target), *((o.read, o.meant) for o in match.operands)]
    for given, meant in pairs:
        if isinstance(meant, Load):
            index = given.index if isinstance(given, Load) else ()
            element = tuple(e.substitute(match.indices) for e in meant.index)
            around = tuple(match.indices[loop.sym] for loop in match.action.spot.loops[: scopes[meant.buffer]])
            yield Kept(home_of(given), index, meant.buffer, (*around, *element))


def by_registers(
    pairing: Guess, named: Mapping[Buffer | Sym, Match], held: Mapping[Buffer | Sym, Kept]
) -> Iterator[tuple[Expr, Expr]]:
    """The equations by an event's reads of registers: of those that are never reassigned (`named`) their elements, as written;
    of others the elements that they hold by the events known so far."""
    known = {*pairing.event.site.dims}
    for operand in pairing.operands:
        home, meant = home_of(operand.read), operand.meant
        if not isinstance(meant, Load):
            continue
        if (match := named.get(home)) is not None:
            if match.action.stored == meant.buffer:
                assert isinstance(match.action.target, Load)
                written = (e.substitute(match.indices) for e in match.action.target.index)
                yield from ((mine, e) for mine, e in zip(meant.index, written, strict=True) if e.syms() <= known)
        elif (kept := held.get(home)) is not None and kept.stored == meant.buffer:
            around = indices(pairing.action.spot)[: pairing.program.scopes[meant.buffer]]
            pairs = kept.applied(operand.read, meant, around)
            yield from ((theirs, mine) for theirs, mine in pairs if mine.syms() <= known)


def strays(event: Event, solution: Mapping[Sym, Expr]) -> bool:
    """Whether a loop around launches would be in another iteration than that in which the event is launched."""
    return any(sym in solution and solution[sym] is not expr(sym) for sym in event.site.launch.host)


def solutions(pairing: Guess, wanted: Sequence[Sym], turns: Turns, *, named: bool) -> Iterator[Mapping[Sym, Expr]]:
    """Candidate values of the indices `wanted`, likely ones first.

    `named`: only if an equation determines them, as matches of other events may add equations later.
    """
    tried: list[Mapping[Sym, Expr]] = []
    for tiled, names_first in product((True, False)[not pairing.event.engine :], (None, True, False)):
        found = solve(pairing, wanted, names_first, turns, tiled)
        if found is not None and found not in tried:
            tried.append(found)
            yield found
    yield from _boxed(pairing, wanted, turns)
    yield from _counted(pairing, wanted, turns)
    yield from _along(pairing, wanted, turns)
    yield from _guarded(pairing, wanted, turns)
    yield from _reshaped(pairing, wanted, turns)
    if not tried and not named:
        yield from _unrolled(pairing, wanted, turns)


def _unrolled(pairing: Guess, wanted: Sequence[Sym], turns: Turns) -> Iterator[Mapping[Sym, Expr]]:
    """If no equation determines the index of a short loop: each of its iterations in turn, as for equal lanes of a vector."""
    for loop in (each for each in pairing.action.spot.loops if each.extent.is_constant and 1 < each.extent.constant <= PARTS):
        found = (solve(pairing, [sym for sym in wanted if sym != loop.sym], way, turns) for way in (None, True, False))
        rest = next((each for each in found if each is not None), None)
        if rest is not None:
            yield from ({**rest, loop.sym: expr(turn)} for turn in range(loop.extent.constant))


def _boxed(pairing: Guess, wanted: Sequence[Sym], turns: Turns) -> Iterator[Mapping[Sym, Expr]]:
    """If no equation determines the index along a dimension of several boxes: by the array's subscripts, if boxes are its outer
    dimensions, or each part in turn."""
    target, site, loops = pairing.event.target, pairing.event.site, pairing.action.spot.loops
    if not pairing.event.engine or not isinstance(target, Load) or solve(pairing, wanted, None, turns) is not None:
        return
    inner, rank = loops[len(loops) - target.buffer.rank // 2 :], target.buffer.rank // 2
    rest = solve(pairing, wanted[: len(wanted) - rank], None, turns)
    if rest is not None and target.buffer.rank == 2 * rank <= 2 * len(loops):
        pairs = zip(inner, target.index[:rank], target.index[rank:], target.buffer.shape[rank:], strict=True)
        yield {**rest, **{loop.sym: part * extent + at for loop, part, at, extent in pairs}}
    for loop in loops if not site.sender else ():
        rest = solve(pairing, [sym for sym in wanted if sym != loop.sym], None, turns)
        used = {sym for e in rest.values() for sym in e.syms()} if rest is not None else set[Sym]()
        for box in (each for each in site.loops if each.kind == "simd" and not each.body and each.hi.is_constant):
            parts, left = divmod(loop.extent.constant if loop.extent.is_constant else 1, box.hi.constant)
            if rest is not None and box.sym not in used and not left and parts <= PARTS:
                yield from ({**rest, loop.sym: expr(box.sym) + box.hi * part} for part in range(parts))


def solve(
    pairing: Guess, wanted: Sequence[Sym], names_first: bool | None, turns: Turns, tiled: bool = False
) -> Mapping[Sym, Expr] | None:
    """The indices by name, or by equations with one unknown; if None, by the bounds of divided loops.

    `tiled`: first by the position in a tile, which does not determine the position in the tensor.
    """
    site, spot = pairing.event.site, pairing.action.spot
    known = set(site.dims)
    data: dict[Sym, Expr] = {theirs: expr(mine) for theirs, mine in pairing.data.items()}
    found = dict(data)
    names = {sym: Sym(f"{sym.name}●") for sym in wanted}  # the kernel may use the same names for something else
    named = {sym: expr(sym) for sym in wanted if sym in known}
    named |= {sym: meaning for sym, meaning in site.names.items() if sym in wanted and sym not in named}
    if names_first:
        found |= named
    if names_first is None:
        found |= _cut(pairing)

    def left(meant: Expr, given: Expr) -> tuple[Expr, dict[Sym, Sym]]:
        return meant.substitute({**names, **found, **data}) - given, {
            own: sym for sym, own in names.items() if sym not in found
        }

    # a quotient by a size determines an index, but names and places do so in an invertible way
    plain = [(meant, given) for meant, given in pairing.equations if not _is_divided(given)]
    for equations in (*((pairing.hints,) if tiled else ()), plain, (), plain, pairing.hints, pairing.equations):
        before = -1
        while before < len(found) < len(wanted) + len(data):
            before = len(found)
            for meant, given in equations:
                _solve_one(*left(meant, given), found)
        if not equations:
            found |= {sym: meaning for sym, meaning in named.items() if sym not in found}
    extents = {loop.sym: loop.extent.constant for loop in spot.loops if loop.extent.is_constant}
    for meant, given in pairing.equations:
        _solve_digits(*left(meant, given), extents, found)
    for meant, given in pairing.equations:
        _solve_remainders(*left(meant, given), found)
    for sym, meaning in turns:
        if sym in wanted and sym not in found and meaning.syms() <= known:
            found[sym] = meaning
    boxes = [loop for loop in site.loops if loop.kind == "simd" and not loop.body]
    for loop in spot.loops:
        fitting = [each.sym for each in boxes if each.hi is loop.extent and expr(each.sym) not in found.values()]
        if loop.sym not in found and len(fitting) == 1:  # no equation determines it: it is along a dimension of a box
            found[loop.sym] = expr(fitting[0])
        if loop.sym not in found and loop.extent.is_constant and loop.extent.constant == 1:
            found[loop.sym] = _only(loop, pairing.event)
    return found if all(sym in found for sym in wanted) else None


def _only(loop: Loop, event: Event) -> Expr:
    """The index of a loop of one iteration: 0, or the block's, if surplus blocks of a cluster exist and the engine copies for
    them."""
    level = level_of(loop) if event.engine else None
    axes = event.site.launch.kernel.axes
    own = (a.sym for a in axes if level == f"grid.{a.dim}" and a.level is Level.GRID and a.extent is not ONE)
    return expr(next(own, 0))


def _is_divided(value: Expr) -> bool:
    """Whether an expression has a quotient by a size."""
    atoms = (atom for monomial, _ in value.terms for atom in monomial if not isinstance(atom, Sym))
    return any((isinstance(a, FloorDiv | Mod) and not a.den.is_constant) or any(map(_is_divided, children(a))) for a in atoms)


def _counted(pairing: Guess, wanted: Sequence[Sym], turns: Turns) -> Iterator[Mapping[Sym, Expr]]:
    """The innermost index if no expression has it and lanes alternate: lane and iteration number give it."""
    target, site, spot = pairing.event.target, pairing.event.site, pairing.action.spot
    if not spot.loops or not isinstance(target, Load) or target.buffer.rank != 1 or target.buffer.role != "local":
        return
    loop, (lane,) = spot.loops[-1], target.index
    for names_first in (None, True, False):
        rest = solve(pairing, [sym for sym in wanted if sym != loop.sym], names_first, turns)
        if rest is None:
            continue
        used = {sym for e in (lane, *rest.values()) for sym in e.syms()}
        for width in (
            target.buffer.shape[0],
            *(hi for mine, (_, hi) in site.bounds.items() if mine.sym in lane.syms()),
        ):
            total, stride = lane, width
            for mine in reversed([each for each in site.loops if each.sym not in used]):
                total, stride = total + stride * mine.sym, stride * site.bounds[mine][1]
            yield {**rest, loop.sym: total + _begun(site, used)}


def _along(pairing: Guess, wanted: Sequence[Sym], turns: Turns) -> Iterator[Mapping[Sym, Expr]]:
    """If nothing determines the index of a loop: the one unused axis of the kernel with the same extent.

    Not for a register that would hold an element of program memory: a step of a partial sum looks alike.
    """
    home = pairing.action.stored
    kept = isinstance(home, Buffer) and home.role != "local" and not isinstance(pairing.event.target, Load)
    for loop in pairing.action.spot.loops if not kept else ():
        rest = solve(pairing, [sym for sym in wanted if sym != loop.sym], None, turns)
        used = {sym for e in rest.values() for sym in e.syms()} if rest is not None else set[Sym]()
        axes = (axis for axis in pairing.event.site.launch.kernel.axes if axis.extent is loop.extent)
        free = [axis.sym for axis in axes if axis.sym not in used]
        if rest is not None and len(free) == 1:
            yield {**rest, loop.sym: expr(free[0])}


def _guarded(pairing: Guess, wanted: Sequence[Sym], turns: Turns) -> Iterator[Mapping[Sym, Expr]]:
    """The instance of a program's local, if nothing else determines it: the expression that guards bound by a loop's extent."""
    event, stored = pairing.event, pairing.action.stored
    home = event.target.buffer if isinstance(event.target, Load) else pairing.reading.variables[event.target.sym].name
    if not isinstance(stored, Buffer) or stored.role != "local" or home.name != stored.name:
        return
    guards = [fact.expr for fact in flat(event.site.where) if isinstance(fact, Ge)]
    said: dict[Sym, Expr] = {}
    for loop in pairing.action.spot.loops[: pairing.program.scopes[stored]]:
        below = {e for e in (loop.extent - 1 - guard for guard in guards) if e.syms() and e.syms() <= {*event.site.dims}}
        if len(below) == 1:
            said[loop.sym] = below.pop()
    rest = solve(pairing, [sym for sym in wanted if sym not in said], None, turns) if said else None
    used = {sym for e in rest.values() for sym in e.syms()} if rest is not None else set[Sym]()
    if rest is not None and not any(e.syms() & used for e in said.values()):
        yield {**rest, **said}


def _reshaped(pairing: Guess, wanted: Sequence[Sym], turns: Turns) -> Iterator[Mapping[Sym, Expr]]:
    """An index that only occurs in quotients and remainders, as of a reshaped array: i / n = a and i % m = x % m give i = n · a
    + x, if x is the part of i below n."""
    pairs = [(meant.as_atom, given) for meant, given in (*pairing.equations, *pairing.hints)]
    for loop in pairing.action.spot.loops:
        own = [(atom, given) for atom, given in pairs if isinstance(atom, FloorDiv | Mod) and atom.num.as_sym == loop.sym]
        digits = [(atom.den, given.as_atom) for atom, given in own if isinstance(atom, Mod)]
        below = dict.fromkeys(x.num for den, x in digits if isinstance(x, Mod) and x.den is den)
        rest = solve(pairing, [sym for sym in wanted if sym != loop.sym], None, turns) if below else None
        for atom, given in own if rest is not None else ():
            if isinstance(atom, FloorDiv):
                yield from ({**(rest or {}), loop.sym: atom.den * given + x} for x in below)


def _begun(site: Site, used: Collection[Sym]) -> Expr:
    """The start of a block's share, by its end: in n − 4096 · block."""
    ends = dict.fromkeys(part for bound in site.bounds.values() for e in bound for part in _within(e))
    total = expr(0)
    for sym in site.launch.blocks:
        shares = [-c for e in ends for m, c in e.terms if m == (sym,) and c < 0]
        if sym not in used and shares:
            total = total + expr(sym) * shares[0]
    return total


def _within(value: Expr) -> Iterator[Expr]:
    yield value
    for monomial, _ in value.terms:
        for atom in monomial:
            if not isinstance(atom, Sym):
                for part in children(atom):
                    yield from _within(part)


def _cut(pairing: Guess) -> dict[Sym, Expr]:
    """The indices of loops over a part of the program's loop that end where it does: i < n and i' < n - c give i = i' + c."""
    found: dict[Sym, Expr] = {}
    site = pairing.event.site
    sent = dict(zip(site.launch.blocks, site.sender, strict=True)) if site.sender else {}
    for mine in site.loops:
        for theirs in pairing.action.spot.loops:
            hi, extent = site.bounds[mine][1], theirs.extent.substitute(found)  # which may be a divided loop, too
            for end in _ends(hi) if theirs.sym == mine.sym and hi not in (extent, extent.substitute(sent)) else ():
                whole = extent.is_constant and extent.constant == end.constant and end.syms()
                if whole or extent.syms() & end.syms():
                    found[mine.sym] = expr(mine.sym) + extent - end
    return found


def _ends(bound: Expr) -> Iterator[Expr]:
    """The operands of the minimum or maximum in a bound."""
    atom = bound.as_atom
    for end in atom.args if isinstance(atom, Min | Max) else ():
        yield from _ends(end)
    if not isinstance(atom, Min | Max):
        yield bound


def _unhalved(difference: Expr, sym: Sym, unknown: Mapping[Sym, Sym], found: dict[Sym, Expr]) -> None:
    """From ⌊(x + a) / n⌋ = rest + ⌊lane / n⌋: x = n · rest + lane − a."""
    halves = [(m[0], c) for m, c in difference.terms if len(m) == 1 and isinstance(m[0], FloorDiv) and c in (1, -1)]
    for whole, sign in halves:
        beside = whole.num - sym
        for part, other in halves if sym not in beside.syms() and whole.den.is_constant else ():
            if other == -sign and part.den is whole.den:
                rest = difference - term((whole,), sign) - term((part,), other)
                found.setdefault(unknown[sym], rest * -sign * part.den + part.num - beside)
                return


def _solve_digits(difference: Expr, unknown: Mapping[Sym, Sym], extents: Mapping[Sym, int], found: dict[Sym, Expr]) -> None:
    """Several unknowns in one equation: each is a digit of the rest."""
    parts = sorted(((c, m[0]) for m, c in difference.terms if len(m) == 1 and m[0] in unknown), key=lambda part: part[0])
    if len(parts) < 2 or parts[0][0] != 1:
        return
    rest = -(difference - combination(0, [((atom,), c) for c, atom in parts]))
    if rest.syms() & unknown.keys():
        return
    made: dict[Sym, Expr] = {}
    for (c, atom), above in zip(parts, [*parts[1:], None], strict=True):
        sym = unknown[atom] if isinstance(atom, Sym) else None
        if sym is None or (above is not None and extents.get(sym, 0) * c != above[0]):
            return
        made[sym] = rest // c if above is None else rest // c % extents[sym]
    found |= made


def _solve_remainders(difference: Expr, unknown: Mapping[Sym, Sym], found: dict[Sym, Expr]) -> None:
    """From x % n = y % n: x = y, which is likely if no other equation has the unknowns of x, as for swizzled rows."""
    remainders = [(c, m[0]) for m, c in difference.terms if len(m) == 1 and isinstance(m[0], Mod)]
    for (own, meant), (other, given) in product(remainders, remainders):
        if own == -other and meant.den is given.den and given.num.syms().isdisjoint(unknown):
            _solve_one(meant.num - given.num, unknown, found)


def _solve_rows(difference: Expr, inside: Collection[Sym], unknown: Mapping[Sym, Sym], found: dict[Sym, Expr]) -> None:
    """From i · n + j = a · n + b: i = a and j = b, which is likely if n is the length of a row."""
    rows = (m for m, _ in difference.terms if len(m) == 2 and len({*m} & {*inside}) == 1)
    for radix in dict.fromkeys(a for m in rows for a in m if isinstance(a, Sym | FloorDiv) and a not in inside):
        parts = parted(difference, (radix,))
        if not any({*inside} <= part.syms() for part in parts):
            for part in parts:
                _solve_one(part, unknown, found)
            return


def _solve_one(difference: Expr, unknown: Mapping[Sym, Sym], found: dict[Sym, Expr]) -> None:
    inside = difference.syms() & unknown.keys()
    if len(inside) != 1:
        _solve_rows(difference, inside, unknown, found)
        return
    (sym,) = inside
    _unhalved(difference, sym, unknown, found)
    for monomial, coefficient in difference.terms:
        if monomial == (sym,):
            rest = difference - term(monomial, coefficient)
            whole = all(number % coefficient == 0 for number in (rest.constant, *(c for _, c in rest.terms)))
            if sym not in rest.syms() and whole:
                found[unknown[sym]] = combination(
                    -rest.constant // coefficient, [(m, -c // coefficient) for m, c in rest.terms]
                )
            return


def instance_of(event: Event, action: Action, solution: Mapping[Sym, Expr]) -> tuple[object, ...]:
    """The statement, indices and list of statements of an event."""
    return (id(event.site.path[-1][0]), action, *(solution[sym] for sym in indices(action.spot)))


def named_alike(home: Buffer | Sym, stored: Buffer | Sym) -> bool:
    """Whether an array of a kernel is named like program memory, or is that memory."""
    return home == stored or (isinstance(home, Buffer) and isinstance(stored, Buffer) and home.name == stored.name)


def titles(stored: Buffer | Sym) -> tuple[str, ...]:
    """The names by which memory of a kernel may be called after program memory: of a second `v`, which is v'1, both."""
    return (stored.name,) if isinstance(stored, Buffer) else tuple(dict.fromkeys((stored.name, stored.base)))


def is_read(home: Buffer | Sym, events: Sequence[Event]) -> bool:
    """Whether any of these events reads a memory."""
    return any(isinstance(node, Load | Ref) and home_of(node) == home for e in events for node in walk(e.value))


def rank(event: Event) -> tuple[bool, bool, bool]:
    """The rank of an event: those that determine more come first.

    A value without an index, of constants and scalars, fits everywhere; its indices follow from reads and writes beside it. The
    initial value of a register fits its later assignment, but the assignment is the statement's execution.
    """
    everywhere = all(isinstance(x, Literal | Op | Cast) or (isinstance(x, Load) and not x.index) for x in walk(event.value))
    first = event.first
    return not event.let, everywhere, first
