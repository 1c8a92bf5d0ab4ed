"""Identifiers from a user's names: none is a keyword or a macro anywhere, none stands for two things in one scope."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from texpr.affine.expr import Sym
from texpr.backends.c.checks import argument_checks
from texpr.backends.c.names import Taken, identifier
from texpr.backends.c.status import STATUSES, print_statuses
from texpr.backends.c.text import comment, string
from texpr.backends.cpu import headers, print_cpu
from texpr.ir.value.types import F32

from . import plans
from .compiled import build, compiler


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("i", "i"),
        ("i'2", "i_2"),
        ("int", "int_"),
        ("and", "and_"),
        ("NULL", "NULL_"),
        ("threadIdx", "threadIdx_"),
        ("tx_exp", "tx_exp_"),
        ("__x", "v_x"),
        ("größe", "gr_e"),
        ("2d", "v2d"),
        ("", "v_"),
        ("a-b;c", "a_b_c"),
        ("INT_MAX", "INT_MAX_"),
        ("uint64_t", "uint64_t_"),
        ("int_fast8_t", "int_fast8_t_"),
        ("print_t", "print_t"),
        ("texpr", "texpr_"),
        ("M", "M"),
        ("NaN", "NaN"),
    ],
)
def test_identifiers(name: str, text: str) -> None:
    assert identifier(name) == text


@given(st.text())
def test_every_text_becomes_an_identifier(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", identifier(name))
    assert "__" not in identifier(name)


def test_long_names_are_cut_and_stay_different() -> None:
    names = {identifier("a" * 250), identifier("a" * 251), identifier("a" * 250 + "b"), identifier("a_" * 200)}
    assert len(names) == 4
    assert all(len(name) <= 100 and "__" not in name for name in names)
    assert identifier("a" * 100) == "a" * 100


def test_siblings_share_a_name_and_inner_scopes_do_not_hide_outer_ones() -> None:
    outer = Taken()
    assert outer.take("i") == "i"
    assert [outer.inner().take("j'1"), outer.inner().take("j'2")] == ["j", "j"]
    inner = outer.inner()
    assert [inner.take("i'1"), inner.take("i'2"), inner.take("int"), inner.take("int'1")] == ["i_1", "i_2", "int_", "int_1"]


def test_no_macro_of_the_headers_is_a_name(tmp_path: Path) -> None:
    for name, text in headers().items():
        (tmp_path / name).write_text(text)
    (tmp_path / "f.cpp").write_text('#include "texpr_cpu.h"\n#include <pthread.h>\n#include <dlfcn.h>\n')
    done = subprocess.run(
        [*compiler(), "-std=gnu++17", "-E", "-dM", "f.cpp"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    macros = {re.split(r"[ (]", line)[1] for line in done.stdout.splitlines()}
    assert {"NULL", "RTLD_NOW"} <= macros
    assert [name for name in macros if not name.startswith("_") and identifier(name) == name] == []


@given(st.text())
def test_comments_and_strings_hold_what_they_are_given(text: str) -> None:
    assert re.fullmatch(r"[ -\[\]-~]*", comment(text)) and "??/" not in comment(text)
    assert re.fullmatch(r'"(\\[0-7]{3}|[A-Za-z0-9 ._\-+/:,()<>=@])*"', string(text))


def test_statuses_are_apart() -> None:
    assert [s.code for s in STATUSES] == list(range(0, -len(STATUSES), -1))
    assert len({s.macro for s in STATUSES}) == len({s.text for s in STATUSES}) == len(STATUSES)
    assert "#define TEXPR_OK 0\n#define TEXPR_NO_DRIVER (-1)\n" in print_statuses()


def test_a_hostile_plan_compiles(tmp_path: Path) -> None:
    """Names that the checks themselves use, keywords, and names that become one another."""
    names = ["shape", "bytes", "stride", "texpr_found", "int", "int_", "x", "x'1", "workspace", "stream", "n*/", "f;"]
    n = plans.expr(Sym("value"))
    given_ = [plans.array(name, F32, n, role="inout", strides=(n,)) for name in names]
    i = Sym("for")
    body = [plans.count(i, n, *(plans.Store(plans.at(b, i), plans.Literal(1, F32)) for b in given_))]
    plan = plans.plan('f"();', given_, plans.kernel("seen", [], given_, body, sizes="value"), sizes="value")
    assert len(argument_checks(plan)) > len(names)
    build(tmp_path / "f", {**headers(), "f.cpp": print_cpu(plan)})
