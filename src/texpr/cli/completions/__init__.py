"""Completion for shells, read off the parser of the command: what each verb takes, as a script for bash, zsh or fish."""
