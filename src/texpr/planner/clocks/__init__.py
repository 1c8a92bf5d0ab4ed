"""How long what the planner makes takes, where a bound does not tell."""
