"""What orders steps: dependences in; barriers, waits, phases and fences between steps out, at least cost."""
