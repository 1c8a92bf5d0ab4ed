"""What is undecided or not supported (E05)."""

CODES: dict[str, str] = {
    "E0501": "bounds of an index undecided",
    "E0502": "independence of a par undecided",
    "E0503": "whether an element is written before it is read undecided",
    "E0504": "whether a result is fully written undecided",
    "E0505": "sign of an extent undecided",
    "E0506": "range of an integer undecided",
    "E0507": "divisor of an index undecided",
    "E0508": "whether a kernel does what the program says undecided",
    "E0509": "whether a schedule keeps to its program undecided",
    "E0541": "instruction that a target lacks, or that is not lowered",
    "E0542": "memory whose size is not known outside a loop",
    "E0551": "sizes beyond 64 bits",
    "E0552": "too many threads in a block",
    "E0553": "too much shared memory in a block",
    "E0554": "too many blocks in a cluster",
    "E0555": "copies of tiles for a device without an engine for them",
    "E0571": "the emulator cannot be built here",
    "E0572": "a launch that cannot be emulated",
    "E0580": "unknown target",
    "E0581": "text that describes no kernel or plan",
}
