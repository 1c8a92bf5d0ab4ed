"""The script for zsh: a function for its own `_arguments`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.cli.completions.parser import Option, Value, Verb

_HEAD = """\
#compdef texpr
# texpr @VERSION@: completion for zsh, printed by `texpr completions zsh`.

_texpr() {
    local curcontext=$curcontext state line
    local -a verbs
    verbs=(
@VERBS@
    )
    _arguments -C \\
@OWN@
        '1:verb:->verb' \\
        '*::argument:->rest'
    case $state in
    verb) _describe -t verbs verb verbs ;;
    rest)
        case $words[1] in
"""
_FOOT = """\
        esac
        ;;
    esac
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _texpr "$@"
else
    compdef _texpr texpr
fi
"""


def script(own: Sequence[Option], verbs: Sequence[Verb], version: str) -> str:
    """The text of the script."""
    listed = "\n".join(f"        {_quoted(f'{verb.name}:{verb.help}')}" for verb in verbs)
    first = "\n".join(f"        {each} \\" for option in own for each in _option(option))
    lines = [_HEAD.replace("@VERSION@", version).replace("@VERBS@", listed).replace("@OWN@", first)]
    for verb in verbs:
        parts = [each for option in verb.options for each in _option(option)]
        last = len(verb.arguments) - 1
        for at, value in enumerate(verb.arguments):
            place = "*" if at == last and verb.rest else str(at + 1)
            parts.append(_quoted(f"{place}:{_plain(value.name)}:{_asked(value)}"))
        lines.append(f"        {verb.name})\n            _arguments {_joined(parts)}\n            ;;\n")
    return "".join((*lines, _FOOT))


def _joined(parts: Sequence[str]) -> str:
    return " \\\n                ".join(parts)


def _option(option: Option) -> Iterator[str]:
    """One specification for each name; all of its names exclude each other, unless it may come again."""
    others = " ".join(option.names)
    for name in option.names:
        before = "*" if option.again else f"({others})"
        value = "" if option.value is None else f":{_plain(option.value.name)}:{_asked(option.value)}"
        equals = "=" if name.startswith("--") and option.value is not None else ""
        yield _quoted(f"{before}{name}{equals}[{_plain(option.help)}]{value}")


def _asked(value: Value) -> str:
    if value.words:
        return f"({' '.join(value.words)})"
    if not value.is_path:
        return " "
    return f'_files -g "*.{value.suffix}"' if value.suffix else "_files"


def _plain(text: str) -> str:
    """Without what has a meaning in a specification."""
    return text.replace(":", " -").replace("[", "(").replace("]", ")")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"
