"""What `texpr explain` prints of how fast a function and its kernels can be at most."""

from __future__ import annotations

from collections.abc import Iterator

from texpr.explain import Data

SHOWN = 4
"""Units that are named, the busiest first."""


def function_lines(data: Data | None) -> Iterator[str]:
    """The bound of all launches, and the least that any program needs."""
    if data is None:
        return
    at = ", ".join(f"{name} = {size}" for name, size in data["sizes"].items())
    taken = f"; nobody said {', '.join(data['assumed'])}" if data["assumed"] else ""
    yield f"{_us(data['bound_us'])} on {data['device']}" + (f", at {at}{taken}" if at else "")
    parts = data["least"]
    what = "to move bytes" if parts["dram_us"] >= parts["operations_us"] else "to compute"
    times = "" if data["ratio"] is None else f"; the bound is {data['ratio']:.3g} times that"
    yield f"any program needs {_us(data['least_us'])} {what}{times}"


def kernel_lines(data: Data | None, name: str) -> Iterator[str]:
    """The bound of one launch, by the plan, by machine code, and a steady turn."""
    found = None if data is None else data["kernels"].get(name)
    if found is None:
        return
    often = f", {found['launches']} launches" if found["launches"] != 1 else ""
    yield f"{_bound(found)}{often}"
    held = f"{found['resident_blocks']} blocks a multiprocessor ({found['resident_by']})"
    yield f"waves: {found['waves']} of {held}; the fullest has {found['loss']:.3g} times its share"
    yield f"bytes: {', '.join(f'{unit} {_size(amount)}' for unit, amount in found['bytes'].items())}"
    if found["turn"] is not None:
        yield f"a turn of products: {_turn(**found['turn'])}"
    code = found["code"]
    if code is None:
        return
    yield f"machine code: {_bound(code)}" + ("" if code["whole"] else "; it was not gone through to its end")
    turn = code["steady"]
    if turn is not None:
        least = f"{turn['least_clocks']:.0f} at least, by {turn['unit']}"
        yield f"a steady turn at {turn['loop']}, {turn['instructions']} instructions: {turn['clocks']:.0f} clocks, {least}"


def _turn(clocks: float, all_waited_for: float) -> str:
    """By the waits of the plan, and what these save."""
    saved = "" if clocks >= all_waited_for else f", {all_waited_for:.0f} if each were waited for at once"
    return f"{clocks:.0f} clocks by its waits{saved}"


def _bound(found: Data) -> str:
    others = [f"{unit} {_us(us)}" for unit, us in found["units_us"].items() if unit != found["deciding"]][: SHOWN - 1]
    each = found["instructions_per_element"]
    spent = "" if each is None else f"; {each:.3g} instructions an element"
    return f"{_us(found['bound_us'])} by {found['deciding']} ({', '.join(others)}){spent}"


def _us(number: float) -> str:
    return f"{number:.4g} µs" if number < 1e5 else f"{number / 1e3:.4g} ms"


def _size(number: float | None) -> str:
    if number is None:
        return "not known"
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.4g} {unit}"
    return f"{number:.0f} B"
