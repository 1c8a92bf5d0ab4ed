"""What can stand where on the command line, read off the parser."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

import click

from texpr.isa.registry import TARGETS
from texpr.support.record import Record

TARGET = "TARGET"
"""What help texts call the name of a target."""

_SUFFIX = re.compile(r"\.(te|svg|npy)\b")


class Value(Record):
    """What is given to an option, or for an argument: one of some words; or a folder, or a file with an ending, if one is said.
    `name`: as the help calls it."""

    name: str
    words: tuple[str, ...] = ()
    is_path: bool = False
    suffix: str = ""


class Option(Record):
    """An option by its names; `value` is None for a switch. `again`: it may be given several times."""

    names: tuple[str, ...]
    help: str
    value: Value | None
    again: bool


class Verb(Record):
    """A verb with its options and arguments; `rest`: the last argument may be several."""

    name: str
    help: str
    options: tuple[Option, ...]
    arguments: tuple[Value, ...]
    rest: bool


def read(group: click.Group, helps: Mapping[str, str]) -> tuple[tuple[Option, ...], tuple[Verb, ...]]:
    """The options of the command itself, and its verbs, each with its line of help."""
    with click.Context(group, info_name=group.name, help_option_names=group.context_settings["help_option_names"]) as context:
        verbs = tuple(_verb(name, helps[name], command, context) for name, command in _commands(group, context))
        return tuple(_options(group, context)), verbs


def _commands(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is not None:
            yield name, command


def _verb(name: str, help: str, command: click.Command, parent: click.Context) -> Verb:
    with click.Context(command, parent=parent, info_name=name) as context:
        arguments = [each for each in command.params if isinstance(each, click.Argument)]
        values = tuple(_value(each, context) for each in arguments)
        return Verb(name, help, tuple(_options(command, context)), values, bool(arguments) and arguments[-1].nargs != 1)


def _options(command: click.Command, context: click.Context) -> Iterator[Option]:
    for each in command.get_params(context):
        if isinstance(each, click.Option) and not each.hidden:
            value = None if each.is_flag or each.is_eager else _value(each, context)
            help = re.sub(r"\s+", " ", each.help or "").partition("  ")[0]
            yield Option((*each.opts, *each.secondary_opts), help, value, each.multiple)


def _value(param: click.Parameter, context: click.Context) -> Value:
    name = (param.metavar or param.make_metavar(context)).strip("[]. ")
    if isinstance(param.type, click.Choice):
        return Value(name, tuple(map(str, param.type.choices)))
    if isinstance(param.type, click.Path):
        return Value(name, (), True, _suffix(name))
    if name == TARGET:
        return Value(name, tuple(TARGETS))
    return Value(name, tuple(part for part in name.split("|") if part.islower()) if "|" in name else ())


def _suffix(name: str) -> str:
    """The ending that a name of an argument shows; `FILE` is a program."""
    found = _SUFFIX.search(name)
    return "te" if name == "FILE" else found[1] if found else ""
