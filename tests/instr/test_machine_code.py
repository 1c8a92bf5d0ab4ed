"""What nvcc makes of templates: the machine code has the instruction, its registers are registers."""

from __future__ import annotations

import pytest
from tests.instr.test_fragments import shipped_use
from tests.instr.texts import CASES
from tests.machine_code import built, code_of, spills_nothing

from texpr.driver import lower
from texpr.frontend import elaborate, parse, parse_text
from texpr.isa.registry import library
from texpr.support.diagnostic import TexprError
from texpr.toolchain.cuda import CudaBinary

MADE = [
    ("registers", "sm_80", ("HMMA.16816.F32.BF16",)),
    ("registers", "sm_90a", ("HMMA.16816.F32.BF16",)),
    ("ldmatrix", "sm_80", ("LDSM.16.M88.4", "HMMA.16816.F32.BF16")),
    ("m16n8k16 f16 into f16", "sm_80", ("HMMA.16816.F16",)),
    ("m16n8k8 bf16", "sm_80", ("HMMA.1688.F32.BF16",)),
    ("m16n8k8 tf32", "sm_80", ("HMMA.1688.F32.TF32",)),
    ("m16n8k32 i8", "sm_80", ("IMMA.16832.S8.S8",)),
    ("m16n8k16 u8", "sm_90a", ("IMMA.16816.U8.U8",)),
    ("m8n8k4 f64", "sm_80", ("DMMA.884",)),
    ("met", "sm_90a", ("SHFL.DOWN",)),
    ("stmatrix", "sm_90", ("STSM.16.M88.4", "HMMA.16816.F32.BF16")),
    ("few matrices", "sm_90a", ("STSM.16.MT88.2", "LDSM.16.M88")),
]


def binary(name: str, target: str) -> CudaBinary:
    """A case compiled by nvcc."""
    return built(lower(parse(CASES[name].text, "case.te")[CASES[name].name], target, schedule=None).source, target)


@pytest.mark.parametrize(("name", "target", "words"), MADE, ids=lambda each: each if isinstance(each, str) else "")
def test_machine_code_has_the_instruction(name: str, target: str, words: tuple[str, ...]) -> None:
    code = code_of(made := binary(name, target))
    assert spills_nothing(made)
    assert all(word in code for word in words), [line.strip() for line in code.splitlines() if "MMA" in line or "LDSM" in line]


SHIPPED = [
    ("mma_m16n8k4_f64_f64", "sm_90a", "DMMA.16x8x4"),
    ("mma_m16n8k8_f64_f64", "sm_90a", "DMMA.16x8x8"),
    ("mma_m16n8k16_f64_f64", "sm_90a", "DMMA.16x8x16"),
    ("mma_m16n8k32_f32_f8e4m3", "sm_89", "QMMA.16832.F32.E4M3.E4M3"),
    ("mma_m16n8k32_f32_f8e5m2", "sm_120a", "QMMA.16832.F32.E5M2.E5M2"),
    ("mma_m16n8k16_f32_bf16", "sm_120a", "HMMA.16816.F32.BF16"),
]


@pytest.mark.parametrize(("name", "target", "word"), SHIPPED, ids=lambda each: str(each))
def test_shipped_instructions_are_there(name: str, target: str, word: str) -> None:
    program = elaborate(parse_text(shipped_use(name)), library=parse_text(library()))
    made = built(lower(program["use"], target, schedule=None).source, target)
    assert spills_nothing(made) and word in code_of(made)


def test_assembler_that_nvcc_does_not_know_is_refused() -> None:
    """What is in a template is the text's own word: what reads it is nvcc."""
    with pytest.raises(TexprError) as caught:
        binary("turned", "sm_80")
    (found,) = caught.value.diagnostics
    assert found.code == "E0612" and "refuses the assembler of an `instr`" in found.message
    assert "turn" in found.notes[0].text and found.help is not None
