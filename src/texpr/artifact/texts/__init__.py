"""The texts of an artifact: plans and the record in; sources, headers, packages and the manifest out."""
