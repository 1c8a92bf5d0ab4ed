"""What an instruction keeps busy: a unit, a memory, the matrix unit. Names are those of the CUDA Binary Utilities, "Instruction
Set Reference"; what is not listed takes its slot of issue, and is told as unknown.

Which unit runs which: NVIDIA Nsight Compute documentation, "Pipelines".
"""

from __future__ import annotations

import re

from texpr.isa.levels import Space
from texpr.model.code.text import Instruction
from texpr.support.record import Record

_UNITS = {
    "fma": "FADD FMUL FFMA FFMA2 FADD2 FMUL2 FADD32I FMUL32I FFMA32I FSWZADD",
    "imad": "IMAD IMUL IDP IDP4A",
    "alu": "IADD IADD3 IADD32I VIADD VIADDMNMX LOP LOP3 LOP32I SHF SHL SHR LEA ISETP FSETP FSEL SEL FMNMX FMNMX3 IMNMX VIMNMX "
    "VIMNMX3 PRMT F2FP I2FP F2IP I2IP PLOP3 P2R R2P MOV MOV32I SGXT BMSK IABS ISCADD HSETP2 HMNMX2 VHMNMX VABSDIFF "
    "VABSDIFF4 PSETP FSET CSET LEPC",
    "half": "HADD2 HMUL2 HFMA2 HADD2_32 HFMA2_32",
    "fp64": "DADD DMUL DFMA DSETP DMNMX",
    "special": "MUFU I2F F2I F2F FRND POPC FLO BREV FCHK I2I",
    "lsu": "SHFL LDG STG LD ST LDS STS LDL STL LDSM STSM LDGSTS ATOM ATOMG ATOMS RED REDG MOVM "
    "LDTM STTM",
    "matrix": "HMMA IMMA DMMA BMMA QMMA OMMA HGMMA IGMMA QGMMA BGMMA UTCHMMA UTCIMMA UTCQMMA UTCOMMA",
    "copy": "UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED UTMAPF UTMACCTL UTMACMDFLUSH UBLKPF",
    "uniform": "UMOV UIADD3 UIMAD ULEA ULOP3 USHF UISETP USEL UPLOP3 UPRMT ULDC UFLO UPOPC UBREV UBMSK USGXT UP2UR UR2UP R2UR "
    "VOTEU S2UR UIMNMX UVIADD UVIMNMX UIADD UFSETP UIABS UCLEA UVOTE UF2FP UFADD UFMUL UFFMA REDUX UPSETP UMEMSETS",
    "control": "BRA BRX JMP JMX CALL RET EXIT BSSY BSYNC BREAK WARPSYNC YIELD NANOSLEEP NOP KILL BPT BMOV BRXU PREEXIT ACQBULK",
    "barrier": "BAR B2R DEPBAR LDGDEPBAR ARRIVES SYNCS MEMBAR FENCE ERRBAR CGAERRBAR UCGABAR_WAIT UCGABAR_ARV WARPGROUP "
    "WARPGROUPSET UTMACMDFLUSH ELECT CCTL CCTLL CCTLT ENDCOLLECTIVE "
    "UTCBAR UTCATOMSWS",
    "other": "S2R CS2R LDC VOTE MATCH USETMAXREG SETCTAID GETLMEMBASE QSPC NOP RPCMOV SETLMEMBASE",
}  # fmt: skip
UNIT = {name: unit for unit, names in _UNITS.items() for name in names.split()}
"""The unit that runs an instruction, by the name of its opcode."""

_SPACES = {
    Space.GLOBAL: "LDG STG LD ST ATOM ATOMG RED REDG LDGSTS",
    Space.SHARED: "LDS STS LDSM STSM ATOMS",
    Space.LOCAL: "LDL STL",
}
_SPACE = {name: space for space, names in _SPACES.items() for name in names.split()}
_STORES = frozenset(["STG", "ST", "STS", "STSM", "STL", "RED", "REDG"])
_BOTH = frozenset(["ATOM", "ATOMG", "ATOMS"])
_WIDTHS = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}
_WORD = 4

_SHAPE = re.compile(r"(\d+)x(\d+)x(\d+)")
_SHORT = {"884": (8, 8, 4), "1684": (16, 8, 4), "1688": (16, 8, 8), "16816": (16, 8, 16), "16832": (16, 8, 32),
          "16864": (16, 8, 64), "8816": (8, 8, 16), "8832": (8, 8, 32), "88128": (8, 8, 128), "168128": (16, 8, 128),
          "168256": (16, 8, 256)}  # fmt: skip
_GROUP = 4
"""Warps that run an instruction of a warp group together (PTX ISA, "wgmma")."""


class Access(Record):
    """What an instruction asks of memory: `width` bytes of each lane; `stores`: it is no load. `around`: past the first-level
    cache, to shared memory."""

    space: Space
    width: int
    stores: bool
    around: bool = False


class Product(Record):
    """What one warp's instruction has the matrix unit do. `group`: it is one of a warp group, which goes on by itself."""

    dtype: str
    multiply_adds: int
    group: bool


def unit(instruction: Instruction) -> str | None:
    """The unit that runs it; None for one that is not known."""
    return UNIT.get(instruction.name)


def access(instruction: Instruction) -> Access | None:
    """The access of memory that it is; None where it is none, or an engine's."""
    space = _SPACE.get(instruction.name)
    if space is None:
        return None
    name, said = instruction.name, instruction.modifiers
    width = next((_WIDTHS[each] for each in said if each in _WIDTHS), _WORD)
    if name in ("LDSM", "STSM"):
        width = _WORD * next((int(each) for each in said if each in ("1", "2", "4")), 1)
    return Access(space, width, name in _STORES or name in _BOTH, name == "LDGSTS" and "BYPASS" in said)


def product(instruction: Instruction) -> Product | None:
    """What it has the matrix unit do; None where it is no product, or of a shape that is not known."""
    if UNIT.get(instruction.name) != "matrix":
        return None
    shape = next((found for each in instruction.modifiers if (found := _shape(each)) is not None), None)
    if shape is None:
        return None
    group = instruction.name.endswith("GMMA")
    rows, columns, depth = shape
    return Product(_type(instruction), rows * columns * depth // (_GROUP if group else 1), group)


def _shape(word: str) -> tuple[int, int, int] | None:
    found = _SHAPE.fullmatch(word)
    return _SHORT.get(word) if found is None else (int(found[1]), int(found[2]), int(found[3]))


def _type(instruction: Instruction) -> str:
    first, said = instruction.name[0], instruction.modifiers
    if first == "H":
        return "tf32" if "TF32" in said else "bf16" if "BF16" in said else "f16"
    return {"I": "i8", "D": "f64", "Q": "f8"}.get(first, "unknown")
