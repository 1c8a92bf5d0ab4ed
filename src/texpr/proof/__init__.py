"""Translation validation: `read` (programs and kernels as events), `plan` and `schedule` (checkers, which share `common`), and
`search`, which finds the witnesses that they check. No checker imports `search` or any part of lowering.
"""
