"""The edge to isl: formulas in, sets and relations of isl out. Nothing else imports islpy."""
