"""Products of small matrices by the lanes of a warp, loads of their operands from rows of shared memory, stores of results, and
matrices that lanes turn.

Fragments are (lane, register) → (row, column), as the figures of the PTX ISA have them: four lanes have a row, eight such
groups are eight rows. Sums of floating-point numbers are in an order, and with a rounding, of the machine's own, but for those
of f64, which are rounded as IEEE 754 says.
"""

from collections.abc import Iterator

from texpr.isa.instruction import Instruction, Operand
from texpr.isa.levels import Level
from texpr.isa.rounding import Rounding

_C = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))"
_HALVES = "((4,8),(2,2,2)):((2@1,1@0),(1@1,8@0,8@1))", "((4,8),(2,2)):((2@0,1@1),(1@0,8@0))", _C
_HALVES_8 = "((4,8),(2,2)):((2@1,1@0),(1@1,8@0))", "((4,8),2):((2@0,1@1),1@0)", _C
_WORDS_8 = "((4,8),(2,2)):((1@1,1@0),(8@0,4@1))", "((4,8),2):((1@0,1@1),4@0)", _C
_BYTES = "((4,8),(4,2,2)):((4@1,1@0),(1@1,8@0,16@1))", "((4,8),(4,2)):((4@0,1@1),(1@0,16@0))", _C
_DOUBLES = "((4,8),1):((1@1,1@0),0)", "((4,8),1):((1@0,1@1),0)", "((4,8),2):((2@1,1@0),1@1)"
_DOUBLES_4 = "((4,8),2):((1@1,1@0),8@0)", "((4,8),1):((1@0,1@1),0)", _C
_DOUBLES_8 = "((4,8),(2,2)):((1@1,1@0),(8@0,4@1))", "((4,8),2):((1@0,1@1),4@0)", _C
_DOUBLES_16 = "((4,8),(2,4)):((1@1,1@0),(8@0,4@1))", "((4,8),4):((1@0,1@1),4@0)", _C

_SECTIONS = {
    (16, 8, 16): "9.7.14.5.8: fragments of m16n8k16",
    (16, 8, 8): "9.7.14.5.7: fragments of m16n8k8",
    (16, 8, 32): "9.7.14.5.10: fragments of m16n8k32",
    (16, 8, 64): "9.7.14.5.11: fragments of m16n8k64",
    (8, 8, 4): "9.7.14.5.2: fragments of m8n8k4 with .f64",
    (16, 8, 4): "9.7.14.5.6: fragments of m16n8k4 with .f64",
}

FOUND = (
    "Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ Computer Science 7:e330 (2021); "
    "Xie et al., MMA-Sim, arXiv 2511.10909 (2025); Khattak, Mikaitis, arXiv 2512.07004 (2025)"
)
"""Who measured what tensor cores round."""

_STEPS = {"f16": 8, "bf16": 8, "tf32": 4, "f8e4m3": 16, "f8e5m2": 16}
"""Products that one step adds up, on those targets from sm_80 on that add up the fewest: later ones add up twice as many, and
keep a bit more of each."""

_ALIGNED, _FEW = 24, 13
"""Bits that are kept of a term, and of sums of 8-bit floats, of which sm_89 and sm_90 keep fewer."""


def _rounding(of: str, into: str) -> Rounding | None:
    """None of integers and of f64."""
    if of not in _STEPS:
        return None
    if of.startswith("f8"):
        return Rounding(_STEPS[of], _FEW, _FEW, source=FOUND)
    nearest = into == "f16"
    return Rounding(_STEPS[of], _ALIGNED, 10 if nearest else 23, nearest, FOUND)


def _mma(
    shape: tuple[int, int, int], of: str, into: str, types: str, fragments: tuple[str, str, str], since: str = "sm_80"
) -> Instruction:
    """`types`: of d, a, b and c, as PTX calls them; `since`: the first target that has it. An operand in one register is in
    braces, too."""
    m, n, k = shape
    a, b, c = (
        Operand(name, dtype, size, inout, fragment)
        for name, dtype, size, inout, fragment in (
            ("a", of, (m, k), False, fragments[0]),
            ("b", of, (k, n), False, fragments[1]),
            ("c", into, (m, n), True, fragments[2]),
        )
    )
    one = "{{a}}" if shape == (8, 8, 4) else "{a}"
    other = "{{b}}" if (shape == (16, 8, 8) and of.endswith("f16")) or shape[2] == 4 else "{b}"
    left, right = (f"i32({each})" if into == "i32" else each for each in ("a[i, k]", "b[k, j]"))
    freed = " #ieee" if of == "f64" else ""
    verb = f"mma.sync.aligned.m{m}n{n}k{k}.row.col.{types}"
    return Instruction(
        f"mma_m{m}n{n}k{k}_{into}_{of}",
        f"c += a · b, of {m} × {k} and {k} × {n} elements",
        Level.WARP,
        (a, b, c),
        ((since, f"{verb} {{c}}, {one}, {other}, {{c}};"),),
        f"par {m} |i| {{ par {n} |j| {{ seq {k} |k| reduce(c){freed} {{ c[i, j] += {left} * {right} }} }} }}",
        effect="joins warp",
        source=f"PTX ISA 8.5, {_SECTIONS[shape]}",
        rounding=_rounding(of, into),
    )


_NIBBLES = {"i4": ("i8", "s4", "(i32({}) + 8) % 16 - 8"), "u4": ("u8", "u4", "i32({}) % 16")}
"""Types of 4 bits: the type of two of them in a byte, the lower bits first, PTX's name, and the value of the first one. The
other one is the byte divided by 16, rounded down."""


def _nibbles(of: str) -> Instruction:
    """Of elements of 4 bits, two in a byte: the fragments are those of bytes, half as many along the sum."""
    m, n, k = 16, 8, 64
    dtype, ptx, low = _NIBBLES[of]
    lows, highs = (tuple(way.format(each) for each in ("a[i, k]", "b[k, j]")) for way in (f"({low})", "(i32({}) / 16)"))
    operands = zip("abc", (dtype, dtype, "i32"), ((m, k // 2), (k // 2, n), (m, n)), _BYTES, strict=True)
    return Instruction(
        f"mma_m{m}n{n}k{k}_i32_{of}",
        f"c += a · b, of {m} × {k} and {k} × {n} elements of 4 bits, two in a byte, the lower bits first",
        Level.WARP,
        tuple(Operand(name, each, size, name == "c", fragment) for name, each, size, fragment in operands),
        (("sm_80", f"mma.sync.aligned.m{m}n{n}k{k}.row.col.s32.{ptx}.{ptx}.s32 {{c}}, {{a}}, {{b}}, {{c}};"),),
        f"par {m} |i| {{ par {n} |j| {{ seq {k // 2} |k| reduce(c) {{ "
        f"c[i, j] += {lows[0]} * {lows[1]} + {highs[0]} * {highs[1]} }} }} }}",
        effect="joins warp",
        source=f"PTX ISA 8.5, {_SECTIONS[m, n, k]}",
    )


def _turned(of: str) -> Instruction:
    """Each lane has two elements of a row before, and of the matrix that is turned, too."""
    held = "((4,8),2):((2@1,1@0),1@1)"
    return Instruction(
        f"movmatrix_{of}",
        "a matrix of 8 × 8, rows for columns: each lane gets two elements of a column of what lanes have of rows",
        Level.WARP,
        (Operand("a", of, (8, 8), fragment=held), Operand("d", of, (8, 8), True, held)),
        (("sm_80", "movmatrix.sync.aligned.m8n8.trans.b16 {d}, {a};"),),
        "par 8 |i| { par 8 |j| { d[i, j] = a[j, i] } }",
        effect="joins warp",
        source='PTX ISA 8.5, 9.7.14.5.17 "movmatrix"',
    )


_PIECES = {False: "2@1,1@0", True: "2@0,1@1"}
"""What four lanes of each of eight groups hold of a matrix of 16-bit elements: of a row each, or *turned* of a column each."""


def _moved(
    verb: str, of: str, count: int, shape: tuple[int, int], named: str, title: str, fragments: tuple[str, str], turned: bool
) -> Instruction:
    """`count` matrices of 8 rows of 16 bytes: lanes 8 · n to 8 · n + 7 say where the rows of the n-th are; of fewer than four
    the others say the same again. `verb`: "ldmatrix" brings them to registers, "stmatrix" stores what is there."""
    loads = verb == "ldmatrix"
    rows, columns = shape
    addressed = Operand("p", of, shape, not loads, f"shared {fragments[0]}")
    held = Operand("d", of, shape, loads, fragments[1])
    text, all = f"{verb}.sync.aligned.m8n8.x{count}{'.trans' if turned else ''}.shared.b16", "{{d}}" if count == 1 else "{d}"
    return Instruction(
        f"{verb}_x{count}{'_trans' if turned else ''}{named}_{of}",
        title,
        Level.WARP,
        (addressed, held) if loads else (held, addressed),
        (("sm_80", f"{text} {all}, [{{p}}];") if loads else ("sm_90", f"{text} [{{p}}], {all};"),),
        f"par {rows} |i| {{ par {columns} |j| {{ {'d[i, j] = p[i, j]' if loads else 'p[i, j] = d[i, j]'} }} }}",
        effect="joins warp",
        source=f'PTX ISA 8.5, "{verb}"',
    )


_COUNTS = {4: "four matrices", 2: "two matrices", 1: "a matrix"}


def _order(count: int, width: int, along: bool) -> tuple[str, ...]:
    """How far each further matrix, then each further two, are in the whole: down its rows first, or `along` them."""
    far = ("8@0", f"{width}@1")
    return tuple(reversed(far) if along else far)[: count.bit_length() - 1]


def _addresses(width: int, order: tuple[str, ...]) -> str:
    """Lanes to rows of 16 bytes, `width` elements each; lanes that no matrix is left for repeat."""
    left = 4 >> len(order)
    sizes, steps = ("8", *("2" for _ in order)), ("1@0", *order)
    if left > 1:
        sizes, steps = (*sizes, str(left)), (*steps, "0")
    return f"(({','.join(sizes)}),{width}):(({','.join(steps)}),1@1)"


def _registers(lanes: str, per: int, step: str, order: tuple[str, ...]) -> str:
    """Lanes and registers to elements: `per` in a register of each matrix, `step` apart."""
    sizes = [str(per)] * (per > 1) + ["2" for _ in order]
    steps = [step] * (per > 1) + [*order]
    size, at = (",".join(each) if len(each) == 1 else f"({','.join(each)})" for each in (sizes or ["1"], steps or ["0"]))
    return f"((4,8),{size}):(({lanes}),{at})"


def _moves(verb: str, of: str, width: int, lanes: str, per: int, *, turned: bool = False) -> Iterator[Instruction]:
    """All counts and orders, of elements of which a row has `width`, a register `per`."""
    step = "1@0" if turned else "1@1"
    what = "from rows that lanes say the addresses of" if verb == "ldmatrix" else "to rows that lanes say the addresses of"
    by = "by columns" if turned else "by rows"
    for count, many in _COUNTS.items():
        for along in (False, True) if count > 1 else (False,):
            order = _order(count, width, along)
            shape = (8 * (2 if "8@0" in order else 1), width * (2 if len(order) > ("8@0" in order) else 1))
            first = "" if not order else ", along first" if along else ", down first"
            title = f"{many} of 8 rows of {width} elements{first}, {what}, {by}"
            fragments = _addresses(width, order), _registers(lanes, per, step, order)
            yield _moved(verb, of, count, shape, "_along" if along else "", title, fragments, turned)


def _halves(verb: str, of: str) -> Iterator[Instruction]:
    """Of elements of 16 bits, by rows and by columns."""
    for turned, lanes in _PIECES.items():
        yield from _moves(verb, of, 8, lanes, 2, turned=turned)


INSTRUCTIONS = (
    _mma((16, 8, 16), "f16", "f32", "f32.f16.f16.f32", _HALVES),
    _mma((16, 8, 16), "bf16", "f32", "f32.bf16.bf16.f32", _HALVES),
    _mma((16, 8, 16), "f16", "f16", "f16.f16.f16.f16", _HALVES),
    _mma((16, 8, 8), "f16", "f32", "f32.f16.f16.f32", _HALVES_8),
    _mma((16, 8, 8), "bf16", "f32", "f32.bf16.bf16.f32", _HALVES_8),
    _mma((16, 8, 8), "tf32", "f32", "f32.tf32.tf32.f32", _WORDS_8),
    _mma((16, 8, 32), "i8", "i32", "s32.s8.s8.s32", _BYTES),
    _mma((16, 8, 32), "u8", "i32", "s32.u8.u8.s32", _BYTES),
    _mma((8, 8, 4), "f64", "f64", "f64.f64.f64.f64", _DOUBLES),
    _mma((16, 8, 4), "f64", "f64", "f64.f64.f64.f64", _DOUBLES_4, "sm_90"),
    _mma((16, 8, 8), "f64", "f64", "f64.f64.f64.f64", _DOUBLES_8, "sm_90"),
    _mma((16, 8, 16), "f64", "f64", "f64.f64.f64.f64", _DOUBLES_16, "sm_90"),
    _mma((16, 8, 32), "f8e4m3", "f32", "f32.e4m3.e4m3.f32", _BYTES, "sm_89"),
    _mma((16, 8, 32), "f8e5m2", "f32", "f32.e5m2.e5m2.f32", _BYTES, "sm_89"),
    *map(_nibbles, _NIBBLES),
    *map(_turned, ("f16", "bf16")),
    *_halves("ldmatrix", "f16"),
    *_halves("ldmatrix", "bf16"),
    *_moves("ldmatrix", "tf32", 4, "1@1,1@0", 1),
    *(each for of in ("i8", "u8", "f8e4m3", "f8e5m2") for each in _moves("ldmatrix", of, 16, "4@1,1@0", 4)),
    *_halves("stmatrix", "f16"),
    *_halves("stmatrix", "bf16"),
)
