"""`moe-theory completion`."""

import click
from click.shell_completion import get_completion_class

from moe_theory.cli.options import examples

SHELLS = ("bash", "zsh", "fish")


@click.command(epilog=examples("moe-theory completion bash"))
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a script with which your shell completes commands and options.

    To have it in every new shell, end the shell's start-up file with this line:

    \b
    source <(moe-theory completion bash)     in ~/.bashrc
    source <(moe-theory completion zsh)      in ~/.zshrc, after compinit
    moe-theory completion fish | source      in ~/.config/fish/config.fish
    """
    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(context.find_root().command, {}, "moe-theory", "_MOE_THEORY_COMPLETE").source())
