"""The server, by an HTTP client of Python's own: what it answers, and whom it refuses."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.explore.test_panes import SAXPY

from texpr.cli import main
from texpr.explore.asked import LARGEST_TEXT
from texpr.explore.examples import names, text_of
from texpr.explore.page.document import STATIC, static
from texpr.explore.server.app import LARGEST_BODY

ROOT = Path(__file__).parents[2]


class Client:
    """A browser, as far as the server sees it."""

    def __init__(self, address: str):
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/([\w-]{32})/", address)
        assert found is not None, address
        self.port, self.token = int(found[1]), found[2]

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            link.request(method, path, body, dict(headers or {}))
            answer = link.getresponse()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()
        finally:
            link.close()

    def own(self, **headers: str) -> dict[str, str]:
        """The headers of a page of this server."""
        given = {"Origin": f"http://127.0.0.1:{self.port}", "Content-Type": "application/json", "Sec-Fetch-Site": "same-origin"}
        return given | {name.replace("_", "-"): value for name, value in headers.items()}

    def show(self, question: object, **headers: str) -> tuple[int, dict[str, Any]]:
        data = question if isinstance(question, bytes) else json.dumps(question).encode()
        status, _, body = self.ask("POST", f"/{self.token}/show", data, self.own(**headers))
        return status, json.loads(body)


@pytest.fixture(scope="module")
def client() -> Generator[Client]:
    command = [sys.executable, "-m", "texpr", "explore"]
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}) as process:
        assert process.stdout is not None
        try:
            yield Client(process.stdout.readline().strip())
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(timeout=600) in (130, 0)  # 0 where a shell had it ignore the signal, as of its jobs behind


def test_the_page_and_its_files_are_served(client: Client) -> None:
    status, headers, page = client.ask("GET", f"/{client.token}/")
    assert (status, headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"texpr explore" in page
    for name in STATIC:
        status, headers, body = client.ask("GET", f"/{client.token}/static/{name}")
        assert (status, body) == (200, static(name))
        assert headers["content-type"].startswith("text/css" if name.endswith(".css") else "text/javascript")
        assert headers["x-content-type-options"] == "nosniff"


def test_every_answer_has_the_policy(client: Client) -> None:
    for path in (f"/{client.token}/", f"/{client.token}/static/page.js", f"/{client.token}/nothing", "/", "/wrong/"):
        _, headers, _ = client.ask("GET", path)
        policy = headers["content-security-policy"].split("; ")
        assert {"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'"} <= set(policy)
        assert headers["cache-control"] == "no-store" and headers["referrer-policy"] == "no-referrer"
        assert "access-control-allow-origin" not in headers


def test_a_program_is_answered(client: Client) -> None:
    status, found = client.show({"text": SAXPY, "pane": "kernel"})
    assert status == 200 and found["ok"]
    assert "kernel saxpy_z" in found["html"]
    assert found["schedules"] == ["auto", "none"]
    status, found = client.show({"text": SAXPY, "pane": "source", "target": "cpu"})
    assert "omp parallel for" in found["html"]


def test_a_program_with_errors_is_answered(client: Client) -> None:
    status, found = client.show({"text": SAXPY.replace("x[i]", "q[i]")})
    assert (status, found["ok"]) == (200, False)
    assert [mark["code"] for mark in found["marks"]] == ["E0201"]


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "", "[::1]:80"])
def test_another_host_is_refused(client: Client, host: str) -> None:
    status, _, body = client.ask("GET", f"/{client.token}/", headers={"Host": host})
    assert status in (400, 403)
    assert client.token.encode() not in body


def test_the_other_name_of_this_machine_is_its_name(client: Client) -> None:
    assert client.ask("GET", f"/{client.token}/", headers={"Host": f"localhost:{client.port}"})[0] == 200


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1", "http://localhost:1", "file://"])
def test_a_page_of_elsewhere_is_refused(client: Client, origin: str) -> None:
    assert client.show({"text": SAXPY}, Origin=origin)[0] == 403
    assert client.ask("GET", f"/{client.token}/", headers={"Origin": origin})[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_site_began_is_refused(client: Client, site: str) -> None:
    assert client.show({"text": SAXPY}, Sec_Fetch_Site=site)[0] == 403


def test_a_question_without_an_origin_is_refused(client: Client) -> None:
    headers = {"Content-Type": "application/json"}
    assert client.ask("POST", f"/{client.token}/show", b"{}", headers)[0] == 403


@pytest.mark.parametrize("token", ["", "x", "x" * 32])
def test_an_address_without_its_token_is_refused(client: Client, token: str) -> None:
    assert client.ask("GET", f"/{token}/")[0] == 403
    assert client.ask("POST", f"/{token}/show", b'{"text": ""}', client.own())[0] == 403
    assert client.ask("GET", f"/{token}/static/page.js")[0] == 403


ELSEWHERE = (
    "static/../../../../etc/passwd",
    "static/%2e%2e/%2e%2e/asked.py",
    "static//etc/passwd",
    "static/",
    "examples/../../pyproject.toml",
    "examples/%2e%2e%2f%2e%2e%2fpyproject.toml",
    "examples//etc/passwd",
    "docs",
    "openapi.json",
)


@pytest.mark.parametrize("path", ELSEWHERE)
def test_no_path_leads_to_another_file(client: Client, path: str) -> None:
    status, _, body = client.ask("GET", f"/{client.token}/{path}")
    assert status in (403, 404)
    assert b"root:" not in body and b"[project]" not in body


def test_examples_are_served(client: Client) -> None:
    assert {"saxpy.te", "scheduled/attention.te", "tma/matmul.te", "hopper/matmul.te"} <= set(names())
    status, headers, body = client.ask("GET", f"/{client.token}/examples/scheduled/attention.te")
    assert (status, body.decode()) == (200, text_of("scheduled/attention.te"))
    assert headers["content-type"].startswith("text/plain")


@pytest.mark.parametrize(
    ("question", "status", "reason"),
    [
        (b"", 400, "JSON"),
        (b"{", 400, "JSON"),
        (b"\xff\xfe", 400, "JSON"),
        (b"[" * 100_000, 400, "JSON"),
        (b"[]", 422, "an object"),
        (b'{"text": 5}', 422, "`text` is a text"),
        (b'{"text": "", "sizes": "n=x"}', 422, "no size"),
        (json.dumps({"text": "x" * (LARGEST_TEXT + 1)}).encode(), 422, "a page takes"),
        (b"x" * (LARGEST_BODY + 1), 413, "too large"),
    ],
    ids=["empty", "half", "bytes", "deep", "list", "number", "sizes", "long", "huge"],
)
def test_what_is_no_question_is_refused(client: Client, question: bytes, status: int, reason: str) -> None:
    found, answer = client.show(question)
    assert (found, reason in answer["error"]) == (status, True), answer


def test_a_question_is_json(client: Client) -> None:
    assert client.show({"text": ""}, Content_Type="text/plain")[0] == 415
    assert client.ask("GET", f"/{client.token}/show")[0] == 405


HOSTILE = ("\0" * 1000, "fn f(" * 20_000, "(" * 100_000, "</script><script>alert(1)</script>", "\u202e\ufeff")


@pytest.mark.parametrize("text", HOSTILE, ids=["nulls", "halves", "deep", "script", "direction"])
def test_hostile_texts_are_answered(client: Client, text: str) -> None:
    status, found = client.show({"text": text})
    assert status == 200 and not found["ok"]
    assert "<script" not in found["problems"] + found["html"]
    assert client.show({"text": SAXPY})[1]["ok"]


def test_it_listens_on_this_machine_alone(client: Client) -> None:
    others = {each[4][0] for each in socket.getaddrinfo(socket.gethostname(), None)} - {"127.0.0.1"}
    others = {each for each in others if not str(each).startswith("127.")}
    for address in map(str, others):
        with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as other, pytest.raises(OSError):
            other.settimeout(5)
            other.connect((address, client.port))


def test_a_port_that_is_taken_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert main(["explore", "--port", str(taken.getsockname()[1])]) == 2
    out, err = capsys.readouterr()
    assert (out, "E0827" in err, "leave --port away" in err) == ("", True, True)


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_where_a_package_is_missing_its_extra_is_named(
    missing: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [each for each in sys.modules if each.split(".")[0] == missing or each.startswith("texpr.explore.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    assert main(["explore"]) == 2
    out, err = capsys.readouterr()
    assert (out, "E0826" in err, "pip install 'texpr-compiler[explore]'" in err) == ("", True, True)
