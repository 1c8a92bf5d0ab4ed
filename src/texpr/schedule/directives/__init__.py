"""The directives, one file each: `RULE` is its syntax and its rewrite."""
