"""Order between steps (`synchronise.synchronise`): placed steps in; the same with barriers, waits, phases and fences."""
