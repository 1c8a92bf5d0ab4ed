"""Records of products in tensor memory: descriptors bit by bit, fragments against the layouts of the PTX ISA.

PTX ISA 9.0, 9.7.16.4.1 "Shared memory descriptor", 9.7.16.4.2 "Instruction descriptor"; the fields of both are those that CuTe
has, too (include/cute/arch/mma_sm100_desc.hpp: SmemDescriptor, InstrDescriptor).
"""

from __future__ import annotations

import ctypes
import re
from itertools import product as every

import pytest
from tests.instr.warpgroup.test_records import at as placed
from tests.instr.warpgroup.test_records import canonical

from texpr.affine.expr import expr
from texpr.backends.cuda.headers import headers
from texpr.frontend import elaborate, parse_text
from texpr.ir.instr.descriptor import Descriptor, along, is_summed, offset
from texpr.isa.instructions.tcgen05 import LANES, descriptor, product
from texpr.isa.registry import INSTRUCTIONS, resolve
from texpr.schedule.joint.records import called
from texpr.toolchain import Toolchain, this_machine

PRODUCTS = [name for name in INSTRUCTIONS if name.startswith("tcgen05_m") and "_mx_" not in name and "_at" not in name]

FIELDS = {
    "sparsity selector": (0, 2), "sparse": (2, 1), "saturate": (3, 1), "d": (4, 2), "a": (7, 3), "b": (10, 3),
    "negate a": (13, 1), "negate b": (14, 1),
    "transpose a": (15, 1), "transpose b": (16, 1), "n": (17, 6), "m": (24, 5), "shift": (30, 2),
}  # fmt: skip
"""By name: the first bit, and how many."""

SUMS = {"f16": 0, "f32": 1, "i32": 2}
FACTORS = {"f16": 0, "bf16": 1, "tf32": 2, "f8e4m3": 0, "f8e5m2": 1, "u8": 0, "i8": 1}


def fields(bits: int) -> dict[str, int]:
    """The fields that are not 0; all other bits are."""
    found = {name: bits >> first & (1 << wide) - 1 for name, (first, wide) in FIELDS.items()}
    assert sum(value << FIELDS[name][0] for name, value in found.items()) == bits
    return {name: value for name, value in found.items() if value}


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_template_has_the_descriptor_of_its_shape(name: str) -> None:
    record = INSTRUCTIONS[name]
    a, b, d = record.operands
    template = record.template(resolve("sm_100a"))
    assert template is not None
    found = re.fullmatch(r"tcgen05\.mma\.cta_group::1\.kind::(\w+) \[{d}\], {a}, {b}, (0x[0-9a-f]+), 1;", template)
    assert found is not None
    rows, columns = d.shape
    wanted = {"d": SUMS[d.dtype], "a": FACTORS[a.dtype], "b": FACTORS[b.dtype], "n": columns // 8, "m": rows // 16}
    wanted |= {"transpose a": "_am" in name, "transpose b": "_bn" in name}
    assert fields(int(found[2], 16)) == {field: int(value) for field, value in wanted.items() if value}
    kinds = {"bf16": "f16", "f16": "f16", "tf32": "tf32", "i8": "i8", "u8": "i8"}
    assert found[1] == kinds.get(a.dtype, "f8f6f4")
    assert a.shape == (rows, b.shape[0]) and b.shape[1] == columns and columns % 16 == 0 and rows == LANES
    assert (record.template(resolve("sm_103a")) is None) == (found[1] == "i8")


def test_known_descriptors() -> None:
    """128 × 256 of bf16 as published kernels have it, and the greatest fields."""
    assert descriptor(128, 256, "bf16", "f32") == 0x8400490
    assert fields(descriptor(128, 256, "f16", "f32", True, True)) == {
        "d": 1,
        "transpose a": 1,
        "transpose b": 1,
        "n": 32,
        "m": 8,
    }


@pytest.mark.parametrize("name", ["tcgen05_m128n16k16_f32_f16", "tcgen05_m128n96k8_f32_tf32", "tcgen05_m128n256k32_i32_u8"])
def test_a_row_is_a_lane_and_a_column_a_column(name: str) -> None:
    """PTX ISA 9.0, 9.7.16.10.5.1: layout D, of 128 rows."""
    instr = called(name)
    assert instr is not None
    *_, d = instr.operands
    assert d.columns and d.fragment.lanes == LANES and instr.is_alone
    for lane, column in every(range(LANES), range(d.fragment.registers)):
        assert [e.constant for e in d.fragment.element(expr(lane), expr(column))] == [lane, column]


@pytest.mark.parametrize("name", [name for name in INSTRUCTIONS if name.startswith(("tcgen05_ld", "tcgen05_st"))])
def test_lanes_move_their_own_columns(name: str) -> None:
    """PTX ISA 9.0, 9.7.16.2.3.1: .32x32b, whose wait is part of it."""
    instr, count = called(name), int(re.findall(r"_x(\d+)_", name)[0])
    assert instr is not None and instr.lanes == 32
    way = "ld" if "_ld_" in name else "st"
    _, template = instr.asm[0]
    words = count * instr.operands[0].dtype.bytes // 4
    assert f"tcgen05.{way}.sync.aligned.32x32b.x{words}.b32" in template and template.endswith(
        f"tcgen05.wait::{way}.sync.aligned;"
    )
    for operand in instr.operands:
        assert operand.fragment.layout == f"(32,{count}):(1@0,1@1)"


MAJORS = [(of, turned) for of in FACTORS for turned in (False, True) if not (of == "tf32" and turned)]
"""Types, and whether their elements go along rows and columns of the product: tf32 so needs a swizzle that moves 32 bytes."""


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize(("of", "turned"), MAJORS)
def test_matrices_lie_as_canonical_layouts_say(of: str, turned: bool, swizzle: int) -> None:
    """Each element of both operands, by tables alone (`warpgroup/test_records.py`, `canonical`), without CuTe: in units of 16
    bytes, distances that no layout has by chance."""
    record = product(256, of, "i32" if of in ("i8", "u8") else "f32", by_m=turned, by_n=turned)
    (instr,) = elaborate(parse_text(record.text)).instrs
    how = Descriptor(swizzle, 48 * 16, 112 * 16)
    for operand in instr.operands[:2]:
        unit, size = along(operand), operand.dtype.bytes
        assert is_summed(instr, operand, unit) != turned
        rows, units = canonical(swizzle, 48, 112, summed=not turned)
        for index in every(*(range(0, e.constant, 5 if e.constant > 64 else 1) for e in operand.memory.shape)):
            across, column = index[1 - unit], index[unit]
            wanted = 16 * (placed(rows, across) + placed(units, column * size // 16)) + column * size % 16
            assert offset(instr, operand, how, [expr(n) for n in index]).constant == wanted, (operand.name, index)


PROGRAM = """
#include <cstdint>
#define __CUDACC__
#define TX_FN static inline
#define TX_ASM(...)
struct Dim { unsigned x, y, z; };
static const Dim threadIdx{}, blockDim{};
static uint32_t __cvta_generic_to_shared(const void *) { return 0x7000400; }
static uint32_t tx_shared_address(const void *, long long) { return 0; }
template <int SWIZZLE, int LEADING, int STRIDE> struct tx_matrix {};
#include "texpr_columns.h"

extern "C" __attribute__((visibility("default"))) uint64_t described(int how, int at) {
    auto array = (uint16_t const *)nullptr;
    return how == 0 ? tx_described_columns(array, at, tx_matrix<128, 16, 1024>())
         : how == 1 ? tx_described_columns(array, at, tx_matrix<64, 4096, 512>())
         : how == 2 ? tx_described_columns(array, at, tx_matrix<32, 16, 256>())
                    : tx_described_columns(array, at, tx_matrix<0, 1024, 128>());
}
"""


def by_fields(swizzle: int, leading: int, stride: int, start: int) -> int:
    """A descriptor by its fields: start, leading and stride in chunks of 16 bytes, a constant 1, and the layout."""
    layout = {0: 0, 128: 2, 64: 4, 32: 6}[swizzle]
    return start // 16 | leading // 16 << 16 | stride // 16 << 32 | 1 << 46 | layout << 61


def test_matrices_are_described() -> None:
    """Those of a block that has a number in its cluster, which is no part of it."""
    files = {"texpr_columns.h": headers()["texpr_columns.h"]}
    found = ctypes.CDLL(str(Toolchain(this_machine()).loadable("described", {"described.cpp": PROGRAM}, files)))
    found.described.restype, found.described.argtypes = ctypes.c_uint64, (ctypes.c_int, ctypes.c_int)
    for how, (swizzle, leading, stride) in enumerate(((128, 16, 1024), (64, 4096, 512), (32, 16, 256), (0, 1024, 128))):
        for at in (0, 32, 8 * 1023):
            assert found.described(how, at) == by_fields(swizzle, leading, stride, 0x400 + 2 * at)
