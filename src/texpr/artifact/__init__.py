"""The artifact that a build leaves: headers, sources, libraries, packages for C++ and Rust, manifest and hashes.

`build` writes it atomically, and is deterministic; `verify` derives and proves it again.
"""

from texpr.artifact.build import Artifact, build, refuse_early
from texpr.artifact.certificate import may_be_open, program_text
from texpr.artifact.check.recheck import FAULTS, rechecked
from texpr.artifact.check.verify import Verified, verify
from texpr.artifact.proofs import show
from texpr.artifact.signature import signer, signs
from texpr.artifact.texts.sources import Part, Shown, read_origin, shipped
from texpr.artifact.told import believed_schedules, counts, open_plans

__all__ = [
    "FAULTS", "Artifact", "Part", "Shown", "Verified", "believed_schedules", "build", "counts", "may_be_open", "open_plans",
    "program_text", "read_origin", "rechecked", "refuse_early", "shipped", "show", "signer", "signs", "verify",
]  # fmt: skip
