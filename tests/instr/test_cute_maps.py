"""Tensor maps against those that CuTe DSL encodes: type, sizes, strides, boxes, steps, swizzle, interleave and fill, each.

Where a field is in the 128 bytes of a map is what `tensormap.replace` says, whose machine code sets one each (`FIELDS`; PTX
ISA, "tensormap.replace"). Ours are what a launcher gives to the driver (CUDA driver API, `cuTensorMapEncodeTiled`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.instr.test_cute import COPIED, SAID, SPANS, modes
from tests.machine_code import built, code_of

from texpr.driver import lower, parse
from texpr.ir import kernel as k
from texpr.ir.operation.maps import TensorMap
from texpr.ir.operation.tensor_map import element_of
from texpr.support.record import replace

FIELDS: dict[str, tuple[int, int]] = {
    "rank": (2, 0x70), "type": (2, 0x780), "interleave": (2, 0x1800), "swizzle": (2, 0x6000), "fill": (2, 0x8000),
    "stride 1 high": (7, 0xF), "stride 2 high": (7, 0xF0), "stride 3 high": (7, 0xF00), "stride 4 high": (7, 0xF000),
    **{f"stride {at}": (2 + at, 0xFFFFFFFF) for at in range(1, 5)},
    **{f"size {at}": (8 + at, 0xFFFFFFFF) for at in range(5)},
    **{f"step {at}": (13, 7 << 3 * at) for at in range(5)},
    "box 0": (13, 0xFF000000), **{f"box {at}": (14, 0xFF << 8 * (at - 1)) for at in range(1, 5)},
}  # fmt: skip
"""By name: the word of 32 bits and the bits in it. Of sizes, boxes, steps and the rank there is one less; strides are in units
of 16 bytes."""

TYPES = ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float32_ftz", "float64", "bfloat16")
"""The types in the order of PTX, which is not that of the driver."""


def read(words: str) -> dict[str, int]:
    """The fields of a map."""
    every = [int(word, 16) for word in words.split()]
    return {name: (every[at] & mask) // (mask & -mask) for name, (at, mask) in FIELDS.items()}


def ours(map: TensorMap) -> dict[str, int]:
    """The fields that the driver gets for one of ours."""
    found = dict.fromkeys(FIELDS, 0) | {"rank": map.rank - 1, "type": TYPES.index(element_of(map).name)}
    found |= {"interleave": map.interleave // 16, "fill": int(map.fill == "nan")}
    found["swizzle"] = {0: 0, 32: 1, 64: 2, 128: 3}[map.swizzle]
    for at, (size, box, step) in enumerate(zip(map.sizes, map.box, map.steps, strict=True)):
        found |= {f"size {at}": size.constant - 1, f"box {at}": box - 1, f"step {at}": step - 1}
    for at, stride in enumerate(map.strides):
        low, high = f"stride {at + 1}", f"stride {at + 1} high"
        found |= {low: stride.constant // 16 % 2**32, high: stride.constant // 16 >> 32}
    return found


def map_of(text: str) -> TensorMap:
    """The map by which `x` is brought."""
    function = parse(text)["f"]
    made = lower(function, "sm_90a", schedule=function.schedules[0])
    (found,) = (map for kernel in k.kernels(made.plan.steps) for map in kernel.maps if map.buffer.name == "x")
    return found


def swizzled(name: str) -> str:
    """A program that brings a tile which lies as CuTe's does, of an array whose neighbours are those of the tile."""
    (kind, mode), of = name.split()[0].split("_"), name.split()[1]
    inner, outer = modes(SAID["maps"][name][0].split(":")[0])
    swizzle = f", swizzle={SPANS[mode]}B" if SPANS[mode] else ""
    text = COPIED.format(of=of, inner=inner, outer=outer, swizzle=swizzle)
    return text if kind == "K" else text.replace("1024", "rows").replace("512", "1024").replace("rows", "512")


@pytest.mark.parametrize("name", SAID["maps"])
def test_maps_of_swizzled_tiles_are_those_of_cute(name: str) -> None:
    """For every type, major and swizzle."""
    assert read(SAID["maps"][name][2]) == ours(map_of(swizzled(name)))


def boxed(shape: list[int], strides: list[int], tile: list[int]) -> str:
    """A program that brings a box of an array with strides."""
    names = "abcde"[: len(shape)]
    loops = " ".join(f"par {size} |{name}| {{" for size, name in zip(shape, names, strict=True))
    index, sizes, apart = ", ".join(names), ", ".join(map(str, shape)), ", ".join(map(str, strides))
    splits = "\n    ".join(f"split({name}, {size}) -> ({name}o, {name}i)" for name, size in zip(names, tile, strict=True))
    outer, inner = ([f"{name}{end}" for name in names] for end in "oi")
    return f"""
fn f(x: bf16[{sizes}] stride({apart}) align(16)): bf16[{sizes}] {{
    new y: bf16[{sizes}]
    {loops} y[{index}] = x[{index}] {"} " * len(names)}
    return y
}}

schedule f for sm_90a {{
    {splits}
    reorder({", ".join([*outer, *inner])})
    stage(x, at={outer[-1]}, in=shared, via=tma) -> xs
}}
"""


@pytest.mark.parametrize("name", SAID["boxes"])
def test_maps_of_boxes_are_those_of_cute(name: str) -> None:
    """Of arrays of one to five dimensions, with rows apart, and as far apart as they may be."""
    said: dict[str, Any] = SAID["boxes"][name]
    assert read(said["bits"]) == ours(map_of(boxed(said["shape"], said["strides"], said["tile"])))


WRONG = {
    "another swizzle": {"swizzle": 64}, "interleaved": {"interleave": 16}, "filled with nan": {"fill": "nan"},
    "every other element": {"steps": (1, 2)}, "a box of half": {"box": (64, 32)}, "another type": {"element": "uint16"},
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_map_is_seen(name: str) -> None:
    right, said = map_of(swizzled("K_SW128 bf16")), read(SAID["maps"]["K_SW128 bf16"][2])
    assert ours(right) == said
    wrong = ours(replace(right, **WRONG[name]))
    assert [field for field, value in wrong.items() if value != said[field]]


def replaced() -> Iterator[tuple[str, str, str]]:
    """Each field, and the instruction that sets it, with the value that it is given in words of the field."""
    yield from (("rank", "rank", ", x"), ("type", "elemtype", ", 10"), ("interleave", "interleave_layout", ", 1"))
    yield from (("swizzle", "swizzle_mode", ", 3"), ("fill", "fill_mode", ", 1"))
    for at in range(5):
        yield f"size {at}", "global_dim", f", {at}, x"
        yield f"box {at}", "box_dim", f", {at}, x"
        yield f"step {at}", "element_stride", f", {at}, x"
    yield from ((f"stride {at + 1} high", "global_stride", f", {at}, w") for at in range(4))


KERNEL = """
extern "C" __global__ void {name}(char *map, unsigned x, unsigned long long w) {{
    asm volatile("{{ .reg .b32 x; .reg .b64 w; mov.b32 x, %1; mov.b64 w, %2; tensormap.replace.tile.{verb}.global.b1024.b{bits} [%0]{end}; }}"
                 ::"l"(map), "r"(x), "l"(w) : "memory");
}}
"""  # noqa: E501


def test_fields_are_where_machine_code_sets_them() -> None:
    """Of each the word that is stored, and the bits of it that are kept apart, or are the value."""
    every = list(replaced())
    names = {field: field.replace(" ", "_") for field, _, _ in every}
    source = "".join(
        KERNEL.format(name=names[field], verb=verb, bits=64 if end.endswith("w") else 32, end=end) for field, verb, end in every
    )
    code = code_of(built(source))
    for field, _, end in every:
        word, mask = FIELDS[field]
        (body,) = re.findall(rf"\.text\.{names[field]}:(.*?)(?:\.text\.|\Z)", code, re.DOTALL)
        stored = {int(found, 16) for found in re.findall(r"STG\.E(?:\.64)? desc\[\w+\]\[\w+\.64(?:\+(0x\w+))?\]", body)}
        assert 4 * word in stored, (field, stored)
        value = end.removeprefix(", ")
        bits = mask if not value.isdecimal() else int(value) * (mask & -mask)
        kept = {int(found, 16) for found in re.findall(r"LOP3\.LUT R\d+, R\d+, (0x\w+)", body)}
        assert mask == 0xFFFFFFFF or bits in kept, (field, kept)
