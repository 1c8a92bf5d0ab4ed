"""What proving costs: processor time beside that of the compile, and lines that have to be believed."""

import ast
import gc
import tokenize
from io import StringIO
from pathlib import Path
from time import process_time

import pytest

import texpr.verifier
from texpr import driver
from texpr.witness import proved

EXAMPLES = Path(__file__).parents[2] / "examples"

LINES = 1500
"""The most lines of the verifier's code."""


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
    files = Path(texpr.verifier.__file__).parent.glob("*.py")
    assert sum(code_lines(file.read_text(encoding="utf-8")) for file in files) <= LINES


def test_lines_of_code_are_counted() -> None:
    text = '"""Of\nwhat."""\n\n# why\nx = """a\nb"""  # two\n\ndef f():\n    """It."""\n    return (\n        x\n    )\n'
    assert code_lines(text) == 6


def costs(names: tuple[str, ...], schedule: str | None, target: str = "sm_90a") -> tuple[float, float]:
    """Seconds to compile programs of the gallery, and to prove them."""
    compiling = proving = 0.0
    gc.collect()
    gc.freeze()  # what other tests left is no cost of a compile or a proof
    for name in names:
        for function in driver.load(EXAMPLES / f"{name}.te").functions:
            started = process_time()
            compiled = driver.lower(function, target, schedule="auto" if schedule else None)
            between = process_time()
            proof = proved(compiled.function, compiled.plan)
            compiling, proving = compiling + between - started, proving + process_time() - between
            assert not proof.counts["refused"] and not proof.counts["undecided"]
    gc.unfreeze()
    return compiling, proving


@pytest.mark.parametrize("target", ["sm_90a", "cpu"])
def test_large_kernels_are_proved_in_less_time_than_they_are_made(target: str) -> None:
    costs(("saxpy",), None)  # what is loaded once
    compiling, proving = costs(("conv2d", "matmul", "jacobi"), "auto", target)
    assert proving < compiling
