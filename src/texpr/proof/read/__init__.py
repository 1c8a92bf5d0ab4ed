"""Programs and kernels in a common form, as events: the two sides that the checkers compare.

Operations of the kernel form are decomposed into reads and writes of elements, by threads, at times. The reading makes no
decisions and uses no knowledge of how a kernel was made.
"""
