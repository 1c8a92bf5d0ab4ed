"""What proving costs: steps beside those of the compile, and lines that have to be believed."""

import ast
import tokenize
from io import StringIO
from pathlib import Path
from types import FunctionType

import pytest
from tests.steps import steps

import texpr.proof
from texpr import driver
from texpr.frontend import parse
from texpr.ir.program.text import print_program
from texpr.proof.search import proved

EXAMPLES = Path(__file__).parents[3] / "examples"

PROOF, ROOMS = Path(texpr.proof.__file__).parent, ("plan", "schedule", "common")

LINES = 3821
"""The most lines of code of both checkers and what they share, but for what is proved of integers."""

INTEGERS = {"plan/overflow.py": 325, "plan/spans.py": 222}
"""The same of the files that prove that no integer leaves its width."""


def code_lines(text: str) -> int:
    """Lines of a file that are more than blank, a comment, or a docstring."""
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    tokens = (token for token in tokenize.generate_tokens(StringIO(text).readline) if token.type not in layout)
    found = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            found.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(found)


def test_what_has_to_be_believed_is_small() -> None:
    files = [file for room in ROOMS for file in (PROOF / room).glob("*.py")]
    lines = {f"{file.parent.name}/{file.name}": code_lines(file.read_text(encoding="utf-8")) for file in files}
    assert all(lines[name] <= most for name, most in INTEGERS.items())
    assert sum(count for name, count in lines.items() if name not in INTEGERS) <= LINES


def test_lines_of_code_are_counted() -> None:
    text = '"""Of\nwhat."""\n\n# why\nx = """a\nb"""  # two\n\ndef f():\n    """It."""\n    return (\n        x\n    )\n'
    assert code_lines(text) == 6


def making(name: str, target: str, prove: bool) -> None:
    """Compiles a program of the gallery, and proves it or does not."""
    for function in driver.load(EXAMPLES / f"{name}.te").functions:
        compiled = driver.lower(function, target, schedule="auto")
        for each in (compiled, compiled.wide) if prove else ():
            proof = None if each is None else proved(each.function, each.plan)
            assert proof is None or not (proof.counts["refused"] or proof.counts["undecided"])


def again(name: str, target: str, prove: bool) -> None:
    """As if proving were to compile once more, by another name."""
    making(name, target, prove)
    if prove:
        function = parse(print_program(driver.load(EXAMPLES / f"{name}.te")).replace("fn ", "fn other_")).functions[0]
        driver.lower(function, target, schedule="auto")


def proving(work: FunctionType, names: tuple[str, ...], target: str) -> float:
    """Steps to prove, for one to compile. What isl does is no step of Python; `bench/compile.py` measures it."""
    made = proven = 0
    for name in names:
        alone, both = steps(work, (name, target, False), (name, target, True), first=("saxpy", target, True))
        made, proven = made + alone, proven + both - alone
    return proven / made


@pytest.mark.parametrize("names", [("matmul",), pytest.param(("conv2d", "matmul", "jacobi"), marks=pytest.mark.long)])
@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_large_kernels_are_proved_in_fewer_steps_than_they_are_made(target: str, names: tuple[str, ...]) -> None:
    assert proving(making, names, target) < 0.6


@pytest.mark.long
def test_a_proof_that_compiles_is_found() -> None:
    assert proving(again, ("matmul",), "sm_90a") > 0.6
