"""The headers that an emitted `.cu` includes."""

from __future__ import annotations

from importlib.resources import files

from texpr.backends.c.headers import numeric_headers


def headers() -> dict[str, str]:
    """File name and text of every header of the CUDA backend; they include each other by plain name, from one folder."""
    folder = files("texpr.backends.cuda")
    names = ("texpr_device.h", "texpr_tensor.h", "texpr_warpgroup.h", "texpr_columns.h")
    return {**{name: (folder / name).read_text(encoding="utf-8") for name in names}, **numeric_headers()}
