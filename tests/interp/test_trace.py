"""What the traced run finds, each with element and iterations; and what it must not find."""

from __future__ import annotations

import numpy as np
import pytest
from tests.interp.build import at, buffer, e, function, index, lit, op, par, put, seq, when

from texpr.affine.expr import sym
from texpr.interp import Finding, conflicts, run
from texpr.interp.trace import trace
from texpr.ir.program import Bind, Combiner, Compare, Function, Injective, InRange, New, Stmt
from texpr.ir.value import Ref
from texpr.ir.value.types import F32, I8, I32, I64, U8
from texpr.support.codes import TITLES
from texpr.support.diagnostic import TexprError

i, j, n = sym("i"), sym("j"), sym("n")
x = buffer("x", I32, "n", role="inout")
y = buffer("y", I32, "n", role="inout")
one = lit(1, I32)


def found(*body: Stmt, n: int = 4) -> list[Finding]:
    f = function((x, y), (), *body, sizes="n")
    zero = np.zeros(n, np.int32)
    findings = conflicts(f, {"x": zero, "y": zero})
    assert not zero.any() and all(finding.code in TITLES for finding in findings)
    return findings


def words(findings: list[Finding]) -> list[str]:
    return [f"{finding.code} {finding.message}" for finding in findings]


def test_a_legal_program():
    assert not found(par("i", "n", put(at(x, i), at(y, i)), put(at(x, i), one, "add")), seq("k", 2, put(at(y, 0), one)))


def test_two_iterations_write_one_element():
    (clash,) = found(par("i", "n", put(at(x, i // 2), one)))
    assert clash.code == "E0723" and clash.element == (0,) and clash.buffer is x
    assert clash.other == ((i.as_sym, 0),) and clash.iteration == ((i.as_sym, 1),)
    assert clash.loop is not None and clash.loop.sym.name == "i"
    assert clash.message == "iterations of `par i` depend on each other: i = 0 and i = 1 meet in x[0]"
    assert [note.text for note in clash.diagnostic.notes] == ["at i = 1", "and before at i = 0"]


@pytest.mark.parametrize("distance", [-1, 1])
def test_a_read_of_what_another_iteration_writes(distance: int):
    first = e(0) if distance > 0 else e(1)
    (clash,) = found(par("i", n - 1, put(at(x, i + first), at(x, i + first + distance))))
    assert clash.code == "E0723" and {clash.iteration[0][1], clash.other[0][1]} == {0, 1}


def test_an_iteration_that_first_reads_and_then_writes():
    first = op("eq", index("i", I64), lit(0, I64))
    (clash,) = found(par("i", "n", put(at(y, i), at(x, 0)), when(first, put(at(x, 0), one))))
    assert clash.element == (0,) and clash.other == ((i.as_sym, 0),) and clash.iteration == ((i.as_sym, 1),)


def test_reading_together_is_fine():
    assert not found(par("i", "n", put(at(x, i), at(y, 0))))


def test_which_of_two_loops_clashes():
    (clash,) = found(par("i", 2, par("j", 2, put(at(x, i), one))))
    assert clash.loop is not None and clash.loop.sym.name == "j" and clash.element == (0,)
    outer = found(par("i", 2, par("j", 2, put(at(x, j), one))))
    assert [c.loop.sym.name for c in outer if c.loop] == ["i"]
    assert outer[0].other == ((i.as_sym, 0), (j.as_sym, 0)) and outer[0].iteration == ((i.as_sym, 1), (j.as_sym, 0))


def test_a_seq_between_runs_of_a_par_orders_them():
    assert not found(
        seq("k", 3, par("i", "n", put(at(x, i), at(y, (i + sym("k")) % n))), par("j", "n", put(at(y, j), at(x, j))))
    )


def test_updates_meet_only_under_reduce():
    add = put(at(x, 0), one, "add")
    assert [c.code for c in found(par("i", "n", add))] == ["E0723"]
    assert not found(par("i", "n", add, reduce=(x,)))
    assert not found(par("i", "n", add, put(at(x, 0), one, "sub"), reduce=(x,)))
    assert [c.code for c in found(par("i", "n", add, reduce=(y,)))] == ["E0723"]
    assert [c.loop.sym.name for c in found(par("i", 2, par("j", 2, add), reduce=(x,))) if c.loop] == ["j"]


def test_different_updates_do_not_meet():
    mixed = found(par("i", "n", put(at(x, 0), one, "add"), put(at(x, 0), one, "max"), reduce=(x,)))
    assert {c.code for c in mixed} == {"E0723"}
    assert not found(par("i", "n", put(at(x, i), one, "add"), put(at(x, i), one, "max"), reduce=(x,)))


def test_under_reduce_plain_accesses_still_clash():
    add = put(at(x, 0), one, "add")
    assert found(par("i", "n", add, put(at(y, i), at(x, 0)), reduce=(x,)))
    assert found(par("i", "n", put(at(x, 0), one), add, reduce=(x,)))
    assert found(par("i", "n", put(at(x, 0), at(x, 0), "add"), reduce=(x,)))


def test_tuples_and_combiners_meet_with_their_like():
    pair = Bind((at(x, 0), at(y, 0)), (one, index(i, I32)), "max")
    assert not found(par("i", "n", pair, reduce=(x, y)))
    assert found(par("i", "n", pair, put(at(x, 0), one, "max"), reduce=(x, y)))
    a, b = (Ref(sym(s).as_sym, I32) for s in "ab")  # pyright: ignore

    def plus() -> Combiner:
        return Combiner("plus", a.sym, b.sym, I32, lit(0, I32), op("add", a, b))

    mine = plus()
    assert not found(par("i", "n", put(at(x, 0), one, mine), reduce=(x,)))
    assert found(par("i", "n", put(at(x, 0), one, mine), put(at(x, 0), one, plus()), reduce=(x,)))


def test_a_simultaneous_assignment_clashes_too():
    assert found(par("i", 2, Bind((at(x, 0), at(y, i)), (one, one))))


def test_a_local_of_the_iteration_does_not_clash_but_one_outside_does():
    t = buffer("t", I32, role="local")
    use = (put(at(t), one), put(at(x, i), at(t)))
    assert not found(par("i", "n", New(t), *use))
    assert {c.code for c in found(New(t), par("i", "n", *use))} == {"E0723"}


def test_out_of_bounds_with_the_index():
    (wrong,) = found(par("i", "n", put(at(x, i + 2), one)))
    assert words([wrong]) == ["E0720 index 4 of `x: i32[n]` is out of bounds: dimension 0 has 4 elements"]
    assert wrong.element == (4,) and wrong.iteration == ((i.as_sym, 2),)
    assert words(found(seq("i", "n", put(at(y, i), at(x, i - 1)))))[0].startswith("E0720 index -1")


def test_lazy_branches_are_not_looked_at():
    inside = op("lt", index(i + 1, I64), index(n, I64))
    assert not found(seq("i", "n", put(at(y, i), op("select", inside, at(x, i + 1), one))))
    assert not found(seq("i", "n", when(inside, put(at(y, i), at(x, i + 1)))))


def test_reads_of_what_was_never_written():
    t = buffer("t", I32, 3, role="local")
    (wrong,) = found(New(t), put(at(t, 1), one), seq("k", 3, put(at(x, sym("k")), at(t, sym("k")))))
    assert (wrong.code, wrong.element, wrong.message) == ("E0721", (0,), "t[0] is read before it is written")
    assert words(found(New(t), put(at(t, 0), one, "add"))) == ["E0721 t[0] is read before it is written"]


def test_memory_is_fresh_each_time():
    t = buffer("t", I32, role="local")
    start = when(op("eq", index("k", I64), lit(0, I64)), put(at(t), one))
    (wrong,) = found(seq("k", 2, New(t), start, put(at(x, 0), at(t))))
    assert wrong.iteration == ((sym("k").as_sym, 1),)


def test_results_never_written():
    r = buffer("r", I32, "n", role="result")
    f = function((), (r,), seq("k", n - 1, put(at(r, "k"), one)), sizes="n")
    (wrong,) = conflicts(f, {}, {"n": 3})
    assert (wrong.code, wrong.element) == ("E0722", (2,))


def test_index_arithmetic():
    assert words(found(seq("i", "n", put(at(x, 0), at(y, n // (i - 1)))))) == [
        "E0720 index -4 of `y: i32[n]` is out of bounds: dimension 0 has 4 elements",
        "E0724 `(n / (i - 1))` divides by zero",
    ]
    wide = seq("i", "n", put(at(x, 0), op("add", index(i * 2**31, I32), one)))
    assert words(found(wide)) == [f"E0725 `2147483648 * i` is {2**31}, which i32 can't hold"]
    t = buffer("t", I32, n - 9, role="local")
    assert [c.code for c in found(New(t))] == ["E0726"]


@pytest.mark.parametrize("dtype, most", [(U8, 255), (I8, 127)], ids=str)
def test_the_range_of_an_index_is_that_of_its_type(dtype, most: int):
    for value, wrong in ((most, False), (most + 1, True), (-1, dtype == U8), (-129, True)):
        z = buffer("z", dtype, role="inout")
        f = function((z,), (), put(at(z), index(e(value), dtype)))
        assert [c.code for c in conflicts(f, {"z": 0})] == ["E0725"] * wrong


def test_broken_promises_are_findings():
    p = buffer("p", I32, "n")
    f: Function = function(
        (p,), (), sizes="n", where=(Compare("==", n % 2, e(0)),), assumes=(InRange(p, e(0), n), Injective(p))
    )
    assert [c.code for c in conflicts(f, {"p": np.array([5, 5, 0], np.int32)})] == ["E0710", "E0711", "E0711"]
    assert not conflicts(f, {"p": np.array([1, 0], np.int32)})


def test_each_place_in_the_text_is_reported_once():
    assert len(found(par("i", "n", put(at(x, 0), one)), n=4)) == 1


def test_a_checked_run_raises_everything_at_once():
    f = function((x, y), (), par("i", "n", put(at(x, 0), at(y, i + 1))), sizes="n")
    zero = np.zeros(3, np.int32)
    with pytest.raises(TexprError) as caught:
        run(f, {"x": zero, "y": zero}, checked=True)
    assert sorted(d.code for d in caught.value.diagnostics) == ["E0720", "E0723"]


def test_a_trace_goes_on_after_a_mistake():
    f = function((x, y), (), put(at(x, 9), one), put(at(y, 0), at(x, 9)), put(at(y, 1), one), sizes="n")
    traced = trace(f, {"x": np.zeros(2, np.int32), "y": np.full(2, 5, np.int32)})
    assert traced.outputs["y"].tolist() == [0, 1] and traced.outputs["x"].tolist() == [0, 0]


def test_floats_too():
    z = buffer("z", F32, "n", role="inout")
    f = function((z,), (), par("i", "n", put(at(z, i), at(z, n - 1 - i))), sizes="n")
    assert not conflicts(f, {"z": np.zeros(1, np.float32)})
    assert [c.element for c in conflicts(f, {"z": np.zeros(3, np.float32)})] == [(0,)]
