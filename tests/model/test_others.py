"""Machine code that other compilers make, and what a cubin says beside it: `bench/peers.py` reads both."""

from __future__ import annotations

import pytest
from bench.common.cubin import entries
from bench.common.reading import Asked, code_of, read
from bench.common.steadily import Steadily, steadily

from texpr.isa.constants import constant_bank
from texpr.isa.registry import DEVICES, resolve
from texpr.model.bound import bound
from texpr.model.code.classes import Product, product, unit
from texpr.model.code.program import program
from texpr.model.code.text import Code, Control, Instruction
from texpr.model.code.walk import Launch, count
from texpr.model.code.work import read_work
from texpr.model.work import Shape
from texpr.support.diagnostic import TexprError
from texpr.toolchain import this_machine
from texpr.toolchain.cuda import CudaBinary, Nvcc, compile_cuda, find_nvcc
from texpr.toolchain.machine import Machine


def one(text: str, address: int = 0) -> Instruction:
    guard, _, rest = text[1:].partition(" ") if text.startswith("@") else ("", "", text)
    opcode, _, operands = rest.partition(" ")
    return Instruction(address, opcode, tuple(operands.split(", ")) if operands else (), guard)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HGMMA.64x256x16.F32.BF16 R24, gdesc[UR20].tnspB, R24, gsb0", Product("bf16", 64 * 256 * 16 // 4, True)),
        ("HGMMA.64x128x16.F32.BF16 R24, R4, gdesc[UR20].tnspB, R24", Product("bf16", 64 * 128 * 16 // 4, True)),
        ("HGMMA.64x64x8.F32.TF32 R24, gdesc[UR20], R24", Product("tf32", 64 * 64 * 8 // 4, True)),
        ("QGMMA.64x256x32.F32.E4M3.E4M3 R24, gdesc[UR8], R24, UP0", Product("f8", 64 * 256 * 32 // 4, True)),
        ("IGMMA.64x128x32.S8.S8.SAT R24, gdesc[UR8], R24, gsb0", Product("i8", 64 * 128 * 32 // 4, True)),
        ("HMMA.16816.F32.BF16 R4, R8, R12, R4", Product("bf16", 16 * 8 * 16, False)),
    ],
)
def test_products_of_warp_groups_are_known(text: str, expected: Product) -> None:
    assert product(one(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("UTMALDG.2D.MULTICAST [UR8], [UR36], UR5", "copy"),
        ("UTMALDG.4D.IM2COL [UR8], [UR36], UR5", "copy"),
        ("UTMASTG.2D [UR8], [UR36]", "copy"),
        ("UBLKCP.G.S [UR8], [UR36], UR5", "copy"),
        ("UTMACCTL.PF [UR4]", "copy"),
        ("SYNCS.ARRIVE.TRANS64.RED.A1T0 RZ, [UR4], RZ", "barrier"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR11+0x24000], R5", "barrier"),
        ("WARPGROUP.DEPBAR.LE gsb0, 0x1", "barrier"),
        ("STSM.16.M88.4 [R2], R24", "lsu"),
        ("LDSM.16.MT88.4 R4, [R2]", "lsu"),
    ],
)
def test_units_of_what_brings_and_waits(text: str, expected: str) -> None:
    assert unit(one(text)) == expected


def test_a_loop_that_waits_for_an_engine_and_multiplies() -> None:
    """Two warp groups, eight turns: a wait, a product of each group, a copy by one lane of one warp."""
    lines = (
        "S2R R7, SR_TID.X",
        "UMOV UR4, URZ",
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR11], R5",
        "@!P0 BRA `(wait)",
        "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR20].tnspB, R24, gsb0",
        "WARPGROUP.DEPBAR.LE gsb0, 0x0",
        "ISETP.EQ.U32.AND P1, PT, R7, RZ, PT",
        "VOTEU.ANY UP0, P1",
        "@UP0 UTMALDG.2D [UR16], [UR20]",
        "UIADD3 UR4, UR4, 0x1, URZ",
        "UISETP.GE.U32.AND UP1, UPT, UR4, 0x8, UPT",
        "PLOP3.LUT P2, PT, PT, PT, UP1, 0x80, 0x0",
        "@!P2 BRA `(turn)",
        "EXIT",
    )
    made = [one(text, 16 * at) for at, text in enumerate(lines)]
    made = [
        Instruction(each.address, each.opcode, each.operands, each.guard, 32) if each.name == "BRA" else each for each in made
    ]
    code, bank = Code("k", tuple(made)), constant_bank((9, 0))
    assert bank is not None
    counts = count(program(code), Launch((4, 1, 1), (256, 1, 1), (), bank))
    found = read_work(code, counts, resolve("sm_90a"))
    assert not found.unknown and not found.undecided and not found.cut
    assert found.work.products == {"bf16": 4 * 8 * 2 * 64 * 128 * 16}
    assert found.engine == 4 * 8


def turns(*between: str, turns: int = 8, before: tuple[str, ...] = (), around: tuple[str, ...] = ()) -> Steadily | None:
    """What is said of blocks of two warp groups whose turns are two products, with something between them, and a wait. With
    `around` it is done four times, and that behind it."""
    product = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR20].tnspB, R24"
    loop = (product, *between, f"{product}, gsb0", "WARPGROUP.DEPBAR.LE gsb0, 0x0", "UIADD3 UR4, UR4, 0x1, URZ")
    test = (f"UISETP.GE.U32.AND UP1, UPT, UR4, {turns:#x}, UPT", "PLOP3.LUT P2, PT, PT, PT, UP1, 0x80, 0x0", "@!P2 BRA `(turn)")
    ends = ("UIADD3 UR5, UR5, 0x1, URZ", "UISETP.GE.U32.AND UP1, UPT, UR5, 0x4, UPT", *test[1:2], "@!P2 BRA `(tile)")
    tiles = (*around, *ends) if around else ()
    lines = ("UMOV UR5, URZ", "UMOV UR4, URZ", *before, *loop, *test, *tiles, "EXIT")
    starts, wait = {"`(turn)": 16 * (2 + len(before)), "`(tile)": 16}, Control(1, None, None, 0)
    made = [one(text, 16 * at) for at, text in enumerate(lines)]
    made = [
        Instruction(each.address, each.opcode, each.operands, each.guard, starts.get((*each.operands, "")[0]), control=wait)
        for each in made
    ]
    code, bank = Code("k", tuple(made)), constant_bank((9, 0))
    assert bank is not None
    ready, target, device = program(code), resolve("sm_90a"), DEVICES["sm_90a"]
    counts = count(ready, Launch((132, 1, 1), (256, 1, 1), (), bank))
    limit = bound(read_work(code, counts, target).work, Shape(132, 256, 168, 0), target, device)
    return steadily(ready, counts, limit, target, device)


def test_products_take_as_long_as_in_steady_turns() -> None:
    """A product of 64 × 128 × 16 takes 64 clocks at 1830 MHz; a turn has four. Products before the loop take as long."""
    found = turns()
    assert found is not None and found.us == found.alone_us == pytest.approx(8 * 4 * 64 / 1830, rel=0.1)
    assert found.beside == 5 / 2
    product = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR20].tnspB, R24"
    more = turns(before=(product, product))
    assert more is not None and more.us == pytest.approx(found.us * 9 / 8)


def test_what_is_between_tiles_is_no_turn() -> None:
    """A loop over four tiles has products of its own, one before the turns, and what lanes do with the results."""
    product = "HGMMA.64x128x16.F32.BF16 R24, gdesc[UR20].tnspB, R24"
    plain = turns()
    found = turns(before=(product, product), around=("FADD R4, R4, R4",) * 200)
    assert plain is not None and found is not None
    assert found.beside == plain.beside and found.us == pytest.approx(4 * plain.us * 9 / 8)


@pytest.mark.parametrize(
    ("between", "expected"), [((), 0.5), (("R2UR UR6, R4", "NOP"), 0.5), (("IADD3 R4, R4, 0x1, RZ", "R2UR UR6, R4"), 0.0)]
)
def test_products_in_a_row(between: tuple[str, ...], expected: float) -> None:
    """A wait is always between the last of a turn and the first of the next one."""
    found = turns(*between)
    assert found is not None and found.in_row == expected and found.beside == (5 + len(between)) / 2


SOURCE = """extern "C" __global__ void first(float *x, int n, double d) {
    __shared__ float held[96];
    held[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    for (int i = 0; i < n; ++i) x[threadIdx.x + 32 * i] = held[31 - threadIdx.x] * (float)d;
}
struct alignas(64) Map { char bytes[128]; };
extern "C" __global__ void second(float4 *y, const __grid_constant__ Map map, int n) {
    for (int i = 0; i < n; ++i) y[32 * i + threadIdx.x].x = y[32 * i + threadIdx.x].y + map.bytes[n];
}
"""


def compiled() -> tuple[Machine, Nvcc, CudaBinary]:
    machine = this_machine()
    try:
        nvcc = find_nvcc(machine)
        return machine, nvcc, compile_cuda(machine, nvcc, SOURCE, {}, "sm_90a")
    except TexprError as reason:
        pytest.skip(str(reason))


def test_a_cubin_says_what_its_compiler_says() -> None:
    _, _, binary = compiled()
    found = {entry.name: entry for entry in entries(binary.cubin)}
    assert {name: each.registers for name, each in found.items()} == {each.kernel: each.registers for each in binary.kernels}
    assert found["first"].arguments == ((0, 8), (8, 4), (16, 8))
    assert found["second"].arguments == ((0, 8), (48, 128), (176, 4)), "where a map lies is a multiple of 64"
    reserved = DEVICES["sm_90a"].allocation.reserved
    assert found["first"].shared - reserved == 4 * 96 and found["second"].shared in (0, reserved)


def test_a_launch_is_read_with_its_arguments() -> None:
    """Each of three turns stores once in each of five warps; the size lies behind a map of 128 bytes."""
    machine, nvcc, binary = compiled()
    codes = code_of(machine, nvcc, binary.cubin)
    found = read(*codes["second"], Asked((5, 1, 1), 32, (None, None, 3), 0, 1e6, 2e6))
    assert not found.unknown and not found.undecided and not found.cut and found.load is not None
    assert found.bound.of("dram") == pytest.approx(2e6 / 3.352e12 * 1e6)
    more = read(*codes["second"], Asked((5, 1, 1), 32, (None, None, 300), 0, 1e6, 2e6))
    assert more.instructions > 40 * found.instructions
