"""nvcc: locating it, compiling a `.cu` to PTX and a cubin, combining several into a fatbin."""

from __future__ import annotations

import json
import re
import tempfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from texpr.support.diagnostic import Note, TexprError, error
from texpr.support.record import Record, as_dict
from texpr.toolchain.blame import failure
from texpr.toolchain.cache import Cache, key
from texpr.toolchain.host import find_host
from texpr.toolchain.lines import with_lines, without_folders
from texpr.toolchain.machine import Machine
from texpr.toolchain.process import Finished, run
from texpr.toolchain.resources import Resources, resources
from texpr.toolchain.workers import shared

FLAGS = ("-std=c++17", "-O3", "-fmad=false", "-lineinfo", "-I.")
"""No contraction: each operation rounds as written. Division and square root are correctly rounded by default.

`-lineinfo` changes no instruction; `texpr.toolchain.lines` determines the lines.
"""

TO_CUBIN = ("-fmad=false", "-lineinfo", "-Xptxas", "-v")
"""The flags for the step from PTX to a cubin."""

HELP = "install the CUDA toolkit, or `pip install 'texpr-compiler[cuda]'`, which brings the compiler without a driver"

READERS = "install the CUDA toolkit, or `pip install 'texpr-compiler[disassembly]'`, which brings nvdisasm and cuobjdump alone"

_TARGET = re.compile(r"sm_(\d+)([af]?)")


class Nvcc(Record):
    """The CUDA compiler: program, release ("13.0.88"), the architectures that it supports, and its host compiler."""

    program: Path
    release: str
    architectures: frozenset[int]
    host: tuple[str, ...]


class CudaBinary(Record):
    """One `.cu` compiled for one target."""

    target: str
    cubin: bytes
    ptx: bytes
    kernels: tuple[Resources, ...]


def capability(target: str) -> tuple[int, int, str]:
    """`sm_90a` as (9, 0, "a"). Raises `TexprError` E0610."""
    found = _TARGET.fullmatch(target)
    if found is None:
        raise error("E0610", None, f"{target!r} is not a CUDA target", help="write it as sm_80, sm_90a or sm_100a")
    number = int(found.group(1))
    return number // 10, number % 10, found.group(2)


def find_nvcc(machine: Machine) -> Nvcc:
    """The CUDA compiler to use: $NVCC, the search path, $CUDA_HOME, the usual folders, then wheels from PyPI.

    Raises `TexprError`: none is found (E0603), or $NVCC names one that does not exist (E0602).
    """
    chosen = machine.variable("NVCC")
    if chosen:
        program = machine.which(chosen)
        if program is None:
            raise error("E0602", None, f"NVCC is {chosen!r}, which is not a program", help="unset NVCC or correct it")
        return _described(machine, program)
    for place in _places(machine):
        program = machine.which(place)
        if program is not None:
            return _described(machine, program)
    raise error("E0603", None, "no CUDA compiler (nvcc) is found", help=HELP)


def compile_cuda(machine: Machine, nvcc: Nvcc, text: str, headers: Mapping[str, str], target: str) -> CudaBinary:
    """Compiles a `.cu` for `target`, or takes it from the cache.

    Raises `TexprError` where the machine is at fault (E0604–E0608), `CompilerBug` where the text is.
    """
    major, minor, _ = capability(target)
    if major * 10 + minor not in nvcc.architectures:
        told = f"nvcc {nvcc.release} does not know {target}"
        raise error("E0604", None, told, help="use a newer CUDA toolkit; sm_100a needs 12.8 or later")
    names = sorted(headers)
    parts = ("cuda 2", nvcc.release, *nvcc.host, *FLAGS, target, *names, "", text, *(headers[name] for name in names))
    entry = Cache(machine.cache).through(key(parts), lambda: _build(machine, nvcc, text, headers, target))
    records = json.loads(entry.files["resources.json"])
    return CudaBinary(target, entry.files["cubin"], entry.files["ptx"], tuple(Resources(**record) for record in records))


def compile_all(
    machine: Machine,
    nvcc: Nvcc,
    wanted: Sequence[tuple[str, str]],
    headers: Mapping[str, str],
    progress: Callable[[str], None] = lambda done: None,
) -> list[CudaBinary]:
    """Each of `wanted`, a text and a target, compiled by `compile_cuda`; as many in parallel as `machine` has jobs. `progress`
    is called with each that is done."""

    def compiled(at: int) -> bytes:
        found = compile_cuda(machine, nvcc, wanted[at][0], headers, wanted[at][1])
        code = {"cubin": b64encode(found.cubin).decode(), "ptx": b64encode(found.ptx).decode()}
        return json.dumps({**code, "kernels": [as_dict(each) for each in found.kernels]}).encode()

    answers = shared(compiled, [f"a kernel for {target}" for _, target in wanted], machine.jobs)
    found: list[CudaBinary] = []
    for (_, target), answer in zip(wanted, answers, strict=True):
        found.append(_unpacked(target, answer))
        progress(f"nvcc for {target}, {len(found)} of {len(wanted)}")
    return found


def _unpacked(target: str, answer: bytes) -> CudaBinary:
    found = json.loads(answer)
    kernels = tuple(Resources(**record) for record in found["kernels"])
    return CudaBinary(target, b64decode(found["cubin"]), b64decode(found["ptx"]), kernels)


def make_fatbin(machine: Machine, nvcc: Nvcc, codes: Sequence[tuple[str, bytes, bytes]]) -> bytes:
    """One file with code for several targets, each a name, a cubin and PTX; the latter if newer devices can translate it."""
    program = _beside(machine, nvcc, "fatbinary")
    with tempfile.TemporaryDirectory(prefix="texpr-fatbin-") as folder:
        where = Path(folder)
        images: list[str] = []
        for target, cubin, ptx in codes:
            (where / f"{target}.cubin").write_bytes(cubin)
            (where / f"{target}.ptx").write_bytes(ptx)
            name = target.removeprefix("sm_")
            images.append(f"--image3=kind=elf,sm={name},file={target}.cubin")
            if not capability(target)[2]:
                images.append(f"--image3=kind=ptx,sm={name},file={target}.ptx")
        done = run(machine, (program, "-64", "--create=joined.fatbin", *images), cwd=where, seconds=60)
        if done.code != 0:
            raise error("E0607", None, "fatbinary failed", Note(done.command), Note(done.output))
        return (where / "joined.fatbin").read_bytes()


def disassemble(machine: Machine, nvcc: Nvcc, binary: CudaBinary, *, encoding: bool = False, lines: bool = False) -> str:
    """The machine code of a cubin as text; with `encoding` the bits of each instruction, with `lines` where each comes from,
    too. Raises `TexprError` E0609 where there is no nvdisasm."""
    program = _beside(machine, nvcc, "nvdisasm")
    with tempfile.TemporaryDirectory(prefix="texpr-disasm-") as folder:
        (Path(folder) / "kernel.cubin").write_bytes(binary.cubin)
        flags = ("-c", *(["-hex"] if encoding else ()), *(["-gi"] if lines else ()))
        done = run(machine, (program, *flags, "kernel.cubin"), cwd=Path(folder), seconds=60)
        if done.code != 0:
            raise error("E0607", None, "nvdisasm failed", Note(done.command), Note(done.output))
        return done.stdout


def find_beside(machine: Machine, nvcc: Nvcc, tool: str) -> Path | None:
    """A tool of the CUDA toolkit: from nvcc's folder, the search path, or wheels from PyPI, which package it separately."""
    places = (str(nvcc.program.parent / tool), tool, *_wheels(machine, tool))
    return next((found for place in places if (found := machine.which(place)) is not None), None)


def help_for(tool: str) -> str:
    """How to install a missing tool of the CUDA toolkit."""
    return READERS if tool == "nvdisasm" else HELP


def _beside(machine: Machine, nvcc: Nvcc, tool: str) -> Path:
    found = find_beside(machine, nvcc, tool)
    if found is None:
        raise error("E0609", None, f"no `{tool}` is found beside {nvcc.program}", help=help_for(tool))
    return found


def _places(machine: Machine) -> list[str]:
    homes = [home for name in ("CUDA_HOME", "CUDA_PATH") if (home := machine.variable(name))]
    return ["nvcc", *(f"{home}/bin/nvcc" for home in (*homes, *machine.toolkits)), *_wheels(machine, "nvcc")]


def _wheels(machine: Machine, program: str) -> list[str]:
    """The paths of a CUDA program in packages from PyPI, the newest release first."""
    return [str(at) for folder in machine.packages for at in sorted(folder.glob(f"nvidia/c*/bin/{program}"), reverse=True)]


def _described(machine: Machine, program: Path) -> Nvcc:
    said = run(machine, (program, "--version"), seconds=30)
    known = run(machine, (program, "--list-gpu-arch"), seconds=30)
    release = re.search(r"V(\d+\.\d+\.\d+)", said.stdout)
    if said.code != 0 or known.code != 0 or release is None:
        raise error("E0607", None, f"{program} does not run", Note(said.command), Note(said.output + known.output))
    architectures = frozenset(int(number) for number in re.findall(r"compute_(\d+)", known.stdout))
    host = find_host(machine)
    if host.kind == "zig":
        help = "install g++ or clang++ (Debian: apt install g++), or set CXX"
        raise error("E0601", None, "nvcc needs g++ or clang++ beside it; only zig is found", help=help)
    return Nvcc(program, release.group(1), architectures, ("-ccbin", host.command[0]))


def _build(machine: Machine, nvcc: Nvcc, text: str, headers: Mapping[str, str], target: str) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="texpr-cuda-") as folder:
        where = Path(folder)

        def step(flags: Sequence[str], *words: str) -> str:
            """The compiler's messages. A refused text is compiled again without line directives, so that lines are those of
            the text."""
            done = run(machine, (nvcc.program, *nvcc.host, f"-arch={target}", *flags, *words), cwd=where)
            if done.code == 0:
                return done.output
            if "kernel.cu" in words:
                (where / "kernel.cu").write_text(text)
                done = run(machine, (nvcc.program, *nvcc.host, f"-arch={target}", *flags, *words), cwd=where)
            raise _refused(machine, nvcc, done, {**headers, "kernel.cu": text})

        try:
            for name, header in (*headers.items(), ("kernel.cu", with_lines(text))):
                (where / name).write_text(header)
            ptx = where / "kernel.ptx"
            step(FLAGS, "-ptx", "kernel.cu", "-o", ptx.name)
            ptx.write_text(without_folders(ptx.read_text()))
            for name in (*headers, "kernel.cu"):
                (where / name).unlink()  # otherwise the cubin would contain their times
            said = step(TO_CUBIN, "-cubin", ptx.name, "-o", "kernel.cubin")
            records = [as_dict(one) for one in resources(said)]
            return {
                "ptx": (where / "kernel.ptx").read_bytes(),
                "cubin": (where / "kernel.cubin").read_bytes(),
                "resources.json": json.dumps(records).encode(),
            }
        except OSError as reason:
            told = f"cannot build in {where}: {reason.strerror}"
            raise error("E0608", None, told, help="free space, or set TMPDIR") from reason


def _refused(machine: Machine, nvcc: Nvcc, done: Finished, sources: Mapping[str, str]) -> Exception:
    return failure(machine, done, sources, lambda: _works(machine, nvcc))


def _works(machine: Machine, nvcc: Nvcc) -> bool:
    with tempfile.TemporaryDirectory(prefix="texpr-probe-") as folder:
        (Path(folder) / "probe.cu").write_text('extern "C" __global__ void probe(float *x) { x[threadIdx.x] = 1.0f; }\n')
        newest = max(nvcc.architectures)
        words = (nvcc.program, *nvcc.host, f"-arch=sm_{newest}", "-cubin", "probe.cu", "-o", "probe.cubin")
        try:
            return run(machine, words, cwd=Path(folder), seconds=120).code == 0
        except TexprError:
            return False
