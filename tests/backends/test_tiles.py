"""Copies of tiles as CUDA: goldens, taken by nvcc as the instructions they are, refused where there are none."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from texpr.backends.cuda import headers, print_kernels
from texpr.backends.cuda.tensors import ELEMENTS
from texpr.ir.kernel.parse import parse_plan
from texpr.isa.registry import resolve
from texpr.support.diagnostic import CompilerBug, Limitation, TexprError
from texpr.support.record import replace
from texpr.tma.elements import ELEMENTS as KNOWN
from texpr.toolchain import compile_cuda, find_nvcc, this_machine
from texpr.toolchain.cuda import disassemble

from .tiles import LARGE, LOAD, RING, STORE, TILED

GOLDEN = Path(__file__).parent / "golden"
TARGETS = ("sm_90a", "sm_100a")


@pytest.mark.parametrize(("name", "text"), [("load", LOAD), ("store", STORE), ("large", LARGE)])
def test_golden(name: str, text: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"{name}.cu", print_kernels(parse_plan(text)))


def test_elements_have_the_numbers_of_the_driver() -> None:
    """`CUtensorMapDataType` lists them in the order in which `texpr.tma` does."""
    assert list(ELEMENTS.items()) == [(name, number) for number, name in enumerate(KNOWN)][: len(ELEMENTS)]


def ranked() -> str:
    """Copies of every rank, both ways, with every reduction."""
    texts: list[str] = []
    for rank in range(1, 6):
        shape = ", ".join(["4"] * (rank - 1) + ["16"])
        strides = ", ".join(str(64 * 4**at) for at in range(rank - 1))
        sizes, box, steps = (
            ", ".join(["16", *["4"] * (rank - 1)]),
            ", ".join(["16", *["2"] * (rank - 1)]),
            ", ".join(["1"] * rank),
        )
        at, buffer = ", ".join(["0"] * rank), f"z: i32[{shape}] align 16 role inout"
        reduced = "".join(
            f"        tensor reduce {op} zm[{at}] = tile[0]\n" for op in ("add", "min", "max", "and", "or", "xor")
        )
        texts.append(f"""\
plan rank{rank}
    param {buffer}
    result z
{{
    launch rank{rank}_0
}}

kernel rank{rank}_0
    writes z
    axis block.x t < 32
    array shared tile: i32[{16 * 2 ** (rank - 1)}] at 128
    array shared full: u64[1] barriers
    map zm of {buffer} sizes [{sizes}] strides [{strides}] box [{box}] steps [{steps}]
{{
    if (i32(t) == 0:i32) {{
        mbarrier init full[0] count 1
        fence init
        mbarrier expect full[0] bytes {64 * 2 ** (rank - 1)}
        tensor load tile[0] = zm[{at}] arrives full[0]
        mbarrier wait full[0] parity 0
        tensor store zm[{at}] = tile[0]
{reduced}        commit_bulk
        wait_bulk 0
    }}
}}
""")
    return "\n".join(print_kernels(parse_plan(text), resolve("sm_90a")) for text in texts)


def compiled(text: str, target: str, tmp_path: Path) -> tuple[dict[str, Counter[str]], int]:
    """The engine's instructions of each kernel, as the assembler names them, and how many bytes are spilled."""
    machine = replace(this_machine(), cache=tmp_path)
    try:
        nvcc = find_nvcc(machine)
    except TexprError as reason:
        pytest.skip(str(reason))
    include, source = '#include "texpr_device.h"\n', 'TX_SOURCE("<plan>")\n'
    binary = compile_cuda(machine, nvcc, include + text.replace(include, "").replace(source, ""), headers(), target)
    parts = {part.split("(")[0].strip(): part for part in binary.ptx.decode().split(".entry ")[1:]}
    found = {name: Counter(re.findall(WORDS, part)) for name, part in parts.items()}
    return found, sum(kernel.spill_stores + kernel.spill_loads for kernel in binary.kernels)


WORDS = r"(?:cp\.(?:reduce\.)?async\.bulk[.a-z_0-9]*|mbarrier\.[a-z_0-9]+|fence\.[a-z_]+|prefetch\.tensormap)"


@pytest.mark.parametrize("target", TARGETS)
def test_nvcc_takes_it_all(target: str, tmp_path: Path) -> None:
    cases = [case for case in TILED.values() if target in case.targets]
    text = "".join(print_kernels(case.plan, resolve(target)) for case in cases)
    found, spilled = compiled(text, target, tmp_path)
    assert {case.kernel.name for case in cases} == set(found) and spilled == 0
    load = found["load_0"]
    assert load["cp.async.bulk.tensor.2d.shared"] == load["mbarrier.init"] == load["prefetch.tensormap"] == 1
    assert load["mbarrier.arrive"] == load["mbarrier.try_wait"] == load["fence.mbarrier_init"] == 1
    flushed = {"cp.async.bulk.commit_group": 1, "cp.async.bulk.wait_group.read": 1, "fence.proxy": 1}
    assert found["store_0"] == {"cp.async.bulk.tensor.2d.global.shared": 1, **flushed}
    assert found["reduce_0"]["cp.reduce.async.bulk.tensor.1d.global.shared"] == 1
    if target == "sm_100a":
        rows = found["rows_0"]
        assert rows["cp.async.bulk.tensor.2d.shared"] == rows["cp.async.bulk.tensor.2d.global.shared"] == 1
    assert found["bulk_0"]["cp.async.bulk.shared"] == found["bulk_0"]["cp.async.bulk.global.shared"] == 1


@pytest.mark.parametrize("target", TARGETS)
def test_every_rank_and_reduction_is_taken(target: str, tmp_path: Path) -> None:
    found, spilled = compiled(ranked(), target, tmp_path)
    for rank in range(1, 6):
        words = found[f"rank{rank}_0"]
        assert words[f"cp.async.bulk.tensor.{rank}d.shared"] == words[f"cp.async.bulk.tensor.{rank}d.global.shared"] == 1
        assert words[f"cp.reduce.async.bulk.tensor.{rank}d.global.shared"] == 6
    assert spilled == 0


@pytest.mark.parametrize("target", TARGETS)
def test_machine_code_is_the_engine_s(target: str, tmp_path: Path) -> None:
    """One UTMALDG a load, UTMASTG a store, UTMAREDG a reduction: none is taken apart, and none by threads."""
    machine = replace(this_machine(), cache=tmp_path)
    try:
        nvcc = find_nvcc(machine)
        binary = compile_cuda(machine, nvcc, ranked().replace('TX_SOURCE("<plan>")\n', ""), headers(), target)
        text = disassemble(machine, nvcc, binary)
    except TexprError as reason:
        pytest.skip(str(reason))
    words = Counter(re.findall(r"\b(UTMALDG|UTMASTG|UTMAREDG|UTMACMDFLUSH)\b", text))
    assert (words["UTMALDG"], words["UTMASTG"], words["UTMAREDG"], words["UTMACMDFLUSH"]) == (5, 5, 30, 5)
    assert len(re.findall(r"\bSYNCS\.EXCH", text)) == 5 and "LDG" not in re.findall(r"\b(LDG|STG)\b", text)


@pytest.mark.parametrize("target", ["sm_80", "sm_89"])
def test_a_device_without_the_engine_is_refused(target: str) -> None:
    for name in ("load", "bulk"):
        with pytest.raises(Limitation) as found:
            print_kernels(TILED[name].plan, resolve(target))
        (told,) = found.value.diagnostics
        assert (
            told.code == "E0555"
            and told.message == f"kernel {name}_0 copies tiles of tensors, and {target} has no engine that does"
        )


@pytest.mark.parametrize("target", ["sm_90a", "sm_120a"])
def test_rows_by_number_are_refused_where_the_engine_knows_none(target: str) -> None:
    with pytest.raises(Limitation) as found:
        print_kernels(TILED["rows"].plan, resolve(target))
    (told,) = found.value.diagnostics
    wanted = f"kernel rows_0 copies rows by their numbers, and the engine of {target} does not"
    assert told.code == "E0555" and told.message == wanted


def test_shared_memory_is_as_much_as_the_target_has() -> None:
    """99 KiB of an sm_89, 227 of an sm_90; a block of its own where a kernel may not declare so much."""
    text = parse_plan(RING.replace("stage: f32[3, 256]", "stage: f32[110, 256]"))
    assert "TX_SHARED_BLOCK(112696);" in print_kernels(text, resolve("sm_90a"))
    with pytest.raises(Limitation) as found:
        print_kernels(text, resolve("sm_89"))
    assert found.value.diagnostics[0].code == "E0553" and "sm_89 allows 101376" in found.value.diagnostics[0].message
    assert "TX_SHARED_BLOCK" not in print_kernels(parse_plan(RING))


def test_a_map_that_is_not_there_is_a_bug() -> None:
    with pytest.raises(CompilerBug, match="has no map ym"):
        print_kernels(parse_plan(LOAD.replace("= xm[", "= ym[")))
