"""On a machine with a GPU: the real cubin through the driver, and arrays of PyTorch where that is there.

`make device` runs these there. What needs no GPU of how they are run is tested in the emulator, by the last tests of this page.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from tests.gallery.test_compiled import compare
from tests.instr.texts import CASES as INSTRUCTIONS
from tests.instr.warpgroup.test_warpgroup import compiled as made_of_warpgroup
from tests.instr.warpgroup.texts import CASES as WARPGROUP
from tests.lowering.test_tensor import EXAMPLES, Arrays, example
from tests.runtime.places import device_target
from tests.schedule.laid import Laid
from tests.tma.emitted import called, emitted
from tests.tma.test_emitted import Case, before, cases, expected

from references import EXAMPLES as EXAMPLES_OF_GALLERY
from references import Example
from texpr import driver
from texpr.interp import run as interpret
from texpr.interp.dtypes import numpy_dtype
from texpr.isa.cuda import TMA
from texpr.isa.registry import resolve
from texpr.runtime import DeviceArray, Kernel, load_cuda, load_emulated
from texpr.runtime.memory import aligned_empty
from texpr.support.diagnostic import TexprError
from texpr.support.record import replace
from texpr.toolchain import Toolchain, this_machine

SAXPY = """
fn saxpy(a: f32, x: f32[n], y: f32[n]): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = a * x[i] + y[i] }
    return z
}
"""


@pytest.fixture(scope="module")
def saxpy() -> Kernel:
    """saxpy on the first device."""
    target = device_target()
    compiled = driver.lower(driver.parse(SAXPY).functions[0], target)
    try:
        return load_cuda(Toolchain(this_machine()), compiled.function, compiled.plan, target)
    except TexprError as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("n", [0, 1, 1000, 1_000_003])
def test_arrays_of_the_host_and_of_the_device(saxpy: Kernel, n: int) -> None:
    x = (np.arange(n) % 1024).astype(np.float32)
    np.testing.assert_array_equal(saxpy(2.0, x, x), 3 * x)
    assert saxpy.driver is not None
    on_device = DeviceArray.of(saxpy.driver, x)
    np.testing.assert_array_equal(saxpy(2.0, on_device, on_device).numpy(), 3 * x)


def test_arrays_of_pytorch_on_their_stream(saxpy: Kernel) -> None:
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no PyTorch")
    torch = importlib.import_module("torch")
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.arange(100_000, device="cuda", dtype=torch.float32) % 1024
        z = torch.from_dlpack(saxpy(2.0, x, x, stream=stream))
        assert torch.equal(z, 3 * x)


def same_as_interpreted(made: Laid, kernel: Kernel, arrays: Arrays, sizes: Mapping[str, int]) -> None:
    """One call, whose outputs are what the program means."""
    want = interpret(made.original, arrays, sizes)
    given: dict[str, Any] = {name: aligned_empty(array.dtype, array.shape, 16) for name, array in arrays.items()}
    for name, array in arrays.items():
        given[name][...] = array
    named: dict[str, Any] = {**given, **sizes}
    made_results = kernel(**named)
    results = iter(made_results if isinstance(made_results, tuple) else (made_results,))
    for name, wanted in want.items():
        np.testing.assert_array_equal(given[name] if name in given else next(results), wanted)


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_copies(name: str) -> None:
    """What the tensor memory accelerator copies, to the bit: small integers, of which sums are exact."""
    target = device_target()
    if TMA not in resolve(target).features:
        pytest.skip(f"{target} has no tensor memory accelerator")
    made, (arrays, sizes) = example(name), EXAMPLES[name]
    same_as_interpreted(made, load_cuda(Toolchain(this_machine()), made.function, made.plan, target), arrays, sizes)


def test_how_examples_are_called() -> None:
    """The same without a device."""
    for name in ("reduce_add", "figure_tiles"):
        made, (arrays, sizes) = example(name), EXAMPLES[name]
        same_as_interpreted(made, load_emulated(Toolchain(this_machine()), made.function, made.plan, "sm_90a"), arrays, sizes)


@pytest.mark.parametrize("example", EXAMPLES_OF_GALLERY, ids=lambda each: each.name)
def test_programs_of_the_gallery(example: Example) -> None:
    """As the compiler schedules them, with sizes at run time and at build, and every size that is tried elsewhere."""
    target = device_target()
    for sizes in (*example.small, *example.large):
        compare(example, target, sizes)
    compare(example, target, example.small[-1], fix=True)


def run_case(kernel: Kernel, name: str) -> None:
    """One call of a program with instructions: what their fragments and meanings say, to the bit."""
    arguments, out, wanted = INSTRUCTIONS[name].arguments()
    given: dict[str, Any] = {key: np.ascontiguousarray(array).copy() for key, array in arguments.items()}
    got = kernel(**given)
    np.testing.assert_array_equal(given.get(out, got), wanted)


@pytest.mark.parametrize("name", [name for name, case in INSTRUCTIONS.items() if case.assembles])
def test_instructions_of_lanes(name: str) -> None:
    """On the registers of a real warp: a fragment that is misread gives other numbers."""
    target = device_target()
    made = driver.lower(driver.parse(INSTRUCTIONS[name].text)[INSTRUCTIONS[name].name], target, schedule=None)
    run_case(load_cuda(Toolchain(this_machine()), made.function, made.plan, target), name)


@pytest.mark.parametrize("name", WARPGROUP)
def test_products_of_a_warpgroup(name: str) -> None:
    """By the tensor core itself: a descriptor that is misread, or registers that are touched too early, give other numbers."""
    if device_target() != "sm_90a":
        pytest.skip("a device without these products")
    made = made_of_warpgroup(name)
    for tiles in ((1, 1, 2), (3, 2, 9)):
        arguments, wanted = WARPGROUP[name].arguments(tiles)
        given: dict[str, Any] = {**arguments}
        got = load_cuda(Toolchain(this_machine()), made.function, made.plan, "sm_90a")(**given)
        np.testing.assert_array_equal(got, wanted)


def test_how_products_of_a_warpgroup_are_called() -> None:
    """The same without a device."""
    made, (arguments, wanted) = made_of_warpgroup("n8"), WARPGROUP["n8"].arguments()
    given: dict[str, Any] = {**arguments}
    got = load_emulated(Toolchain(this_machine()), made.function, made.plan, "sm_90a")(**given)
    np.testing.assert_array_equal(got, wanted)


def test_how_instructions_are_called() -> None:
    """The same without a device."""
    case = INSTRUCTIONS["registers"]
    made = driver.lower(driver.parse(case.text)[case.name], "sm_90a", schedule=None)
    run_case(load_emulated(Toolchain(this_machine()), made.function, made.plan, "sm_90a"), "registers")


BATCHES = 13
COPIES = [range(first, first + 12) for first in range(0, 12 * BATCHES, 12)]
"""Seeds of random copies, each range to be compiled together."""


def copied(kernel: Kernel, found: Sequence[Case]) -> None:
    """One call for all of the copies: every byte of every tensor and tile is what the reference function makes it."""
    wanted = [expected(case) for case in found]
    arrays: dict[str, np.ndarray] = {}
    for case in found:
        tensor, tile = case.kernel.plan.params
        for buffer, given in zip((tensor, tile), before(case), strict=True):
            arrays[buffer.name] = given.view(numpy_dtype(buffer.dtype))
    named: dict[str, Any] = dict(arrays)
    kernel(**named, validate=False)  # bytes of all kinds, which are not all numbers of their types
    for case, want in zip(found, wanted, strict=True):
        for buffer, bytes in zip(case.kernel.plan.params, want, strict=True):
            assert np.array_equal(arrays[buffer.name].view(np.uint8), bytes), case.seed


@pytest.mark.parametrize("batch", range(BATCHES))
def test_random_copies(batch: int) -> None:
    """Rank 1 to 5, all types and swizzles, loads and stores, what is left out and what goes outside."""
    target = device_target()
    if TMA not in resolve(target).features:
        pytest.skip(f"{target} has no tensor memory accelerator")
    found = list(cases(COPIES[batch], Counter()))
    function, plan = called([case.kernel for case in found], f"copies{batch}")
    copied(load_cuda(Toolchain(this_machine()), function, plan, target), found)


def test_how_random_copies_are_called() -> None:
    """The same without a device, for some; all together are 200 and more."""
    seen: Counter[str] = Counter()
    for seeds in COPIES:
        list(cases(seeds, seen))
    assert seen["weak"] + seen["store"] + seen["redirected"] >= 200
    found = list(cases(range(4), Counter()))
    function, plan = called([case.kernel for case in found], "copies")
    copied(load_emulated(Toolchain(this_machine()), function, plan, "sm_90a"), found)


def test_a_wrong_copy_is_seen() -> None:
    """One that goes elsewhere than the reference."""
    case = next(cases(range(1), Counter()))
    at = (*case.copy.coordinates[:-1], case.copy.coordinates[-1] + 16)
    moved = emitted(case.copy, case.lowering, case.direction, "moved", case.made.dtype, coordinates=at)
    function, plan = called([moved], "moved")
    with pytest.raises(AssertionError):
        copied(load_emulated(Toolchain(this_machine()), function, plan, "sm_90a"), [replace(case, kernel=moved)])
