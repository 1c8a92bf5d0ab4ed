"""Builds an artifact: sources, libraries, packages for C++ and Rust, and a manifest, in one folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from texpr import __version__
from texpr.artifact.certificate import Data, proof_of
from texpr.artifact.packages import package_for, package_of
from texpr.artifact.place import BOM, SIGNATURE, SUMS, TUNED, publish, refuse_foreign, sums
from texpr.artifact.proofs import proof_files
from texpr.artifact.record import Recorded, recorded
from texpr.artifact.texts.bom import print_bom
from texpr.artifact.texts.derive import require_names, texts
from texpr.artifact.texts.sources import Part
from texpr.artifact.texts.tuned import print_tuned
from texpr.artifact.tools import DeviceCode, Tools
from texpr.backends.cuda.launcher import print_image
from texpr.ir.kernel.origin import Origin, origin_of
from texpr.support.diagnostic import error
from texpr.support.record import Record


class Artifact(Record):
    """The result of a build: its folder, targets, every file, ptxas' report of each kernel (function, target → binary), and
    the proofs by target."""

    directory: Path
    name: str
    targets: tuple[str, ...]
    files: tuple[str, ...]
    binaries: Mapping[tuple[str, str], DeviceCode]
    proofs: Mapping[str, Sequence[Data]]


def build(
    tools: Tools,
    name: str,
    parts: Sequence[Part],
    directory: Path,
    *,
    version: str = __version__,
    sign: Callable[[bytes], bytes] | None = None,
    consts: Mapping[str, int] | None = None,
    torch: bool = False,
    tuned: bytes | None = None,
) -> Artifact:
    """Builds the functions of `parts` into `directory`, atomically and deterministically.

    `sign` signs the list of hashes. `consts` is recorded: the values of the text's consts. `torch` adds operators of PyTorch,
    `tuned` the report of a search.
    Raises `TexprError`: nothing to build or a mixture of targets (E0805–E0807), a folder that is not an artifact or cannot be
    written (E0810–E0812), a compiler that is missing or broken (E06), what no operator can be (E0846), no report of a search
    of one of the functions (E0847).
    """
    package = package_of(parts)
    require_names(name, parts)
    refuse_foreign(directory)
    made = package.make(tools, name, parts)
    targets = tuple(part.target for part in parts)
    names, origins = [plan.name for plan in parts[0].plans], _origins(parts)
    record = recorded(name, version, targets, names, origins, made, consts or {}, torch, tuned is not None)
    written = {**texts(record, parts), **proof_files(parts)}
    files = {**{path: text.encode() for path, text in written.items()}, **made.files}
    for path, (symbol, code) in package.images(parts).items():
        files[path] = print_image(symbol, files[code]).encode()
    if tuned is not None:
        files[TUNED] = report_of(tuned, record).encode()
    files[BOM] = print_bom(record, files).encode()
    listed = sums(files)
    files |= {SUMS: listed} if sign is None else {SUMS: listed, SIGNATURE: sign(listed)}
    publish(directory, files)
    proofs = {part.target: [proof_of(shown) for shown in part.shown] for part in parts}
    return Artifact(directory, name, targets, tuple(sorted(files)), made.codes, proofs)


def report_of(data: bytes, record: Recorded) -> str:
    """The report of a search, of a function that is built. Raises TexprError E0847."""
    try:
        return print_tuned(data, record.functions)
    except (ValueError, RecursionError) as why:
        help = "`texpr tune` writes it: FILE.tune/tune.json"
        raise error("E0847", None, f"what --tuned names cannot be in the artifact: {why}", help=help) from why


def _origins(parts: Sequence[Part]) -> dict[str, Origin]:
    """The source files of functions, with the lines that their plans mention, for some target."""
    found: dict[str, Origin] = {}
    for plan in (plan for part in parts for plan in part.plans):
        origin = origin_of(plan)
        if origin is not None:
            before = found.get(plan.name, origin)
            found[plan.name] = Origin(origin.name, {**before.lines, **origin.lines})
    return found


def refuse_early(tools: Tools, targets: Sequence[str], directory: Path) -> None:
    """Raises early what `build` would raise in any case: for the targets, the folder, and the compilers of this machine."""
    on = package_for(targets).platform
    refuse_foreign(directory)
    tools.versions(device=on.device)
