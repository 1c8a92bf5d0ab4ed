"""The texts of an artifact: plans and what was recorded in; sources, headers, packages and the manifest out."""
