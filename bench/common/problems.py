"""Problems as a list, and what a ratio of bounds says of a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "bench" / "problems"
LIST = FOLDER / "list.txt"
VERDICTS = ("good", "mediocre", "bad", "none")
GOOD, MEDIOCRE = 1.3, 2.0


@dataclass(frozen=True, slots=True)
class Problem:
    """A function of a file, and its sizes."""

    kind: str
    name: str
    file: Path
    function: str
    sizes: Mapping[str, int]


def problems(text: str) -> list[Problem]:
    """The problems of a list. Raises ValueError where a line is none, or a name occurs twice."""
    found: list[Problem] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) < 4 or ":" not in words[2]:
            raise ValueError(f"line {number}: CLASS NAME FILE:FUNCTION SIZE=N …")
        kind, name, where, *sizes = words
        file, _, function = where.partition(":")
        path = ROOT / file if file.endswith(".te") else FOLDER / f"{file}.te"
        pairs = [size.partition("=") for size in sizes]
        found.append(Problem(kind, name, path, function, {key: int(value) for key, _, value in pairs}))
    twice = [name for name, times in Counter(each.name for each in found).items() if times > 1]
    if twice:
        raise ValueError(f"named twice: {', '.join(twice)}")
    return found


def verdict(ratio: float | None) -> str:
    """What the bound of a plan over that of any program says; None: there is no plan."""
    if ratio is None:
        return "none"
    return "good" if ratio <= GOOD else "mediocre" if ratio <= MEDIOCRE else "bad"


def counted(verdicts: Iterable[str]) -> dict[str, int]:
    """How many there are of each."""
    found = Counter(verdicts)
    return {each: found[each] for each in VERDICTS}
