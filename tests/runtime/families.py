"""Cases of other rooms, each to be run at one place: in the emulator, or as a cubin on a device.

Programs, schedules, and what is right are those of the tests in the emulator. Larger sizes, of many blocks and many turns of a
ring, are for a device alone: what is right there is said by NumPy, or by the same program on this processor; there each call is
made several times, and a result that moves is a race.

`python -m tests.runtime.families NAME` runs a family on the device that is here, in a process of its own: a kernel that waits
for ever cannot be interrupted.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from math import e, log
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from bench.common.attention import online
from bench.common.problems import LIST, problems
from numpy.typing import NDArray
from tests.instr.warpgroup import test_example, test_plain, test_roles
from tests.instr.warpgroup.texts import CASES as TILES
from tests.planner import test_going, test_joined, test_offset_rows, test_products, test_promised, test_warpgroups
from tests.planner.programs import arrays_of
from tests.proof.plan import test_channels
from tests.runtime.places import load
from tests.schedule import rows, test_linked, test_linked_warpgroups, test_mma, test_overlapped

from texpr.cli.program import read_program
from texpr.driver import Compiled, lower, parse
from texpr.interp import run
from texpr.ir.program import Function
from texpr.runtime import load_cpu
from texpr.runtime.memory import aligned_empty
from texpr.support.diagnostic import TexprError
from texpr.support.record import Record, replace
from texpr.toolchain import Toolchain, this_machine

Array = NDArray[Any]
Arrays = Mapping[str, Array]
Sizes = Mapping[str, int]

TARGET = "sm_90a"
TIMES = 3
"""How often a large call is made."""


class Call(Record, eq=False, dict=True):
    """Arguments and results. `relative`, `absolute`: how far these may be apart, 0 where they are equal to the bit."""

    given: Arrays
    sizes: Sizes
    wanted: Arrays
    relative: float = 0.0
    absolute: float = 0.0


class Runs(Protocol):
    """What runs a function, as kernels do."""

    function: Function

    def __call__(self, **given: Any) -> Any: ...


class Family(Record, eq=False, dict=True):
    """A compiled program, and calls of it: `small` are of the interpreter's size, `large` are for a device."""

    made: Callable[[], Compiled]
    small: tuple[Callable[[], Call], ...] = ()
    large: tuple[Callable[[], Call], ...] = ()


def called(kernel: Runs, call: Call) -> dict[str, Array]:
    """What one call leaves in results and inouts."""
    given: dict[str, Any] = {}
    for name, array in call.given.items():
        given[name] = aligned_empty(array.dtype, array.shape, 256) if array.ndim else array
        if array.ndim:
            given[name][...] = array
    sizes = {sym.name for sym in kernel.function.sizes}
    made = kernel(**given, **{name: size for name, size in call.sizes.items() if name in sizes})
    several: Iterator[Any] = iter(made if isinstance(made, tuple) else [made])  # pyright: ignore[reportUnknownArgumentType]
    found = {buffer.name: np.asarray(next(several)) for buffer in kernel.function.results}
    return found | {p.name: given[p.name] for p in kernel.function.params if p.role == "inout"}


def differences(kernel: Runs, call: Call, times: int = 1) -> list[str]:
    """What of a call is not as it should be, or is not the same each time."""
    found = list[str]()
    try:
        first = called(kernel, call)
    except TexprError as reason:
        return [f"at {dict(call.sizes)}: {reason}"]
    for name, wanted in call.wanted.items():
        one, other = (np.asarray(each, np.float64) for each in (first[name], wanted))
        if not np.allclose(one, other, call.relative, call.absolute, equal_nan=True):
            apart = np.abs(one - other) > call.absolute + call.relative * np.abs(other)
            at = np.argwhere(apart | (np.isnan(one) != np.isnan(other)))
            where = tuple(at[0]) if len(at) else ()
            told = f"{len(at)} of {one.size} differ, {one[where]} for {other[where]} at {where}"
            found.append(f"{name} at {dict(call.sizes)}: {told}")
    for _ in range(times - 1):
        again = called(kernel, call)
        moved = [name for name in first if again[name].tobytes() != first[name].tobytes()]
        found += [f"{name} at {dict(call.sizes)} is another one the next time" for name in moved]
    return found


def wrong(name: str, place: str, *, large: bool = True) -> list[str]:
    """What is wrong of a family at a place."""
    family, found = FAMILIES[name], list[str]()
    made = family.made()
    kernel = load(made.function, made.plan, place)
    for call in family.small:
        found += differences(kernel, call())
    for call in family.large if large else ():
        found += differences(kernel, call(), TIMES)
    return found


def on_cpu(function: Function, given: Arrays, sizes: Sizes) -> dict[str, Array]:
    """What the same program gives on this processor, as it stands."""
    made = lower(function, "cpu", schedule=None)
    return called(load_cpu(Toolchain(this_machine()), made.function, made.plan), Call(given, sizes, {}))


# Products by the tensor core of a warpgroup, as the planner gives them out.

Three = tuple[int, int, int]
LARGE: Three = (512, 768, 2048)
WIDE: Three = (1024, 2048, 1024)
"""Of blocks that share strips in clusters."""


def _of_product(name: str, at: Three) -> Call:
    case, sizes = test_warpgroups.CASES[name], dict(zip("MNK", at, strict=True))
    given, sums = case.arguments(sizes)
    right = test_warpgroups.wanted(case, sums, given["b"].astype(np.float64))
    return Call(given, sizes, {"C": right}, *((1e-2, 1e-2) if case.out else ()))


def _products() -> Iterator[tuple[str, Family]]:
    for name, case in test_warpgroups.CASES.items():
        small = tuple(partial(_of_product, name, at) for at in case.sizes)
        yield f"product, {name}", Family(partial(test_warpgroups.compiled, name), small, (partial(_of_product, name, LARGE),))
    for name in ("rows of both", "rows and columns", "columns of both", "f8e4m3", "i8", "gelu", "batched"):
        large = (partial(_of_product, name, WIDE),)
        yield f"product of fixed sizes, {name}", Family(partial(test_warpgroups.compiled, name, WIDE), (), large)
    ragged = test_warpgroups.CASES["rows of both"].sizes[0]
    made = partial(test_warpgroups.compiled, "rows of both", ragged)
    yield "product of fixed sizes, ragged", Family(made, (partial(_of_product, "rows of both", ragged),))


def _going() -> Iterator[tuple[str, Family]]:
    for name, case in test_going.REAL.items():
        yield f"blocks that share tiles, {name}", Family(partial(test_going.real, name), (), (partial(_of_shared, case),))


def _of_shared(case: test_going.Case) -> Call:
    given, wanted = case.arguments()
    return Call(given, {}, {"C": wanted})


def _offsets() -> Iterator[tuple[str, Family]]:
    for name in test_offset_rows.TEXTS:
        small = tuple(partial(_of_offsets, name, sizes, first) for sizes, first in test_offset_rows.SIZES)
        yield f"rows from where data say, {name}", Family(partial(test_offset_rows.compiled, name, TARGET), small)


def _of_offsets(name: str, sizes: Sizes, first: list[int]) -> Call:
    given, own = test_offset_rows.arguments(name, sizes, first), test_offset_rows.sizes_of(name, sizes)
    return Call(given, own, run(parse(test_offset_rows.TEXTS[name])["f"], given, own))


# The same by schedules by hand, with rings, clusters and roles.


def _of_plain(name: str, at: Three) -> Call:
    sizes = dict(zip("MNK", at, strict=True))
    given = test_mma.arguments(test_plain.compiled(name), sizes)
    left, right = (given[name].astype(np.float32) for name in "AB")
    return Call(given, sizes, {"C": left.T @ right if "K, M" in test_plain.CASES[name].text else left @ right.T})


def _of_tiles(turns: Three) -> Call:
    given, wanted = TILES["ring"].arguments(turns)
    return Call(given, {}, {"C": wanted})


def _of_example(at: Three) -> Call:
    random, (m, n, depth) = np.random.default_rng(5), at
    a, b = (random.integers(-3, 4, shape).astype(np.float32) for shape in ((m, depth), (n, depth)))
    of = test_example.ml_dtypes.bfloat16
    return Call({"A": a.astype(of), "B": b.astype(of)}, {}, {"C": a @ b.T})


def _of_channels(count: int) -> Call:
    x = np.arange(count * 256, dtype=np.float32).reshape(count, 256)
    return Call({"x": x}, {}, {"y": x + x[:, ::-1]})


def _channels(name: str) -> Compiled:
    return replace(test_channels.made(), plan=test_channels.altered(*test_channels.LATE[name]))


def _by_hand() -> Iterator[tuple[str, Family]]:
    for name, case in test_plain.CASES.items():
        small = tuple(partial(_of_plain, name, at) for at in case.sizes)
        yield f"by hand, {name}", Family(partial(test_plain.compiled, name), small, (partial(_of_plain, name, LARGE),))
    for name in ("roles", "late"):
        turns = (0, 1, 2, 3, 4, 7)
        small = tuple(partial(_of_tiles, (1, 1, each)) for each in turns)
        yield f"roles, {name}", Family(partial(test_roles.made, name), small, (partial(_of_tiles, (8, 12, 32)),))
    for name in test_example.NAMES:
        small, large = partial(_of_example, (128, 128, 320)), partial(_of_example, LARGE)
        yield f"roles of the example, {name}", Family(partial(test_example.compiled, name), (small,), (large,))
    for name in test_channels.LATE:
        small = tuple(partial(_of_channels, each) for each in (0, 2, 4, 10))
        yield f"channel, {name}", Family(partial(_channels, name), small, (partial(_of_channels, 2000),))


# Rows through two products: attention, layers of a network.


def _of_rows(made: Callable[[], Compiled], text: str, sizes: Sizes, apart: float) -> Call:
    """Of one matrix, as the tests in the emulator have it."""
    given = rows.arguments(made(), {"H": 1, **sizes})
    return Call(given, sizes, run(parse(text)["f"], given), apart, apart)


def _of_long_rows(made: Callable[[], Compiled], text: str, sizes: Sizes, apart: float) -> Call:
    """Of long rows: where numbers are rounded, sums of weights come in another order, and may nearly cancel."""
    given = rows.arguments(made(), sizes)
    if not apart:
        return Call(given, sizes, on_cpu(parse(text)["f"], given, sizes))
    found = attention(given, causal="<= i" in text, base=2 if "exp2" in text else e)
    return Call(given, sizes, {"O": found}, 4 * apart, 4 * apart)


def attention(given: Arrays, *, causal: bool, base: float) -> Array:
    """softmax(scale Q Kᵀ) V of each matrix, by powers of `base`, as NumPy has it."""
    found = np.zeros(given["Q"].shape, np.float64)
    for head, (q, k, v) in enumerate(zip(*(given[name].astype(np.float64) for name in "QKV"), strict=True)):
        scores = q @ k.T * (float(given["scale"]) * log(base))
        if causal:
            scores[np.triu_indices(len(q), 1)] = -np.inf
        weights = np.exp(scores - scores.max(1, keepdims=True))
        found[head] = weights @ v / weights.sum(1, keepdims=True)
    return found


def _family_of_rows(made: Callable[[], Compiled], case: Any, size: str, lengths: tuple[int, ...]) -> Family:
    text, apart = case.text, case.apart
    small = tuple(partial(_of_rows, made, text, {size: length}, apart) for length in lengths)
    keys = re.search(r"seq \(L \+ \d+\) / (\d+)", text)
    longest = 1024 if apart or keys is None else 8 * int(keys[1])  # halves of halves are exact for eight turns
    large = tuple(partial(_of_long_rows, made, text, {"H": 3, size: each}, apart) for each in (longest, longest - 23))
    return Family(made, small, large)


def _attention() -> Iterator[tuple[str, Family]]:
    for name, case in test_joined.CASES.items():
        yield f"rows, {name}", _family_of_rows(partial(test_joined.compiled, name), case, case.size, (0, 1, 65, 130))
    for name, case in test_linked_warpgroups.CASES.items():
        made = partial(test_linked_warpgroups.compiled, name)
        yield f"rows by hand, {name}", _family_of_rows(made, case, "L", test_linked_warpgroups.LENGTHS)
    for name, case in test_overlapped.CASES.items():
        made = partial(test_overlapped.compiled, name)
        yield f"turns that overlap, {name}", _family_of_rows(made, case, "L", test_overlapped.LENGTHS)
    for name, case in test_linked.CASES.items():
        made = partial(test_linked.compiled, name, TARGET)
        yield f"rows by warps, {name}", _family_of_rows(made, case, case.size, test_linked.LENGTHS)
    for name, (text, _) in test_joined.OVERLAPS.items():
        yield f"turns that overlap, of fixed sizes, {name}", _of_fixed_rows(text, {"H": 8, "L": 1024})
    for name, (text, apart) in WITHOUT_WARPGROUPS.items():
        case = test_linked.Case(text, apart=apart)
        yield f"attention, {name}", _family_of_rows(partial(_automatic, text), case, "L", (0, 1, 130))


WITHOUT_WARPGROUPS = {
    "f8": (online("f8e4m3", 64, 64, align=" align(16)"), 2**-3),
    "nothing promised": (online(d=64, keys=64), 2**-7),
}
"""And how far numbers may be apart."""


def _of_fixed_rows(text: str, sizes: Sizes) -> Family:
    made = partial(_automatic, text, tuple(sizes.items()))
    open_sizes = partial(lower, parse(text)["f"], "cpu", schedule=None)
    return Family(made, (), (partial(_of_long_rows, open_sizes, text, sizes, 2**-7),))


@cache
def _automatic(text: str, sizes: tuple[tuple[str, int], ...] = ()) -> Compiled:
    return lower(parse(text)["f"], TARGET, dict(sizes), schedule="auto")


# Tiles on instructions of warps, plans that are wide where arrays are aligned, and problems as networks have them.


def _of_warps(made: Callable[[], Compiled], text: str, at: Three, interpreted: bool) -> Call:
    sizes, function = dict(zip("MNK", at, strict=True)), parse(text)["f"]
    given = test_mma.arguments(made(), sizes)
    return Call(given, sizes, (run if interpreted else on_cpu)(function, given, sizes))


def _of_promised(name: str, sizes: Sizes, interpreted: bool) -> Call:
    given = test_promised.given_to(test_promised.compiled(name), sizes)
    arrays = {key: np.asarray(value) for key, value in given.items()}
    function = test_promised.PROGRAM[name]
    return Call(arrays, sizes, run(function, arrays) if interpreted else on_cpu(function, arrays, sizes), 1e-2, 1e-5)


LONG = {
    "product": {"m": 512, "p": 2048, "n": 768}, "turned": {"m": 1000, "n": 1004}, "axes": {"m": 504, "p": 5, "n": 520},
    "scaled": {"m": 67, "n": 4096}, "biased": {"m": 67, "n": 4096}, "rows": {"v": 5, "m": 1001, "n": 512},
    "total": {"n": 2**20 + 4},
}  # fmt: skip
"""Of plans whose vectors need whole chunks, which these sizes have."""


def _by_warps() -> Iterator[tuple[str, Family]]:
    for name, (text, _) in test_products.TAKEN.items():
        made = partial(_automatic, text)
        small = tuple(partial(_of_warps, made, text, at, True) for at in test_products.SIZES)
        at = (256, 328, 512) if name == "f16 into f16" else (512, 768, 512)
        large = () if name == "f16 into f16" else (partial(_of_warps, made, text, at, False),)  # f16 would round such sums
        yield f"product by warps, {name}", Family(made, small, large)
    for name in test_promised.ASKED:
        small = tuple(partial(_of_promised, each, sizes, True) for each, sizes in test_promised.cases() if each == name)
        large = (partial(_of_promised, name, LONG[name], False),)
        yield f"wide where it may be, {name}", Family(partial(test_promised.compiled, name), small, large)


FOLDER = Path(__file__).parents[1] / "proof" / "plan" / "everyday"
EVERYDAY: Mapping[str, tuple[dict[str, int], dict[str, int]]] = {
    "fused_mlp": ({"m": 33, "k": 17, "n": 65}, {"m": 260, "k": 512, "n": 260}),
    "twolayers": ({"b": 33, "k": 17, "m": 41, "n": 7}, {"b": 130, "k": 64, "m": 200, "n": 129}),
    "bias_then_product": ({"M": 5, "K": 67, "N": 18}, {"M": 67, "K": 256, "N": 130}),
    "group_norm_of_a_product": ({"M": 5, "K": 7, "N": 55}, {"M": 130, "K": 128, "N": 320}),
    "grouped_query_attention": (
        {"B": 2, "KV": 3, "G": 2, "L": 5, "D": 16, "S": 37}, {"B": 2, "KV": 2, "G": 4, "L": 130, "D": 64, "S": 260},
    ),
    "decode_attention": ({"H": 3, "D": 16, "L": 37}, {"H": 8, "D": 128, "L": 2048}),
    "masked_attention": ({"t": 5, "d": 16, "s": 37}, {"t": 130, "d": 64, "s": 260}),
    "sliding_attention": ({"H": 2, "L": 37, "D": 16}, {"H": 4, "L": 515, "D": 64}),
    "im2col": ({"B": 2, "H": 5, "W": 7, "C": 3}, {"B": 2, "H": 28, "W": 28, "C": 64}),
    "row_scale_norm": ({"m": 5, "n": 67}, {"m": 67, "n": 2048}),
    "batched_nt": ({"b": 2, "m": 33, "n": 17, "k": 40}, {"b": 3, "m": 260, "n": 130, "k": 512}),
    "scaled_int8": ({"M": 33, "N": 17, "K": 40}, {"M": 260, "N": 130, "K": 512}),
    "syrk": ({"n": 37, "k": 20}, {"n": 260, "k": 128}),
}  # fmt: skip
"""Programs as users bring them: sizes for the interpreter, and larger ones."""

OF_THE_LIST: Mapping[str, dict[str, int]] = {
    "linear-relu": {"M": 520, "N": 768, "K": 1024}, "linear-gelu-apart": {"M": 520, "N": 768, "K": 1024},
    "product-residual": {"M": 520, "N": 260, "K": 512}, "gated-linear": {"M": 260, "N": 520, "K": 1024},
    "conv-bias-relu": {"B": 2, "H": 30, "W": 30, "C": 32, "F": 64}, "batched-scores": {"B": 4, "M": 256, "N": 256, "K": 64},
    "int8-scaled": {"M": 520, "N": 768, "K": 1024}, "product-f8": {"M": 520, "N": 768, "K": 1024},
    "product-bf16": {"M": 520, "N": 768, "K": 1024}, "product-f32": {"M": 520, "N": 768, "K": 1024},
    "product-of-long": {"M": 64, "N": 64, "K": 65536}, "product-thin": {"M": 16, "N": 512, "K": 4096},
    "vector-product": {"M": 1024, "K": 4096}, "conv3x3": {"B": 4, "H": 28, "W": 28, "C": 64, "F": 64},
    "conv1x1": {"P": 3136, "C": 64, "F": 256}, "stem": {"B": 2, "H": 28, "W": 28, "F": 64},
    "strided": {"B": 2, "H": 14, "W": 14, "C": 128, "F": 128}, "depthwise": {"B": 2, "H": 28, "W": 28, "C": 64},
    "conv-channels-first": {"B": 2, "C": 32, "H": 28, "W": 28, "F": 64},
    "conv3d": {"B": 1, "D": 6, "H": 14, "W": 14, "C": 64, "F": 64},
    "conv-grouped": {"B": 2, "H": 14, "W": 14, "G": 8, "C": 8, "F": 8},
    "conv-transposed": {"B": 2, "H": 14, "W": 14, "C": 64, "F": 64},
    "window-scores": {"B": 4, "P": 8, "S": 49, "H": 3, "D": 32},
    "contraction": {"A": 16, "B": 16, "C": 16, "D": 16, "E": 16, "F": 16},
    "causal-scores": {"H": 2, "L": 520, "D": 64}, "gram": {"N": 520, "K": 512}, "lower-product": {"N": 520, "M": 260},
    "attention-tiles": {"H": 4, "L": 1000, "D": 128}, "attention-tiles-causal": {"H": 4, "L": 1000, "D": 128},
    "attention-plain": {"H": 4, "L": 1000, "D": 128}, "attention-plain-causal": {"H": 4, "L": 1000, "D": 128},
    "cross-entropy": {"M": 512, "N": 32000}, "frobenius": {"M": 1000, "N": 2048}, "bias-gradient": {"M": 3000, "N": 520},
    "softmax-vocabulary": {"M": 8, "N": 50257}, "long-rows": {"M": 4, "N": 262144}, "group-norm": {"B": 2, "G": 4, "N": 16384},
}  # fmt: skip
"""Problems of bench/problems, at sizes that a processor has in a second."""


OF_ODD: Mapping[str, dict[str, int]] = {
    name: {"M": 521, "N": 767, "K": 1027}
    for name in ("product-bf16", "product-f32", "product-f8", "linear-relu", "int8-scaled")
}
"""The same, of rows that begin anywhere."""


Reference = Callable[[Function, Arrays, Sizes], Arrays]


def _of_any(function: Function, sizes: Sizes, reference: Reference, fixed: bool = False) -> Call:
    """Small whole numbers; results may be apart by what a narrow type rounds, and by the order of sums."""
    arrays = {name: np.asarray(each) for name, each in arrays_of(function, sizes).items()}
    if "scale" in arrays:
        arrays["scale"] = np.asarray(0.0625, arrays["scale"].dtype)
    return Call(arrays, {} if fixed else sizes, reference(function, arrays, sizes), 2**-6, 2**-6)


def _others() -> Iterator[tuple[str, Family]]:
    for name, (small, large) in EVERYDAY.items():
        (function,) = parse((FOLDER / f"{name}.te").read_text(encoding="utf-8")).functions
        made = partial(lower, function, TARGET, schedule="auto")
        calls = partial(_of_any, function, small, run), partial(_of_any, function, large, on_cpu)
        yield f"everyday, {name}", Family(made, calls[:1], calls[1:])
    for problem in problems(LIST.read_text(encoding="utf-8")):
        for kind, sizes in (("problem", OF_THE_LIST), ("problem of odd sizes", OF_ODD)):
            if problem.name in sizes:
                yield f"{kind}, {problem.name}", _of_problem(problem.file, problem.function, sizes[problem.name])


def _of_problem(file: Path, name: str, sizes: Sizes) -> Family:
    function = read_program(file, {})[0][name]
    made = partial(lower, function, TARGET, sizes, schedule="auto")
    return Family(made, (), (partial(_of_any, function, sizes, on_cpu, True),))


FAMILIES: Mapping[str, Family] = {
    name: family for each in (_products, _going, _offsets, _by_hand, _attention, _by_warps, _others) for name, family in each()
}


if __name__ == "__main__":
    told = wrong(sys.argv[1], TARGET)
    sys.stdout.write("\n".join(told))
    sys.exit(1 if told else 0)
