"""Placement of locals (`placement.place`): steps in; the same with registers, shared memory or workspace of each local."""
