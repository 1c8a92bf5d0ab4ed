"""Answers to the questions of an editor, in offsets of the text: what is wrong, what is here, what could be here."""
