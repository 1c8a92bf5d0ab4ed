"""What an editor asks of a text: its format, and by the language server what is wrong with it and what its names are."""
