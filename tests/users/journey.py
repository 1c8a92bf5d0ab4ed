"""A user's first hour, from nothing but a wheel: `python journey.py WHEEL FOLDER [--extra lsp …]`.

Makes a virtual environment in the empty FOLDER, installs the wheel there by pip (its dependencies come from an index), and goes
on as the documentation says: doctor, a new project, check, run, build, the programs in C++, C and Rust, format, times with a
picture, a search that is stopped and loses a worker, operators of PyTorch, a session with the language server, the page, also
in a browser. Each step looks at what it got; steps whose tools are missing say so.
Nothing of a checkout is used, and nothing is left outside of FOLDER. Exit status 0: every step that could be tried went well.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from xml.etree import ElementTree

TITLE = "first-steps"
NAME = "first_steps"
ARGUMENTS = ("--arg", "a=2", "--arg", "x=random", "--arg", "b=1")
WRONG = f"fn {NAME}(x: f32[n]): f32[n] {{\n    new y: f32[n]\n    par n |i| {{ y[i] = x[i + 1] }}\n    return y\n}}\n"


class Missing(Exception):
    """A tool that a step needs is not there."""


class Failure(Exception):
    """A step did not give what it should."""


@dataclass(frozen=True)
class Journey:
    """How to call texpr and Python, the folder of the user, and the environment of all that runs."""

    command: Sequence[str]
    python: str
    folder: Path
    environment: dict[str, str] = field(repr=False)

    @property
    def project(self) -> Path:
        """The project of the user."""
        return self.folder / TITLE

    def run(self, *words: str | Path, folder: Path | None = None, status: int = 0) -> str:
        """The standard output of a program. Raises Failure for another status."""
        given = [str(word) for word in words]
        done = subprocess.run(
            given, cwd=folder or self.project, env=self.environment, capture_output=True, text=True, check=False, timeout=600
        )
        if done.returncode != status:
            raise Failure(f"{' '.join(given)}: status {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def texpr(self, *words: str | Path, folder: Path | None = None, status: int = 0) -> str:
        """The standard output of the command."""
        return self.run(*self.command, *words, folder=folder, status=status)


def need(tool: str) -> str:
    """The path of a tool. Raises Missing."""
    found = shutil.which(tool)
    if found is None:
        raise Missing(f"no {tool}")
    return found


def packages(journey: Journey, *names: str) -> None:
    """Raises Missing where one of the user's Python packages is not there."""
    for name in names:
        words = [journey.python, "-c", f"import {name}"]
        if subprocess.run(words, env=journey.environment, capture_output=True, check=False).returncode:
            raise Missing(f"no {name}")


def require(holds: object, told: object) -> None:
    """Raises Failure where something does not hold."""
    if not holds:
        raise Failure(str(told))


def doctor(journey: Journey) -> None:
    """What is here; and from where texpr was imported: no checkout."""
    found = json.loads(journey.texpr("doctor", "--json", folder=journey.folder))
    require(found["ok"] and found["versions"]["texpr"], found)
    report = journey.texpr("doctor", "--report", folder=journey.folder)
    require(journey.environment["HOME"] not in report and "cache: ok: ~/.cache/texpr" in report, report)
    place = journey.run(journey.python, "-c", "import texpr; print(texpr.__file__)", folder=journey.folder).strip()
    require((Path(place).parent / "py.typed").exists(), f"{place} has no py.typed")
    require(Path(place).is_relative_to(journey.folder), f"texpr comes from {place}")


def new(journey: Journey) -> None:
    """A project, and not two in one place."""
    journey.texpr("new", TITLE, folder=journey.folder)
    require((journey.project / "README.md").exists(), "no project")
    journey.texpr("new", TITLE, folder=journey.folder, status=2)


def check(journey: Journey) -> None:
    """The program is legal; a wrong one is refused, with its place."""
    require("legal" in journey.texpr("check", f"{NAME}.te"), "not legal")
    (journey.project / "wrong.te").write_text(WRONG, encoding="utf-8")
    found = json.loads(journey.texpr("check", "wrong.te", "--json", status=1))
    (wrong,) = found["diagnostics"]
    require(wrong["code"] == "E0401" and wrong["at"]["line"] == 3, found)
    (journey.project / "wrong.te").unlink()


def run(journey: Journey) -> None:
    """On the CPU and interpreted, the same; and from Python."""
    said = journey.texpr("run", f"{NAME}.te", *ARGUMENTS, "--size", "n=1000", "--against", "interp", "-o", "results")
    require("equal to the bit" in said and (journey.project / "results" / "y.npy").exists(), said)
    require(journey.run(journey.python, "run.py") == f"{NAME} of 1000 elements is right\n", "run.py")


def emulator(journey: Journey) -> None:
    """As CUDA, emulated: by headers that the wheel brings."""
    said = journey.texpr("run", f"{NAME}.te", *ARGUMENTS, "--size", "n=100", "--on", "emulator", "--against", "interp")
    require("equal to the bit" in said, said)


def format_(journey: Journey) -> None:
    """The project has the house format, and what has not gets it."""
    journey.texpr("fmt", "--check", f"{NAME}.te")
    path = journey.project / "loose.te"
    path.write_text("fn loose( x:f32[ n ] ):f32[n]{ new y:f32[n]\npar n|i|{ y[i]=x[i] }\nreturn y }\n", encoding="utf-8")
    journey.texpr("fmt", "--check", "loose.te", status=1)
    journey.texpr("fmt", "loose.te")
    require("    par n |i| { y[i] = x[i] }\n" in path.read_text(encoding="utf-8"), path.read_text(encoding="utf-8"))
    path.unlink()


def build(journey: Journey) -> None:
    """An artifact that is verified, with a bill of materials."""
    out = Path("build") / NAME
    journey.texpr("build", f"{NAME}.te", "--for", "cpu", "-o", out)
    said = journey.texpr("verify", out)
    require("are as texpr writes them" in said, said)
    bill = json.loads((journey.project / out / "sbom.cdx.json").read_text(encoding="utf-8"))
    require(bill["bomFormat"] == "CycloneDX", bill)


def cpp(journey: Journey) -> None:
    """The program in C++, by CMake."""
    cmake = need("cmake")
    journey.run(cmake, "-S", "cpp", "-B", "build/cpp")
    journey.run(cmake, "--build", "build/cpp")
    require(journey.run(journey.project / "build/cpp/app") == f"{NAME} of 1000 elements is right\n", "the program in C++")


C = f"""#include <stdio.h>
#include <texpr/{NAME}.h>

int main(void) {{
    float x[1000], y[1000];
    for (int i = 0; i < 1000; i++) x[i] = (float)i;
    texpr_status status = texpr_{NAME}(NULL, NULL, 2, x, 1, y, 1000);
    for (int i = 0; status == TEXPR_OK && i < 1000; i++)
        if (y[i] != 2 * x[i] + 1) return 1;
    printf("%s\\n", texpr_status_string(status));
    return status;
}}
"""


def c(journey: Journey) -> None:
    """A program in C, by pkg-config."""
    compiler = need("cc")
    (journey.project / "main.c").write_text(C, encoding="utf-8")
    lib = journey.project / "build" / NAME / "lib"
    flags = journey.run(need("pkg-config"), "--with-path", lib / "pkgconfig", "--cflags", "--libs", f"texpr_{NAME}").split()
    journey.run(compiler, "main.c", *flags, f"-Wl,-rpath,{lib}", "-o", "build/c")
    require(journey.run(journey.project / "build" / "c") == "fine\n", "the program in C")


def rust(journey: Journey) -> None:
    """The program in Rust, by Cargo, without a network."""
    said = journey.run(need("cargo"), "run", "--offline", "--quiet", "--manifest-path", "rust/Cargo.toml")
    require(said == f"{NAME} of 1000 elements is right\n", said)


def bench(journey: Journey) -> None:
    """Times beside NumPy, over two sizes, and a picture of them."""
    words = ("--size", "n=1000,10000", "--against", f"reference:{NAME}", "--seconds", "0.05", "-o", "times.svg")
    found = json.loads(journey.texpr("bench", f"{NAME}.te", *ARGUMENTS, *words, "--json"))
    require([each["sizes"] for each in found["points"]] == [{"n": 1000}, {"n": 10000}] and found["device"], found)
    require(all(each["runs"] >= 5 for point in found["points"] for each in point["measured"]), found)
    root = ElementTree.parse(journey.project / "times.svg").getroot()
    require(root.tag.endswith("svg"), root.tag)


TUNED = """fn plus(x: f32[n], y: f32[n], const tile: i32 = 128): f32[n] {
    new z: f32[n]
    par n |i| { z[i] = x[i] + y[i] }
    return z
}

schedule plus for cpu {
    split(i, tile) -> (outer, inner)
}
"""


def tune(journey: Journey) -> None:
    """A search that loses a worker, is stopped, and goes on where it was; then the best is in the file."""
    packages(journey, "optuna")
    (journey.project / "plus.te").write_text(TUNED, encoding="utf-8")
    words = ("tune", "plus.te", "--size", "n=10000", "--space", "tile=16..=4096:*2", "--workers", "2", "--json")
    first = [*journey.command, *words, "--trials", "9"]
    process = subprocess.Popen(first, cwd=journey.project, env=journey.environment, stdout=subprocess.DEVNULL)
    try:
        over(journey, process, 2)
        os.kill(int(children(process.pid)[-1]), signal.SIGKILL)
        before = over(journey, process, 3)
        process.send_signal(signal.SIGINT)
        require(process.wait(timeout=600) in (0, 130), process.returncode)
    finally:
        process.kill()
        process.wait()
    found = json.loads(journey.texpr(*words, "--write"))
    require(found["measured"] >= 8 and found["measured"] + found["failed"] == 9, found)
    require(sum(each["state"] == "measured" for each in found["trials"][: before + 1]) >= before - 1, found["trials"])
    best = found["best"]["point"]["tile"]
    require(f"const tile: i32 = {best}" in (journey.project / "plus.te").read_text(encoding="utf-8"), best)


def children(process: int) -> list[str]:
    """The processes that one has started."""
    return Path(f"/proc/{process}/task/{process}/children").read_text(encoding="utf-8").split()


def over(journey: Journey, process: subprocess.Popen[bytes], wanted: int) -> int:
    """Waits until so many trials of the search are over, or it is itself; how many are."""
    file = journey.project / "plus.tune" / "trials.db"
    while True:
        found = 0
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base:
            found = base.execute("select count(*) from trials where state in ('COMPLETE', 'FAIL')").fetchone()[0]
        if found >= wanted or process.poll() is not None:
            return found
        time.sleep(0.05)


OPERATOR = f"""
import sys, torch, texpr, texpr.torch, importlib.util
module = texpr.load("{NAME}.te")
mine = texpr.torch.register(texpr.compile(module["{NAME}"], target="cpu"), "journey::line")
x = torch.arange(1000.0)
want = 2 * x + 1
assert torch.equal(mine(2.0, x, 1.0), want)
torch.library.opcheck(torch.ops.journey.line.default, (2.0, x, 1.0))
class Model(torch.nn.Module):
    def forward(self, x): return torch.ops.journey.line(2.0, x, 1.0).relu()
assert torch.equal(torch.compile(Model(), fullgraph=True, backend="aot_eager")(x), want)
assert torch.equal(torch.export.export(Model(), (x,)).module()(x), want)
spec = importlib.util.spec_from_file_location("operators", sys.argv[1])
spec.loader.exec_module(importlib.util.module_from_spec(spec))
assert torch.equal(torch.ops.{NAME}.{NAME}(2.0, x, 1.0), want)
print("right")
"""


def torch(journey: Journey) -> None:
    """An operator of PyTorch, eager, compiled and exported; and that of an artifact, built by CMake."""
    packages(journey, "torch")
    out = Path("build") / "torch"
    journey.texpr("build", f"{NAME}.te", "--for", "cpu", "--torch", "-o", out)
    cmake, source, made = need("cmake"), out / "torch", out / "made"
    journey.run(cmake, "-S", source, "-B", made, f"-DPython_EXECUTABLE={journey.python}")
    journey.run(cmake, "--build", made)
    journey.run(cmake, "--install", made)
    (journey.project / "operator_of.py").write_text(OPERATOR, encoding="utf-8")
    said = journey.run(journey.python, "operator_of.py", source / f"{NAME}.py")
    require(said.endswith("right\n"), said)


def completions(journey: Journey) -> None:
    """A script that bash reads."""
    script = journey.texpr("completions", "bash")
    journey.run(need("bash"), "-n", "-c", script)


def lsp(journey: Journey) -> None:
    """A session with the language server: an error is found in what is not saved; then it ends."""
    packages(journey, "pygls")
    uri = (journey.project / "open.te").as_uri()
    process = subprocess.Popen(
        [*journey.command, "lsp"], cwd=journey.project, env=journey.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None and process.stdout is not None
    try:
        _send(
            process.stdin, {"id": 1, "method": "initialize", "params": {"processId": None, "rootUri": None, "capabilities": {}}}
        )
        require("capabilities" in _until(process.stdout, lambda got: got.get("id") == 1)["result"], "no capabilities")
        _send(process.stdin, {"method": "initialized", "params": {}})
        document = {"uri": uri, "languageId": "te", "version": 1, "text": WRONG}
        _send(process.stdin, {"method": "textDocument/didOpen", "params": {"textDocument": document}})
        told = _until(process.stdout, lambda got: got.get("method") == "textDocument/publishDiagnostics")
        require([each["code"] for each in told["params"]["diagnostics"]] == ["E0401"], told)
        _send(process.stdin, {"id": 2, "method": "shutdown"})
        _until(process.stdout, lambda got: got.get("id") == 2)
        _send(process.stdin, {"method": "exit"})
        require(process.wait(timeout=600) == 0, process.returncode)
    finally:
        process.kill()
        process.wait()


def explore(journey: Journey) -> None:
    """The page: as a file, and where Starlette is, served, with an example of the wheel and an answer about the project."""
    journey.texpr("explore", f"{NAME}.te", "--for", "cpu", "-o", "page.html")
    page = (journey.project / "page.html").read_text(encoding="utf-8")
    require("the plan does what the program says" in page and "omp parallel for" in page, page[:2000])
    packages(journey, "starlette", "uvicorn")
    process = subprocess.Popen(
        [*journey.command, "explore", f"{NAME}.te"], cwd=journey.project, env=journey.environment, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        address = process.stdout.readline().decode().strip()
        found = urlsplit(address)
        link = http.client.HTTPConnection(found.hostname or "", found.port, timeout=120)
        for path, wanted in (("", NAME), ("static/codemirror/codemirror.js", "CodeMirror"), ("examples/saxpy.te", "fn saxpy")):
            link.request("GET", f"{found.path}{path}")
            require(wanted in link.getresponse().read().decode(), path)
        program = (journey.project / f"{NAME}.te").read_text(encoding="utf-8")
        headers = {"Content-Type": "application/json", "Origin": f"http://{found.netloc}"}
        link.request("POST", f"{found.path}show", json.dumps({"text": program, "target": "cpu", "pane": "proof"}), headers)
        told = json.loads(link.getresponse().read())
        require(told.get("ok") and "legal, and proved" in told["problems"], told)
        link.close()
    finally:
        process.terminate()
        require(process.wait(timeout=600) in (130, 143, -signal.SIGTERM), process.returncode)


def browser(journey: Journey) -> None:
    """The page as a file, in Chromium: its script shows what the proof says, and a click lights what comes from a line."""
    chromium = shutil.which("chromium") or need("google-chrome")
    page = journey.project / "page.html"
    words = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-sync",
    ]
    words += [f"--user-data-dir={journey.folder / 'chromium'}", "--window-size=1400,850"]
    found = journey.run(chromium, *words, "--dump-dom", page.as_uri())
    require("omp parallel for" in found and "CodeMirror-line" in found, found[:2000])
    journey.run(chromium, *words, f"--screenshot={journey.project / 'page.png'}", page.as_uri())
    require((journey.project / "page.png").read_bytes().startswith(b"\x89PNG"), "no picture")


def _send(stream: Any, message: dict[str, Any]) -> None:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    stream.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
    stream.flush()


def _until(stream: Any, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """The first message that is wanted."""
    while True:
        head = stream.readline()
        if not head:
            raise Failure("the server ended")
        length = re.fullmatch(rb"Content-Length: (\d+)\r\n", head)
        if length is None:
            continue
        while stream.readline() != b"\r\n":
            pass
        message: dict[str, Any] = json.loads(stream.read(int(length[1])))
        if wanted(message):
            return message


STEPS: tuple[Callable[[Journey], None], ...] = (
    doctor, new, check, run, emulator, format_, build, cpp, c, rust, bench, tune, torch, completions, lsp, explore, browser,
)  # fmt: skip
"""In this order: a project is made before it is built."""


def environment_of(folder: Path, **more: str) -> dict[str, str]:
    """The environment of a user who has nothing: a home in `folder`, with its cache, and no other Python packages."""
    left = ("PYTHON", "TEXPR_", "XDG_", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    (folder / "home").mkdir(exist_ok=True)
    # Tools of Rust are found by the home of who installed them.
    rust = {name: os.environ.get(name, str(Path.home() / place)) for name, place in _RUST.items()}
    return {**kept, **rust, "HOME": str(folder / "home"), **more}


_RUST = {"CARGO_HOME": ".cargo", "RUSTUP_HOME": ".rustup"}


def installed(wheel: Path, folder: Path, extras: Sequence[str], also: Sequence[str]) -> Journey:
    """A virtual environment with the wheel, and before it other packages."""
    place = folder / "venv"
    venv.create(place, with_pip=True)
    python = str(place / "bin" / "python")
    wanted = f"{wheel.resolve()}[{','.join(extras)}]" if extras else str(wheel.resolve())
    journey = Journey([str(place / "bin" / "texpr")], python, folder, environment_of(folder))
    for each in (*also, wanted):
        journey.run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", each, folder=folder)
    return journey


def go(journey: Journey, steps: Sequence[Callable[[Journey], None]], say: Callable[[str], object]) -> bool:
    """Takes the steps; whether none failed."""
    for step in steps:
        name = step.__name__.rstrip("_")
        try:
            step(journey)
        except Missing as why:
            say(f"{name}: not tried, {why}\n")
        except Failure as why:
            say(f"{name}: FAILED\n{why}\n")
            return False
        else:
            say(f"{name}: ok\n")
    return True


def main(arguments: Sequence[str] | None = None) -> int:
    """The whole journey."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("folder", type=Path, help="is made, or empty")
    parser.add_argument("--extra", action="append", default=[], help="an extra to install, such as lsp")
    parser.add_argument("--also", action="append", default=[], help="a package to install before, such as torch==2.13.0")
    given = parser.parse_args(arguments)
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        parser.error(f"{folder} is not empty")
    journey = installed(given.wheel, folder, given.extra, given.also)
    return 0 if go(journey, STEPS, sys.stdout.write) else 1


if __name__ == "__main__":
    sys.exit(main())
