"""The body of a function: surface statements in, statements of the program form out."""
