"""A case of a script in a process of its own, which the script is called for again with `--of NAME`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any


def apart(script: str, name: str, seconds: float, given: Mapping[str, str] | None = None) -> Mapping[str, Any]:
    """What the script prints last for the case, as JSON; or under `failed` why there is nothing.

    `seconds`: how long it may take; `given`: what is added to its environment.
    """
    command, environment = [sys.executable, script, "--of", name], {**os.environ, **(given or {})}
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds, env=environment)
    except subprocess.TimeoutExpired:
        return {"failed": f"more than {seconds} s"}
    if done.returncode < 0:
        return {"failed": f"ended by signal {-done.returncode}"}
    if done.returncode:
        told = done.stderr.strip().splitlines() or ["?"]
        return {"failed": next((line for line in told if line.startswith("error")), told[-1])}
    return json.loads(done.stdout.splitlines()[-1])
