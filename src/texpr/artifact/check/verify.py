"""`texpr verify DIR`: is a folder what a build of this version leaves, and are its plans proved again?

The folder is not trusted. Plans are proved against their programs; every other text is derived again from these plans by the
code of `build`, and compared completely; unexpected files are errors. Binaries are compared if the compilers are run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

from texpr import __version__
from texpr.artifact.certificate import PROOF, Data, program_text, proof_path, proofs_text
from texpr.artifact.check.derived import derived, different, read_parts
from texpr.artifact.check.folder import Folder, notes, printable, read_folder
from texpr.artifact.check.recheck import FAULTS, recheck, told_of
from texpr.artifact.packages import package_for, package_of
from texpr.artifact.place import MANIFEST, SIGNATURE, SUMS, TUNED, hashes, sums
from texpr.artifact.record import Recorded, load_json, read_record
from texpr.artifact.texts.manifest import FORMAT
from texpr.artifact.texts.sources import Part
from texpr.artifact.tools import Share, Tools, in_turn
from texpr.ir.program import Function
from texpr.support.diagnostic import error
from texpr.support.record import Record

Authored: TypeAlias = Callable[[str, Mapping[str, int]], Function]
"""A function of a source, by name, at given sizes, as a build uses it. Raises TexprError."""

Holds: TypeAlias = Callable[[bytes, bytes], bool]
"""Whether a signature belongs to the given bytes."""

CLAIMS = f"{MANIFEST} (tools, flags, consts, registers)"
"""The claims of the manifest that nothing in the artifact proves."""


class Verified(Record):
    """A verified artifact. `proofs`: the new ones, by target; `not_proved`: the files made by compilers that were not run;
    `signed`: whether there is a signature; `by_key`: whether it was verified with the key."""

    name: str
    targets: tuple[str, ...]
    functions: tuple[str, ...]
    files: int
    proofs: Mapping[str, Sequence[Data]]
    not_proved: tuple[str, ...]
    signed: bool
    by_key: bool


def verify(
    directory: Path,
    share: Share = in_turn,
    *,
    rebuild: Tools | None = None,
    source: Authored | None = None,
    key: Holds | None = None,
) -> Verified:
    """The artifact in `directory`, verified; binaries only with `rebuild`.

    `share` distributes the proofs. `source`: the program must be this one; `key`: there must be a signature by this key.
    Raises `TexprError`: not an artifact, or one of another version (E0820); beyond the limits (E0822); files that are
    missing, changed or added, what does not follow from the plans, a proof that fails (E0821).
    """
    folder = read_folder(directory)
    manifest = _manifest(directory, folder)

    def require(wrong: Iterable[str]) -> None:
        if found := [*wrong]:
            raise error("E0821", None, f"{directory} is not as it was built", *notes(found), help="build it again")

    require(_whole(folder, key))
    _require_version(directory, manifest)
    try:
        record = read_record(manifest)
    except FAULTS as why:
        require([f"cannot be read: {MANIFEST}: {told_of(why)}"])
        raise
    parts, wrong = read_parts(folder, record)
    require(wrong)
    expected, wrong = derived(folder, record, parts)
    require(wrong)
    require(different(folder, record, parts, expected))
    require(() if source is None else _unlike(parts, record, source))
    wrong, proofs = recheck(parts, share)
    require(wrong)
    if proofs_text(proofs).encode() != folder.files[PROOF]:
        require([f"not proved as it was: {PROOF}"])
    if rebuild is not None:
        require(_made_otherwise(folder, record, parts, rebuild))
    package = package_of(parts)
    left = () if rebuild is not None else (*sorted((*package.binaries(record), *package.images(parts))), CLAIMS)
    signed = SIGNATURE in folder.files
    unseen = (*((TUNED,) if record.tuned else ()), *((SIGNATURE,) if signed and key is None else ()))
    return Verified(
        record.name, record.targets, record.functions, len(folder.files), proofs, (*left, *unseen), signed, key is not None
    )  # fmt: skip


def _manifest(directory: Path, folder: Folder) -> Mapping[str, Any]:
    """The manifest, in the format of this version. Raises TexprError E0820."""
    try:
        read = load_json(folder.files[MANIFEST])
        hashes(folder.files[SUMS])
    except (ValueError, KeyError, RecursionError) as reason:
        why = f": {told_of(reason)}" if isinstance(reason, ValueError) else ""
        told = f"{directory} is not an artifact: it has no readable {SUMS} and {MANIFEST}{why}"
        raise error("E0820", None, told) from reason
    manifest = cast("dict[str, Any]", read) if isinstance(read, dict) else {}
    if manifest.get("format") != FORMAT:
        said = f"{directory} has a manifest of the format {_short(manifest.get('format'))}, not {FORMAT!r}"
        raise error("E0820", None, said, help=_other(manifest))
    return manifest


def _require_version(directory: Path, manifest: Mapping[str, Any]) -> None:
    builder = manifest.get("texpr")
    if builder != __version__:
        said = f"texpr {_short(builder)} built {directory}; this is {__version__}, which writes other texts"
        raise error("E0820", None, said, help=_other(manifest))


def _other(manifest: Mapping[str, Any]) -> str:
    builder = manifest.get("texpr")
    named = isinstance(builder, str) and len(builder) < 30 and builder.isascii() and builder.isprintable()
    return f"build it again, or verify it with texpr {builder}, which built it" if named else "build it again"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 60 else f"{text[:60]}…"


def _whole(folder: Folder, key: Holds | None) -> Iterator[str]:
    """Mismatches between files and the list of hashes, or between that list and its signature."""
    yield from folder.strange
    signature = folder.files.get(SIGNATURE)
    if key is not None and signature is None:
        yield f"not signed: there is no {SIGNATURE}"
    if key is not None and signature is not None and not key(signature, folder.files[SUMS]):
        yield f"not signed by this key: {SUMS}"
    there = {path: data for path, data in folder.files.items() if path not in (SUMS, SIGNATURE)}
    known = hashes(folder.files[SUMS])
    yield from (f"missing: {printable(path)}" for path in sorted(known.keys() - there.keys()))
    yield from (f"not listed: {printable(path)}" for path in sorted(there.keys() - known.keys()))
    changed = [path for path in sorted(known.keys() & there.keys()) if hashlib.sha256(there[path]).hexdigest() != known[path]]
    yield from (f"changed: {printable(path)}" for path in changed)
    if not changed and known.keys() == there.keys() and sums(there) != folder.files[SUMS]:
        yield f"not as it is written by texpr: {SUMS}"


def _unlike(parts: Sequence[Part], record: Recorded, source: Authored) -> Iterator[str]:
    """Programs that differ from those of a source."""
    for part in parts:
        for plan, shown in zip(part.plans, part.shown, strict=True):
            path = proof_path(part.target, plan.name, "te" if shown.written is None else "written.te")
            sizes = {**record.consts, **{sym.name: value for sym, value in plan.fixed}}
            wanted = program_text(source(plan.name, sizes))
            if (shown.program if shown.written is None else shown.written) != wanted:
                yield f"not the program of the source: {path}"


def _made_otherwise(folder: Folder, record: Recorded, parts: Sequence[Part], tools: Tools) -> Iterator[str]:
    """Binaries and their records that differ from the output of this machine's compilers."""
    versions = tools.versions(device=package_for(record.targets).platform.device)
    if versions != record.tools:
        for what in sorted({*versions, *record.tools}):
            if versions.get(what) != record.tools.get(what):
                first = (f"{_line(found.get(what))}" for found in (record.tools, versions))
                yield "made by another compiler: {}: {}; here it is {}".format(what, *first)
        return
    package = package_of(parts)
    made = package.make(tools, record.name, parts)
    used = {(f, t, usage.kernel): dict(usage.numbers()) for (f, t), code in made.codes.items() for usage in code.kernels}
    flags = {what: tuple(told) for what, told in made.flags.items()}
    said = ((flags, record.flags, "flags"), (used, record.used, "registers"), (made.libraries, record.libraries, "libraries"))
    yield from (f"not what the compilers say: {what} in {MANIFEST}" for here, there, what in said if here != there)
    if made.fatbin != record.fatbin:
        yield f"not what the compilers make: {'a' if made.fatbin else 'no'} fatbin"
    for path in package.binaries(record):
        if made.files.get(path) != folder.files[path]:
            yield f"not what the compilers make: {path}"


def _line(text: str | None) -> str:
    return "none" if not text else printable(text.splitlines()[0][:100])
