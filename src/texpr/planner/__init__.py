"""The automatic scheduler: tiles, staging and registers chosen by reuse, expressed as ordinary directives."""
