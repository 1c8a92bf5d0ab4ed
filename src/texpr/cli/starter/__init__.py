"""A project to start from: a program, and what calls it from Python, C++ and Rust."""

from __future__ import annotations

import errno
import keyword
from collections.abc import Mapping
from pathlib import Path

from texpr.artifact.texts.rust import rust_name
from texpr.backends.c.names import identifier
from texpr.frontend import parse
from texpr.support.diagnostic import TexprError, error
from texpr.support.folders import beside
from texpr.support.templates import filled

_PLACES = {
    "README.md": "README.md",
    ".gitignore": "gitignore",
    "@NAME@.te": "program.te",
    "reference.py": "reference.py.in",
    "run.py": "run.py.in",
    "cpp/CMakeLists.txt": "CMakeLists.txt",
    "cpp/main.cpp": "main.cpp",
    "rust/Cargo.toml": "Cargo.toml",
    "rust/src/main.rs": "main.rs",
}
"""Each file of a project, and its template."""


def project(title: str) -> dict[str, str]:
    """The texts of a project by their paths, for a folder of that name. Raises TexprError E0807 where nothing can have it."""
    name = title.replace("-", "_")
    if not (title.isascii() and identifier(name) == rust_name(name) == name) or keyword.iskeyword(name) or not _is_name(name):
        taken = name.isidentifier() and name.isascii()
        help = f"call it my_{name}, say" if taken else "use letters, digits, - and _, a letter first"
        told = f"a project cannot be called `{title}`: its function could not in C, C++, Rust and Python"
        raise error("E0807", None, told, help=help)
    values = {"NAME": name, "DASHED": name.replace("_", "-"), "TITLE": title}
    return {path.replace("@NAME@", name): filled(f"{__name__}.templates", file, **values) for path, file in _PLACES.items()}


def _is_name(name: str) -> bool:
    """Whether it is a name of the language, and no keyword of it."""
    try:
        parse(filled(f"{__name__}.templates", "program.te", NAME=name), f"{name}.te")
    except TexprError:
        return False
    return True


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Makes the folder with these files, or nothing. Raises TexprError E0813 where something is in it, E0855 otherwise."""
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise error("E0813", None, f"`{folder}` is there, and is not a folder", help="take another name")
    try:
        with beside(folder, {path: text.encode() for path, text in files.items()}) as made:
            _rename(made, folder)
    except OSError as fault:
        raise error("E0855", None, f"`{folder}` cannot be written: {fault.strerror or fault}; nothing is left of it") from None


def _rename(made: Path, folder: Path) -> None:
    """Over an empty folder, and over nothing else. Raises TexprError E0813."""
    try:
        made.rename(folder)
    except OSError as fault:
        if fault.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise error("E0813", None, f"`{folder}` is there, and is not empty", help="take another name") from None
