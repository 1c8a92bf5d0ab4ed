"""The headers that an emitted `.cu` needs beside it."""

from __future__ import annotations

from importlib.resources import files

from texpr.backends.c.headers import numeric_headers


def headers() -> dict[str, str]:
    """File name and text of every header of the CUDA backend; they include each other by plain name, from one folder."""
    name = "texpr_device.h"
    return {name: (files("texpr.backends.cuda") / name).read_text(encoding="utf-8"), **numeric_headers()}
