"""The script for fish: a line for each thing that can be completed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.cli.completions.parser import Option, Value, Verb


def script(own: Sequence[Option], verbs: Sequence[Verb], version: str) -> str:
    """The text of the script."""
    lines = [f"# texpr {version}: completion for fish, printed by `texpr completions fish`."]
    lines.append("complete -c texpr -f")
    first = "__fish_use_subcommand"
    lines += [f"complete -c texpr -n {first} {_option(option)}" for option in own]
    lines += [f"complete -c texpr -n {first} -a {verb.name} -d {_quoted(verb.help)}" for verb in verbs]
    for verb in verbs:
        when = f"-n '__fish_seen_subcommand_from {verb.name}'"
        lines += [f"complete -c texpr {when} {_option(option)}" for option in verb.options]
        lines += [f"complete -c texpr {when} {asked}" for value in verb.arguments if (asked := "".join(_asked(value)))]
    return "\n".join(lines) + "\n"


def _option(option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    value = "" if option.value is None else " ".join((" -r" if option.value.is_path else " -x", *_asked(option.value)))
    return f"{names}{value} -d {_quoted(option.help)}"


def _asked(value: Value) -> Iterator[str]:
    """Words; or files, of which fish lists those with an ending first, by a function of its own."""
    if value.words:
        yield f"-a {_quoted(' '.join(value.words))}"
    elif value.suffix:
        yield f"-k -a '(__fish_complete_suffix .{value.suffix})'"
    elif value.is_path:
        yield "-F"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
