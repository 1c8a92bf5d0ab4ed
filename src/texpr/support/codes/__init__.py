"""Error codes, one file an area; each file's `CODES` gives a code its title.

Areas: E01 syntax, E02 names, E03 types and ranks, E04 legality (proved wrong), E05 undecided and not supported,
E06 toolchain, E07 data given to a program, E08 files and command line, E09 schedules.
"""

from texpr.support.codes import files, legality, limits, names, runtime, schedule, syntax, toolchain, types

TITLES: dict[str, str] = {
    **syntax.CODES, **names.CODES, **types.CODES, **legality.CODES,
    **limits.CODES, **toolchain.CODES, **runtime.CODES, **files.CODES,
    **schedule.CODES,
}  # fmt: skip
"""Every code with its title."""
