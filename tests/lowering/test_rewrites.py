"""Fusing and promotion keep the meaning of programs, and are refused where a closer look says so."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tests.lowering.programs import PROGRAMS
from tests.lowering.test_programs import arguments, function_of
from tests.lowering.witnesses import WITNESSES
from tests.properties.generate import Generator

from texpr.frontend import parse
from texpr.interp import run as interpret
from texpr.interp.trace import conflicts
from texpr.ir import program as ir
from texpr.ir.program import Function
from texpr.ir.program import verify as program_verify
from texpr.ir.value import Load
from texpr.isa.target import Reductions
from texpr.lowering.host import fuse as fusing
from texpr.lowering.host import promote as promoting
from texpr.lowering.host.fuse import fuse
from texpr.lowering.host.promote import promote
from texpr.lowering.names import Names
from texpr.mapping.reductions.arrange import arrange
from texpr.relation.collect import model
from texpr.support.record import replace

Rewrite = Callable[[Function], Function]


def fused(function: Function) -> Function:
    return fuse(function, model(function))


def promoted(function: Function) -> Function:
    return replace(function, body=promote(function.body, Names(function), {}))


def check_same(function: Function, rewrite: Rewrite, given: dict[str, np.ndarray], sizes: dict[str, int]) -> bool:
    """The rewritten program gives the same and is no less legal; whether it is another program at all."""
    after = rewrite(function)
    program_verify.verify(ir.Program((after,)))
    want, got = interpret(function, given, sizes), interpret(after, given, sizes)
    for name, expected in want.items():
        np.testing.assert_array_equal(got[name], expected, f"{function.name}{sizes}: {name}")
    assert not [f for f in conflicts(after, given, sizes) if f.code in ("E0720", "E0723")], function.name
    return [type(s) for s in ir.walk(after.body)] != [type(s) for s in ir.walk(function.body)]


@pytest.mark.parametrize("rewrite", [fused, promoted])
def test_programs_mean_the_same(rewrite: Rewrite) -> None:
    changed = 0
    for program in (*PROGRAMS, *WITNESSES):
        function = arrange(function_of(program), Reductions(4096))
        sizes = next((s for s in program.sizes if 3 <= max(s.values()) <= 9), program.sizes[0])
        changed += check_same(function, rewrite, arguments(function, sizes, dict(program.below)), sizes)
    sizes = {"n": 3, "m": 4}
    function = arrange(
        _function("par n |i| { b[i] = 2 }\npar n |i| { seq m |j| reduce(b) { b[i] += x[i, j] } }"), Reductions(4096)
    )
    changed += check_same(function, rewrite, arguments(function, sizes, {}), sizes)
    assert changed >= 2


@pytest.mark.parametrize("rewrite", [fused, promoted])
def test_random_programs_mean_the_same(rewrite: Rewrite) -> None:
    changed = 0
    for seed in range(14):
        function = arrange(parse(Generator(seed).program(), "random.te").functions[0], Reductions(4096))
        numbers = np.random.default_rng(seed)
        shapes = {"x": (3, 4), "y": (3,), "w": (4,)}
        given = {name: numbers.integers(-4, 5, shape).astype(np.int32) for name, shape in shapes.items()}
        changed += check_same(function, rewrite, given, {"n": 3, "m": 4})
    assert changed >= (2 if rewrite is fused else 0)


def _function(body: str) -> Function:
    head = "fn f(x: i32[n, m], inout a: i32[n], inout b: i32[n], inout c: i32[n, m])"
    return parse(f"{head} {{\n{body}\n}}", "case.te").functions[0]


FIRST = "par n |i| { a[i] = x[i, 0] }".replace("x[i, 0]", "i32(i)")

# What follows `a[i] = …`, and whether both can be one loop.
PAIRS = {
    "the same element": ("par n |i| { b[i] = a[i] }", True),
    "nothing in common": ("par n |i| { b[i] = i32(i) }", True),
    "the next element": ("par n |i| { b[i] = select(i + 1 < n, a[i + 1], 0) }", False),
    "the mirrored element": ("par n |i| { b[i] = a[n - 1 - i] }", False),
    "written at another place": ("par n |i| { a[n - 1 - i] = b[i] }", False),
    "another extent": ("par m |i| { if i < n { b[i] = 1 } }", False),
    "a reduction": ("par n |i| reduce(b) { b[0] += 1 }".replace("b[0]", "b[i]"), False),
    "one with threads of its own": ("par n |i| { par m |j| { c[i, j] = a[i] }\n b[i] = 1 }", False),
}


@pytest.mark.parametrize("case", PAIRS)
def test_what_is_fused(case: str) -> None:
    second, together = PAIRS[case]
    function = _function(f"{FIRST}\n{second}")
    pars = [s for s in fused(function).body if isinstance(s, ir.Par)]
    assert len(pars) == (1 if together else 2)


def test_fusing_without_looking_at_dependences_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    function = _function(f"{FIRST}\n{PAIRS['the next element'][0]}")
    given = {"x": np.zeros((5, 2), np.int32), "c": np.zeros((5, 2), np.int32)}
    given |= {"a": np.full(5, 7, np.int32), "b": np.zeros(5, np.int32)}
    assert not check_same(function, fused, given, {"n": 5, "m": 2})
    monkeypatch.setattr(fusing._Fuser, "_meet", lambda self, one, other, depth: False)
    with pytest.raises(AssertionError):
        check_same(function, fused, given, {"n": 5, "m": 2})


def test_promoting_what_may_not_be_there_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = next(p for p in WITNESSES if p.name == "promote_one")
    function = function_of(program)
    given = arguments(function, program.sizes[0], {})
    assert not check_same(function, promoted, given, program.sizes[0])
    everything = frozenset((*function.params, *function.results))
    monkeypatch.setattr(promoting, "_surely_written", lambda body: everything)
    with pytest.raises(AssertionError):
        check_same(function, promoted, given, program.sizes[0])


# What a loop does to an element in each turn: whether it is kept in a local, and whether that is loaded before.
TOUCHES = {
    "updated": ("a[i] += x[i, j]", True, True),
    "read and assigned": ("a[i] = a[i] + x[i, j]", True, True),
    "assigned, then updated": ("a[i] = x[i, j]\n a[i] += 1", True, False),
    "assigned in an inner loop": ("seq 2 |q| { a[i] = x[i, j] + i32(q)\n a[i] += 1 }", True, False),
    "assigned in an inner loop, perhaps": ("seq m |q| { a[i] = x[i, j] }\n a[i] += 1", False, False),
    "assigned in both arms": ("if j > 0 { a[i] = x[i, j] } else { a[i] = 2 }\n a[i] += 1", True, False),
    "assigned in one arm": ("if j > 0 { a[i] = x[i, j] }\n a[i] += 1", False, False),
    "read for a test": ("if a[i] > 0 { a[i] = x[i, j] }\n a[i] += 1", True, True),
    "updated in one arm": ("if j > 0 { a[i] += x[i, j] }\n a[i] += 1", True, True),
}


@pytest.mark.parametrize("case", TOUCHES)
def test_what_is_assigned_before_it_is_read_is_not_loaded(case: str) -> None:
    """Nobody may have written it yet; where a branch decides which comes first, it is kept where it is."""
    body, kept, loaded = TOUCHES[case]
    function = _function(f"par n |i| {{ seq m |j| {{ {body} }} }}")
    rng = np.random.default_rng(0)
    given = {"x": rng.integers(-9, 9, (5, 3), np.int32), "c": np.zeros((5, 3), np.int32)}
    given |= {"a": np.arange(5, dtype=np.int32), "b": np.zeros(5, np.int32)}
    assert check_same(function, promoted, given, {"n": 5, "m": 3}) == kept
    binds = [s for s in ir.walk(promoted(function).body) if isinstance(s, ir.Bind) and s.targets[0].buffer.name != "a"]
    assert any(isinstance(v, Load) and v.buffer.name == "a" for bind in binds for v in bind.values) == loaded
