"""Whole pages: one that a server fills, and one that is a single file with all panes in it.

The two have the same parts, the same style and the same script. A single file allows by its content security policy no script
and no style but its own, by their hashes, and loads nothing; a server says the same of its pages in a header.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from importlib.resources import files

from texpr import __version__
from texpr.explore.answer import choices, problems
from texpr.explore.asked import Asked
from texpr.explore.examples import names
from texpr.explore.lines import written as lines_of
from texpr.explore.look import Look
from texpr.explore.page.html import Content, Element, element, escape, written
from texpr.explore.page.pictures import pictures_style
from texpr.explore.page.views import listing, note
from texpr.explore.panes import PANES, contents
from texpr.isa.registry import TARGETS

STATIC = ("codemirror/codemirror.css", "pictures.css", "page.css", "codemirror/codemirror.js", "mode.js", "page.js")
"""The files that a served page asks for, in this order."""

SERVED_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
"""What a served page may do: run and ask for the files of its own server, nothing else."""


def static(name: str) -> bytes:
    """One of the page's own files. Raises KeyError for any other name."""
    if name not in STATIC:
        raise KeyError(name)
    if name == "pictures.css":
        return pictures_style().encode()
    place = files("texpr.explore") / "static"
    for part in name.split("/"):
        place = place / part
    return place.read_bytes()


def served(asked: Asked) -> str:
    """The page of a server, with a text to begin with."""
    links = "".join(f'<link rel="stylesheet" href="static/{name}">' for name in STATIC if name.endswith(".css"))
    scripts = "".join(f'<script defer src="static/{name}"></script>' for name in STATIC if name.endswith(".js"))
    editor = element("textarea", id="text", spellcheck="false", autocomplete="off", aria_label="the program")
    panes = [_section(name, ()) for name in PANES]
    start = element("template", json.dumps(choices(asked)), id="start")
    body = (_bar(asked), element("main", _left(editor, ()), _right(panes)), start)
    return _html(f"{asked.name} – texpr explore", links + scripts, body, "served")


def alone(seen: Look) -> str:
    """A page that is one file: every pane of what was compiled, for readers without a server and without a network."""
    pictures, style, script = (static(name).decode() for name in ("pictures.css", "page.css", "page.js"))
    style = pictures + style
    policy = f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; base-uri 'none'; "
    policy += "form-action 'none'"
    head = f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}"><style>{_own(style)}</style>'
    panes = [_section(name, contents(seen, name)) for name in PANES]
    program = element("div", listing(lines_of(seen.asked.text), "the program"), id="listing")
    said = (
        element("strong", f"texpr {__version__}"),
        element("span", f"{seen.asked.name}: {seen.function.name if seen.function else 'no function'}"),
        element("span", f"for {seen.asked.target}, schedule {seen.asked.schedule}"),
        *(element("span", f"{name} = {size}") for name, size in seen.asked.sizes),
    )
    bar = element("header", *said)
    body = (bar, element("main", _left(program, problems(seen)), _right(panes)))
    title = f"{seen.asked.name} – texpr explore"
    return _html(title, head, body, "alone", f"<script>{_own(script)}</script>")


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _own(text: str) -> str:
    """A script or a style sheet of ours, which is not escaped within a page."""
    if "</" in text or "<!--" in text:
        raise ValueError("a script within a page must not hold the end of an element")
    return text


def _html(title: str, head: str, body: tuple[Content, ...], mode: str, end: str = "") -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="referrer" content="no-referrer">'
        f'<title>{escape(title)}</title>{head}</head>\n<body data-mode="{mode}">{written(body)}{end}</body></html>\n'
    )


def _bar(asked: Asked) -> Element:
    """What a reader chooses."""
    targets = [element("option", name, value=name, selected="selected" if name == asked.target else None) for name in TARGETS]
    menu = [element("option", "examples …", value=" "), *(element("option", name, value=name) for name in names())]
    sizes = ", ".join(f"{name}={size}" for name, size in asked.sizes)
    return element(
        "header",
        element("strong", "texpr explore"),
        element("select", *menu, id="examples", aria_label="open an example"),
        element("button", "open …", id="open", type="button"),
        element("input", type="file", id="file", accept=".te", hidden="hidden", aria_label="open a file"),
        element("button", "save", id="save", type="button"),
        _choice("function", element("select", id="function")),
        _choice("target", element("select", *targets, id="target")),
        _choice("schedule", element("select", id="schedule")),
        _choice("sizes", element("input", id="sizes", type="text", value=sizes, placeholder="n=1000, K=64", maxlength="200")),
        element("span", id="state", role="status"),
    )


def _choice(name: str, control: Element) -> Element:
    return element("label", name, control)


def _left(program: Element, found: tuple[Content, ...]) -> Element:
    return element("div", program, element("div", *found, id="problems", aria_live="polite"), id="left")


def _right(panes: list[Element]) -> Element:
    tabs = [
        element("button", pane.title, type="button", role="tab", id=f"tab-{name}", data_pane=name, aria_controls=f"pane-{name}",
                kind="pictured" if pane.pictured else None)
        for name, pane in PANES.items()
    ]  # fmt: skip
    return element("div", element("nav", *tabs, role="tablist", aria_label="panes"), *panes, id="right")


def _section(name: str, inside: tuple[Content, ...]) -> Element:
    head = element("h2", PANES[name].title)
    return element(
        "section", head, *(inside or (note("…"),)), id=f"pane-{name}", role="tabpanel", aria_labelledby=f"tab-{name}"
    )
