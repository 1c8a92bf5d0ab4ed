"""Data given to a program (E07)."""

CODES: dict[str, str] = {
    "E0701": "no such parameter",
    "E0702": "missing argument",
    "E0703": "argument is not an array",
    "E0704": "wrong element type",
    "E0705": "wrong rank",
    "E0706": "no such size",
    "E0707": "invalid size",
    "E0708": "size not known",
    "E0709": "wrong shape",
    "E0710": "`where` does not hold",
    "E0711": "`assume` does not hold",
    "E0712": "data not of its type",
    "E0720": "out of bounds",
    "E0721": "element read before it is written",
    "E0722": "result element never written",
    "E0723": "dependent iterations",
    "E0724": "division by zero in an index",
    "E0725": "index out of range of its type",
    "E0726": "negative shape",
}
