"""Files and the command line (E08)."""

CODES: dict[str, str] = {
    "E0805": "targets that cannot be in one artifact",
    "E0806": "nothing to build",
    "E0807": "a name that an artifact cannot have",
    "E0810": "something else is where the artifact would be",
    "E0811": "the artifact cannot be written",
    "E0812": "the disk is full",
    "E0820": "not an artifact",
    "E0821": "an artifact that was changed",
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
