"""Reports as records, texts and diagnostics; what is read off a `.cu`'s text."""

from __future__ import annotations

import json

import pytest

from texpr.emulator import Fault, Party, Report, parse_reports
from texpr.emulator.report import CODES
from texpr.emulator.signature import cluster_shape, parameter_names
from texpr.support.codes import TITLES
from texpr.support.span import Source

RACE = Report(
    *(Fault.RACE, "f_0", "f.te", "tile", "shared", 7, 64),
    Party((0, 0, 0), (3, 1, 0), 2, "write"),
    Party((0, 0, 0), (4, 0, 0), 4, "read"),
    12,
)


def test_every_fault_has_a_code_with_a_title() -> None:
    assert list(CODES.values()) == [f"E0{750 + at}" for at in range(len(Fault))]
    assert all(code in TITLES for code in CODES.values())


def test_the_text_of_a_report() -> None:
    assert str(RACE) == (
        "data race on shared tile[7] in f_0; thread (3, 1, 0) of block (0, 0, 0), line 2: write; "
        "thread (4, 0, 0) of block (0, 0, 0), line 4: read (12 times)"
    )
    assert RACE.lines == (2, 4)


def test_a_diagnostic_points_at_both_lines() -> None:
    source = Source("f.te", "fn f() {\n    t[i] = 1\n\n    z[i] = t[j]\n}")
    found = RACE.diagnostic(source)
    assert (found.code, found.message) == ("E0750", "data race on shared tile[7] in f_0")
    assert [source.text[note.span.start : note.span.end] for note in found.notes if note.span] == ["t[i] = 1", "z[i] = t[j]"]
    assert found.span is not None and found.span.line == 4
    assert RACE.diagnostic(None).span is None
    assert RACE.diagnostic(Source("f.te", "one line")).span is None


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_is_told_in_words(fault: Fault) -> None:
    report = Report(fault, "k_0", "k.te", "x", "global", 1, 2, RACE.first, None, 1)
    assert "k_0" in report.message and "{" not in report.message
    assert report.lines == (2,) and len(report.diagnostic().notes) == 1


def test_records_from_json() -> None:
    party = {"block": [0, 0, 0], "thread": [3, 1, 0], "line": 2, "action": "write"}
    other = {"block": [0, 0, 0], "thread": [4, 0, 0], "line": 4, "action": "read"}
    raw = {"fault": "race", "kernel": "f_0", "source": "f.te", "buffer": "tile", "space": "shared", "index": 7, "count": 64}
    assert parse_reports(json.dumps([raw | {"first": party, "second": other, "times": 12}])) == [RACE]
    assert parse_reports("[]") == []


TEXT = """
// __global__ void f_0(int wrong)
extern "C" __global__ void __cluster_dims__(2, 4) __launch_bounds__(256)
f_0(float const a, TX_GLOBAL(float const) x, /* the result, z */ TX_GLOBAL(float) z,
    int const n) { f_1(z); }
extern "C" __global__ void f_1(TX_GLOBAL(tx_f16) y) {}
extern "C" __global__ void f_2() {}
"""


def test_arguments_get_their_names_from_the_text() -> None:
    party = {"block": [0, 0, 0], "thread": [0, 0, 0], "line": 2, "action": "write"}
    raw = {"fault": "race", "kernel": "f_0", "source": "f.te", "space": "global", "index": 7, "count": 64, "second": None}
    text = json.dumps([raw | {"buffer": buffer, "first": party, "times": 1} for buffer in ("argument 2", "argument 9", "tile")])
    assert [report.buffer for report in parse_reports(text, TEXT)] == ["z", "argument 9", "tile"]
    assert [report.buffer for report in parse_reports(text)] == ["argument 2", "argument 9", "tile"]


def test_parameters_and_clusters_in_a_text() -> None:
    assert parameter_names(TEXT, "f_0") == ("a", "x", "z", "n")
    assert parameter_names(TEXT, "f_1") == ("y",)
    assert parameter_names(TEXT, "f_2") == parameter_names(TEXT, "g") == ()
    assert cluster_shape(TEXT, "f_0") == (2, 4, 1)
    assert cluster_shape(TEXT, "f_1") == cluster_shape(TEXT, "g") == (1, 1, 1)
