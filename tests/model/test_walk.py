"""How often machine code is run: trip counts that integers of all kinds decide, against the same computed by Python."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from texpr.isa.constants import constant_bank
from texpr.model.code.program import program
from texpr.model.code.text import Code, Instruction, read_code
from texpr.model.code.walk import Launch, count
from texpr.support.diagnostic import TexprError
from texpr.toolchain import this_machine
from texpr.toolchain.cuda import compile_cuda, disassemble, find_nvcc

BANK = constant_bank((9, 0))
assert BANK is not None

Formula = Callable[[int, int, int, int], int]
TRIPS: dict[str, Formula] = {
    "t & 7": lambda t, b, n, d: t & 7,
    "(t * 7 + 3) / 5 % 13": lambda t, b, n, d: (t * 7 + 3) // 5 % 13,
    "(t ^ 5) % 11": lambda t, b, n, d: (t ^ 5) % 11,
    "min(t, 9)": lambda t, b, n, d: min(t, 9),
    "max(t - 20, 0)": lambda t, b, n, d: max(t - 20, 0),
    "(n + t) / d % 17": lambda t, b, n, d: (n + t) // d % 17,
    "(b << 2 | t >> 3) % 19": lambda t, b, n, d: (b << 2 | t >> 3) % 19,
    "__popc(t)": lambda t, b, n, d: t.bit_count(),
    "t < 16 ? n % 7 : d % 5": lambda t, b, n, d: n % 7 if t < 16 else d % 5,
    "((long long)t * 123456789LL >> 28) % 23": lambda t, b, n, d: (t * 123456789 >> 28) % 23,
    "__brev(t) >> 28": lambda t, b, n, d: int(f"{t:032b}"[::-1], 2) >> 28,
    "(t - 16) * 3 / 4 + 20": lambda t, b, n, d: int((t - 16) * 3 / 4) + 20,
    "(unsigned)(t * 0x9E3779B1u) >> 27": lambda t, b, n, d: (t * 0x9E3779B1 & 0xFFFFFFFF) >> 27,
    "__clz(t)": lambda t, b, n, d: 32 - t.bit_length(),
    "abs(t - 13)": lambda t, b, n, d: abs(t - 13),
}
STORE = 'asm volatile("st.volatile.global.u32 [%0], %1;" :: "l"(out), "r"(i));'


def _source() -> str:
    kernels = (
        f'extern "C" __global__ void k{at}(unsigned *out, int n, int d) {{ int t = threadIdx.x, b = blockIdx.x; (void)b; '
        f"unsigned m = (unsigned)({text}); for (unsigned i = 0; i < m; ++i) {STORE} }}"
        for at, text in enumerate(TRIPS)
    )
    return "\n".join(kernels) + "\n"


def stores(code: Code, launch: Launch) -> tuple[float, bool]:
    """Stores of all warps, and whether data decided nothing."""
    found = count(program(code), launch)
    assert not found.cut
    total = sum(n for one, n in zip(code.instructions, found.executed, strict=True) if one.name == "STG")
    return total, not found.undecided


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_loops_run_as_often_as_their_integers_say(target: str) -> None:
    """Warps of one lane, so that each count is that of one thread; two blocks of one warp each, of 29 threads."""
    machine = this_machine()
    try:
        nvcc = find_nvcc(machine)
        text = disassemble(machine, nvcc, compile_cuda(machine, nvcc, _source(), {}, target))
    except TexprError as reason:
        pytest.skip(str(reason))
    bank = constant_bank((8, 0) if target == "sm_80" else (9, 0))
    assert bank is not None
    codes = {code.kernel: code for code in read_code(text)}
    n, d = 1000, 37
    for at, (formula, trips) in enumerate(TRIPS.items()):
        arguments = ((8, 1 << 40), (4, n), (4, d))
        launch = Launch((2, 1, 1), (16, 1, 1), arguments, bank, warp=1)
        expected = sum(trips(t, b, n, d) for t in range(16) for b in range(2))
        assert stores(codes[f"k{at}"], launch) == (expected, True), formula


CLUSTERED = """extern "C" __global__ void k(unsigned *out) {
    unsigned clustered;
    asm volatile("{ .reg .pred p; mov.pred p, %is_explicit_cluster; selp.u32 %0, 1, 0, p; }" : "=r"(clustered));
    for (unsigned i = 0; i < 3 * clustered; ++i) asm volatile("st.volatile.global.u32 [%0], %1;" :: "l"(out), "r"(i));
}
"""


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_code_that_asks_whether_blocks_are_in_clusters_is_told(target: str) -> None:
    machine = this_machine()
    try:
        nvcc = find_nvcc(machine)
        text = disassemble(machine, nvcc, compile_cuda(machine, nvcc, CLUSTERED, {}, target))
    except TexprError as reason:
        pytest.skip(str(reason))
    bank = constant_bank((9, 0) if target == "sm_90a" else (10, 0))
    assert bank is not None
    (code,) = read_code(text)
    together = Launch((4, 1, 1), (32, 1, 1), ((8, 1 << 40),), bank, cluster=(2, 1, 1))
    assert stores(code, together) == (12, True)
    assert not stores(code, Launch((4, 1, 1), (32, 1, 1), ((8, 1 << 40),), bank))[1]


def listing(*lines: str) -> Code:
    """Instructions as `guard opcode operand, operand`, each 16 bytes behind the one before; `-> n` is the line jumped to."""
    made: list[Instruction] = []
    for at, line in enumerate(lines):
        text, _, target = line.partition(" -> ")
        guard, _, rest = text[1:].partition(" ") if text.startswith("@") else ("", "", text)
        opcode, _, operands = rest.partition(" ")
        named = tuple(operands.split(", ")) if operands else ()
        made.append(
            Instruction(16 * at, opcode, named or (("`(x)",) if target else ()), guard, 16 * int(target) if target else None)
        )
    return Code("k", tuple(made))


LOOP = listing(
    "MOV R1, RZ",
    "IADD3 R1, R1, 0x1, RZ",
    "ISETP.LT.AND P0, PT, R1, 0xa, PT",
    "@P0 BRA -> 1",
    "STG.E desc[UR4][R2.64], R1",
    "EXIT",
)
DATA = listing(
    "LDG.E R1, desc[UR4][R2.64]",
    "ISETP.LT.AND P0, PT, R1, 0xa, PT",
    "@P0 BRA -> 6",
    "FADD R5, R5, R5",
    "FADD R5, R5, R5",
    "STG.E desc[UR4][R2.64], R5",
    "EXIT",
)
LANES = listing(
    "S2R R0, SR_TID.X",
    "ISETP.GT.AND P0, PT, R0, 0xf, PT",
    "@P0 EXIT",
    "@!P0 STG.E desc[UR4][R2.64], R5",
    "EXIT",
)


def counted(code: Code, **changed: object) -> list[float]:
    """How many warps of a launch of one block of two warps issue each instruction."""
    launch = Launch(**{"grid": (1, 1, 1), "block": (64, 1, 1), "arguments": (), "bank": BANK, **changed})  # pyright: ignore
    return [*count(program(code), launch).issued]


def test_a_loop_is_counted_for_each_warp() -> None:
    assert counted(LOOP) == [2, 20, 20, 20, 2, 2]


def test_where_data_decides_the_shorter_way_is_counted() -> None:
    assert counted(DATA) == [2, 2, 2, 0, 0, 0, 2]
    assert count(program(DATA), Launch((1, 1, 1), (32, 1, 1), (), BANK)).undecided == (0x20,)


def test_a_loop_that_data_ends_runs_as_often_as_somebody_says() -> None:
    code = listing("LDG.E R1, desc[UR4][R2.64]", "ISETP.LT.AND P0, PT, R1, 0xa, PT", "@P0 BRA -> 0", "EXIT")
    assert counted(code) == [2, 2, 2, 2]
    assert counted(code, turns={0x20: 7}) == [14, 14, 14, 2]


def test_lanes_and_warps_that_do_less() -> None:
    """The first half of the first warp goes on; all others end."""
    assert counted(LANES) == [2, 2, 2, 1, 1]


def test_a_walk_that_does_not_end_is_cut() -> None:
    code = listing("NOP", "MOV R1, RZ", "BRA -> 1", "EXIT")
    assert count(program(code), Launch((1, 1, 1), (32, 1, 1), (), BANK)).cut


def test_a_wait_ends_at_once() -> None:
    code = listing("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4], R1", "@!P0 BRA -> 0", "EXIT")
    assert counted(code) == [2, 2, 2]


def test_counters_that_are_kept_on_the_stack_are_known() -> None:
    code = listing(
        "MOV R5, 0x3",
        "STL [R1+0x8], R5",
        "LDG.E R5, desc[UR4][R2.64]",
        "LDL R6, [R1+0x8]",
        "IADD3 R6, R6, -0x1, RZ",
        "STL [R1+0x8], R6",
        "ISETP.NE.AND P0, PT, R6, RZ, PT",
        "@P0 BRA -> 3",
        "EXIT",
    )
    assert counted(code)[3:] == [6, 6, 6, 6, 6, 2]
