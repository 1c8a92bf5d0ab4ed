#!/usr/bin/env bash
# The first thing to run on a machine with a GPU: `make device`, or this with PYTHON=…, where PyTorch may be installed for that
# Python. Builds, checks and times everything within fifteen minutes, and ends with the status of what went wrong first; 4 where
# there is no GPU. What was measured lies in bench/results then, what was checked in out/device.
set -uo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-.venv/bin/python}
out=${OUT:-out/device}
status=0

# Nothing of it may take the time of the rest.
limited() {
    local seconds=$1 what=$2
    shift 2
    printf '\n== %s (at most %s s)\n' "$what" "$seconds"
    timeout --kill-after=10 "$seconds" "$@"
    local code=$?
    if [ "$code" -ne 0 ]; then
        echo "== $what: status $code"
        if [ "$status" -eq 0 ]; then status=$code; fi
    fi
}

export PYTHONPATH="$PWD/src${PYTHONPATH:+:$PYTHONPATH}"
if ! "$python" -c 'import sys; from texpr.toolchain.doctor import find_device as f; sys.exit(isinstance(f(), str))'; then
    "$python" bench/tma.py
    exit $?
fi
mkdir -p "$out"
limited 20 "what is here" "$python" -m texpr doctor
limited 120 "results on the device" "$python" -m pytest tests/runtime/test_device.py --numprocesses "$(($(nproc) > 12 ? 12 : $(nproc)))" --dist worksteal \
    --junitxml "$out/checked.xml" -rfEs
# Each case has a process of its own, so that a kernel that waits for ever is told by name.
limited 240 "results of each family of kernels" "$python" -m pytest tests/runtime/test_device_families.py \
    --numprocesses "$(($(nproc) > 14 ? 14 : $(nproc)))" --dist worksteal --junitxml "$out/families.xml" -rfEs
limited 230 "problems, attention and products, timed" "$python" bench/times.py --json
limited 60 "copies of boxes, timed" "$python" bench/tma.py
limited 120 "the gallery, timed" "$python" bench/gallery.py
probes() { # what the second-level cache takes of pieces of lines
    local folder code
    folder=$(mktemp -d) || return
    nvcc -O3 -arch=native -o "$folder/probes" bench/probes.cu && "$folder/probes" >"$folder/probes.json" && cp "$folder/probes.json" "$out/probes.json"
    code=$?
    rm -rf "$folder"
    return "$code"
}
printf '\n== pieces of lines, stored and loaded\n'
probes || status=$?
exit "$status"
