"""Loop transformations, each proved: a program under a schedule in, the transformed program out, or a refusal."""
