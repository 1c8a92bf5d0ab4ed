"""The directives, one file each: `RULE` says how it is written and what rewrite it is."""
