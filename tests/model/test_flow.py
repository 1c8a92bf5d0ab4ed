"""Loops of control flow against what they are by definition, in random graphs; and the text of a disassembler."""

from __future__ import annotations

from random import Random

import pytest

from texpr.isa.levels import Space
from texpr.model.code.classes import Access, access, product, unit
from texpr.model.code.flow import flow
from texpr.model.code.text import Code, Control, Instruction, read_code

TEXT = """
	.section	.text.k,"ax",@progbits
k:
.text.k:
	//## File "k.te", line 3
        /*0000*/                   S2R R0, SR_TID.X ;                     /* 0x0000000000047919 */
                                                                          /* 0x000e220000002100 */
.L_x_1:
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64+0x10] ;   /* 0x0000100402048981 */
                                                                          /* 0x000ea2000c1e9d00 */
	//## File "k.te", line 4
        /*0020*/                   ISETP.GE.AND P0, PT, R0.reuse, 0x20, PT ;        /* 0x000000200000780c */
                                                                          /* 0x001fda0003f06270 */
        /*0030*/               @P0 BRA `(.L_x_1) ;                        /* 0x0000000800a81947 */
                                                                          /* 0x000fea0003800000 */
        /*0040*/                   EXIT ;                                 /* 0x000000000000794d */
                                                                          /* 0x000fea0003800000 */
"""


def test_a_text_is_read() -> None:
    (code,) = read_code(TEXT)
    assert code.kernel == "k"
    special, load, test, jump, end = code.instructions
    assert special == Instruction(0, "S2R", ("R0", "SR_TID.X"), "", None, ("k.te", 3), Control(1, 0, None, 0))
    assert (load.guard, load.operands, load.address) == ("!P0", ("R4", "desc[UR4][R2.64+0x10]"), 0x10)
    assert load.control == Control(1, 2, None, 0) and access(load) == Access(Space.GLOBAL, 16, stores=False)
    assert test.operands == ("P0", "PT", "R0.reuse", "0x20", "PT") and test.line == ("k.te", 4)
    assert test.control == Control(13, None, None, 1)
    assert (jump.target, jump.guard, end.operands) == (0x10, "P0", ())
    assert [unit(one) for one in code.instructions] == ["other", "lsu", "alu", "control", "control"]


def test_without_encoding_nothing_is_said_of_waits() -> None:
    (code,) = read_code("\n".join(line.partition("/* 0x")[0] for line in TEXT.splitlines()))
    assert [one.control for one in code.instructions] == [None] * 5


@pytest.mark.parametrize(
    ("opcode", "dtype", "products", "group"),
    [
        ("HMMA.16816.F32.BF16", "bf16", 16 * 8 * 16, False),
        ("HMMA.1688.F32.TF32", "tf32", 16 * 8 * 8, False),
        ("IMMA.16832.S8.S8", "i8", 16 * 8 * 32, False),
        ("DMMA.884", "f64", 8 * 8 * 4, False),
        ("HGMMA.64x256x16.F32.BF16", "bf16", 64 * 256 * 16 // 4, True),
        ("QGMMA.64x128x32.F32.E4M3.E4M3", "f8", 64 * 128 * 32 // 4, True),
    ],
)
def test_products(opcode: str, dtype: str, products: int, group: bool) -> None:
    found = product(Instruction(0, opcode, ()))
    assert found is not None and (found.dtype, found.multiply_adds, found.group) == (dtype, products, group)


def test_what_is_not_known_is_told_so() -> None:
    assert unit(Instruction(0, "NEWOP.X", ())) is None
    assert product(Instruction(0, "HGMMA.64x8", ())) is None


@pytest.mark.parametrize(
    ("opcode", "space", "width", "stores"),
    [
        ("LDS.U16", Space.SHARED, 2, False),
        ("LDSM.16.M88.4", Space.SHARED, 16, False),
        ("STG.E.64", Space.GLOBAL, 8, True),
        ("STL.128", Space.LOCAL, 16, True),
        ("LDGSTS.E.BYPASS.128", Space.GLOBAL, 16, False),
        ("ATOMG.E.ADD.STRONG.GPU", Space.GLOBAL, 4, True),
    ],
)
def test_accesses(opcode: str, space: Space, width: int, stores: bool) -> None:
    found = access(Instruction(0, opcode, ()))
    assert found is not None and (found.space, found.width, found.stores) == (space, width, stores)


def random_code(random: Random, size: int) -> Code:
    """Jumps hither and thither."""
    made: list[Instruction] = []
    for at in range(size):
        target = random.randrange(size) * 16
        made.append(
            random.choice(
                [
                    Instruction(at * 16, "FADD", ("R0", "R1", "R2")),
                    Instruction(at * 16, "BRA", ("`(x)",), "P0", target),
                    Instruction(at * 16, "BRA", ("`(x)",), "", target),
                    Instruction(at * 16, "EXIT", (), random.choice(("", "P1"))),
                ]
            )
        )
    return Code("k", tuple(made))


def reached(follows: tuple[tuple[int, ...], ...], first: int, without: int | None) -> set[int]:
    """Where control comes to from `first`, not through one place."""
    found: set[int] = set()
    waiting = [first] if first != without else []
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting += [there for there in follows[at] if there != without]
    return found


@pytest.mark.parametrize("seed", range(60))
def test_loops_are_what_their_definition_says(seed: int) -> None:
    """One place dominates another if that is not reached without it; of a body the jump back is reached past the header."""
    random = Random(seed)
    made = flow(random_code(random, random.randrange(3, 24)))
    live = reached(made.follows, 0, None)
    expected: dict[int, set[int]] = {}
    for at in live:
        for header in made.follows[at]:
            if at not in reached(made.follows, 0, header) or at == header:
                body = {x for x in live if x == header or at in reached(made.follows, x, header)}
                expected.setdefault(header, set()).update(body | {header})
    assert {loop.header: set(loop.body) for loop in made.loops} == expected


@pytest.mark.parametrize("seed", range(20))
def test_the_shortest_way_to_the_end(seed: int) -> None:
    random = Random(seed)
    made = flow(random_code(random, 16))
    for at, there in enumerate(made.follows):
        ways = [left for each in there if (left := made.left[each]) is not None]
        assert made.left[at] == (1 if not there else 1 + min(ways) if ways else None)
