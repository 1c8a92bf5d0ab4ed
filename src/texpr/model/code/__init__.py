"""Machine code as it is printed: instructions, their control flow, and how often each is run by warps of a launch."""
