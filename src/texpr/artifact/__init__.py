"""The artifact that a build leaves: headers, sources, libraries, packages for C++ and Rust, manifest and hashes.

`build` writes it atomically, and is deterministic; `verify` derives and proves it again.
"""

from texpr.artifact.build import Artifact, build, refuse_early
from texpr.artifact.check.verify import Verified, verify
from texpr.artifact.proofs import show
from texpr.artifact.signature import signer, signs
from texpr.artifact.texts.sources import Part, Shown, shipped
from texpr.artifact.told import believed_schedules, counts, open_plans

__all__ = [
    "Artifact",
    "Part",
    "Shown",
    "Verified",
    "believed_schedules",
    "build",
    "counts",
    "open_plans",
    "refuse_early",
    "shipped",
    "show",
    "signer",
    "signs",
    "verify",
]
