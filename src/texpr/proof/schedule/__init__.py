"""The proof that a scheduled program computes what the program as written does, so that no directive is trusted."""

from texpr.proof.schedule.prove import faithful, require_kept

__all__ = ["faithful", "require_kept"]
