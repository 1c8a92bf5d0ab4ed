"""Rings of slots, and groups that take turns at one: the premises of the lemmas of docs/theory/channels.md, as obligations."""
