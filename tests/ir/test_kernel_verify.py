"""Every rule of the kernel form, each with a planted bug that it alone catches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.instr.tensor_memory.test_rules import BROKEN as COLUMN_RULES
from tests.instr.tensor_memory.test_rules import SCALES as SCALE_RULES
from tests.instr.test_rules import COLLECTIVE_RULES
from tests.instr.warpgroup.test_rules import BROKEN as WARPGROUP_RULES
from tests.ir.engine_rules import ENGINE_RULES

from texpr.affine.expr import ONE, ZERO, Sym, expr, sym
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.shared import shared_bytes
from texpr.ir.kernel.stmt_verify import RULES, barriers_are_barriers
from texpr.ir.kernel.tile_verify import TILE_HEAD_RULES
from texpr.ir.kernel.verify import KERNEL_RULES, PLAN_RULES, verify, wide_plan_is_of_the_same_function
from texpr.ir.value import Buffer, Literal, Load, Op
from texpr.ir.value.types import F32
from texpr.ir.value.verify import VALUE_RULES
from texpr.isa.registry import resolve
from texpr.support.diagnostic import CompilerBug
from texpr.support.record import replace

GOOD = """
plan sums
    param x: f32[m, n]
    param c: f32[]
    param at: i32[m]
    param y: f32[m] role inout
    result z: f32[m]
    result y
    size m, n
    fix q = 3
    workspace w: f32[m, 4]
    require n > 0
    assume at in 0..m
{
    loop s < n {
        if s > 0 {
            launch first
        }
    }
    launch second
}

kernel first
    buffer x: f32[m, n]
    buffer at: i32[m]
    buffer w: f32[m, 4] role local
    buffer z: f32[m] role result
    scalar c: f32[]
    size m, n, s, base
    writes w, z
    blocks 2
    axis grid.x b < m
    axis grid.y g < n base base
    axis block.x t < 64
    array shared warps: f32[2, 33] "all warps meet in it"
    array shared tile: f32[64, 4]
    array local own: f32[4]
    array lanes kept: f32[2]
{
    copy tile[t, 0] = w[b, 0] when (c[] < 1.0:f32) count 4
    commit
    wait 0 covers RAW tile
    vector u0, u1 = tile[t, 2]
    vector w[b, 0] = u0, u1
    for p in 0..n unroll 4 {
        vector v0, v1 = w[b, 2]
    }
    let acc: f32 = 0:f32
    for j in t..n by 64 {
        fused acc = (acc + (x[b, j] * c[]))
    }
    exchange other = acc ^ 16
    for step in 0..5 unroll {
        exchange lower = acc ^ 16 shift step
        acc = (acc + lower)
    }
    shuffle after = kept[0] lane t + 1
    acc = fma(acc, other, other)
    let warp: i32 = i32(t / 32)
    let wide: bool = (i32(warp) == 1:i32)
    if wide {
        barrier warp
        exchange more = acc ^ 1 width 8
        acc = more
    }
    if (i32(t % 32) == 0:i32) {
        warps[warp, 0] = acc
    }
    barrier block covers RAW warps
    for r in 0..n {
        for l in 0..2 by 1 unroll {
            own[l] = warps[l, 0]
        }
        barrier block covers WAR warps carried r
    }
    let left: i32 = at[b]
    for r in 0..left {
        barrier block
    }
    if (acc < 1.0:f32) uniform {
        barrier block
    }
    w[b, t % 4] = select(isnan(acc), +nan:f32, own[0])
    atomic z[h; h = at[b]] add= acc
    atomics w[b, 2] add= u0, u1
}

kernel second
    buffer w: f32[m, 4] role local
    buffer z: f32[m] role result
    size m
    writes z
    axis core i < m
    array local lanes: f32[4]
{
    let total: f32 = 0.0:f32
    for l in 0..4 simd {
        let twice: f32 = (w[i, l] * 2.0:f32)
        twice = (twice + twice)
        lanes[l] = twice
    }
    for l in 0..4 simd reduce(total add) {
        total = (total + lanes[l])
    }
    z[i] = total
}
"""

ROLE = "if (i32(t) < 32:i32) role a 0 1 { commit }"

STATEMENT = [
    ("roles_are_of_warps", "commit", ROLE.replace("< 32", "< 16"), "the condition of role a does not say which warps it is of"),
    ("roles_are_of_warps", "commit", ROLE.replace("0 1", "1 2"), "role a is of no warps of 64 threads"),
    ("roles_are_of_warps", "exchange more =", f"{ROLE} exchange more =", "role a is in a branch"),
    ("roles_are_of_warps", "commit", f"{ROLE} {ROLE.replace('a 0', 'b 0')}", "have warps in common"),
    ("registers_are_those_of_the_block", "commit", ROLE.replace("0 1", "0 1 registers 24"), "not every role is of whole"),
    ("between_roles_is_nothing", "commit", ROLE, "beside role a is what other threads do"),
    ("name_is_new", "let warp:", "let acc:", "acc is declared already"),
    ("name_is_new", "for l in 0..2", "for r in 0..2", "r is declared already"),
    ("name_is_new", "exchange other = acc ^ 16", "exchange other = acc ^ 16 exchange t = acc ^ 16", "t is declared already"),
    ("name_is_new", "let left: i32 = at[b]", "let w: i32 = at[b]", "w is the name of a buffer"),
    ("bounds_are_in_scope", "for j in t..n", "for j in l..n", "no l in scope"),
    ("bounds_are_in_scope", "in t..n by 64", "in t..acc by 64", "no acc in scope"),
    ("step_is_positive", "in t..n by 64", "in t..n by n", "step n is not known to be positive"),
    ("step_is_positive", "in t..n by 64", "in t..n by 0", "step 0 is not"),
    ("step_is_positive", "in t..n by 64", "in t..n by -1", "step -1 is not"),
    ("unrolled_loop_counts_to_a_constant", "0..2 by 1 unroll", "0..n by 1 unroll", "0..n by 1 has no constant length"),
    ("unrolled_loop_counts_to_a_constant", "0..2 by 1 unroll", "0..2 by n + 1 unroll", "has no constant length"),
    ("simd_loop_is_plain", "for l in 0..4 simd {", "for l in 0..4 by 2 simd {", "lanes go by 2"),
    ("simd_loop_is_plain", "lanes[l] = twice", "for u in 0..4 simd { lanes[u] = twice }", "lanes of u inside lanes of l"),
    ("simd_loop_is_plain", "lanes[l] = twice", "barrier block", "lanes cannot wait for each other"),
    ("reductions_are_of_lanes", "0..4 simd reduce", "0..4 unroll reduce", "a unroll loop reduces nothing"),
    ("reductions_are_of_lanes", "reduce(total add)", "reduce(total add, i add)", "variable i is not declared here"),
    ("reductions_are_of_lanes", "reduce(total add)", "reduce(total sub)", "sub is no reduction"),
    ("name_is_new", "vector u0, u1 =", "vector u0, u0, u1 =", "u0 is declared already"),
    ("simd_loop_is_plain", "lanes[l] = twice", "commit", "lanes have no copies of their own"),
    ("written_memory_may_be_written", "vector w[b, 0] = u0, u1", "vector x[b, 0] = u0, u1", "x is not said to be written"),
    ("written_value_has_the_type", "vector w[b, 0] = u0, u1", "vector w[b, 0] = u0, 1:i32", "w holds f32, the value is i32"),
    ("width_is_one_access", "vector u0, u1 =", "vector u0, u1, u2 =", "3 elements of f32 are 12 bytes, not 2, 4, 8, 16"),
    ("copy_is_one_access", "c[] < 1.0:f32) count 4", "c[] < 1.0:f32) count 3", "12 bytes, not 4, 8, 16"),
    ("elements_are_consecutive", "tile: f32[64, 4]", "tile: f32[64, 4] strides [1, 64]", "neighbours in tile are 64 apart"),
    ("elements_are_consecutive", "= tile[t, 2]", "= c[]", "c is one element"),
    ("address_is_aligned", "= tile[t, 2]", "= tile[t, 1]", "tile[t, 1] is no multiple of 2 elements"),
    ("address_is_aligned", "copy tile[t, 0]", "copy tile[4 * t + 1, 2]", "tile[4 * t + 1, 2] is no multiple of 4 elements"),
    ("address_is_aligned", "= w[b, 0] when", "= x[b, 0] when", "x need not begin at a multiple of 16 bytes"),
    ("vectors_are_of_memory", "= tile[t, 2]", "= own[2]", "own is one thread's own"),
    ("copy_goes_into_shared_memory", "copy tile[t, 0]", "copy own[0]", "own is no shared array"),
    ("copy_goes_into_shared_memory", "= w[b, 0] when", "= warps[0, 0] when", "warps is not in global memory"),
    ("copy_goes_into_shared_memory", "tile: f32[64, 4]", "tile: i32[64, 4]", "tile holds i32, w f32"),
    ("copy_condition_is_bool", "when (c[] < 1.0:f32)", "when c[]", "the condition is f32"),
    ("copy_is_waited_for", "    commit\n", "", "the kernel commits no copies"),
    ("copy_is_waited_for", "    wait 0 covers RAW tile\n", "", "the kernel waits for no copies"),
    ("condition_is_bool", "let wide: bool = (i32(warp) == 1:i32)", "let wide: i32 = at[0]", "the condition is i32"),
    ("first_value_has_the_type", "let acc: f32 = 0:f32", "let acc: f32 = 0:f64", "acc is f32, its value f64"),
    ("assigned_variable_is_declared", "acc = fma(", "t = fma(", "variable t is not declared here"),
    ("assigned_variable_is_declared", "acc = fma(acc, other, other)", "acc = 1:i32", "acc is f32, its value i32"),
    ("lanes_assign_their_own", "lanes[l] = twice", "total = twice", "all lanes of l assign total"),
    ("written_memory_may_be_written", "writes w, z", "writes z", "w is not said to be written"),
    ("written_memory_may_be_written", "warps[warp, 0] = acc", "c[] = acc", "c is not said to be written"),
    ("written_value_has_the_type", "select(isnan(acc), +nan:f32, own[0])", "1:f64", "w holds f32, the value is f64"),
    ("written_value_has_the_type", "add= acc", "add= 1:i32", "z holds f32, the value is i32"),
    ("product_is_there_to_be_fused", "(acc + (x[b, j] * c[]))", "(acc + x[b, j])", "nothing is there to be fused"),
    ("fused_is_a_sum_of_a_product", "warps[warp, 0] = acc", "fused warps[warp, 0] = acc", "nothing is there to be fused"),
    (
        "fused_are_sums_of_products",
        "vector w[b, 0] = u0, u1",
        "vector fused w[b, 0] = (u0 + (u1 * u1)), u1",
        "a lane has nothing to be fused",
    ),
    ("atomic_operation_fits", "add= acc", "mul= acc", "no atomic is called mul"),
    ("atomic_operation_fits", "add= acc", "and= acc", "no atomic and of f32"),
    ("atomic_scope_fits", "add= acc", "add= acc at thread", "no atomic acts at thread"),
    ("vector_of_atomics_fits", "add= u0, u1", "max= u0, u1", "no atomic max of 2 of f32 at once"),
    ("vector_of_atomics_fits", "add= u0, u1", "add= u0, u1 at block", "no such atomic acts at block"),
    ("vector_of_atomics_fits", "add= u0, u1", "add= u0, u1 order acquire", "no such atomic acts at grid, acquire"),
    ("vector_of_atomics_fits", "atomics w[b, 2]", "atomics tile[t, 2]", "tile is not in global memory"),
    ("address_is_aligned", "atomics w[b, 2]", "atomics w[b, 1]", "w[b, 1] is no multiple of 2 elements"),
    ("atomic_scope_fits", "atomic z[h; h = at[b]]", "atomic own[1]", "own is one thread's own"),
    ("barrier_is_of_threads", "barrier block covers RAW warps", "barrier grid", "no barrier joins a grid"),
    ("barrier_is_of_threads", "barrier warp", "barrier warp lanes 12", "12 lanes are no power of two"),
    ("barrier_is_of_threads", "barrier warp", "barrier warp lanes 64", "64 lanes are no power of two"),
    ("barrier_is_of_threads", "let total: f32 = 0.0:f32", "let total: f32 = 0.0:f32 barrier block", "no threads to join"),
    ("barrier_is_of_threads", "barrier block covers RAW warps", "barrier block part 48", "48 threads are no half, quarter"),
    ("barrier_is_of_threads", "barrier warp", "barrier warp part 32", "32 threads are no half, quarter or eighth of 64"),
    ("all_come_who_must", "if (i32(t % 32) == 0:i32) {", "if (i32(t % 32) == 0:i32) { barrier warp", "32 lanes may part"),
    ("all_come_who_must", "barrier warp", "barrier block", "threads of a block may part at the branch"),
    ("all_come_who_must", "if wide {", "if wide uniform { barrier block", "may part at the branch"),
    ("all_come_who_must", "for j in t..n by 64 {", "for j in t..n by 64 { barrier warp", "at the loop over j"),
    ("all_come_who_must", "for j in t..n by 64 {", "for j in t..n by 64 uniform { barrier block", "the loop over j"),
    ("all_come_who_must", "(acc < 1.0:f32) uniform", "(acc < 1.0:f32)", "may part at the branch"),
    ("all_come_who_must", "at[b]\n    for r", "at[t]\n    for r", "may part at the loop over r"),
    ("exchange_is_within_a_warp", "acc ^ 16", "acc ^ 32", "lane ^ 32 is no other lane of 32"),
    ("exchange_is_within_a_warp", "acc ^ 16", "acc ^ 0", "lane ^ 0 is no other lane of 32"),
    ("exchange_is_within_a_warp", "acc ^ 16", "acc ^ 16 shift 1", "lane ^ 16 >> 1 is perhaps no other lane"),
    ("exchange_is_within_a_warp", "acc ^ 16", "acc ^ 16 shift t", "lane ^ 16 >> t is perhaps no other lane"),
    ("exchange_is_within_a_warp", "step in 0..5 unroll", "step in 0..6 unroll", "lane ^ 16 >> step is perhaps no other lane"),
    ("exchange_is_within_a_warp", "step in 0..5 unroll", "step in 0..5", "lane ^ 16 >> step is perhaps no other lane"),
    ("exchange_is_within_a_warp", "^ 1 width 8", "^ 1 width 6", "6 lanes are no power of two"),
    ("exchange_is_within_a_warp", "^ 1 width 8", "^ 8 width 8", "lane ^ 8 is no other lane of 8"),
    ("all_come_who_must", "warps[warp, 0] = acc", "exchange less = acc ^ 1", "32 lanes may part at the branch"),
    ("shuffle_is_of_lanes", "shuffle after = kept[0]", "shuffle after = own[0]", "own is in no registers that other lanes"),
    ("indices_are_in_scope", "lane t + 1", "lane p + 1", "no p in scope"),
    ("all_come_who_must", "warps[warp, 0] = acc", "shuffle less = kept[0] lane 0", "32 lanes may part at the branch"),
    ("all_come_who_must", "let warp: i32 = i32(t / 32)", "let warp: i32 = i32(t / 16)", "32 lanes may part at the branch"),
    ("exchange_is_in_whole_groups", "axis block.x t < 64", "axis block.x t < 48", "48 threads are no groups of 32 lanes"),
]  # fmt: skip

VALUE = [
    ("literal_fits_its_type", "== 0:i32", "== -1:u8", "-1 is no u8"),
    ("literal_fits_its_type", "== 0:i32", "== 2147483648:i32", "2147483648 is no i32"),
    ("literal_fits_its_type", "== 0:i32", "== 0.5:i32", "0.5 is no i32"),
    ("operands_agree", "acc < 1.0:f32", "acc < 1.0:f64", "lt has operands of types f32, f64"),
    ("operands_agree", "select(isnan(acc)", "select(acc", "select decides by f32, not bool"),
    ("operation_is_known", "fma(acc, other, other)", "fma(acc, other)", "fma takes 3 operands, not 2"),
    ("operation_takes_its_operands", "isnan(acc)", "(isnan(0:i32) and isnan(acc))", "isnan is not for i32"),
    ("operation_takes_its_operands", "isnan(acc)", "((isnan(acc) + isnan(acc)) and isnan(acc))", "add is not for bool"),
    ("operation_gives_its_type", "(acc < 1.0:f32)", "not:bool(lt:f32(acc, 1.0:f32))", "lt gives bool, not f32"),
    ("variable_is_declared", "= select(isnan(acc)", "= select(isnan(more:f32)", "variable more is not declared here"),
    ("variable_has_its_type", "add= acc", "add= acc:f64", "variable acc is f32, not f64"),
    ("element_has_its_rank", "x[b, j]", "x[b]", "x has rank 2 and 1 indices"),
    ("element_has_its_rank", "z[i] = total", "z[i, i] = total", "z has rank 1 and 2 indices"),
    ("symbols_are_in_scope", "x[b, j]", "x[b, l]", "no l in scope"),
    ("symbols_are_in_scope", "w[b, t % 4]", "w[b, acc]", "no acc in scope"),
    ("symbols_are_in_scope", "i32(t / 32)", "i32(r)", "no r in scope"),
    ("index_is_a_number", "let wide: bool = (i32(warp) == 1:i32)", "let wide: bool = bool(warp)", "index warp is no bool"),
    ("data_are_new_integers", "h = at[b]", "h = acc", "h stands for a f32, not an integer"),
    ("data_are_new_integers", "z[h; h = at[b]]", "z[t; t = at[b]]", "t has a meaning already"),
    ("data_are_new_integers", "z[h; h = at[b]]", "z[acc; acc = at[b]]", "acc has a meaning already"),
]  # fmt: skip

HEAD = [
    ("names_differ", "    size m, n, s, base\n", "    size m, n, s, base, t\n", "t stands for 2 things"),
    ("names_differ", "scalar c: f32[]", "scalar c: f32[] array local z: f32[4]", "z stands for 2 things"),
    ("scalars_are_scalar_inputs", "scalar c: f32[]", "scalar c: f32[] role inout", "cannot be passed by value"),
    ("scalars_are_scalar_inputs", "scalar c: f32[]", "scalar c: f32[3]", "cannot be passed by value"),
    ("layouts_have_their_rank", "warps: f32[2, 33]", "warps: f32[2, 33] strides [33]", "2 dimensions and 1 strides"),
    ("layouts_are_in_scope", "    size m, n, s, base\n", "    size m, s, base\n", "x needs n, which the kernel is not given"),
    ("arrays_are_of_known_size", "own: f32[4]", "own: f32[m]", "has no known size"),
    ("arrays_are_of_known_size", "own: f32[4]", "own: f32[-1]", "has no known size"),
    ("arrays_are_of_known_size", "own: f32[4]", "own: f32[4] strides [m]", "has no known size"),
    ("arrays_are_on_chip", "array local own", "array global own", "own cannot be made in global memory"),
    ("arrays_are_on_chip", "array local lanes", "array shared lanes", "lanes is shared by a block, but the kernel has none"),
    (
        "cluster_arrays_have_a_part_in_each_block", "array shared warps", "array cluster warps",
        "warps: f32[2, 33] has no part in each block of a cluster",
    ),
    ("shared_arrays_have_places", "tile: f32[64, 4]", "tile: f32[64, 4] from 512", "some shared arrays have places, and some"),
    ("shared_arrays_have_places", "own: f32[4]", "own: f32[4] from 0", "own cannot lie at 0"),
    ("axes_are_of_one_machine", "axis grid.x b < m", "axis core b < m", "no machine has the levels block, core, grid"),
    ("axes_have_places", "axis grid.x b", "axis grid.y b", "2 axes are grid.y"),
    ("axes_have_places", "axis grid.x b", "axis grid.w b", "grid has no dimension w"),
    ("block_axes_are_constant", "t < 64", "t < m", "block axis t has extent m"),
    ("block_axes_are_constant", "t < 64", "t < 0", "block axis t has extent 0"),
    ("warps_are_of_lanes", "blocks 2", "blocks 2 warp 12", "a warp of 12 lanes"),
    ("warps_are_of_lanes", "blocks 2", "blocks 2 warp 64", "a warp of 64 lanes"),
    ("warps_are_of_lanes", "axis core i < m", "warp 16 axis core i < m", "a warp of no threads"),
    ("wish_is_for_blocks", "axis core i < m", "blocks 2 axis core i < m", "cannot hold 2 of its blocks"),
    ("core_axes_are_in_scope", "axis core i < m", "axis core i < n", "the extent of i needs n, which the kernel is not given"),
    ("bases_are_given", "g < n base base", "g < n base other_base", "base other_base is no argument"),
    ("bases_are_given", "axis block.x t < 64", "axis block.x t < 64 base base", "block axis t has a base"),
    ("bases_are_given", "axis grid.x b < m", "axis grid.x b < m base base", "base base is that of 2 axes"),
    ("bases_are_given", "g < n base base", "g < n base s", "base s is known to the host"),
    ("bases_are_given", "for p in 0..n unroll 4", "for p in 0..base unroll 4", "base base decides what is done"),
    ("bases_are_given", "i32(t / 32)", "i32(t / 32 + 0 % (base + 1) + base)", "base base decides what is done"),
    ("bases_are_given", "axis grid.x b < m", "axis grid.x b < m + base", "base base decides what is done"),
    ("written_buffers_are_there", "writes w, z", "writes w, v, z", "v is written, but is no buffer of the kernel"),
    ("written_buffers_are_there", "writes w, z", "writes at, w, z", "at is written, but is an input"),
]  # fmt: skip

PLAN = [
    ("buffers_differ", "workspace w:", "workspace x:", "2 buffers are called x"),
    ("roles_are_right", "param x: f32[m, n]", "param x: f32[m, n] role local", "parameter x is local"),
    ("roles_are_right", "result z: f32[m]", "result z: f32[m] role inout", "result z is inout"),
    ("roles_are_right", "workspace w: f32[m, 4]", "workspace w: f32[m, 4] role input", "workspace w is input"),
    ("rows_of_workspace_are_apart", "workspace w: f32[m, 4]", "workspace w: f32[m, 4] strides [3, 1]", "rows of w may overlap"),
    ("loops_are_run_together", "loop s < n {", "loop s < n together all in w {", "blocks cannot meet in w"),
    ("shapes_are_in_sizes", "workspace w: f32[m, 4]", "workspace w: f32[p, 4]", "w needs p, which is no size"),
    ("promises_are_in_sizes", "require n > 0", "require p > 0", "p > 0 needs p, which is no size"),
    ("promises_are_in_sizes", "assume at in 0..m", "assume z in 0..m", "z is no parameter"),
    ("fixed_sizes_are_gone", "fix q = 3", "fix n = 3", "n = 3 is a size still"),
    ("kernels_use_the_plans_memory", "buffer x: f32[m, n]", "buffer x: f32[n, m]", "kernel first: x is no buffer of the plan"),
    ("kernels_use_the_plans_memory", "scalar c: f32[]", "scalar c: f32[] scalar d: f32[]", "kernel first: d is no parameter"),
    ("host_steps_are_in_scope", "loop s < n", "loop s < p", "the host does not know p"),
    ("host_steps_are_in_scope", "loop s < n", "loop m < n", "m is known already"),
    ("host_steps_are_in_scope", "if s > 0", "if p > 0", "the host does not know p"),
    ("host_steps_are_in_scope", "    launch second\n", "    launch first\n", "the host does not know s"),
]  # fmt: skip


def planted(old: str, new: str) -> k.Plan:
    assert GOOD.count(old) >= 1, f"{old!r} is not there to be changed"
    return parse_plan(GOOD.replace(old, new, 1))


def complaint(plan: k.Plan) -> str:
    with pytest.raises(CompilerBug) as caught:
        verify(plan)
    return str(caught.value)


def test_a_good_plan_is_well_formed() -> None:
    verify(parse_plan(GOOD))


@pytest.mark.parametrize(("rule", "old", "new", "message"), [*STATEMENT, *VALUE, *HEAD, *PLAN])
def test_planted_bug_is_caught(rule: str, old: str, new: str, message: str) -> None:
    said = complaint(planted(old, new))
    assert f"{rule}: " in said and message in said


def _first(plan: k.Plan, change: Callable[[k.Kernel], k.Kernel]) -> k.Plan:
    """The plan with its first kernel changed."""
    kernel = change(next(k.kernels(plan.steps)))
    return replace(plan, steps=(k.HostLoop(Sym("s"), sym("n"), (k.Launch(kernel),)), *plan.steps[1:]))


def _with(stmt: k.Stmt) -> Callable[[k.Kernel], k.Kernel]:
    return lambda kernel: replace(kernel, body=(*kernel.body, stmt))


def _renamed(kernel: k.Kernel) -> k.Kernel:
    return replace(kernel, name="second")


def _of_a_cluster(kernel: k.Kernel) -> k.Kernel:
    """With two blocks in a cluster, and what warps meet in a part in each of them."""
    blocks = k.Axis(Sym("rank"), k.Level.CLUSTER, expr(2), "x")
    arrays = tuple(replace(a, space=k.Space.CLUSTER) if a.buffer.name == "warps" else a for a in kernel.arrays)
    return replace(kernel, axes=(*kernel.axes, blocks), arrays=arrays)


def _of_the_caller(kernel: k.Kernel) -> k.Kernel:
    """With memory of the plan for an array of its own."""
    return replace(kernel, scalars=(), arrays=(*kernel.arrays, k.Array(kernel.scalars[0], k.Space.LOCAL)))


ONE_F32 = Literal(1.0, F32)
TWIN = Buffer("own", F32, (expr(4),), "local")
BUILT: list[tuple[str, Callable[[k.Kernel], k.Kernel], str]] = [
    ("names_are_words", lambda kernel: replace(kernel, name="a b"), "'a b' is no name"),
    ("names_are_words", _with(k.Declare(Sym("1st"), F32, ONE_F32)), "'1st' is no name"),
    ("kernels_differ", _renamed, "2 kernels are called second"),
    ("arrays_are_of_one_kernel", _of_the_caller, "c is made by a kernel, and is something else"),
    ("operation_is_known", _with(k.Declare(Sym("v"), F32, Op("half", (ONE_F32,), F32))), "there is no operation half"),
    ("buffer_is_in_scope", _with(k.Declare(Sym("v"), F32, Load(TWIN, (ZERO,)))), "buffer own is not in scope"),
    ("loop_kind_is_known", _with(k.For(Sym("v"), ZERO, sym("n"), (), ONE, factor=2)), "a serial loop has the factor 2"),
    ("names_are_words", _with(k.LoadVector((Sym("1st"), Sym("u")), Load(TWIN, (ZERO,)))), "'1st' is no name"),
    ("wait_leaves_no_less_than_none", _with(k.WaitAsync(-1)), "-1 groups cannot be left"),
    ("part_of_another_block_is_only_read", _of_a_cluster, "warps has a part in each block, and this is not only of its own"),
    ("loop_kind_is_known", _with(k.For(Sym("v"), ZERO, sym("n"), (), ONE, "parallel")), "no loop is parallel"),
    ("arrays_are_the_kernels", _with(k.AwaitLaunches(("other",))), "other is no memory of the kernel"),
    ("turns_apart_are_few", _with(k.For(Sym("v"), ZERO, sym("n"), (), ONE + 1, first=1)), "turns of a serial loop by 2 are"),
    ("turns_apart_are_few", _with(k.For(Sym("v"), ZERO, sym("n"), (), ONE, last=-1)), "0 and -1 turns are told apart"),
]


@pytest.mark.parametrize(("rule", "change", "message"), BUILT)
def test_bug_that_no_text_can_say_is_caught(rule: str, change: Callable[[k.Kernel], k.Kernel], message: str) -> None:
    said = complaint(_first(parse_plan(GOOD), change))
    assert f"{rule}: " in said and message in said


def test_every_rule_has_a_planted_bug() -> None:
    tiles = {*ENGINE_RULES, *TILE_HEAD_RULES, barriers_are_barriers}  # tried in test_tile_verify.py
    elsewhere: set[Callable[..., object]] = {*tiles, *COLLECTIVE_RULES}  # these in tests/instr/test_rules.py
    elsewhere |= {*k.Alone.RULES}  # tried in tests/schedule/test_rows_of_memory.py
    elsewhere.add(wide_plan_is_of_the_same_function)  # tried in tests/artifact/test_wide.py
    rules = {rule.__name__ for rule in (*RULES, *VALUE_RULES, *KERNEL_RULES, *PLAN_RULES) if rule not in elsewhere}
    rules -= WARPGROUP_RULES.keys() | COLUMN_RULES.keys() | SCALE_RULES.keys()
    rules.add("host_steps_are_in_scope")
    tried = {case[0] for case in (*STATEMENT, *VALUE, *HEAD, *PLAN, *BUILT)}
    assert rules - {"values_are_well_formed"} == tried  # that one calls the rules of values, which are tried one by one


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ("axis block.x t < 2048", "2048 threads in a block, sm_80 has 1024"),
        ("axis block.z t < 128", "block.z has 128 threads, sm_80 has 64"),
        ("axis block.x t < 64 array shared big: f32[200, 256]", "bytes of shared memory in a block, sm_80 has 166912"),
        ("axis cluster u < 2 axis block.x t < 64", "sm_80 has no cluster"),
        ("warp 16 axis block.x t < 64", "warps of 16 lanes, sm_80 has 32"),
        ("blocks 33 axis block.x t < 64", "sm_80 holds no 33 blocks of 64 threads at once"),
    ],
)
def test_limits_of_a_target(new: str, message: str) -> None:
    plan = planted("axis block.x t < 64", new)
    with pytest.raises(CompilerBug, match=message):
        verify(replace(plan, steps=plan.steps[:1]), resolve("sm_80"))


def test_limits_that_are_kept() -> None:
    plan = parse_plan(GOOD)
    verify(replace(plan, steps=plan.steps[:1]), resolve("sm_80"))
    verify(replace(plan, steps=plan.steps[1:]), resolve("cpu"))
    with pytest.raises(CompilerBug, match="sm_80 has no core"):
        verify(plan, resolve("sm_80"))


def test_shared_bytes_count_padding_by_strides_and_alignment() -> None:
    text = "array shared a: f32[4, 3] strides [5, 1] array local b: f32[9] array shared c: f16[8]"
    kernel = next(k.kernels(planted("array local own: f32[4]", text + " array local own: f32[4]").steps))
    assert shared_bytes(kernel) == (2 * 33 * 4 + 8) + 64 * 4 * 4 + ((3 * 5 + 2 + 1) * 4 + 8) + 16


def test_a_complaint_shows_the_statement() -> None:
    said = complaint(planted("acc = fma(acc, other, other)", "acc = 1:i32"))
    assert said.startswith("kernel first: assigned_variable_is_declared: acc is f32, its value i32\n    acc = 1:i32  -- line ")


@pytest.mark.parametrize(
    ("block", "index", "lanes", "alike"),
    [
        ("x t < 64", "t / 32", "warp", True),
        ("x t < 64", "t / 32 * 2 + n", "warp", True),
        ("x t < 64", "t / 16", "warp", False),
        ("x t < 64", "t / 16", "warp lanes 16", True),
        ("x t < 64", "t / 64", "block", True),
        ("x t < 64", "(t + 1) / 32", "warp", False),
        ("x t < 64", "b", "block", True),
        ("x t < 16 axis block.y u < 4", "u", "warp", False),
        ("x t < 16 axis block.y u < 4", "u", "warp lanes 16", True),
        ("x t < 32 axis block.y u < 4", "u", "warp", True),
        ("x t < 32 axis block.y u < 4", "u", "block", False),
        ("x t < 1 axis block.y u < 32", "u", "warp", False),
    ],
)
def test_which_branches_are_alike(block: str, index: str, lanes: str, alike: bool) -> None:
    body = f"if (i32({index}) == 1:i32) {{ barrier {lanes} }}"
    text = f"plan a size n {{ launch b }} kernel b size n axis grid.x b < n axis block.{block} {{ {body} }}"
    if alike:
        verify(parse_plan(text))
    else:
        assert "all_come_who_must" in complaint(parse_plan(text))


@pytest.mark.parametrize(("first", "alike"), [("0", True), ("2 * b", True), ("2 * t", False)])
def test_a_vector_is_alike_where_its_index_is(first: str, alike: bool) -> None:
    body = f"vector u, v = w[{first}] if (v < 1.0:f32) {{ barrier block }}"
    head = "buffer w: f32[2 * n] role local size n axis grid.x b < n axis block.x t < 64"
    text = f"plan a size n workspace w: f32[2 * n] {{ launch k }} kernel k {head} {{ {body} }}"
    if alike:
        verify(parse_plan(text))
    else:
        assert "all_come_who_must" in complaint(parse_plan(text))
    assert "all_come_who_must" in complaint(parse_plan(text.replace("if (", "v = 0:f32 if (")))
