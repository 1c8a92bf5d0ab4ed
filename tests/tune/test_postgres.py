"""Trials in PostgreSQL, for machines that share a search: a server of these tests alone, in a folder of its own."""

from __future__ import annotations

import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest
from tests.tune.programs import PLUS, Made, least_at, problem, space

from texpr.support.diagnostic import TexprError
from texpr.tune import study as study_module
from texpr.tune.problem import identity
from texpr.tune.report import best
from texpr.tune.search import search
from texpr.tune.study import Study

INSTALLED = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
OF = space(*range(10, 16))


def tool(name: str) -> str:
    """A program of PostgreSQL."""
    found = shutil.which(name, path=os.pathsep.join([*map(str, INSTALLED), os.environ.get("PATH", "")]))
    return found or pytest.skip("no PostgreSQL")


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of an empty database."""
    programs = {name: tool(name) for name in ("initdb", "pg_ctl")}
    # It does not run as root.
    user = next((name for name in ("postgres", "nobody") if name in {each.pw_name for each in pwd.getpwall()}), None)
    other = {"user": user} if os.geteuid() == 0 else {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if other:
            shutil.chown(folder, user)
        data = folder / "data"

        def do(program: str, *words: object) -> None:
            command = [programs[program], "-D", str(data), *map(str, words)]
            subprocess.run(command, check=True, cwd=folder, stdout=subprocess.DEVNULL, timeout=600, **other)

        do("initdb", "--auth=trust", "--username=texpr", "--no-sync")
        do("pg_ctl", "start", "--wait", "-l", folder / "log", "-o", f"-k {folder} -c listen_addresses='' -c fsync=off")
        try:
            yield f"postgresql://texpr@/postgres?host={folder}"
        finally:
            do("pg_ctl", "stop", "--mode=immediate")


def kept(server: str, **sizes: int) -> Study:
    return Study(server, identity(problem(**sizes), OF), OF, {})


def run(study: Study, most: int = 100, count: int = 1) -> list[int]:
    crew = Made(least_at(13), count)
    search(study, problem(), crew, most, lambda _: None)
    return [point["tile"] for point in crew.points]


def test_a_search_goes_on_where_another_one_ended(server: str) -> None:
    first = run(kept(server, n=1), most=4)
    then = run(kept(server, n=1))
    assert (len(first), sorted(first + then)) == (4, [*range(10, 16)])
    assert run(kept(server, n=1)) == []
    found = best(kept(server, n=1).trials())
    assert found is not None and (found.point, found.value) == ({"tile": 13}, 0.0)


def test_what_a_process_left_that_is_no_more_is_made_again(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    left = kept(server, n=2)
    _, point = left.begin({"tile": 11})
    assert kept(server, n=2).again() is None  # it may be at work
    monkeypatch.setattr(study_module, "is_gone", lambda _: True)
    assert kept(server, n=2).again() == point


def test_two_searches_share_it(server: str) -> None:
    """Each sees at once what the other one measured."""
    one, other = kept(server, n=3), kept(server, n=3)
    tried = run(one, most=2)
    assert len(tried) == 2 and {each.point["tile"] for each in other.trials()} == set(tried)
    assert sorted(tried + run(other)) == [*range(10, 16)]
    assert run(one) == []


def test_no_such_database_is_said_without_the_password(server: str) -> None:
    address = server.replace("texpr@/postgres", "texpr:secret@/nothing")
    with pytest.raises(TexprError) as raised:
        Study(address, "name", OF, {})
    (told,) = raised.value.diagnostics
    assert told.code == "E0842" and 'database "nothing" does not exist' in told.message and "secret" not in told.message


def over(server: str) -> int:
    """How many trials are over."""
    with suppress(psycopg.errors.UndefinedTable), psycopg.connect(server) as connection:
        found = connection.execute("select count(*) from trials where state = 'COMPLETE'").fetchone()
        return found[0] if found else 0
    return 0


@pytest.mark.long
def test_two_commands_at_once_and_then_a_third(server: str, tmp_path: Path) -> None:
    """As two machines do it, one of which is killed."""
    file = tmp_path / "plus.te"
    file.write_text(PLUS, encoding="utf-8")
    command = [sys.executable, "-m", "texpr", "tune", str(file), "--size", "n=1000", "--space", "tile=8..=512:*2", "--json"]
    command += ["--storage", server]
    before = over(server)
    both = [
        subprocess.Popen([*command, "--results", str(tmp_path / name)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for name in ("one", "other")
    ]
    while over(server) == before and both[0].poll() is None:
        time.sleep(0.05)
    assert both[0].poll() is None
    both[0].kill()
    for process, status in zip(both, (-9, 0), strict=True):
        _, told = process.communicate(timeout=300)
        assert process.returncode == status, told
    done = subprocess.run(command, capture_output=True, timeout=300, check=True)
    found = json.loads(done.stdout)
    assert found["measured"] == 7 and {each["point"]["tile"] for each in found["trials"]} == {8 << at for at in range(7)}
