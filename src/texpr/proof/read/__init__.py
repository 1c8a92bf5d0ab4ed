"""What a program says and what kernels do, event by event: the two sides that the verifier compares.

Instructions of the kernel form are taken apart into elements that are written and read, by threads, at times. Nothing is
decided here, and nothing is known of how a kernel was made.
"""
