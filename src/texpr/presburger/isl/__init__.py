"""The interface to isl: formulas in, isl sets and relations out. Nothing else imports islpy."""
