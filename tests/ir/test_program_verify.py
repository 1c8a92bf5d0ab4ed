"""Every rule of the program form, each with a planted bug that it catches."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from texpr.affine.expr import ONE, ZERO, Sym, expr, sym
from texpr.frontend import parse
from texpr.ir import program as ir
from texpr.ir.program.verify import FUNCTION_RULES, STMT_RULES, verify
from texpr.ir.value import Buffer, Index, Literal, Load, Op, Ref, Value
from texpr.ir.value.types import BOOL, F32, F64, I32
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace

ROW, LANE, N, P = Sym("i"), Sym("j"), Sym("n"), Sym("p")
X = Buffer("x", F32, (sym("n"),), "input")
AT = Buffer("at", I32, (sym("n"),), "input")
Y = Buffer("y", F32, (sym("n"),), "inout")
Z = Buffer("z", F32, (sym("n"),), "result")
TOP, WHERE = Buffer("top", F32, (), "local"), Buffer("where", I32, (), "local")
X_I, Z_I = Load(X, (expr(ROW),)), Load(Z, (expr(ROW),))
ONE_F32 = Literal(1.0, F32)
SUM = ir.Combiner("plus", Sym("a"), Sym("b"), F32, Literal(0, F32), Op("add", (Ref(Sym("a"), F32), Ref(Sym("b"), F32)), F32))


def bind(target: Load, value: Value, update: ir.Update | None = None) -> ir.Bind:
    return ir.Bind((target,), (value,), update)


LET = ir.Let(P, Load(AT, (ZERO,)))
TUPLE = ir.Bind((Load(TOP, ()), Load(WHERE, ())), (X_I, Index(expr(ROW), I32)), "max")
INNER = ir.Par(LANE, expr(32), (bind(Load(Y, (expr(LANE),)), ONE_F32, "add"),), fully=True)
LOOP = ir.Par(ROW, sym("n"), (TUPLE, bind(Z_I, X_I), bind(Z_I, ONE_F32, SUM), INNER), reduce=(TOP, WHERE))
IS_SMALL = Op("lt", (Load(X, (sym("k"),)), ONE_F32), BOOL)
TAIL = ir.Seq(Sym("k"), sym("n") - expr(P), (ir.If(IS_SMALL, (ir.Anchor(ONE_F32),)),))
ADDER = parse(
    """instr adder(a: f32[4, 2], inout c: f32[4]) {
    fragment a: (4,2) : (1@0,1@1);
    fragment c: 4 : 1@0;
    asm "sm_80": "adder {c}, {a};";
    meaning { par 4 |i| { seq 2 |k| reduce(c) { c[i] += a[i, k] } } }
}"""
).instrs[0]
ADDING = ir.Instruction("adder", (), (Load(X, (ZERO,)), Load(Y, (ZERO,))), instr=ADDER)
USE = ir.Instruction("mma", (), (Load(Z, (ONE,)),))
BODY: tuple[ir.Stmt, ...] = (
    ir.New(Z),
    ir.New(TOP),
    ir.New(WHERE),
    LET,
    LOOP,
    TAIL,
    ir.Instruction("mma", (), (Load(Z, (ONE,)),)),
)
GOOD = ir.Function(
    "good",
    (X, AT, Y),
    (Z, Y),
    (N,),
    BODY,
    consts=((Sym("stride"), 1),),
    where=(ir.Compare(">", sym("n"), ZERO),),
    assumes=(ir.InRange(AT, ZERO, sym("n")), ir.Injective(AT)),
)


def head(**fields: object) -> Callable[[ir.Function], ir.Function]:
    return lambda function: replace(function, **fields)  # pyright: ignore


def more(*stmts: ir.Stmt) -> Callable[[ir.Function], ir.Function]:
    """The function with more statements at its end."""
    return lambda function: replace(function, body=(*function.body, *stmts))


def inside(*stmts: ir.Stmt) -> Callable[[ir.Function], ir.Function]:
    """The function with more statements in its loop over i."""
    loop = replace(LOOP, body=(*LOOP.body, *stmts))
    return lambda function: replace(function, body=tuple(loop if s is LOOP else s for s in function.body))


OTHER = Buffer("x", F32, (sym("n"),), "input")
LOCAL = Buffer("t", F32, (sym("n"),), "local")
WIDE = Literal(1.0, F64)

PLANTED: list[tuple[str, Callable[[ir.Function], ir.Function], str]] = [
    ("names_differ", more(ir.Seq(ROW, ONE, ())), "2 symbols are called i"),
    ("names_differ", more(ir.Let(N, ONE_F32)), "2 symbols are called n"),
    ("names_differ", more(ir.New(Buffer("x", F32, (), "local"))), "2 buffers are called x"),
    ("parameters_are_given", head(params=(X, AT, Y, LOCAL)), "parameter t is local"),
    ("results_are_made", head(results=(Z, X)), "result x is input"),
    ("results_are_made", head(body=BODY[1:]), "result z is not made in the function's own block"),
    ("results_are_made", head(results=(Y,)), "z is called a result, but is not returned"),
    ("heads_are_in_sizes", head(sizes=()), "n is no size"),
    ("heads_are_in_sizes", head(where=(ir.Compare("<", sym("m"), ZERO),)), "m is no size"),
    ("heads_are_in_sizes", head(assumes=(ir.InRange(AT, ZERO, sym("i")),)), "i is no size"),
    ("comparisons_are_known", head(where=(ir.Compare("=<", sym("n"), ZERO),)), "=< is no comparison"),
    ("assumptions_are_of_parameters", head(assumes=(ir.Injective(WHERE),)), "where is no parameter"),
    ("assumptions_are_of_parameters", head(assumes=(ir.Injective(X),)), "x holds f32"),
    ("strides_have_their_rank", more(ir.New(replace(LOCAL, strides=(ONE, ONE)))), "t has 1 dimensions and 2 strides"),
    ("values_are_well_formed", inside(bind(Z_I, Load(X, ()))), "element_has_its_rank: x has rank 1 and 0 indices"),
    ("values_are_well_formed", inside(bind(Z_I, Ref(Sym("q"), F32))), "variable_is_declared: variable q is not"),
    ("values_are_well_formed", more(bind(Load(Z, (ZERO,)), X_I)), "symbols_are_in_scope: no i in scope"),
    ("values_are_well_formed", inside(bind(Z_I, Load(OTHER, (ZERO,)))), "buffer_is_in_scope: buffer x is not in scope"),
    ("values_are_well_formed", inside(ir.Anchor(Op("sqrt", (Literal(1, I32),), I32))), "sqrt is not for i32"),
    ("targets_are_well_formed", inside(bind(Load(Z, (expr(LANE),)), ONE_F32)), "no j in scope"),
    ("targets_are_well_formed", more(ir.Instruction("mma", (), (Load(LOCAL, (ONE,)),))), "buffer t is not in scope"),
    ("extents_are_in_scope", more(ir.Par(Sym("q"), sym("i"), ())), "no i in scope"),
    ("extents_are_in_scope", more(ir.New(Buffer("t", F32, (sym("i"),), "local"))), "no i in scope"),
    ("reduced_buffers_are_in_scope", more(ir.Seq(Sym("q"), ONE, (), reduce=(LOCAL,))), "buffer t is not in scope"),
    ("fully_par_is_constant_and_alone", more(ir.Par(Sym("q"), sym("n"), (), fully=True)), "extent n of a fully par"),
    (
        "fully_par_is_constant_and_alone",
        more(ir.Par(Sym("q"), ONE, (ir.Seq(Sym("r"), ONE, (ir.Par(Sym("s"), ONE, (), fully=True),)),), fully=True)),
        "a fully par over s inside another",
    ),
    ("made_memory_is_local", more(ir.New(replace(LOCAL, role="inout"))), "t is inout"),
    ("inputs_are_not_bound", inside(bind(X_I, ONE_F32)), "input x is bound"),
    ("bound_values_have_the_types", inside(bind(Z_I, WIDE)), "z holds f32, the value is f64"),
    ("bound_values_have_the_types", inside(ir.Bind((Z_I, Z_I), (ONE_F32,))), "2 targets and 1 values"),
    ("bound_values_have_the_types", inside(ir.Bind((), ())), "0 targets and 0 values"),
    ("updates_are_known", inside(bind(Z_I, ONE_F32, "xor")), "no update is called xor"),
    ("updates_are_known", inside(bind(Z_I, ONE_F32, "and")), "no update and of f32"),
    ("updates_are_known", inside(replace(TUPLE, update="add")), "add of several targets"),
    ("updates_are_known", inside(bind(Z_I, ONE_F32, replace(SUM, dtype=F64))), "plus joins one f64, not f32"),
    ("updates_are_known", inside(bind(Z_I, ONE_F32, replace(SUM, identity=WIDE))), "a value of type f64, not f32"),
    ("updates_are_known", inside(bind(Z_I, ONE_F32, replace(SUM, value=X_I))), "in plus: buffer_is_in_scope: buffer x"),
    ("condition_is_bool", inside(ir.If(ONE_F32, ())), "the condition is f32"),
    (
        "marked_sums_are_rounded_so", more(ir.Seq(Sym("r"), ONE, (ADDING,), reduce=(Y,), ieee=True)),
        "adder adds to y, of `#ieee`",
    ),
]  # fmt: skip


def test_a_good_program_is_well_formed() -> None:
    verify(ir.Program((GOOD, replace(GOOD, name="better"))))


@pytest.mark.parametrize(("rule", "change", "message"), PLANTED)
def test_planted_bug_is_caught(rule: str, change: Callable[[ir.Function], ir.Function], message: str) -> None:
    with pytest.raises(CompilerBug) as caught:
        verify(ir.Program((change(GOOD),)))
    said = str(caught.value)
    assert said.startswith("fn good: ") and f"{rule}: " in said and message in said


def test_functions_have_names_of_their_own() -> None:
    with pytest.raises(CompilerBug, match="functions_differ: 2 functions are called good"):
        verify(ir.Program((GOOD, GOOD)))


def test_every_rule_has_a_planted_bug() -> None:
    assert {rule.__name__ for rule in (*FUNCTION_RULES, *STMT_RULES)} == {rule for rule, _, _ in PLANTED}


def test_a_name_is_known_in_its_block_only() -> None:
    """A `new` or `let` counts from there on to the end of its block."""
    made = Buffer("t", F32, (), "local")
    use = ir.Anchor(Load(made, ()))
    verify(ir.Program((more(ir.If(Literal(1, BOOL), (ir.New(made), use)))(GOOD),)))
    for early in ((use, ir.New(made)), (ir.If(Literal(1, BOOL), (ir.New(made),)), use)):
        with pytest.raises(CompilerBug, match="buffer t is not in scope"):
            verify(ir.Program((more(*early)(GOOD),)))
