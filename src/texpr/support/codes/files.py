"""Files and the command line (E08)."""

CODES: dict[str, str] = {
    "E0850": "no such file",
    "E0851": "a folder where a file is wanted",
    "E0852": "file cannot be read",
    "E0853": "file is not UTF-8",
    "E0854": "file too large",
    "E0855": "output cannot be written",
    "E0856": "not a NumPy file",
    "E0857": "array of another type",
    "E0858": "results differ from the interpreter's",
    "E0859": "out of memory",
    "E0860": "unknown schedule",
}
