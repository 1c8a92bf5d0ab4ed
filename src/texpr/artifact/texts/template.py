"""Files of an artifact that rarely change: texts with placeholders `@NAME@`."""

from __future__ import annotations

from texpr.support.templates import filled


def template(name: str, **values: str) -> str:
    """The text of a template, with every `@KEY@` replaced. Raises KeyError for a key without a value."""
    return filled("texpr.artifact.texts.templates", name, **values)
