"""What is shown of two accesses by their addresses, and by loops that are turned in step, holds point by point."""

import random
from itertools import product

from texpr.affine.expr import Expr, Sym, expr
from texpr.ir import kernel as k
from texpr.ir import program as ir
from texpr.presburger.formula import TRUE, Ge, between
from texpr.proof.plan.places import COPY, ELEMENT, PLACE, THREAD, Address, follows
from texpr.proof.read.events import Launch, Site
from texpr.proof.read.order import in_step, sides_of
from texpr.proof.read.program_order import When

RANGES = {Sym("i"): 3, Sym("j"): 4, Sym("thread"): 6}


def some_expr(rng: random.Random) -> Expr:
    one, two = (expr(rng.choice(list(RANGES))) for _ in range(2))
    return rng.choice([one, two + 4 * one, one // 2, one % 2, two - one, one * 2 + rng.randrange(2), expr(1)])


def drawn(rng: random.Random, spoken: int) -> tuple[Expr, ...]:
    return tuple(some_expr(rng) for _ in range(spoken))


def parted(rng: random.Random, spoken: int) -> tuple[Expr, ...]:
    """The quotient and the remainder of a number by one that is more than 0, which another coordinate may say."""
    number, by = some_expr(rng), rng.choice([expr(3), *(expr(sym) + 1 for sym in RANGES)])
    return (number // by, number % by, *drawn(rng, spoken))[:spoken]


def some_address(rng: random.Random, spoken: int) -> Address:
    says = tuple(rng.choice((drawn, parted))(rng, spoken) for _ in range(4))
    return Address(tuple(RANGES), tuple(between(0, sym, n) for sym, n in RANGES.items()), says, True)


def values(of: Address, point: dict[Sym, int], which: int) -> list[int]:
    return [e.evaluate(point) for e in of.says[which]]


def test_what_follows_holds_at_all_points() -> None:
    rng = random.Random(1)
    points = [dict(zip(RANGES, at, strict=True)) for at in product(*(range(n) for n in RANGES.values()))]
    shown = 0
    for _ in range(250):
        a = some_address(rng, 2)
        b = rng.choice([a, some_address(rng, 2)])
        given, wanted = rng.choice([((PLACE,), THREAD), ((PLACE, COPY), ELEMENT), ((COPY, ELEMENT), PLACE)])
        told = [(values(a, p, wanted), [values(a, p, n) for n in given]) for p in points]
        asked = [(values(b, p, wanted), [values(b, p, n) for n in given]) for p in points]
        holds = all(x == y for (x, one), (y, two) in product(told, asked) if one == two)
        found = follows(a, b, given, wanted, TRUE)
        assert holds or not found
        shown += found
    assert shown > 10


def test_equal_digits_are_of_equal_numbers_by_one_divisor_alone() -> None:
    """5 by 2 is 2 and 1, and so is 7 by 3."""
    x, i, n = Sym("x"), Sym("i"), Sym("n")
    facts = (Ge(expr(x)), Ge(expr(i)), Ge(expr(n) - 1))
    for by, shown in ((expr(n), True), (expr(i) + 1, False)):
        says = ((expr(x) // by, expr(x) % by), (), (expr(x),), ())
        address = Address((x, i), facts, says, True)
        assert follows(address, address, (PLACE,), ELEMENT, facts[2]) is shown


def some_loop(name: str, kind: str) -> k.For:
    return k.For(Sym(name), expr(0), expr(2), (), expr(1), kind)


def some_times(rng: random.Random, loops: list[k.For]) -> tuple[list[int | k.For], list[int | ir.Loop], list[Expr]]:
    """The steps of an instance in a kernel and in the program, in which loops have values that may be those of others."""
    run: list[int | k.For] = []
    time: list[int | ir.Loop] = []
    shown = [expr(loop.sym) for loop in loops]
    for loop in loops:
        run += [0, loop]
    if rng.random() < 0.3:
        rng.shuffle(shown)
    if rng.random() < 0.2:
        shown[0] = 1 - shown[0]
    for e in shown:
        time += [0, rng.choice([ir.Par, ir.Seq])(Sym(f"p{e}"), expr(2), ())]
    return run, time, shown


def stepped(time: list[int | ir.Loop], shown: list[Expr], at: int) -> When:
    exprs = iter(shown)
    return (*(step if isinstance(step, int) else (step, next(exprs)) for step in time), at)


def first(one: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    """Where two times differ first."""
    return next((n for n, (x, y) in enumerate(zip(one, other, strict=False)) if x != y), None)


def test_loops_in_step_keep_the_order_of_all_instances() -> None:
    rng = random.Random(2)
    verdicts = [0, 0]
    for _ in range(400):
        loops = [some_loop(name, rng.choice(["serial", "serial", "serial", "simd"])) for name in "xyz"]
        run, time, shown = some_times(rng, loops)
        ends = [(rng.randrange(2), rng.randrange(2)) for _ in range(2)]
        launch = Launch(k.Kernel("k", (), (), (), (), (), (), frozenset()), (0,), (), (), ())
        a, b = (Site(launch, (*run, at), tuple(loops), bounds={}) for at, _ in ends)
        begun, ended = (stepped(time, shown, at) for _, at in ends)
        skips, later = {n for n in range(3) if rng.random() < 0.3}, rng.random() < 0.5
        sides = sides_of(a, b)
        times = tuple(
            tuple(s if isinstance(s, int) else (s[0], names(s[1])) for s in each)
            for each, names in ((begun, sides.a), (ended, sides.b))
        )
        found = in_step((times[0], times[1]), a, b, sides, lambda n, _, skips=skips: n in skips, alone=True, later=later)
        holds = True
        for mine, theirs in product(product(range(2), repeat=3), repeat=2):
            points = [dict(zip((loop.sym for loop in loops), at, strict=True)) for at in (mine, theirs)]
            program = [(*(e.evaluate(p) for e in shown), at) for p, (_, at) in zip(points, ends, strict=True)]
            kernel = [(*at, end) for at, (end, _) in zip((mine, theirs), ends, strict=True)]
            differ, turn = first(*program), first(*kernel)
            if differ is None or differ in skips or program[0] > program[1]:
                continue
            lanes = turn is not None and turn < 3 and loops[turn].kind == "simd"
            holds &= later if turn is None else kernel[0] < kernel[1] and not lanes
        assert holds or not found
        verdicts[found] += 1
    assert min(verdicts) > 50
