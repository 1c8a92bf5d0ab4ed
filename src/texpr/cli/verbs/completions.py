"""`texpr completions`: what makes a shell complete the command."""

from __future__ import annotations

import click

from texpr import __version__
from texpr.cli.app import VERBS
from texpr.cli.completions import bash, fish, zsh
from texpr.cli.completions.parser import read
from texpr.cli.console import Console

SHELLS = {"bash": bash.script, "zsh": zsh.script, "fish": fish.script}


@click.command("completions")
@click.argument("shell", type=click.Choice(list(SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> int:
    """Print what makes a shell complete the command: verbs, options, their values and files.

    \b
    bash: texpr completions bash > ~/.local/share/bash-completion/completions/texpr
    zsh:  texpr completions zsh > a folder of $fpath/_texpr
    fish: texpr completions fish > ~/.config/fish/completions/texpr.fish
    """
    group = context.find_root().command
    assert isinstance(group, click.Group)
    console: Console = context.obj
    own, verbs = read(group, VERBS)
    console.say(SHELLS[shell](own, verbs, __version__).rstrip("\n"))
    return 0
