"""Whether a folder is what a build leaves: a folder in; each file compared, each plan proved again, or a refusal out."""
