"""What the compiler makes of every program of the examples, kept as digests: `python -m tests.snapshot`, or `make snapshot`.

A change that is to alter no behaviour leaves `tests/snapshot.json` as it is. One that alters some writes it anew by
`--write`, and its commit says which text changed and why. Kept are, for each program, target and schedule: the source, the
plan, what is proved and by which tags, or else the text of the refusal; how much a kernel synchronises; and of planted bugs
what is said of each. `make snapshot` makes everything twice, with different seeds of Python's hashes.

    python -m tests.snapshot                  compares; names what differs; fails where something does
    python -m tests.snapshot --write          keeps what is made now
    python -m tests.snapshot --texts DIR      writes the texts themselves, to compare two states of the compiler by `diff -r`
    python -m tests.snapshot examples/sum.te  the same of some programs only
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path

from tests.proof.plan.mutants import mutants

from texpr import artifact, driver
from texpr.ir import kernel as k
from texpr.ir.proof import Verdict
from texpr.proof.search import proved
from texpr.support.diagnostic import CompilerBug, TexprError
from texpr.support.record import Record, field
from texpr.support.render import render

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).with_name("snapshot.json")
TARGETS = ("cpu", "sm_80", "sm_90a", "sm_100a")
FOLDERS = ("examples", "examples/scheduled", "examples/tma", "tests/proof/plan/everyday")
PLANTED = (("saxpy", "sm_90a"), ("saxpy", "cpu"), ("transpose", "sm_90a"), ("sum", "sm_90a"))
SYNCHRONISES = (k.Barrier, k.BarrierWait, k.BarrierArrive, k.BarrierExpect, k.WaitAsync, k.WaitBulk, k.CommitAsync, k.Fence)

OPEN = (Verdict.REFUSED, Verdict.UNDECIDED)


class Entry(Record):
    """What was made of one program, target and schedule: texts by name, digests of them, and how much kernels synchronise."""

    digests: dict[str, str]
    synchronises: dict[str, int] = field(default_factory=dict[str, int])
    texts: dict[str, str] = field(default_factory=dict[str, str])


Made = dict[str, Entry]


def programs() -> list[Path]:
    """All programs that are kept."""
    return [path for folder in FOLDERS for path in sorted((ROOT / folder).glob("*.te"))]


def made_of(path: Path) -> Made:
    """What is made of the functions of a program, for each target and schedule."""
    found: Made = {}
    name = path.relative_to(ROOT).with_suffix("").as_posix()
    try:
        functions = driver.load(path).functions
    except TexprError as why:
        return {name: _texts(refusal=_said(why))}
    for function in functions:
        for target in TARGETS:
            for schedule in ("auto", None, *function.schedules):
                said = schedule if schedule is None or isinstance(schedule, str) else schedule.name
                try:
                    compiled = driver.lower(function, target, schedule=schedule)
                    shown = artifact.show(compiled.function, compiled.plan, compiled.written)
                except (TexprError, CompilerBug) as why:
                    made = _texts(refusal=_said(why))
                else:
                    proof = json.dumps(shown.proof, indent=1, sort_keys=True)
                    made = _texts(
                        synchronises(compiled.plan),
                        source=compiled.source, plan=shown.plan, program=shown.program, tags=shown.tags, proof=proof,
                        **_wide(compiled.wide),
                    )  # fmt: skip
                found[f"{name} {function.name} {target} {said}"] = made
    return found


def _wide(compiled: driver.Compiled | None) -> dict[str, str]:
    """The same of a wide plan, as one text, or why it is left out."""
    if compiled is None:
        return {}
    try:
        shown = artifact.show(compiled.function, compiled.plan, compiled.written)
    except TexprError as why:
        return {"wide": f"left out: {why}"}
    proof = json.dumps(shown.proof, indent=1, sort_keys=True)
    return {"wide": "\n".join((shown.plan, shown.program, shown.tags, shown.notes or "", proof))}


def synchronises(plan: k.Plan) -> dict[str, int]:
    """How many statements of a plan's kernels make threads wait, or say that others need not."""
    counts = Counter(type(s).__name__ for kernel in k.kernels(plan.steps) for s in k.walk(kernel.body))
    return {kind.__name__: counts[kind.__name__] for kind in SYNCHRONISES if counts[kind.__name__]}


def verdicts(name: str, target: str) -> Made:
    """What is said of each bug that is planted into the kernels of a program."""
    said: list[str] = []
    for function in driver.load(ROOT / "examples" / f"{name}.te").functions:
        schedule = next(iter(function.schedules), None)
        compiled = driver.lower(function, target, schedule=schedule)
        for mutant in mutants(compiled.plan):
            open = {o.verdict.value for o in proved(compiled.function, mutant.plan).obligations if o.verdict in OPEN}
            said.append(f"{mutant.name}: {', '.join(sorted(open)) or 'proved'}")
    return {f"bugs in {name} {target}": _texts(verdicts="\n".join(said))}


def _said(why: TexprError | CompilerBug) -> str:
    text = "\n".join(map(render, why.diagnostics)) if isinstance(why, TexprError) else f"a bug of the compiler: {why}"
    return text.replace(f"{ROOT}/", "")


def _texts(synchronises: dict[str, int] | None = None, **texts: str) -> Entry:
    digests = {name: sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}
    return Entry(digests, synchronises or {}, texts)


def make(paths: Iterable[Path], bugs: Iterable[tuple[str, str]], processes: int) -> Made:
    """What is made of programs, and of planted bugs, in the order of their names."""
    with ProcessPoolExecutor(processes) as pool:
        parts = [*pool.map(made_of, paths), *pool.map(verdicts, *zip(*bugs, strict=True))] if bugs else pool.map(made_of, paths)
        return {name: made for part in parts for name, made in sorted(part.items())}


def differences(kept: Made, made: Made) -> Iterator[str]:
    """What is not as it was kept, a line each."""
    for name in dict.fromkeys((*kept, *made)):
        old, new = kept.get(name), made.get(name)
        if old is None or new is None:
            yield f"{name}: {'new' if old is None else 'no longer made'}"
        elif other := [n for n in dict.fromkeys((*old.digests, *new.digests)) if old.digests.get(n) != new.digests.get(n)]:
            yield f"{name}: another {', '.join(other)}"


def waits(kept: Made, made: Made) -> Iterator[str]:
    """Where kernels synchronise in another way, and where more: a table."""
    for name, new in made.items():
        before, after = kept.get(name, new).synchronises, new.synchronises
        if before != after:
            counts = (f"{kind} {before.get(kind, 0)} → {after.get(kind, 0)}" for kind in sorted({*before, *after}))
            more = sum(after.values()) > sum(before.values())
            yield f"{name}: {', '.join(counts)}{' (more)' if more else ''}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compares or writes; the exit status."""
    parser = argparse.ArgumentParser(description="what the compiler makes of the examples, compared with what is kept")
    parser.add_argument("programs", nargs="*", type=Path, help="these alone (default: all, and planted bugs)")
    parser.add_argument("--write", action="store_true", help="keep what is made now")
    parser.add_argument("--texts", type=Path, help="write the texts into this folder")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args(arguments)
    paths, bugs = ([path.resolve() for path in given.programs], ()) if given.programs else (programs(), PLANTED)
    made = make(paths, bugs, given.processes)
    if given.texts is not None:
        write_texts(given.texts, made)
    names = {path.relative_to(ROOT).with_suffix("").as_posix() for path in paths}
    kept = read()
    others = {name: each for name, each in kept.items() if given.programs and name.split()[0] not in names}
    if given.write:
        every = {**{name: each for name, each in kept.items() if name in others or name in made}, **made} if others else made
        data = {name: {**each.digests, "synchronises": each.synchronises} for name, each in every.items()}
        KEPT.write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        return 0
    kept = {name: each for name, each in kept.items() if name not in others}
    found = [*differences(kept, made)]
    sys.stdout.write("".join(f"{line}\n" for line in (*found, *waits(kept, made), f"{len(made)} made, {len(found)} differ")))
    return 1 if found else 0


def write_texts(folder: Path, made: Made) -> None:
    """Each text in a file of its own."""
    for name, each in made.items():
        place = folder / name.replace(" ", "/")
        place.mkdir(parents=True, exist_ok=True)
        for key, text in each.texts.items():
            (place / key).write_text(text, encoding="utf-8")


def read() -> Made:
    """What is kept."""
    data = json.loads(KEPT.read_text(encoding="utf-8"))
    return {
        name: Entry({k: v for k, v in each.items() if k != "synchronises"}, each["synchronises"]) for name, each in data.items()
    }


if __name__ == "__main__":
    sys.exit(main())
