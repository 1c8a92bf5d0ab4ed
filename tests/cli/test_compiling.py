"""The verbs that compile: run on the CPU and in the emulator, build, explain."""

from __future__ import annotations

import ctypes
import json
from pathlib import Path

import pytest
from tests.cli.conftest import Call

from texpr.driver import fix, parse
from texpr.support.diagnostic import TexprError, limitation

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

SUM = "fn total(x: i32[n]): i32 {\n    new s: i32 = 0\n    par n |i| reduce(s) { s += x[i] }\n    return s\n}\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A reduction in a file of its own."""
    path = tmp_path / "total.te"
    path.write_text(SUM, encoding="utf-8")
    return path


@pytest.mark.parametrize("place", [["cpu"], ["emulator"], ["emulator", "--order", "7"], ["emulator", "--order", "lockstep"]])
def test_run_agrees_with_the_interpreter(place: list[str], program: Path, texpr: Call) -> None:
    code, out, err = texpr("run", program, "--on", *place, "--arg", "x=random", "--size", "n=1000", "--against", "interp")
    assert (code, err) == (0, "")
    assert "s: equal to the bit (against interp)" in out


def test_a_difference_is_named(program: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(function: object, arrays: dict[str, object], sizes: object) -> dict[str, object]:
        return {"s": arrays["x"][0]}

    monkeypatch.setattr("texpr.interp.run", wrong)
    words = ["--arg", "x=2", "--size", "n=10", "--against", "interp"]
    code, _, err = texpr("run", program, "--on", "cpu", *words)
    assert code == 1
    assert "error[E0858]: `s` is 20, but the interpreter gives 2" in err
    code, out, _ = texpr("run", program, "--on", "cpu", *words, "--json")
    assert (code, json.loads(out)["diagnostics"][0]["code"]) == (1, "E0858")


def test_an_order_that_is_none(program: Path, texpr: Call) -> None:
    code, _, err = texpr("run", program, "--on", "emulator", "--order", "backwards", "--arg", "x=1", "--size", "n=1")
    assert code == 2
    assert "--order takes" in err


def test_a_schedule_that_is_none(program: Path, texpr: Call) -> None:
    code, _, err = texpr("run", program, "--schedule", "hopper", "--arg", "x=1", "--size", "n=1")
    assert code == 2
    assert "E0860" in err


def test_build_leaves_a_library_that_can_be_called(program: Path, tmp_path: Path, texpr: Call) -> None:
    code, out, err = texpr("build", program, "--for", "cpu", "-o", tmp_path / "out")
    assert (code, err) == (0, "")
    assert out.startswith(f"{tmp_path / 'out'}: total for cpu, ")
    assert (tmp_path / "out" / "SHA256SUMS").exists()
    library = ctypes.CDLL(str(tmp_path / "out" / "lib" / "libtexpr_total.so"))
    assert library.texpr_total is not None


def test_build_json(program: Path, tmp_path: Path, texpr: Call) -> None:
    code, out, err = texpr("build", program, "total", "--for", "cpu", "-o", tmp_path / "out", "--size", "n=64", "--json")
    data = json.loads(out)
    assert (code, err, data["name"], data["targets"]) == (0, "", "total", ["cpu"])
    assert all((tmp_path / "out" / path).is_file() for path in data["files"])


@pytest.mark.parametrize(
    ("words", "word"),
    [
        (["--for", "sm_1", "-o", "{tmp}/out"], "E0580"),
        (["--for", "cpu", "--for", "sm_80", "-o", "{tmp}/out"], "E0805"),
        (["--for", "cpu", "-o", "{tmp}"], "E0810"),
        (["--for", "cpu", "-o", "{tmp}/total.te/out"], "E081"),
        (["--for", "cpu", "-o", "{tmp}/out", "--size", "m=1"], "there is no size or const `m`"),
        (["other", "--for", "cpu", "-o", "{tmp}/out"], "there is no function `other`"),
        (["--for", "cpu", "-o", "{tmp}/out", "--schedule", "fast"], "E0860"),
        (["-o", "{tmp}/out"], "--for"),
    ],
)
def test_a_build_that_cannot_be(words: list[str], word: str, program: Path, tmp_path: Path, texpr: Call) -> None:
    code, out, err = texpr("build", program, *(each.format(tmp=tmp_path) for each in words))
    assert (code, out) == (2, "")
    assert word in err
    assert not (tmp_path / "out").exists()


def test_a_wrong_program_builds_nothing(program: Path, tmp_path: Path, texpr: Call) -> None:
    program.write_text(SUM.replace(" reduce(s)", ""), encoding="utf-8")
    code, _, err = texpr("build", program, "--for", "cpu", "-o", tmp_path / "out")
    assert code == 1
    assert "E0402" in err
    assert not (tmp_path / "out").exists()


def test_explain_names_every_decision(texpr: Call) -> None:
    code, out, err = texpr("explain", EXAMPLES / "softmax.te", "--for", "sm_80")
    assert (code, err) == (0, "")
    for word in ("softmax for sm_80: 1 kernel", "mapping:", "buffers:", "barriers:", "accesses:", "σ ="):
        assert word in out


AVERAGE = """
fn pool(x: f32[B, C, H, W]): f32[B, C, H - 2, W - 2] where H >= 3, W >= 3 {
    new y: f32[B, C, H - 2, W - 2]
    par B |b| { par C |c| { par H - 2 |h| { par W - 2 |w| {
        y[b, c, h, w] = 0.0
        par 3 |p| reduce(y) { par 3 |q| reduce(y) { y[b, c, h, w] += x[b, c, h + p, w + q] } }
        y[b, c, h, w] = y[b, c, h, w] / 9.0
    } } } }
    return y
}
"""


def test_explain_shows_a_mapping_that_has_no_value_of_phi(texpr: Call, tmp_path: Path) -> None:
    path = tmp_path / "pool.te"
    path.write_text(AVERAGE, encoding="utf-8")
    code, out, err = texpr("explain", path)
    assert (code, err) == (0, "")
    assert "(least 4, by shape 5.08)" in out


def test_explain_refuses_what_build_refuses(texpr: Call, program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def open_(*_: object) -> None:
        raise limitation("E0508", None, "not proved")

    monkeypatch.setattr("texpr.artifact.show", open_)
    codes = [
        texpr(*verb, program)[0]
        for verb in (("explain", "--for", "cpu"), ("build", "--for", "cpu", "-o", program.parent / "o"))
    ]
    assert codes[0] == codes[1] != 0


def test_explain_json_has_the_keys_of_the_interface(texpr: Call) -> None:
    code, out, err = texpr("explain", EXAMPLES / "softmax.te", "--for", "sm_80", "--json")
    assert (code, err) == (0, "")
    (kernel,) = json.loads(out)["kernels"]
    assert {"grid", "cluster", "block"} == kernel["launch"].keys() and kernel["dependent"] is None
    names = "launch mapping buffers barriers predicates copies accesses registers shared_bytes"
    assert set(names.split()) <= kernel.keys()


def test_explain_for_several_targets_is_one_object(texpr: Call) -> None:
    code, out, _ = texpr("explain", EXAMPLES / "saxpy.te", "--for", "cpu", "--for", "sm_80", "--json")
    assert code == 0
    assert [each["target"] for each in json.loads(out)["targets"]] == ["cpu", "sm_80"]


@pytest.mark.parametrize(
    ("size", "words"),
    [
        (-1, "must not be negative, it is -1"),
        (2**63, f"must fit i64, it is {2**63}"),
        (2.5, "must be an integer, not float"),
        ("7", "must be an integer, not str"),
    ],
)
def test_a_size_is_an_integer_of_64_bits(size: object, words: str) -> None:
    total = parse(SUM)["total"]
    with pytest.raises(TexprError, match="E0707") as raised:
        fix(total, {"n": size})  # pyright: ignore[reportArgumentType]
    assert words in str(raised.value)
    assert fix(total, {"n": 2**63 - 1})[1] == {total.sizes[0]: 2**63 - 1}


@pytest.mark.parametrize("verb", [["explain"], ["build", "--for", "cpu", "-o", "out"]])
def test_a_negative_size_is_a_wrong_call(
    verb: list[str], program: Path, tmp_path: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = texpr(*verb, program, "--size", "n=-1")
    assert (code, out) == (2, "")
    assert "error[E0707]" in err
    assert not (tmp_path / "out").exists()


GROUPS = """fn groups(x: f32[C], const G: i32 = 4): f32[G]
    where C / G * G == C
{
    new y: f32[G]
    par G |g| {
        y[g] = 0.0
        seq C / G |c| reduce(y) { y[g] += x[g * (C / G) + c] }
    }
    return y
}
"""


@pytest.mark.parametrize("verb", [["check"], ["build", "--for", "cpu", "-o", "out"], ["explain"]])
def test_what_is_decided_where_a_size_is_fixed(
    verb: list[str], tmp_path: Path, texpr: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("groups.te").write_text(GROUPS, encoding="utf-8")
    code, _, err = texpr(*verb, "groups.te")
    assert code == 1 and "limitation[E0501]" in err and 'add "where (C % 4) == 0"' in err
    assert texpr(*verb, "groups.te", "--size", "C=64")[0::2] == (0, "")
    assert texpr("run", "groups.te", "--arg", "x=random", "--size", "C=64", "--against", "interp")[0] == 0
    code, _, err = texpr(*verb, "groups.te", "--size", "C=63")
    assert code == 1 and "E0710" in err
    code, _, err = texpr(*verb, "groups.te", "--size", "Q=63")
    assert code == 2 and "size" in err and "`Q`" in err


STRIDED = "fn twice(inout x: f32[m, n] stride(row, 1)) where row >= n { par m |i| { par n |j| { x[i, j] += x[i, j] } } }\n"


@pytest.mark.parametrize("sizes", [[], ["--size", "row=9"], ["--size", "row=4"]])
def test_an_array_with_strides_of_its_own_is_run_in_place(sizes: list[str], tmp_path: Path, texpr: Call) -> None:
    path = tmp_path / "twice.te"
    path.write_text(STRIDED, encoding="utf-8")
    words = ["--arg", "x=random", "--size", "m=5", "--size", "n=7", *sizes, "--against", "interp"]
    code, out, err = texpr("run", path, *words)
    if sizes == ["--size", "row=4"]:
        assert code == 1 and "`where row >= n` does not hold: it is 4 >= 7" in err
    else:
        assert (code, err) == (0, "") and "x: equal to the bit" in out


def test_a_stride_of_which_nothing_is_known(tmp_path: Path, texpr: Call) -> None:
    path = tmp_path / "twice.te"
    path.write_text(STRIDED.replace("stride(row", "stride(2 * row"), encoding="utf-8")
    words = ["--arg", "x=random", "--size", "m=5", "--size", "n=7"]
    code, _, err = texpr("run", path, *words)
    assert code == 2 and "`row`, a stride of `x: f32[m, n]`, is not known: give --size row=…" in err
    assert texpr("run", path, *words, "--size", "row=8", "--against", "interp")[0] == 0
