"""The verbs of the command, one file each: command-line words in, a printed result and an exit code out."""
