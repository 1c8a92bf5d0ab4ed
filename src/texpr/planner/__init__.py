"""Schedules that nobody wrote: tiles, staging and registers chosen by reuse, said as ordinary directives."""
