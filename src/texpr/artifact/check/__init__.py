"""Verification that a folder is an artifact of this version: each file compared, each plan proved again, or a refusal."""
