"""The schedule language: directives that lay a program out on a machine, each a rewrite that is proved or refused."""
