"""The package that a build leaves: headers, sources, libraries, packages for C++ and Rust, manifest and hashes.

`build` writes it whole or not at all, and the same input gives the same bytes; `verify` rechecks it.
"""

from texpr.artifact.build import Artifact, build, refuse_early
from texpr.artifact.proofs import show
from texpr.artifact.recheck import believed
from texpr.artifact.sources import Part, Shown, shipped
from texpr.artifact.told import believed_schedules, counts
from texpr.artifact.verify import verify

__all__ = [
    "Artifact",
    "Part",
    "Shown",
    "believed",
    "believed_schedules",
    "build",
    "counts",
    "refuse_early",
    "shipped",
    "show",
    "verify",
]
