"""Proofs of what was compiled: `read` (programs and kernels as events), `plan` and `schedule` (the checkers, which share
`common`), and `search`, which looks for what the checkers check. No checker imports from `search` or from what lowers.
"""
