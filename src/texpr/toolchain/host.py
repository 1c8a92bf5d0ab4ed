"""The host's compiler: locating it, and building C and C++ sources into libraries."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

from texpr.support.diagnostic import Note, TexprError, error
from texpr.support.record import Record, field
from texpr.toolchain.blame import failure
from texpr.toolchain.cache import Cache, Entry, key
from texpr.toolchain.machine import Machine
from texpr.toolchain.process import run
from texpr.toolchain.workers import shared

NAMES = ("g++", "clang++", "c++")
"""Looked for in this order, after $CXX and before zig."""

FLAGS = (
    *("-O3", "-fPIC", "-g0", "-Wall", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"),
    *("-fvisibility=hidden", "-ffile-prefix-map=./=", "-Wno-unknown-pragmas", "-Wno-unused"),
)
"""Each operation rounds as written: no contraction, no reassociation."""

BASELINE = {"x86_64": "x86-64-v3", "AMD64": "x86-64-v3"}
"""The processor level of a portable build, by architecture (elsewhere: the compiler's default)."""

HELP = (
    "install g++ or clang++ (Debian: apt install g++), set CXX, or `pip install 'texpr-compiler[zig]'`, "
    "which brings a compiler that needs no installation"
)


class HostCompiler(Record):
    """A C and C++ compiler: command, `kind` ("gnu", "clang" or "zig"), version, the archiver, and whether OpenMP links."""

    command: tuple[str, ...]
    kind: str
    version: str
    archiver: tuple[str, ...] | None
    openmp: bool


class HostJob(Record):
    """What to build: `lib<name>.so` and, where `static`, `lib<name>.a`.

    The suffix of a source gives its language (`.c`: C11, `.cpp`: C++17). `native` uses all features of this processor; the
    library may then not run elsewhere. `march`: the processor if not `native`, instead of the baseline. `libraries` are
    linked by name.
    """

    name: str
    sources: Mapping[str, str]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    flags: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    native: bool = False
    openmp: bool = False
    static: bool = False
    march: str = ""


class HostBinary(Record):
    """A built library: its bytes; `path` is a copy of the shared one that may be loaded; the compiler's warnings."""

    shared: bytes
    static: bytes | None
    path: Path
    warnings: str


def find_host(machine: Machine) -> HostCompiler:
    """The compiler to use. Raises `TexprError`: none is found (E0601), or $CXX names one that does not exist (E0602)."""
    chosen = machine.variable("CXX")
    if chosen:
        words = shlex.split(chosen)
        program = machine.which(words[0]) if words else None
        if program is None:
            raise error("E0602", None, f"CXX is {chosen!r}, which is not a program", help="unset CXX or correct it")
        return _described(machine, (str(program), *words[1:]))
    for name in NAMES:
        program = machine.which(name)
        if program is not None:
            return _described(machine, (str(program),))
    zig = find_zig(machine)
    if zig is not None:
        return _described(machine, (str(zig), "c++"))
    raise error("E0601", None, "no C++ compiler is found", help=HELP)


def find_zig(machine: Machine) -> Path | None:
    """The zig from PyPI, or one on the search path."""
    for folder in machine.packages:
        zig = machine.which(str(folder / "ziglang" / "zig"))
        if zig is not None:
            return zig
    return machine.which("zig")


def build_host(machine: Machine, compiler: HostCompiler, job: HostJob) -> HostBinary:
    """Builds `job`, or takes it from the cache.

    Raises `TexprError` where the machine is at fault (E0605–E0609), `CompilerBug` where the sources are.
    """
    names = (*sorted(job.sources), "", *sorted(job.headers), "")
    texts = (*(job.sources[n] for n in sorted(job.sources)), *(job.headers[n] for n in sorted(job.headers)))
    setting = (
        job.name,
        compiler.version,
        *compiler.command,
        *host_flags(machine, compiler, job),
        *job.libraries,
        str(job.static),
    )
    entry = Cache(machine.cache).through(key(("host", *setting, "", *names, *texts)), lambda: _build(machine, compiler, job))
    shared = f"lib{job.name}.so"
    return HostBinary(
        shared=entry.files[shared],
        static=entry.files.get(f"lib{job.name}.a"),
        path=_loadable(entry, shared),
        warnings=entry.files["warnings.txt"].decode(errors="replace"),
    )


def native_features(machine: Machine, compiler: HostCompiler) -> frozenset[str]:
    """The predefined macros for the features of this processor; none if the compiler does not report them."""
    if compiler.kind == "zig" or machine.architecture not in BASELINE:
        return frozenset()
    done = run(machine, (*compiler.command, "-march=native", "-dM", "-E", "-x", "c", "/dev/null"), seconds=30)
    return frozenset(word for line in done.stdout.splitlines() for word in line.split()[1:2]) if done.code == 0 else frozenset()


def _build(machine: Machine, compiler: HostCompiler, job: HostJob) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory(prefix="texpr-host-") as folder:
        where = Path(folder)
        try:
            for name, text in (*job.headers.items(), *job.sources.items()):
                (where / name).parent.mkdir(parents=True, exist_ok=True)
                (where / name).write_text(text)
            names = sorted(job.sources)
            warned = shared(lambda at: _compile(machine, compiler, job, where, names[at]).encode(), names, machine.jobs)
            said = b"".join(warned)
            built = _link(machine, compiler, job, where)
            return {**{name: (where / name).read_bytes() for name in built}, "warnings.txt": said}
        except OSError as reason:
            raise error(
                "E0608", None, f"cannot build in {where}: {reason.strerror}", help="free space, or set TMPDIR"
            ) from reason


def _compile(machine: Machine, compiler: HostCompiler, job: HostJob, where: Path, source: str) -> str:
    """Compiles one source to `<source>.o`; returns the compiler's warnings."""
    language = ("-x", "c", "-std=c11") if source.endswith(".c") else ("-x", "c++", "-std=c++17")
    seed = ("-frandom-seed=" + source,) if compiler.kind == "gnu" else ()
    flags = (*host_flags(machine, compiler, job), *seed)
    done = run(machine, (*compiler.command, *language, *flags, "-I.", "-c", source, "-o", f"{source}.o"), cwd=where)
    if done.code != 0:
        raise failure(machine, done, {**job.headers, **job.sources}, lambda: _works(machine, compiler))
    return done.stderr


def _link(machine: Machine, compiler: HostCompiler, job: HostJob, where: Path) -> list[str]:
    objects = [f"{source}.o" for source in sorted(job.sources)]
    shared = f"lib{job.name}.so"
    options = ("-shared", f"-Wl,-soname,{shared}", "-Wl,--build-id=none", "-Wl,-z,noexecstack")
    openmp = ("-fopenmp",) if job.openmp and compiler.openmp else ()
    libraries = [f"-l{library}" for library in job.libraries]
    done = run(machine, (*compiler.command, *options, *openmp, "-o", shared, *objects, *libraries), cwd=where)
    if done.code != 0:
        raise failure(machine, done, {**job.headers, **job.sources}, lambda: _works(machine, compiler))
    if not job.static:
        return [shared]
    if compiler.archiver is None:
        raise error("E0609", None, "no `ar` is found", help="install binutils (Debian: apt install binutils)")
    archive = f"lib{job.name}.a"
    done = run(machine, (*compiler.archiver, "rcsD", archive, *objects), cwd=where)
    if done.code != 0:
        raise error("E0607", None, "ar failed", Note(done.command), Note(done.output))
    return [shared, archive]


def host_flags(machine: Machine, compiler: HostCompiler, job: HostJob) -> tuple[str, ...]:
    """The flags of `compiler` for each source of `job`, in any language."""
    baseline = job.march or BASELINE.get(machine.architecture)
    if compiler.kind == "zig":
        # zig targets the local processor by default, and spells levels with underscores
        march = () if job.native else (f"-march={baseline.replace('-', '_')}" if baseline else "-mcpu=baseline",)
        # and its library does not report processor features (github.com/ziglang/zig, issue 18074)
        march = (*march, "-fno-sanitize=undefined", "-DTX_NO_CPU_MODEL=1")
    elif job.native:
        march = ("-march=native",) if machine.architecture in BASELINE else ("-mcpu=native",)
    else:
        march = (f"-march={baseline}",) if baseline else ()
    openmp = "-fopenmp" if job.openmp and compiler.openmp else "-fopenmp-simd"
    return (*FLAGS, *march, openmp, *job.flags)


def _described(machine: Machine, command: tuple[str, ...]) -> HostCompiler:
    done = run(machine, (*command, "--version"), seconds=30)
    if done.code != 0:
        raise error("E0607", None, f"{command[0]} does not run", Note(done.command), Note(done.output))
    zig = Path(command[0]).name == "zig"
    kind = "zig" if zig else "clang" if "clang" in done.stdout else "gnu"
    ar = machine.which("ar") or machine.which("llvm-ar") or machine.which("gcc-ar")
    other = find_zig(machine)
    archiver = (str(ar),) if ar else (str(other), "ar") if other else None
    compiler = HostCompiler(command, kind, done.stdout.strip(), archiver, openmp=True)
    return HostCompiler(command, kind, compiler.version, archiver, _has_openmp(machine, compiler))


def _has_openmp(machine: Machine, compiler: HostCompiler) -> bool:
    """Whether OpenMP compiles and links; tested once for each compiler, then cached."""
    source = "#include <omp.h>\nint threads(void) { return omp_get_max_threads(); }\n"
    return Cache(machine.cache).through(
        key(("openmp", compiler.version, *compiler.command)),
        lambda: {"answer": b"yes" if _takes(machine, compiler, source, ("-fopenmp",)) else b"no"},
    ).files["answer"] == b"yes"  # fmt: skip


def _works(machine: Machine, compiler: HostCompiler) -> bool:
    return _takes(machine, compiler, "#include <cmath>\ndouble root(double x) { return std::sqrt(x); }\n", ())


def _takes(machine: Machine, compiler: HostCompiler, source: str, flags: tuple[str, ...]) -> bool:
    with tempfile.TemporaryDirectory(prefix="texpr-probe-") as folder:
        (Path(folder) / "probe.cpp").write_text(source)
        words: tuple[str, ...] = (*compiler.command, "-std=c++17", "-fPIC", "-shared", *flags, "probe.cpp", "-o", "probe.so")
        try:
            return run(machine, words, cwd=Path(folder), seconds=120).code == 0
        except TexprError:
            return False


def _loadable(entry: Entry, name: str) -> Path:
    """The file of an entry as a loadable one: without a cache, a temporary copy."""
    if entry.folder is not None:
        return entry.folder / name
    try:
        path = Path(tempfile.mkdtemp(prefix="texpr-library-")) / name
        path.write_bytes(entry.files[name])
    except OSError as reason:
        raise error("E0608", None, f"cannot keep {name}: {reason.strerror}", help="free space, or set TMPDIR") from reason
    return path
