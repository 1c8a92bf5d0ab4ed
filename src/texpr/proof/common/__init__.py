"""What both checkers share: an obligation before and after it is decided, and the comparison of two values part by part."""
