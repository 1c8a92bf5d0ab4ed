"""What a machine is like stands in `texpr.isa` alone: no number of lanes, banks or bytes elsewhere, nor its family."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[2] / "src" / "texpr"

NUMBERS = frozenset({31, 32, 127, 128})
"""Lanes of a warp, banks, bytes of a sector and of a line, and what is one less."""

OTHERS = {
    "artifact/check/folder.py": (1, "folders in folders"),
    "artifact/record.py": (1, "how deep JSON may be"),
    "artifact/texts/rust.py": (1, "bits of a type"),
    "backends/c/literal.py": (1, "bits of an int"),
    "backends/c/types.py": (1, "bits of a type"),
    "backends/cuda/tensors.py": (3, "spans of swizzles and slices, as the driver numbers them"),
    "cli/__init__.py": (1, "a shell's exit code"),
    "domain/predicates/width.py": (2, "bits of an int"),
    "domain/predicates/witness.py": (1, "parts of an extent that are tried"),
    "draw/mapping.py": (1, "cells that are shown"),
    "draw/page/text.py": (2, "characters of ASCII"),
    "editor/server/features.py": (1, "a shell's exit code"),
    "frontend/elaboration/typing.py": (1, "the greatest number of a type"),
    "frontend/elaboration/expressions.py": (3, "the degree and the bits of numbers in a text"),
    "interp/shadow.py": (1, "the least exponent of a type"),
    "ir/operation/tensor_map.py": (1, "bits of a type"),
    "ir/value/types.py": (4, "bits of a type"),
    "lowering/host/bounded.py": (1, "bits of an int"),
    "mapping/default.py": (2, "iterations of a core's tile, and threads enough for a block"),
    "mapping/reductions/ways/alone.py": (1, "iterations enough"),
    "mapping/reductions/ways/atomics.py": (1, "bits of a type"),
    "model/code/classes.py": (5, "widths and shapes in names of opcodes"),
    "model/code/integers.py": (3, "bits of a register"),
    "model/code/operand.py": (4, "bits of a register, and names of modifiers"),
    "model/code/program.py": (1, "bits of a register"),
    "planner/strategies/panels.py": (3, "steps that a panel may hold"),
    "planner/strategies/swept.py": (2, "keys of a block"),
    "planner/strategies/tiles.py": (1, "registers of a thread"),
    "planner/strategies/products.py": (19, "iterations of tiles, and bytes of a turn"),
    "planner/search.py": (1, "iterations of a tile"),
    "planner/strategies/pitched.py": (1, "elements of a short row"),
    "presburger/isl/raw.py": (1, "bits of an int"),
    "relation/data.py": (1, "bits of a type"),
    "runtime/kernel.py": (2, "bits of a type"),
    "runtime/repeat.py": (1, "bits of a type"),
    "support/limits.py": (4, "bits of an int"),
    "support/render.py": (1, "control characters"),
    "tma/descriptor.py": (2, "spans of swizzles and slices"),
    "tma/elements.py": (1, "a byte of a number that is none"),
    "tma/rules.py": (5, "limits of fields of maps"),
    "tma/swizzle.py": (2, "spans of swizzles"),
    "tune/crews/worker.py": (1, "a shell's exit code"),
    "toolchain/workers.py": (2, "a shell's exit codes"),
}
"""How often such a number stands in a file and means no machine's, and what it means there."""

FAMILY = re.compile(r"""\bis_gpu\b|\b(?:family|backend)\s*(?:==|!=)|(?:==|!=)\s*["'](?:cpu|cuda)["']""")
"""What asks which machine it is, where it should ask what it needs to know of it."""

MASK = re.compile(r"0x0*(?:ffff)+u?\b", re.IGNORECASE)
"""The lanes of a whole warp, written out."""


def machine_numbers(text: str) -> Iterator[tuple[int, str]]:
    """Where a number of a machine may stand in a text, by line: as a number, or as the mask of a warp in a string."""
    tree = ast.parse(text)
    said = {
        id(node.value)  # docstrings, and those of names
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and id(node) not in said:
            if type(node.value) is int and node.value in NUMBERS:
                yield node.lineno, str(node.value)
            if isinstance(node.value, str) and MASK.search(node.value):
                yield node.lineno, "the mask of a warp"


def questions(text: str) -> list[int]:
    """The lines of a text that ask which machine it is."""
    return [number for number, line in enumerate(text.splitlines(), 1) if FAMILY.search(line)]


def outside() -> Iterator[tuple[str, str]]:
    """The sources of every room but `isa`, by path."""
    for path in sorted(SOURCES.rglob("*.py")):
        name = path.relative_to(SOURCES).as_posix()
        if not name.startswith("isa/"):
            yield name, path.read_text(encoding="utf-8")


def test_no_number_of_a_machine_stands_outside_of_isa() -> None:
    every = {name: list(machine_numbers(text)) for name, text in outside()}
    found = Counter({name: len(places) for name, places in every.items() if places})
    wrong = {name: every.get(name, []) for name in found.keys() | OTHERS.keys() if found[name] != OTHERS.get(name, (0, ""))[0]}
    assert not wrong, "numbers of machines come from `texpr.isa`; what means something else is named in OTHERS"


def test_nobody_asks_which_machine_it_is() -> None:
    assert {name: lines for name, text in outside() if (lines := questions(text))} == {}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("WARP = 32", 1),
        ("def parts(team, warp=32): ...", 1),
        ("SECTOR, LINE, WARP = 32, 128, 32", 3),
        ("lane = thread % 32 if lane & 31 else 127", 3),
        ('mask = "0xffffffffu"', 1),
        ('mask = f"__syncwarp(0xFFFFu, {lanes})"', 1),
        ('"""32 lanes, 0xffffffff."""\nx = 33, 3.2, "32"', 0),
    ],
)
def test_planted_numbers_are_found(text: str, count: int) -> None:
    assert len(list(machine_numbers(text))) == count


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ('if target.family == "cpu":', True),
        ('if target.family != "cuda": pass', True),
        ("on = target.is_gpu", True),
        ('if machine.backend == "cpu":', True),
        ('memory = template("device.rs") if on == "cuda" else ""', True),
        ("tools.versions(device=record.on != 'cpu')", True),
        ('for target in ("cpu", "emulator"):', False),
        ("if schedule.target in (target.name, target.family, None):", False),
        ("if target.has_blocks:", False),
    ],
)
def test_planted_questions_are_found(text: str, asks: bool) -> None:
    assert bool(questions(text)) == asks
