"""Work shared out to processes: the order of answers, what stops a task, and that nobody is left behind.

Each test is a process of its own: this one has the threads of whatever runs the tests, and so would never fork.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from texpr.toolchain import usable_cores

BEGIN = """
import os, signal, subprocess, sys, threading, time
from texpr.support.diagnostic import *
from texpr.support.faults import told_of
from texpr.support.span import NOWHERE, Source, Span
from texpr.toolchain.workers import shared

def names(count):
    return [f"task {number}" for number in range(count)]

def fails(task, count, jobs=2):
    got = []
    try:
        for answer in shared(task, names(count), jobs):
            got.append(answer)
    except Exception as fault:
        return got, fault
    raise AssertionError(got)
"""


def script(text: str) -> list[str]:
    return [sys.executable, "-c", BEGIN + text]


def said(text: str) -> str:
    """What a script prints; it must not fail, nor say anything else."""
    done = subprocess.run(script(text), capture_output=True, text=True, check=False, timeout=600)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def gone(pid: int) -> bool:
    """Whether a process ends soon."""
    for _ in range(200):
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":  # nobody has asked for it, but it runs no more
            return True
        time.sleep(0.05)
    return False


def test_answers_come_in_order_from_several_processes() -> None:
    text = """
def task(number):
    time.sleep(0.05 * (number % 3 == 0))
    return f"{number} {os.getpid()}".encode() + bytes(1 << 17)

found = [answer.rstrip(bytes(1)).decode().split() for answer in shared(task, names(20), 3)]
assert [int(number) for number, _ in found] == list(range(20))
own = {int(pid) for _, pid in found}
print(len(own), os.getpid() in own)
try:
    os.wait()
except ChildProcessError:
    print("none is left")
"""
    assert said(text) == "3 False\nnone is left\n"


@pytest.mark.parametrize("alone", ["jobs = 1", "threading.Thread(target=time.sleep, args=(1,), daemon=True).start()"])
def test_one_process_where_it_was_asked_for_and_where_threads_run(alone: str) -> None:
    text = f"jobs = 3\n{alone}\nprint({{*shared(lambda at: b'%d' % os.getpid(), names(9), jobs)}} == {{b'%d' % os.getpid()}})"
    assert said(text) == "True\n"


def test_an_error_comes_where_its_answer_was_due() -> None:
    text = """
source = Source("a.te", "fn f")
def task(number):
    if number in (5, 7):
        time.sleep(0.1 if number == 5 else 0)
        raise error("E0401", Span(source, 1, 2), f"wrong {number}", Note("there", NOWHERE), Note("so"), help="mend it")
    return str(number).encode()

got, fault = fails(task, 1000)
print(got, type(fault).__name__)
(found,) = fault.diagnostics
print(found.code, found.message, found.help, found.span, found.span.end, [note.text for note in found.notes])
print(found.notes[0].span is NOWHERE, found.notes[1].span)
"""
    assert said(text) == (
        "[b'0', b'1', b'2', b'3', b'4'] TexprError\nE0401 wrong 5 mend it a.te:1:2 2 ['there', 'so']\nTrue None\n"
    )


def test_tasks_behind_an_error_are_not_begun(tmp_path: Path) -> None:
    text = f"""
def task(number):
    open({str(tmp_path)!r} + f"/{{number}}", "w").close()
    if number == 3:
        raise limitation("E0508", None, "no")
    time.sleep(0.02)
    return b""

print(type(fails(task, 500)[1]).__name__)
"""
    assert said(text) == "Limitation\n"
    assert len(list(tmp_path.iterdir())) < 10


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("CompilerBug('lost a barrier')", "Elsewhere CompilerBug: lost a barrier"),
        ("KeyError('x')", "Elsewhere KeyError: 'x'"),
        ("RecursionError()", "Elsewhere RecursionError"),
        ("MemoryError()", "MemoryError MemoryError"),
    ],
)
def test_a_fault_is_told_as_in_one_process(fault: str, told: str) -> None:
    text = f"""
from texpr.driver import parse
def task(number):
    raise {fault}
def deeper(number):
    parse(3)  # our own code raises it
_, fault = fails(task, 3)
print(type(fault).__name__, told_of(fault)[0])
_, one = fails(deeper, 3, 1)
_, two = fails(deeper, 3, 2)
assert str(told_of(one)) == str(told_of(two)).replace("\\n", ""), (told_of(one), told_of(two))
"""
    assert said(text) == told + "\n"


def test_the_traceback_comes_along() -> None:
    text = """
import traceback
def task(number):
    return len(number)
_, fault = fails(task, 3)
print("in task" in "".join(traceback.format_exception(fault)), fault)
"""
    assert said(text) == "True TypeError: object of type 'int' has no len()\n"


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", "TexprError E0611: the process that worked on task 2 was killed by signal 9"),
        ("os.kill(os.getpid(), signal.SIGTERM)", "TexprError E0611: the process that worked on task 2 was killed by signal 15"),
        (
            "os.kill(os.getpid(), signal.SIGSEGV)",
            "CompilerBug the process that worked on task 2 broke down, with exit code -11",
        ),
        ("os._exit(5)", "CompilerBug the process that worked on task 2 broke down, with exit code 5"),
    ],
    ids=["killed", "ended", "segment", "exit"],
)
def test_a_process_that_ends_in_the_middle(end: str, told: str) -> None:
    text = f"""
def task(number):
    if number == 2:
        {end}
    return b"fine"
got, fault = fails(task, 40)
print(len(got), type(fault).__name__, fault)
"""
    assert said(text) == f"2 {told}\n"


def test_without_processes_to_be_had_there_is_one() -> None:
    text = """
def none():
    raise BlockingIOError(11, "Resource temporarily unavailable")
os.fork = none
before = len(os.listdir("/proc/self/fd"))
print(list(shared(lambda number: str(number).encode(), names(3), 2)), len(os.listdir("/proc/self/fd")) - before)
"""
    assert said(text) == "[b'0', b'1', b'2'] 0\n"


def test_who_stops_asking_leaves_nobody_behind() -> None:
    text = """
def task(number):
    while number > 1:
        signal.pause()  # until it is ended
    return str(os.getpid()).encode()
answers = shared(task, names(9), 2)
pid = int(next(answers))
before = len(os.listdir("/proc/self/fd"))
answers.close()
print(before - len(os.listdir("/proc/self/fd")))
os.kill(pid, 0)
"""
    done = subprocess.run(script(text), capture_output=True, text=True, check=False, timeout=600)
    assert done.stdout == "6\n"
    assert "ProcessLookupError" in done.stderr


TOOLS = """
from texpr.cli import main
import texpr.cli
from texpr.toolchain.machine import this_machine
from texpr.toolchain.process import run

def task(number):
    run(this_machine(), ["sh", "-c", f"echo $$ > {folder}/new{number}; mv {folder}/new{number} {folder}/{number}; sleep 60"])
    return b""

def work(arguments):
    return len(list(shared(task, names(5), 2)))

texpr.cli.resolve = lambda name: work
signal.signal(signal.SIGINT, signal.default_int_handler)  # what runs in the background of a shell ignores it
sys.exit(main(["build"]))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
@pytest.mark.parametrize("whole_group", [False, True])
def test_no_process_and_no_tool_outlives_the_command(number: signal.Signals, whole_group: bool, tmp_path: Path) -> None:
    command = script(f"folder = {str(tmp_path)!r}\n" + TOOLS)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True) as process:
        for _ in range(600):
            if (tmp_path / "0").exists() and (tmp_path / "1").exists():
                break
            time.sleep(0.05)
        tools = [int((tmp_path / name).read_text()) for name in "01"]
        listed = subprocess.run(["ps", "--ppid", str(process.pid), "-o", "pid="], capture_output=True, text=True, check=False)
        workers = [int(pid) for pid in listed.stdout.split()]
        assert len(workers) == 2
        if whole_group:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        out, err = process.communicate(timeout=600)
    assert (out, err) == (b"", b"")
    assert process.returncode == (-number if number is signal.SIGKILL else 128 + number)
    assert all(gone(pid) for pid in workers)
    if not (whole_group and number is signal.SIGKILL):  # then nobody is left who could end them
        assert all(gone(pid) for pid in tools)


@pytest.mark.parametrize(
    ("files", "own", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, "0::/\n", 1),
        ({"cpu.max": "max 100000\n"}, "0::/\n", None),
        ({"a/cpu.max": "max 100000\n", "a/b/cpu.max": "100000 100000\n"}, "0::/a/b\n", 1),
        ({"a/cpu.max": "100000 100000\n", "a/b/cpu.max": "max 100000\n"}, "0::/a/b\n", 1),
        ({"cpu/a/cpu.cfs_quota_us": "50000\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, "3:cpu,cpuacct:/a\n2:pids:/a\n", 1),
        ({"cpu/a/cpu.cfs_quota_us": "-1\n", "cpu/a/cpu.cfs_period_us": "100000\n"}, "3:cpu,cpuacct:/a\n", None),
        ({"cpu.max": "nonsense\n"}, "0::/\n", None),
        ({}, "", None),
    ],
)
def test_cores_are_those_that_may_be_kept_busy(files: dict[str, str], own: str, cores: int | None, tmp_path: Path) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "own").write_text(own)
    whole = len(os.sched_getaffinity(0))
    assert usable_cores(tmp_path, tmp_path / "own") == (whole if cores is None else min(whole, cores))
    assert usable_cores(tmp_path, tmp_path / "nowhere") == whole
