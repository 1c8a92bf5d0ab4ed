"""Records of products with scales: descriptors bit by bit, and where scales lie, against the layouts of CUTLASS.

PTX ISA 9.0, 9.7.16.4.2 "Instruction descriptor", .kind::mxf8f6f4, and CUTLASS's InstrDescriptorBlockScaled
(include/cute/arch/mma_sm100_desc.hpp); 9.7.16.10.7 "Block Scaling", and Sm1xxBlockScaledBasicChunk
(include/cutlass/detail/sm100_blockscaled_layout.hpp): ((32,4),4) : ((16,4),1), in bytes.
"""

from __future__ import annotations

import re
from itertools import product

import pytest

from texpr.affine.expr import expr
from texpr.ir.instr.descriptor import Descriptor, offset
from texpr.isa.instructions.tcgen05_scaled import descriptor
from texpr.isa.registry import INSTRUCTIONS, resolve
from texpr.schedule.joint.records import called

FIELDS = {
    "sparse id": (0, 2), "sparse": (2, 1), "scale of b": (4, 2), "a": (7, 3), "b": (10, 3), "negate a": (13, 1),
    "negate b": (14, 1), "a across": (15, 1), "b across": (16, 1), "n": (17, 6), "ue8m0": (23, 1), "m": (24, 5),
    "scale of a": (29, 2), "k": (31, 1),
}  # fmt: skip
"""By name: the first bit, and how many."""

FORMATS = {"f8e4m3": 0, "f8e5m2": 1}
PRODUCTS = [name for name in INSTRUCTIONS if "_mx_" in name]
COPIES = [name for name in INSTRUCTIONS if name.startswith("tcgen05_cp_")]


@pytest.mark.parametrize("name", PRODUCTS)
def test_the_template_has_the_descriptor_of_its_shape(name: str) -> None:
    record = INSTRUCTIONS[name]
    a, _, b, _, d = record.operands
    rows, columns = d.shape
    wanted = {"a": FORMATS[a.dtype], "b": FORMATS[b.dtype], "n": columns // 8, "m": rows // 16, "ue8m0": 1}
    bits = sum(value << FIELDS[field][0] for field, value in wanted.items())
    assert bits == descriptor(rows, columns, a.dtype)
    for target, vector in (("sm_100a", "scale_vec::1X"), ("sm_103a", "block32")):
        template = record.template(resolve(target))
        assert (
            template is not None
            and f"kind::mxf8f6f4.block_scale.{vector} [{{d}}], {{a}}, {{b}}, id, [at], [bt], 1;" in template
        )
        assert re.findall(r"0x[0-9a-f]+; tcgen05", template) == [f"{bits:#x}; tcgen05"]
    assert INSTRUCTIONS[name].template(resolve("sm_90a")) is None


def test_bytes_of_scales_go_to_their_fields() -> None:
    """What the template computes of addresses whose two highest bits are the bytes, step by step."""
    for byte_a, byte_b in product(range(4), range(4)):
        sa, sb = byte_a << 30 | 0x184, byte_b << 30 | 0x188
        made = (sa & 0xC0000000) >> 1 | (sb >> 30) << 4
        assert made == byte_a << FIELDS["scale of a"][0] | byte_b << FIELDS["scale of b"][0]


@pytest.mark.parametrize("name", COPIES)
def test_scales_lie_as_cutlass_has_them(name: str) -> None:
    """In shared memory 512 bytes for 128 rows and 4 blocks; in tensor memory a lane of a quarter has 4 bytes of a column."""
    instr = called(name)
    assert instr is not None and instr.is_copy and instr.is_alone and instr.copied == 4
    s, t = instr.operands
    rows = int(name.rsplit("x", 1)[1])
    columns = t.fragment.registers // 4
    for row, block in product(range(0, rows, 7), range(4)):
        at = row // 128 * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block
        index = (expr(at // 16), expr(at % 16))
        assert offset(instr, s, Descriptor(0, 16, 128), index).constant == at
        slot = t.fragment.register(index).constant
        assert (slot % columns, slot // columns) == (row // 32, block)  # the column, and the byte of it
        assert [t.fragment.lane(index, quarter).constant for quarter in range(4)] == [row % 32 + 32 * q for q in range(4)]


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_read_what_copies_brought(name: str) -> None:
    instr = called(name)
    assert instr is not None and instr.copied == 1 and not instr.is_copy
    for scales in (operand for operand in instr.operands if operand.dtype.name == "f8e8m0"):
        (rows,) = (e.constant for e in scales.memory.shape)
        for row in range(rows):
            assert scales.fragment.lane((expr(row),)).constant == row % 32
            assert scales.fragment.register((expr(row),)).constant == row // 32
