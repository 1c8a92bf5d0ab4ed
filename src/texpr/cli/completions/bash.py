"""The script for bash: a function that is asked at each completion, and looks at the verb and the word before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from texpr.cli.completions.parser import Option, Value, Verb

_HEAD = """\
# texpr @VERSION@: completion for bash, printed by `texpr completions bash`.

# Files with this ending, or any, and folders, that begin like the word.
_texpr_files() {
    compopt -o filenames 2>/dev/null
    if [[ -n $1 ]]; then
        mapfile -t COMPREPLY < <(compgen -f -X "!*.$1" -- "$word"; compgen -d -- "$word")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
    fi
}

_texpr_words() {
    mapfile -t COMPREPLY < <(compgen -W "$1" -- "$word")
}

_texpr() {
    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb="" at
    COMPREPLY=()
    # Bash takes `--on=cpu` for three words.
    if [[ $word == "=" ]]; then
        word=""
    elif [[ $before == "=" ]]; then
        before=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((at = 1; at < COMP_CWORD; at++)); do
        if [[ ${COMP_WORDS[at]} != -* ]]; then
            verb=${COMP_WORDS[at]}
            break
        fi
    done
    case "$verb $before" in
"""


def script(own: Sequence[Option], verbs: Sequence[Verb], version: str) -> str:
    """The text of the script."""
    lines = [_HEAD.replace("@VERSION@", version)]
    for verb in verbs:
        lines += [f"    {line}\n" for line in _values(verb)]
    lines.append('    esac\n    if [[ $word == -* ]]; then\n        case "$verb" in\n')
    for name, options in (("", own), *((verb.name, verb.options) for verb in verbs)):
        names = " ".join(name for option in options for name in option.names)
        lines.append(f'        "{name}") _texpr_words "{names}" ;;\n')
    lines.append('        esac\n        return\n    fi\n    case "$verb" in\n')
    lines.append(f'    "") _texpr_words "{" ".join(verb.name for verb in verbs)}" ;;\n')
    for verb in verbs:
        found = next((_asked(value) for value in verb.arguments if _asked(value)), None)
        if found is not None:
            lines.append(f'    "{verb.name}") {found} ;;\n')
    lines.append("    esac\n}\n\ncomplete -F _texpr texpr\n")
    return "".join(lines)


def _values(verb: Verb) -> Iterator[str]:
    """What is completed behind an option that takes a value; nothing is, where anything may stand."""
    for option in verb.options:
        if option.value is not None:
            before = "|".join(f'"{verb.name} {name}"' for name in option.names)
            yield f"{before}) {_asked(option.value) or ':'}; return ;;"


def _asked(value: Value) -> str | None:
    if value.words:
        return f'_texpr_words "{" ".join(value.words)}"'
    return f'_texpr_files "{value.suffix}"' if value.is_path else None
