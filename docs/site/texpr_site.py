"""What the site adds to Sphinx: the colours of programs, and anchors that GitHub reads as HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.token import Comment, Keyword, Name, Number, Operator, Punctuation, String, Text
from sphinx.application import Sphinx

from texpr.editor.words import CONTEXTUAL, KEYWORDS

_FOLDER = re.compile(r"\[([^\]]+)\]\((\.\./[^)#\s]+)\)")
_ANCHOR = re.compile(r'<a id="([\w-]+)"></a>')


class TeLexer(RegexLexer):
    """The colours of programs."""

    name = "texpr"
    aliases = ("te",)
    filenames = ("*.te",)
    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"--.*", Comment),
            (r'"(?:[^"\\]|\\.)*"', String),
            (r"'[A-Za-z_]\w*", Name.Label),
            (r"#\w+", Name.Decorator),
            (r"0x[0-9a-fA-F_]+|\d[\d_]*(?:\.\d+)?(?:e[+-]?\d+)?", Number),
            (r"\b(?:[biuf]\d+|bf16|tf32|bool|f8e\w+)\b", Keyword.Type),
            (words((*KEYWORDS, *CONTEXTUAL), prefix=r"\b", suffix=r"\b"), Keyword),
            (r"[A-Za-z_]\w*(?:'\d+)?", Name),
            (r"[-+*/%<>=!.]+", Operator),
            (r"[\[\](){}|,:;@]", Punctuation),
            (r"\s+", Text),
            (r".", Text),
        ]
    }


def pages(app: Sphinx, name: str, source: list[str]) -> None:
    """What GitHub understands and MyST does not: places that a page marks by `<a id="…"></a>`, and links to folders of the
    repository, which a site does not have."""
    folder = Path(app.srcdir, name).parent

    def linked(found: re.Match[str]) -> str:
        return found[1] if (folder / found[2]).is_dir() else found[0]

    source[0] = _FOLDER.sub(linked, _ANCHOR.sub(r"[]{#\1}", source[0]))
    if name.endswith("/README") and name not in ALONE:
        source[0] += _below(folder)


ALONE = ("tutorial/README", "figures/README")
"""Pages of a folder whose other pages are listed elsewhere, or that has none."""


def _below(folder: Path) -> str:
    """What belongs below the page of a folder: its other pages, and those of folders in it."""
    own = [path.stem for path in sorted(folder.glob("*.md")) if path.stem != "README"]
    inside = [f"{path.parent.name}/README" for path in sorted(folder.glob("*/README.md"))]
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join((*own, *inside)) + "\n```\n" if own or inside else ""


def docstrings(app: Sphinx, kind: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Docstrings are plain text, with names in backquotes; what they indent is code."""
    text = "\n".join(lines)
    text = re.sub(r"(?<![`\\\w])([*|])(?=\w)", r"\\\1", text)
    text = re.sub(r"(?m)^(?=\S)(.*)\n\n(?= {4})", r"\1\n\n::\n\n", text)
    lines[:] = text.split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.add_lexer("te", TeLexer)
    app.connect("source-read", pages)
    app.connect("autodoc-process-docstring", docstrings)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
