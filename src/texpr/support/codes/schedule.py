"""Schedules (E09): directives that cannot be followed, each with its reason."""

CODES: dict[str, str] = {
    "E0901": "unknown directive",
    "E0902": "wrong arguments of a directive",
    "E0903": "a directive names no loop or buffer that there is",
    "E0904": "a name stands for several loops",
    "E0905": "loops that are not nested as a directive needs",
    "E0906": "directive that changes what is computed",
    "E0907": "name of a directive's result that is taken",
    "E0908": "level that the target does not have, or that is taken",
    "E0909": "loop whose iterations are ordered, shared out",
    "E0910": "threads of a block that do not fit the machine",
    "E0911": "accesses that cannot be made as vectors",
    "E0912": "region that cannot be staged",
    "E0913": "placement that does not hold what it must",
    "E0914": "schedule undecided",
    "E0915": "directive that leaves iterations out",
    "E0916": "copy that the tensor memory accelerator cannot make",
    "E0918": "blocks that cannot work together as a schedule says",
    "E0919": "loops that an instruction of lanes does not do",
    "E0920": "warps that cannot have the roles that a schedule gives them",
    "E0921": "sum that is to be rounded as IEEE 754 says, given to a unit that rounds otherwise",
}
