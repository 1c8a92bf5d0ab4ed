"""The verbs of the command, one file each: words of a command line in, a printed result and an exit code out."""
