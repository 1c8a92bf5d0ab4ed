"""The headers that an emitted `.cpp` includes."""

from __future__ import annotations

from importlib.resources import files

from texpr.backends.c.headers import check_headers, numeric_headers


def headers() -> dict[str, str]:
    """File name and text of every header of the CPU backend; they include each other by plain name, from one folder."""
    name = "texpr_cpu.h"
    own = (files("texpr.backends.cpu") / name).read_text(encoding="utf-8")
    return {name: own, **check_headers(), **numeric_headers()}
