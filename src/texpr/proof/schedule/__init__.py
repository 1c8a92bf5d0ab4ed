"""That a program as a schedule laid it out does what was written: proved, so that no directive need be believed."""

from texpr.proof.schedule.prove import faithful, require_kept

__all__ = ["faithful", "require_kept"]
