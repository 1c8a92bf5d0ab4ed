"""An artifact carries the tags that prove it: who proves it again searches for nothing, and believes nothing of them."""

from __future__ import annotations

import json
import random
import shutil
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from tests.artifact.forging import mend
from tests.ir.some_tags import altered
from tests.proof.plan.mutants import mutants
from tests.proof.plan.verdicts import is_proved

import texpr
from texpr import artifact, driver
from texpr.artifact.certificate import numbered, written
from texpr.artifact.check.recheck import FAULTS
from texpr.artifact.place import MANIFEST
from texpr.ir import kernel as k
from texpr.ir.kernel.parse import parse_plan
from texpr.ir.kernel.text import plan_text
from texpr.ir.program import Function
from texpr.ir.program.selection import Selected
from texpr.ir.program.text import print_function
from texpr.ir.proof import Proof
from texpr.ir.proof.tags_parse import parse_tags
from texpr.proof.plan import Question, prove, question
from texpr.proof.search import certified, proved, search
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import replace
from texpr.toolchain.workers import shared

EXAMPLES = Path(__file__).parents[2] / "examples"
SIZES = {"conv2d": {"stride": 2, "dilation": 1, "padding": 1}}
GALLERY = [
    (path.stem, target, schedule)
    for path in sorted(EXAMPLES.glob("*.te"))
    for target in ("cpu", "sm_90a")
    for schedule in ("auto", None)
]
TMA = sorted((EXAMPLES / "tma").glob("*.te"))

TEXT = """
combine further(a: f32, b: f32): f32 identity 0.0 { return select(abs(a) > abs(b), a, b) }

fn ends(x: f32[m, n]): (f32[m], f32[m])
{
    new far: f32[m]
    new sum: f32[m]
    par m |i| {
        new top: f32
        top = 0.0
        par n |j| reduce(top) { top further= x[i, j] }
        far[i] = top
        new total: f32
        total = 0.0
        par n |j| reduce(total) { total += x[i, j] }
        sum[i] = total
    }
    return (far, sum)
}
"""


def same_by_text(function: Function, plan: k.Plan) -> None:
    """The text of the tags that are found says the same, and proves the same."""
    found = certified(question(function, plan), plan)
    text = written(found.tags, found.asked)
    again = parse_tags(text, numbered(question(function, plan)))
    assert again == found.tags
    assert prove(question(function, plan), plan, again).data == found.proof.data


@pytest.mark.parametrize(("name", "target", "schedule"), GALLERY, ids=["-".join(map(str, each)) for each in GALLERY])
def test_tags_of_the_gallery_survive(name: str, target: str, schedule: Selected) -> None:
    for function in driver.load(EXAMPLES / f"{name}.te", SIZES.get(name, {})).functions:
        compiled = driver.lower(function, target, schedule=schedule)
        same_by_text(compiled.function, compiled.plan)


@pytest.mark.parametrize("path", TMA, ids=[path.stem for path in TMA])
def test_tags_of_boxes_and_phases_survive(path: Path) -> None:
    """Swizzled tiles among them: what is shipped is proved from its texts, as much as what was compiled."""
    for function in driver.load(path).functions:
        for schedule in (*function.schedules, None):
            compiled = driver.lower(function, "sm_100a" if path.stem == "permuted" else "sm_90a", schedule=schedule)
            same_by_text(compiled.function, parse_plan(plan_text(compiled.plan)))
            shipped_whole(compiled)


def shipped_whole(compiled: driver.Compiled) -> None:
    """All of what a proof needs can be said, and proves as much."""
    shown = artifact.show(compiled.function, compiled.plan)
    assert shown.proof["counts"] == proved(compiled.function, compiled.plan).counts


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
def test_lines_of_the_shipped_texts_mislead_nobody(target: str) -> None:
    """Lines of a shipped plan are not those of its program: a search that took them for hints refused these."""
    for name in ("matmul", "conv2d"):
        (function,) = driver.load(EXAMPLES / f"{name}.te", SIZES.get(name, {})).functions
        shipped_whole(driver.lower(function, target, schedule=None))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("certificate") / "out"
    texpr.build(texpr.parse(TEXT)["ends"], "cpu", directory)
    return directory


def put(directory: Path, **texts: str | None) -> Path:
    """Files by their last part, written or deleted, the hashes made right again."""
    for end, text in texts.items():
        (file,) = (each for each in directory.rglob("*") if each.is_file() and each.name.endswith(end))
        if text is None:
            file.unlink()
        else:
            file.write_text(text, encoding="utf-8")
    return mend(directory)


def told(directory: Path) -> list[str]:
    """What `verify` says is wrong."""
    with pytest.raises(TexprError) as refused:
        artifact.verify(directory)
    (found,) = refused.value.diagnostics
    assert found.code == "E0821"
    return [note.text for note in found.notes]


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "out")
    return tmp_path / "out"


def text_of(directory: Path, end: str) -> str:
    (file,) = directory.rglob(f"*{end}")
    return file.read_text(encoding="utf-8")


def test_who_verifies_searches_for_nothing(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A function with a user's update among them."""

    def searched(*_: object) -> None:
        raise AssertionError("there was a search")

    for file, names in (("certificate", ("search", "certified", "trials")), ("search", ("search", "ends", "turns"))):
        for name in names:
            monkeypatch.setattr(sys.modules[f"texpr.proof.search.{file}"], name, searched)
    assert artifact.verify(built).name == "ends"
    assert "joins combiner further" in text_of(built, ".tags")


def test_a_build_searches_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Question] = []

    def counted(question: Question) -> object:
        asked.append(question)
        return search(question)

    for room in ("texpr.artifact.proofs", "texpr.proof.search.certificate"):
        monkeypatch.setattr(sys.modules[room], "search", counted)
    texpr.build(texpr.parse(TEXT)["ends"], "cpu", tmp_path / "out")
    assert len(asked) == 1


ALTERED = [
    (" does 0 [i]", " does 2 [i]", "not built as line"),
    (" does 0 [i]", " does 0 [i + 1]", "refused, not at"),
    (" does 0 [i]", " does 0 []", "not built as line"),
    (" does 0 [i] at [i]", " hole 0 []", "each instance is done"),
    (" does 0 [i]", " does 0 [nobody]", "refused, not at"),
    (" does 0 [i]", " does 7 [i]", "ends.tags:9:18: there are 6 statements only, from 0 on"),
    (" does 0 [i] at [i]", "", "each instance is done"),
    (" does 0 [i]", " does 0 [i / (n - n)]", "expected what is not 0"),
    (" does 0 [i]", f" does 0 [{'(' * 5000}]", "what stands here is nested too deeply"),
    ("joins combiner further", "joins max", "is not joined with another by what the program updates with"),
    ("events ", "events 1", "the tags are of another plan"),
    ("event 1 ", "event 2 ", "expected event 1"),
    ("tags ends", "tag ends", "expected `tags`"),
    ("tags ends", "tags begins", "ends.tags:1:6: expected tags of `ends`"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "said"), ALTERED, ids=[str(at) for at in range(len(ALTERED))])
def test_altered_tags_are_refused_with_the_reason(copy: Path, old: str, new: str, said: str) -> None:
    tags = text_of(copy, ".tags")
    assert old in tags
    (found,) = told(put(copy, **{".tags": tags.replace(old, new, 1)}))
    assert found.startswith("not proved as it was by its tags: proof/cpu/ends.plan: ") and said in found


def test_tags_or_program_that_are_missing(copy: Path) -> None:
    for end in (".tags", ".te"):
        text = text_of(copy, end)
        (found,) = told(put(copy, **{end: None}))
        assert found == f"missing: proof/cpu/ends{end}"
        (copy / f"proof/cpu/ends{end}").write_text(text, encoding="utf-8")


def test_what_is_open_does_not_pass_though_the_proof_says_so(copy: Path) -> None:
    """Planted: `proof.json` is what the altered tags prove, so both agree."""
    tags = text_of(copy, ".tags").replace(" does 0 [i] at [i]", "", 1)
    function = texpr.parse(text_of(copy, ".te"))["ends"]
    plan = parse_plan(text_of(copy, ".plan"))
    asked = question(function, plan)
    open_one = prove(asked, plan, parse_tags(tags, numbered(asked))).data
    assert open_one["counts"]["refused"]
    data = json.loads(text_of(copy, "proof.json"))
    data["targets"]["cpu"] = [open_one]
    (found,) = told(put(copy, **{".tags": tags, "proof.json": json.dumps(data, indent=1, ensure_ascii=False) + "\n"}))
    assert "by its tags" in found and "each instance is done, line 10, top: refused" in found


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (".te", ""), (".te", "fn"), (".plan", ""), (".plan", "plan ends { launch"), (".plan", "plan ends size n / 0 { }"),
        (".plan", "plan ends { launch a }\n\nkernel a { y[0] = 1.0:f32 }"), (".plan", f"plan a require {'(' * 9000}n {{ }}"),
    ],
)  # fmt: skip
def test_plans_and_programs_that_nobody_built_are_refused(copy: Path, end: str, text: str) -> None:
    assert told(put(copy, **{end: text}))


def test_another_version_is_named(copy: Path) -> None:
    """Its texts are others, and its tags may mean something else."""
    manifest = text_of(copy, MANIFEST).replace(f'"texpr": "{texpr.__version__}"', '"texpr": "0.0.7"')
    with pytest.raises(TexprError) as refused:
        artifact.verify(put(copy, **{MANIFEST: manifest}))
    (found,) = refused.value.diagnostics
    assert found.code == "E0820" and f"this is {texpr.__version__}" in found.message
    assert found.help == "build it again, or verify it with texpr 0.0.7, which built it"


@pytest.mark.parametrize("manifest", ['{"format": "texpr-artifact 1", "texpr": "0.0.7"}', "[]", '{"format": []}'])
def test_an_older_format_is_named(copy: Path, manifest: str) -> None:
    with pytest.raises(TexprError) as refused:
        artifact.verify(put(copy, **{MANIFEST: manifest}))
    (found,) = refused.value.diagnostics
    assert found.code == "E0820" and found.help is not None
    if "0.0.7" in manifest:
        assert found.help == "build it again, or verify it with texpr 0.0.7, which built it"


def test_several_processes_find_the_same(copy: Path) -> None:
    put(copy, **{".tags": text_of(copy, ".tags").replace(" does 0 [i]", " does 0 []", 1)})
    alone = told(copy)
    with pytest.raises(TexprError) as refused:
        artifact.verify(copy, lambda work, names: shared(work, names, 2))
    assert [note.text for note in refused.value.diagnostics[0].notes] == alone


def proof_by(text: str, asked: Question, plan: k.Plan) -> Proof | None:
    """What tags that may be anything prove; None where they are refused."""
    try:
        return prove(asked, plan, parse_tags(text, numbered(asked)))
    except (TexprError, *FAULTS):
        return None


def misled(name: str, target: str, schedule: Selected, turns: int, every: int = 1) -> Iterator[tuple[str, bool | None]]:
    """Bugs in a plan, with the right plan's tags as they are and altered; and whether that is a proof, if it can be read."""
    rng = random.Random(f"{name} {target}")
    (function,) = driver.load(EXAMPLES / f"{name}.te").functions
    compiled = driver.lower(function, target, schedule=schedule)
    asked = question(compiled.function, compiled.plan)
    text = written(search(asked), asked)
    for mutant in islice(mutants(compiled.plan), 0, None, every):
        bad = question(compiled.function, mutant.plan)
        if is_proved(prove(bad, mutant.plan, search(bad))):
            continue  # it changes no result
        others = (other for _ in range(turns) for other in altered(text, rng))
        for said in (text, *others):
            found = proof_by(said, bad, mutant.plan)
            yield mutant.name, None if found is None else is_proved(found)


def test_no_text_of_tags_proves_a_bug() -> None:
    found = [
        *misled("saxpy", "sm_90a", None, 1, 3),
        *misled("sum", "cpu", None, 1, 3),
        *misled("softmax", "sm_90a", None, 1, 30),
    ]
    assert sum(each[1] is not None for each in found) > 60
    assert not [each for each in found if each[1]]


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "target", "schedule", "every"),
    [
        ("transpose", "sm_90a", None, 1),
        ("cholesky", "sm_90a", None, 3),
        ("softmax", "sm_90a", None, 1),
        ("matmul", "sm_90a", "auto", 8),
        ("tma/copy", "sm_90a", "auto", 1),
    ],
)
def test_no_text_of_tags_proves_any_bug(name: str, target: str, schedule: Selected, every: int) -> None:
    found = list(misled(name, target, schedule, 3, every))
    assert sum(each[1] is not None for each in found) > 100
    assert not [each for each in found if each[1]]


def test_altered_tags_of_a_right_plan_prove_it_or_are_refused() -> None:
    """Whatever is raised is one of a few kinds, and what is proved is what was to be proved."""
    rng, proved_by, refused = random.Random(11), 0, 0
    for name, target in (("softmax", "sm_90a"), ("tma/matmul_ring", "sm_90a"), ("argmax", "cpu")):
        (function,) = driver.load(EXAMPLES / f"{name}.te").functions
        compiled = driver.lower(function, target, schedule="auto")
        asked = question(compiled.function, compiled.plan)
        text = written(search(asked), asked)
        for other in (other for _ in range(6) for other in altered(text, rng)):
            found = proof_by(other, asked, compiled.plan)
            if found is not None and is_proved(found):
                proved_by += 1
            else:
                refused += 1
    assert refused > proved_by


def test_a_program_that_lets_it_pass_stays_one(tmp_path: Path) -> None:
    """`#unproved` is in the text that is shipped, so what is open there may be so again."""
    text = "fn shift(x: f32[n]): f32[n] #unproved { new y: f32[n] par n |i| { y[i] = x[i] + 1.0 } return y }"
    directory = tmp_path / "out"
    texpr.build(texpr.parse(text)["shift"], "cpu", directory)
    assert "#unproved" in text_of(directory, ".te") and artifact.verify(directory).name == "shift"


def test_lines_are_those_of_the_plan(built: Path) -> None:
    lines = text_of(built, ".plan").splitlines()
    events = [line for line in text_of(built, ".tags").splitlines() if line.lstrip().startswith("event")]
    assert events
    for event in events:
        said = event.split("--")[1].strip()
        place, _, number = said.rpartition(", line ")
        assert place.split("[")[0] in lines[int(number) - 1]


def test_what_the_language_cannot_say_is_not_shipped() -> None:
    """It could not be proved again."""
    function = driver.load(EXAMPLES / "saxpy.te").functions[0]
    compiled = driver.lower(function, "cpu")
    assert print_function(compiled.function)
    spoilt = replace(compiled.function, name="no name")
    with pytest.raises(CompilerBug, match="cannot be read as it is written"):
        artifact.show(spoilt, replace(compiled.plan, name="no name"))


@pytest.mark.parametrize("other", ["more", "renamed", "[]", "{", '{"targets": []}'])
def test_another_record_of_the_proof_is_found(copy: Path, other: str) -> None:
    record = text_of(copy, "proof.json")
    edited = {"more": record + "\n", "renamed": record.replace('"function": "ends"', '"function": "other"')}
    assert told(put(copy, **{"proof.json": edited.get(other, other)})) == ["not proved as it was: proof.json"]
