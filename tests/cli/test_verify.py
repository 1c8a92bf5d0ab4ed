"""`texpr verify`: what it says of an artifact and of its signature, of the author's source, of compilers; its limits."""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.artifact.forging import mend, put, swap

from texpr.artifact.check import folder
from texpr.artifact.place import SIGNATURE, SUMS
from texpr.cli.app import run
from texpr.support.diagnostic import TexprError
from texpr.toolchain.limits import bounded

SOURCE = """-- A comment that no artifact has.
fn scale(x: f32[n], const by: i64 = 3): f32[n] {
    new y: f32[n]
    par n |i| { y[i] = f32(by) * x[i] }
    return y
}
schedule scale { split(i, 16) -> (o, j) }
"""
CONST = """fn fill(const T: i64, x: f32[n]): f32[n, T] {
    new y: f32[n, T]
    par n |i| { static for t in 0..T { y[i, t] = x[i] } }
    return y
}
"""
OPEN = "fn shift(x: f32[n]): f32[n] #unproved { new y: f32[n] par n |i| { y[i] = x[i] + 1.0 } return y }"


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("source") / "scale.te"
    file.write_text(SOURCE)
    return file


@pytest.fixture(scope="module")
def built(source: Path) -> Path:
    out = source.parent / "out"
    assert run(["build", str(source), "--for", "cpu", "--size", "by=5", "-o", str(out)]) == 0
    return out


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    return shutil.copytree(built, tmp_path / "out")


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, object]]:
    capsys.readouterr()
    code = run(["verify", *words, "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_the_last_line_says_what_is_not_proved(built: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(built)]) == 0
    first, *_, last = capsys.readouterr().out.splitlines()
    every = sum(path.is_file() for path in built.rglob("*"))
    assert first == f"scale: {every - 3} of {every} files are as texpr writes them"
    files = ["lib/libtexpr_scale.a", "lib/libtexpr_scale.so", "manifest.json (tools, flags, consts, registers)"]
    assert last == f"not proved, as no compiler was run (--rebuild): {', '.join(files)}"
    code, found = said(capsys, str(built))
    assert code == 0 and found["not_proved"] == files and found["ok"] is True and found["unproved"] == {}


def test_a_folder_that_is_not_there_is_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(tmp_path / "none")]) == 2
    assert "E0850" in capsys.readouterr().err


def test_compilers_are_run_again(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing is taken from a cache."""
    assert run(["verify", str(copy), "--rebuild"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "every file was made again"
    library = (copy / "lib/libtexpr_scale.so").read_bytes()
    put(copy, {"lib/libtexpr_scale.so": library[:-1] + b"!"})
    assert run(["verify", str(copy)]) == 0
    assert run(["verify", str(copy), "--rebuild"]) == 1
    assert "not what the compilers make: lib/libtexpr_scale.so" in capsys.readouterr().err


def test_the_program_is_the_authors(built: Path, source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """At the sizes that were recorded."""
    assert run(["verify", str(built), "--source", str(source)]) == 0
    for old, new in (("f32(by) *", "f32(by) +"), ("fn scale", "fn scaled"), ("split(i, 16)", "split(i, 32)")):
        other = tmp_path / "other.te"
        text = SOURCE.replace(old, new)
        other.write_text(text if new != "fn scaled" else text.replace("schedule scale", "schedule scaled"))
        code = run(["verify", str(built), "--source", str(other)])
        assert code == (0 if "split" in old else 1)  # a schedule makes no other program
    told = capsys.readouterr().err
    assert "not the program of the source: proof/cpu/scale.written.te" in told and "has no function `scale`" in told


def test_consts_of_an_author_that_were_given_to_the_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They are in no plan, so they are recorded."""
    file, out = tmp_path / "fill.te", str(tmp_path / "out")
    file.write_text(CONST)
    assert run(["build", str(file), "--for", "cpu", "--size", "T=3", "-o", out]) == 0
    assert run(["verify", out, "--source", str(file)]) == 0
    manifest = Path(out) / "manifest.json"
    put(Path(out), {"manifest.json": manifest.read_text().replace('"T": 3', '"T": 4')})
    assert run(["verify", out, "--source", str(file)]) == 1
    assert "not the program of the source" in capsys.readouterr().err


def test_what_is_unproved_has_a_code_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "shift.te").write_text(OPEN)
    out = tmp_path / "out"
    assert run(["build", str(tmp_path / "shift.te"), "--for", "cpu", "-o", str(out)]) == 0
    assert run(["verify", str(out)]) == 0, "all of it is proved"
    tags = (out / "proof/cpu/shift.tags").read_text()
    less = re.sub(" does 0 .*?  --", " hole 0 []  --", tags)  # which says too little, and is recorded as that
    assert less != tags
    put(out, {"proof/cpu/shift.tags": less})
    record(out)
    code, found = said(capsys, str(out))
    assert code == 4 and found["ok"] is False
    assert found["unproved"] == {"cpu/shift": {"plan": 3, "schedule": 0}}
    assert run(["verify", str(out)]) == 4
    assert "cpu/shift: unproved: 3 of the things that its kernels have to keep" in capsys.readouterr().out


def record(out: Path) -> None:
    """The proof that is made of what lies there, as it is recorded."""
    from tests.artifact.test_consistent import remade  # noqa: PLC0415

    again = remade(out, out.parent / "again", lambda _: None)
    shutil.rmtree(out)
    shutil.move(again, out)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A private key, its public one, and another public one, as openssl makes them."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("one", "two"):
        for words in (
            ["genpkey", "-algorithm", "ed25519", "-out", name],
            ["pkey", "-in", name, "-pubout", "-out", f"{name}.pub"],
        ):
            subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)
    return folder / "one", folder / "one.pub", folder / "two.pub"


@pytest.fixture(scope="module")
def signed(source: Path, keys: tuple[Path, Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("signed") / "out"
    assert run(["build", str(source), "--for", "cpu", "-o", str(out), "--sign", str(keys[0])]) == 0
    return out


def test_a_signature_holds_for_its_key(signed: Path, keys: tuple[Path, Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """What openssl says, too, which shares no code with this."""
    code, found = said(capsys, str(signed), "--key", str(keys[1]))
    assert code == 0 and found["signed_by_key"] is True and SIGNATURE not in str(found["not_proved"])
    raw = signed.parent / "raw"
    raw.write_bytes(base64.b64decode((signed / SIGNATURE).read_bytes().removeprefix(b"ed25519 ")))
    words = ["pkeyutl", "-verify", "-pubin", "-inkey", keys[1], "-rawin", "-in", signed / SUMS, "-sigfile", raw]
    assert subprocess.run(["openssl", *map(str, words)], capture_output=True, check=False).returncode == 0
    code, found = said(capsys, str(signed))
    assert code == 0 and found["signed"] is True and found["signed_by_key"] is False and SIGNATURE in str(found["not_proved"])


def test_hashes_that_were_mended_are_not_signed(
    signed: Path, built: Path, keys: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, public, other = keys
    copy = shutil.copytree(signed, tmp_path / "copy")
    assert run(["verify", str(copy), "--key", str(other)]) == 1
    put(copy, {"lib/libtexpr_scale.so": b"evil"})
    signature = (copy / SIGNATURE).read_bytes()
    assert run(["verify", str(copy)]) == 0, "without a key nobody knows"
    assert run(["verify", str(copy), "--key", str(public)]) == 1
    assert "not signed by this key" in capsys.readouterr().err
    for bad in (b"", signature[:-2], signature + b"\n", b"rsa " + signature[8:], signature[:20] + b"A" + signature[21:]):
        (copy / SIGNATURE).write_bytes(bad)
        assert run(["verify", str(copy), "--key", str(public)]) == 1
    assert run(["verify", str(built), "--key", str(public)]) == 1
    assert "not signed: there is no SHA256SUMS.sig" in capsys.readouterr().err
    for key in (one, tmp_path / "none", built / SUMS):
        assert run(["verify", str(signed), "--key", str(key)]) == 2


def test_a_key_that_is_none_builds_nothing(
    source: Path, keys: tuple[Path, Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["build", str(source), "--for", "cpu", "-o", str(tmp_path / "out"), "--sign", str(keys[1])]) == 2
    assert "E0823" in capsys.readouterr().err and not (tmp_path / "out").exists()


def test_where_the_package_is_missing_its_extra_is_named(
    signed: Path, keys: tuple[Path, Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == "cryptography"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    assert run(["verify", str(signed), "--key", str(keys[1])]) == 2
    told = capsys.readouterr().err
    assert "E0824" in told and "pip install 'texpr-compiler[sign]'" in told


def test_manifests_that_nobody_built(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    deep = '{"format": ' + "[" * 100_000 + "]" * 100_000 + "}"
    text = (copy / "manifest.json").read_text()
    odd = [deep, "[" * 100_000, '{"format": NaN}', "\ufeff{}", '{"format": "texpr-artifact 4"}']
    swaps = (('"n"', "1e400"), ('"functions": [', '"functions": [3, '), ("cpu", "tpu"), ("false", "9" * 9999))
    for other in (*odd, *(text.replace(*each) for each in swaps)):
        assert other != text
        assert run(["verify", str(put(copy, {"manifest.json": other}))]) == 1
    assert run(["verify", str(put(copy, {"manifest.json": b"\xff"}))]) == 1
    assert "internal error" not in capsys.readouterr().err


@pytest.mark.parametrize("end", ["plan", "te", "tags", "written.te", "notes"])
def test_texts_that_are_nested_too_deeply(copy: Path, end: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = f"proof/cpu/scale.{end}"
    text = (copy / path).read_text()
    at = text.index("16") if "16" in text else text.index("n")
    put(copy, {path: text[:at] + "(" * 50_000 + text[at:]})
    assert run(["verify", str(copy)]) == 1
    assert "internal error" not in capsys.readouterr().err


def test_folders_that_are_larger_than_artifacts(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file without an end, by its size and by its bytes; too many files; folders in folders without an end."""
    with (copy / "large").open("wb") as file:
        file.truncate(folder.LARGEST_FILE + 1)
    assert run(["verify", str(copy)]) == 1
    (copy / "large").unlink()
    (copy / "zero").symlink_to("/dev/zero")
    assert run(["verify", str(copy)]) == 1
    (copy / "zero").unlink()
    inner = copy
    for _ in range(40):
        inner = inner / "d"
    inner.mkdir(parents=True)
    assert run(["verify", str(copy)]) == 1
    shutil.rmtree(copy / "d")
    assert run(["verify", str(copy)]) == 0
    monkeypatch.setattr(folder, "MOST_FILES", 20)
    assert run(["verify", str(copy)]) == 1
    monkeypatch.setattr(folder, "MOST_FILES", 20_000)
    monkeypatch.setattr(folder, "LARGEST", 10_000)
    assert run(["verify", str(copy)]) == 1
    told = capsys.readouterr().err
    assert told.count("E0822") == 3 and "a link: zero" in told and "folders lie too deep" in told


def test_names_of_files_that_are_no_text(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (Path(str(copy).encode().decode()) / "a\udcff\n").write_bytes(b"")
    code, found = said(capsys, str(copy))
    assert code == 1 and "not listed" in json.dumps(found)


def test_time_and_memory_have_an_end() -> None:
    def late() -> TexprError:
        return TexprError(())

    with pytest.raises(TexprError), bounded(1, 1 << 40, late):
        while True:
            pass
    with pytest.raises(MemoryError), bounded(1000, 1 << 26, late):
        bytearray(1 << 28)
    assert len(bytearray(1 << 27)) == 1 << 27


def test_a_forged_artifact_has_the_code_of_what_is_wrong(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    swap(copy, "src/scale.cpp", "return texpr_found;", "return TEXPR_OK;")
    mend(copy)
    assert run(["verify", str(copy)]) == 1
    assert "not what follows from its plans: src/scale.cpp" in capsys.readouterr().err
