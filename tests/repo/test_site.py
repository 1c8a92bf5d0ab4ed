"""The site: it is built without a warning, none of its links leads nowhere, and it asks nobody for anything."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

pytest.importorskip("sphinx", reason="needs Sphinx")
pytest.importorskip("furo", reason="needs Sphinx")
pytest.importorskip("myst_parser", reason="needs Sphinx")

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]


def built(docs: Path, to: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sphinx", "-b", "html", "-E", "-W", "--keep-going", "-q", "-c", str(docs / "site")]
    return subprocess.run([*command, str(docs), str(to)], capture_output=True, text=True, check=False, timeout=600)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    to = tmp_path_factory.mktemp("site")
    done = built(ROOT / "docs", to)
    assert (done.returncode, done.stderr) == (0, "")
    return to


class Page(HTMLParser):
    """The places, the links and what is loaded, of a page."""

    def __init__(self, file: Path):
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(file.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = dict(attrs)
        self.places |= {names["id"] or ""} if "id" in names else set()
        self.links += [value for name in ("href", "src") if (value := names.get(name))]
        if tag != "a":
            self.loaded += [value for name in ("href", "src") if (value := names.get(name))]


def test_every_link_leads_somewhere(site: Path) -> None:
    pages = {file.resolve(): Page(file) for file in site.rglob("*.html")}
    assert len(pages) > 60
    wrong: list[str] = []
    for file, page in pages.items():
        for link in page.links:
            path, _, place = link.partition("#")
            if re.match(r"[a-z]+:", link):
                continue
            target = (file.parent / unquote(path.partition("?")[0])).resolve() if path else file
            known = pages[target].places if target in pages else None
            if not target.exists() or (place and known is not None and unquote(place) not in known):
                wrong.append(f"{file.name}: {link}")
    assert wrong == []


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.html"):
        assert [link for link in Page(file).loaded if re.match(r"(https?:)?//", link)] == [], file
    for file in site.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", file.read_text(encoding="utf-8")), file


def test_programs_have_their_colours(site: Path) -> None:
    page = (site / "index.html").read_text(encoding="utf-8")
    assert '<span class="k">par</span>' in page and '<span class="kt">f32</span>' in page


def test_every_public_name_has_its_docstring(site: Path) -> None:
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    for name in (
        "texpr.load",
        "texpr.compile",
        "texpr.build",
        "texpr.Schedule.stage",
        "texpr.runtime.Kernel",
        "texpr.torch.register",
    ):
        assert f'id="{name}"' in page, name
    assert "texpr.layout.Layout" in page and "texpr.domain.DomainGraph" in page and "texpr.tma.tma" in page


def test_a_broken_link_is_an_error(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    (docs / "site").mkdir(parents=True)
    for name in ("conf.py", "texpr_site.py"):
        shutil.copy(ROOT / "docs" / "site" / name, docs / "site" / name)
    (docs / "site" / "static").mkdir()
    (docs / "site" / "static" / "texpr.css").touch()
    (docs / "index.md").write_text("# Index\n\n[a](#index)\n", encoding="utf-8")
    assert built(docs, tmp_path / "right").returncode == 0
    (docs / "index.md").write_text("# Index\n\n[a](nothing.md)\n", encoding="utf-8")
    done = built(docs, tmp_path / "wrong")
    assert done.returncode != 0 and "nothing.md" in done.stderr
