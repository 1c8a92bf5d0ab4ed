"""The proof that a scheduled program computes what the program as written does, so that no directive is trusted."""

from texpr.proof.schedule.prove import as_marked, faithful, require_kept

__all__ = ["as_marked", "faithful", "require_kept"]
