"""Order between steps: barriers, waits, phases and fences, placed at least cost from dependences."""
