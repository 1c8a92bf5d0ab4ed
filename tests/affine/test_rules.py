"""Each rule of the simplifier: tried at every point of small boxes, proved for all integers, and caught when careless."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import islice, product
from random import Random

import pytest
import z3
from tests.affine.knowledge import Box, points

from texpr.affine import rules
from texpr.affine.expr import ZERO, Atom, Expr, FloorDiv, Max, Min, Mod, Sym, Xor, expr, maximum, minimum, sym, term, xor
from texpr.affine.facts import Fact, Known, multiple_of
from texpr.affine.ranges import Range

R, C, N = sym("i"), sym("j"), sym("n")
INSIDE = (Fact(0, C, N),)

QUOTIENT_RULES = (*rules.FLOOR_RULES, *rules.MOD_RULES)
NAMES = {rule.__name__ for rule in (*QUOTIENT_RULES, *rules.SWIZZLE_RULES, *rules.SUM_RULES)} | {
    "symbol_is_fixed", "min_drops_greater", "max_drops_less",
}  # fmt: skip

OF_SYMBOLS = {"floor_leaves_multiples", "floor_drops_factor", "mod_drops_multiples", "mod_takes_factor_out"}
"""Rules for symbolic divisors: for constant ones they hold by construction."""

Instance = tuple[Expr, Callable[[Known], Expr | None], Box, dict[Sym, Range], tuple[Fact, ...]]
"""An expression, one rule on it, where its points are, and the ranges and facts that are known of them."""


class Generator:
    """Expressions of the kind that tiling makes, so that every rule finds something to do."""

    def __init__(self, seed: int):
        self.random = Random(seed)

    def pick(self, *of: int) -> int:
        return self.random.choice(of)

    def leaf(self) -> Expr:
        d = self.pick(2, 3, 4, 6)
        return self.random.choice([R, C, R // d, C % d, (R + C) % d, (R * 2 + C) // d, R // N, C % (2 * N), R])

    def sum(self) -> Expr:
        a, b = self.pick(-4, 1, 2, 3, 4, 6), self.pick(-2, 0, 1, 1, 2)
        return a * self.leaf() * self.random.choice([expr(1), expr(1), N]) + b * self.leaf() + self.pick(-5, -1, 0, 0, 1, 3)

    def den(self, symbolic: bool) -> Expr:
        constants = [] if symbolic else [expr(2), expr(3), expr(4), expr(6), expr(8)]
        return self.random.choice([*constants, N, N, 2 * N, N + 1, -N])

    def digits(self) -> Expr:
        """Sums of floors and remainders of one expression, that may join again."""
        x, a, b = self.leaf() + self.pick(0, 1), self.random.choice([expr(2), expr(3), N]), self.random.choice([expr(2), N])
        parts = [x % a, a * (x // a), a * ((x // a) % b), a * b * (x // (a * b)), -a * (x // a), x]
        return sum(self.random.sample(parts, 2), expr(0)) + self.pick(0, 1) * C

    def swizzled(self) -> Expr:
        """A swizzle of a few bits and what may stand beside it."""
        value = self.random.choice([self.leaf() + self.pick(0, 1, 5), self.sum()])
        return xor(value, self.random.choice([R, C + R, N * C, C % 2, expr(self.pick(1, 2, 3, 4))]), self.pick(1, 1, 2, 3))

    def swizzled_digits(self) -> Expr:
        """Digits of one expression, the low one swizzled."""
        x, a = self.leaf() + self.pick(0, 1), self.random.choice([expr(2), expr(4), expr(3), expr(6), 2 * N])
        return xor(x % a, self.random.choice([R, C // 2]), self.pick(1, 2)) + a * (x // a)

    def facts(self) -> tuple[Fact, ...]:
        """Facts between symbols, and on what divides them."""
        of = self.random.choice([N, N, C, R + C, C + 2])
        return (INSIDE if self.pick(0, 1) else ()) + ((multiple_of(of, self.pick(2, 2, 3, 4)),) if self.pick(0, 1) else ())

    def atoms(self, value: Expr) -> list[Atom]:
        return [atom for monomial, _ in value.terms for atom in monomial]

    def box(self) -> tuple[Box, dict[Sym, Range]]:
        box: Box = {}
        for name in "ijn":
            lo = self.pick(-3, 0, 0, 1)
            box[Sym(name)] = lo, lo + self.pick(0, 1, 3, 5)
        said: dict[Sym, Range] = {s: (ends if self.pick(0, 1, 1) else (None, None)) for s, ends in box.items()}
        return box, said


def instances(name: str) -> Iterator[Instance]:
    """Without end. A rule on atoms gets atoms whose parts are canonical, as in the simplifier."""
    made = Generator(sum(map(ord, name)))
    rule: Callable[..., Expr | None] = getattr(rules, name)
    while True:
        box, said = made.box()
        given = made.facts()
        if rule in rules.SUM_RULES:
            value = made.swizzled_digits() if "xor" in name else made.digits()
            yield value, lambda k, v=value: rule(v, k), box, said, given
        elif rule in rules.SWIZZLE_RULES:
            for atom in made.atoms(made.swizzled()):
                if isinstance(atom, Xor):
                    yield term((atom,)), lambda k, a=atom: rule(a, k), box, said, given
        elif rule in QUOTIENT_RULES:
            num, den = made.sum(), made.den(name in OF_SYMBOLS)
            if name == "floor_of_mod":
                num = num % (den * made.random.choice([expr(2), N, -N]))
            elif name in ("floor_drops_factor", "mod_takes_factor_out"):
                num = made.pick(2, 3) * N * num
            elif "xor" in name:
                num = made.swizzled() + made.random.choice([ZERO, ZERO, made.pick(1, 2, 4) * made.leaf()])
                den = made.random.choice([expr(2), expr(4), expr(6), expr(8), 2 * N, -2 * N])
            for atom in made.atoms(num // den if rule in rules.FLOOR_RULES else num % den):
                if isinstance(atom, FloorDiv if rule in rules.FLOOR_RULES else Mod):
                    yield term((atom,)), lambda k, a=atom: rule(a.num, a.den, k), box, said, given
        elif name == "symbol_is_fixed":
            yield R, lambda k: rule(Sym("i"), k), box, said, given
        else:
            extremum = minimum if name == "min_drops_greater" else maximum
            for atom in made.atoms(extremum(made.sum(), made.sum(), made.pick(-3, 4))):
                if isinstance(atom, Min | Max):
                    yield term((atom,)), lambda k, a=atom: rule(a.args, k), box, said, given


def broken(
    name: str, careless: Callable[[Known], Known] = lambda known: known, enough: int = 60, most: int = 6000
) -> tuple[int, str | None]:
    """How often the rule fits, and an instance at which it is wrong, if there is one."""
    fits = 0
    for value, rule, box, said, given in islice(instances(name), most):
        changed = rule(careless(Known(said, given)))
        if changed is None:
            continue
        for point in points(box, given):
            try:
                wanted = value.evaluate(point)
            except ZeroDivisionError:
                continue
            if changed.evaluate(point) != wanted:
                return fits, f"{value} is not {changed} at {point}"
        fits += 1
        if fits == enough:
            break
    return fits, None


@pytest.mark.parametrize("name", sorted(NAMES))
def test_rule_is_right_at_every_point(name: str) -> None:
    fits, wrong = broken(name)
    assert wrong is None, wrong
    assert fits >= 20, "the instances must give the rule something to do"


class Careless(Known):
    """Takes one kind of side condition for granted."""

    def __init__(self, known: Known, which: str):
        super().__init__({})
        self._real, self._which = known, which

    @property
    def divides(self) -> bool:
        return self._which == "multiple" or self._real.divides

    def multiple(self, value: Expr, of: int) -> bool:
        return self._which == "multiple" or self._real.multiple(value, of)

    @property
    def fixed(self) -> Mapping[Sym, int]:
        return {Sym("i"): 0} if self._which == "fixed" else self._real.fixed

    def bounds(self, value: Expr) -> Range:
        return (1, 1) if self._which == "bounds" else self._real.bounds(value)

    def nonnegative(self, value: Expr) -> bool:
        return self._which == "nonnegative" or self._real.nonnegative(value)

    def positive(self, value: Expr) -> bool:
        return self._which == "positive" or self._real.positive(value)

    def quotient(self, value: Expr, den: Expr) -> int | None:
        return 0 if self._which == "quotient" else self._real.quotient(value, den)


CONDITIONS = [
    ("floor_in_range", "quotient"),
    ("floor_leaves_known_multiples", "multiple"),
    ("floor_drops_remainder", "quotient"),
    ("floor_drops_remainder", "positive"),
    ("floor_of_floor", "positive"),
    ("floor_of_mod", "positive"),
    ("floor_of_xor", "multiple"),
    ("floor_of_xor", "positive"),
    ("mod_in_range", "quotient"),
    ("mod_drops_known_multiples", "multiple"),
    ("mod_takes_remainder_out", "quotient"),
    ("mod_takes_remainder_out", "positive"),
    ("mod_goes_into_xor", "multiple"),
    ("mod_goes_into_xor", "positive"),
    ("xor_leaves_known_multiples", "multiple"),
    ("xor_drops_known_multiples", "multiple"),
    ("xor_takes_fewer_bits", "bounds"),
    ("sum_drops_exact_floor", "multiple"),
    ("sum_joins_floor_and_xor", "multiple"),
    ("sum_joins_digits", "positive"),
    ("sum_in_range", "bounds"),
    ("symbol_is_fixed", "fixed"),
    ("min_drops_greater", "nonnegative"),
    ("max_drops_less", "nonnegative"),
]
"""Every side condition of every rule."""


@pytest.mark.parametrize(("name", "which"), CONDITIONS)
def test_rule_without_its_side_condition_is_caught(name: str, which: str) -> None:
    assert broken(name, lambda known: Careless(known, which), enough=500)[1] is not None


def test_every_condition_is_listed() -> None:
    """A rule that is not listed asks nothing: it is right however careless the answers are.

    Joining a floor and a remainder is left out: it asks what the rules of floors make of the floor, and they are listed.
    """
    for name in NAMES - {name for name, _ in CONDITIONS} - {"sum_joins_floor_and_mod"}:
        for which in ("quotient", "positive", "nonnegative", "bounds", "fixed", "multiple"):
            assert broken(name, lambda known, which=which: Careless(known, which), 8, 1000)[1] is None


# Proofs for all integers. Divisors and factors run over small constants, so that the rest is linear and decidable.

Integer = z3.ArithRef | int
Claim = tuple[bool, z3.BoolRef | bool, z3.BoolRef]
"""The condition on constants, the condition on variables, and what is claimed."""


def floor(num: Integer, den: int) -> z3.ArithRef:
    """⌊num / den⌋; z3's own division floors where the divisor is positive."""
    return num / den if den > 0 else -num / -den  # pyright: ignore


def mod(num: Integer, den: int) -> z3.ArithRef:
    return num - den * floor(num, den)  # pyright: ignore


def swizzle(value: Integer, mask: Integer, bits: int) -> z3.ArithRef:
    """The XOR of the low bits, bit by bit."""
    bit = [mod(mod(floor(value, 1 << b), 2) + mod(floor(mask, 1 << b), 2), 2) for b in range(bits)]  # pyright: ignore
    return value - mod(value, 1 << bits) + sum((each * (1 << b) for b, each in enumerate(bit)), z3.IntVal(0))  # pyright: ignore


def few(bits: int) -> int:
    """One bit or two: more say no more, and take long."""
    return 1 + abs(bits) % 2


X, Y, A, Q, S = z3.Ints("x y a q s")
THEOREMS: dict[str, Callable[[int, int], Claim]] = {
    "floor_in_range": lambda d, _: (True, z3.And(Q * d <= X, (Q + 1) * d > X), floor(X, d) == Q),
    "floor_leaves_multiples": lambda d, _: (True, True, floor(d * Q + S, d) == Q + floor(S, d)),
    "floor_leaves_known_multiples": lambda d, k: (
        True, mod(A, d) == 0, floor(A * k + S, d) == floor(A, d) * k + floor(S, d),
    ),
    "floor_drops_factor": lambda g, k: (True, True, floor(g * A, g * k) == floor(A, k)),
    "floor_drops_remainder": lambda g, k: (
        k > 0, z3.And(Q * g <= S, (Q + 1) * g > S), floor(g * A + S, g * k) == floor(A + Q, k),
    ),
    "floor_of_floor": lambda a, b: (b > 0, True, floor(floor(X, a) + Y, b) == floor(X + a * Y, a * b)),
    "floor_of_mod": lambda b, c: (c > 0, True, floor(mod(X, b * c), b) == mod(floor(X, b), c)),
    "floor_of_xor": lambda k, b: (
        k > 0, mod(Y, 1 << few(b)) == 0,
        floor(swizzle(X, A, few(b)) + Y, k << few(b)) == floor(X + Y, k << few(b)),
    ),
    "floor_goes_into_xor": lambda k, b: (
        True, True,
        floor(swizzle(X, A, few(k) + few(b)), 1 << few(k))
        == swizzle(floor(X, 1 << few(k)), floor(A, 1 << few(k)), few(b)),
    ),
    "mod_goes_into_xor": lambda k, b: (
        0 < k < 3, mod(Y, 1 << few(b)) == 0,
        mod(swizzle(X, A, few(b)) + Y, k << few(b)) == swizzle(mod(X + Y, k << few(b)), A, few(b)),
    ),
    "mod_of_xor": lambda k, b: (
        True, True, mod(swizzle(X, A, few(k) + few(b)), 1 << few(k)) == swizzle(mod(X, 1 << few(k)), A, few(k)),
    ),
    "xor_leaves_known_multiples": lambda b, _: (
        True, mod(Y, 1 << few(b)) == 0, swizzle(Y + X, A, few(b)) == Y + swizzle(X, A, few(b)),
    ),
    "xor_drops_known_multiples": lambda b, _: (
        True, mod(Y, 1 << few(b)) == 0, swizzle(X, Y + A, few(b)) == swizzle(X, A, few(b)),
    ),
    "xor_takes_fewer_bits": lambda b, _: (
        True, z3.And(A >= 0, 1 << few(b) > A), swizzle(X, A, few(b) + 1) == swizzle(X, A, few(b)),
    ),
    "mod_in_range": lambda d, _: (True, z3.And(Q * d <= X, (Q + 1) * d > X), mod(X, d) == X - Q * d),
    "mod_drops_multiples": lambda d, _: (True, True, mod(d * Q + S, d) == mod(S, d)),
    "mod_drops_known_multiples": lambda d, _: (True, mod(A, d) == 0, mod(A + S, d) == mod(S, d)),
    "mod_takes_factor_out": lambda g, k: (True, True, mod(g * A, g * k) == g * mod(A, k)),
    "mod_takes_remainder_out": lambda g, k: (
        k > 0, z3.And(Q * g <= S, (Q + 1) * g > S), mod(g * A + S, g * k) == g * mod(A + Q, k) + S - Q * g,
    ),
    "mod_of_mod": lambda c, d: (True, True, mod(c * mod(X, 6 * d) + Y, d) == mod(c * X + Y, d)),
    "sum_drops_exact_floor": lambda d, _: (True, mod(X, d) == 0, d * floor(X, d) == X),
    "sum_joins_floor_and_xor": lambda d, b: (
        True, z3.BoolVal(d % (1 << few(b)) == 0), d * floor(X, d) + swizzle(mod(X, d), A, few(b)) == swizzle(X, A, few(b)),
    ),
    "sum_joins_floor_and_mod": lambda d, _: (True, True, d * floor(X, d) + mod(X, d) == X),
    "sum_makes_mod": lambda d, _: (True, True, z3.And(mod(X, d) * d >= 0, z3.If(d > 0, mod(X, d) < d, mod(X, d) > d))),
    "sum_joins_digits": lambda a, b: (b > 0, True, mod(X, a) + a * mod(floor(X, a), b) == mod(X, a * b)),
    "sum_in_range": lambda c, _: (True, z3.And(c <= X, c >= X), c == X),
    "symbol_is_fixed": lambda c, _: (True, z3.And(c <= X, c >= X), c == X),
    "min_drops_greater": lambda c, _: (True, Y - X >= 0, z3.If(X < Y, X, Y) == X),
    "max_drops_less": lambda c, _: (True, X - Y >= 0, z3.If(X > Y, X, Y) == X),
}  # fmt: skip


def _refuted(condition: z3.BoolRef | bool, claim: z3.BoolRef) -> bool:
    solver = z3.Solver()
    solver.set("timeout", 20_000)
    solver.add(condition, z3.Not(claim))
    answer = solver.check()
    assert answer != z3.unknown
    return answer == z3.sat


CONSTANTS = list(product((-3, -2, -1, 1, 2, 3), (-2, -1, 1, 2, 3)))


@pytest.mark.parametrize("name", sorted(NAMES))
def test_theorem_holds_for_all_integers(name: str) -> None:
    proved: set[str] = set()
    for first, second in CONSTANTS:
        constants, variables, claim = THEOREMS[name](first, second)
        if constants and claim.sexpr() not in proved:
            assert not _refuted(variables, claim), (first, second)
            proved.add(claim.sexpr())


@pytest.mark.parametrize("name", sorted(name for name, which in CONDITIONS if which != "positive"))
def test_condition_on_variables_is_needed(name: str) -> None:
    assert any(constants and _refuted(True, claim) for constants, _, claim in (THEOREMS[name](*c) for c in CONSTANTS))


@pytest.mark.parametrize("name", sorted(name for name, which in CONDITIONS if which == "positive"))
def test_condition_on_constants_is_needed(name: str) -> None:
    claims = [THEOREMS[name](*c) for c in CONSTANTS]
    assert any(not constants and _refuted(variables, claim) for constants, variables, claim in claims)


def test_rules_see_atoms_of_products() -> None:
    """A remainder may be one factor of several."""
    value = N * (R % 4) + 4 * N * (R // 4)
    assert rules.sum_joins_floor_and_mod(value, Known({})) is R * N
    assert rules.mod_of_mod(3 * (R % (2 * N)) + C, N, Known({})) is (3 * R + C) % N
    assert term(()) is expr(1)


@pytest.mark.parametrize("value", [R + R // 2, R + (R + C) % 2, R - R % 4, R + C + R % 4], ids=str)
def test_a_fact_may_speak_of_a_symbol_within_itself(value: Expr) -> None:
    known = Known({}, [multiple_of(value, 4)])
    assert known.multiple(value, 4)
    assert not known.multiple(R + 1, 2)
