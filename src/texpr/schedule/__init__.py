"""The schedule language: directives that map a program to a machine, each a rewrite that is proved or refused."""
