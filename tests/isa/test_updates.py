"""Updates of memory as one step: what ptxas makes of the records' templates, and which there are of each type."""

from __future__ import annotations

import re

from tests.machine_code import built, code_of

from texpr.isa.instructions.atomic import ORDERS, SCOPES
from texpr.isa.instructions.tensor import COMBINED, OWN
from texpr.isa.registry import INSTRUCTIONS

SEVERAL = [name for name in INSTRUCTIONS if re.match(r"red_add_v\d", name)]
ASYNC = [name for name in INSTRUCTIONS if name.startswith("red_async_")]


def test_which_there_are() -> None:
    """PTX ISA 8.5, "red": .vec_32_bit; "red.async": its operations and types."""
    assert {*SEVERAL} == {f"red_add_v{n}_f32_{order}_{scope}" for n in (2, 4) for order in ORDERS for scope in SCOPES.values()}
    wanted = {"inc u32", "dec u32", "min u32", "min s32", "max u32", "max s32", "add u32", "add s32", "add u64"}
    wanted |= {"and b32", "or b32", "xor b32"}
    assert {f"{op} {dtype}" for op, dtypes in COMBINED.items() for dtype in dtypes} == wanted
    assert {name.removeprefix("red_async_").replace("_", " ") for name in ASYNC} == wanted


def statement(name: str) -> str:
    """The template as inline assembler of values that a kernel has."""
    record = INSTRUCTIONS[name]
    x = record.operands[0]
    wide, constraint = x.dtype.endswith("64"), "f" if x.dtype == "f32" else "l" if x.dtype.endswith("64") else "r"
    count = x.shape[0] if x.shape else 1
    assert OWN.get("b32") == "u32" and record.asm[0][0] == "sm_90"
    text = re.sub(r"\{x(\d)\}", lambda found: f"%{2 + int(found[1])}", record.asm[0][1])
    text = text.replace("{x}", "%2").replace("{y}", "%0").replace("{b}", "%1")
    at = '"l"(__cvta_generic_to_global(y))' if name in SEVERAL else '"r"((unsigned)__cvta_generic_to_shared(s))'
    value = "w" if wide else "f" if constraint == "f" else "v"
    values = ", ".join([f'"{constraint}"({value})'] * count)
    return f'    asm volatile("{text}" ::{at}, "r"((unsigned)__cvta_generic_to_shared(b)), {values} : "memory");'


def test_ptxas_takes_every_template() -> None:
    lines = "\n".join(map(statement, (*SEVERAL, *ASYNC)))
    head = 'extern "C" __global__ void k(float *y, float f, unsigned v, unsigned long long w) {'
    code = code_of(built(f"{head}\n    __shared__ __align__(16) unsigned long long s[2], b[1];\n{lines}\n}}\n", "sm_90"))
    found = re.findall(r"REDG\.E\.ADD\.F32x(\d)\S*\.(GPU|SM|CTA)|REDAS\S*", code)
    assert len(re.findall(r"\bREDG\.E\.ADD\.F32x4", code)) == len(re.findall(r"\bREDG\.E\.ADD\.F32x2", code)) == 6, found
    assert len(re.findall(r"\bREDAS\.", code)) == len(ASYNC)
