"""``p2psim completion``: what makes a shell complete commands, options and names."""

import argparse
import os

from p2psim.cli.arguments import command, option


@command(
    "completion",
    "print the code that makes a shell complete commands and options",
    option("shell SHELL", "bash, zsh or fish", choices=("bash", "zsh", "fish")),
    epilog='bash and zsh: eval "$(p2psim completion bash)" in ~/.bashrc or ~/.zshrc. '
    "fish: p2psim completion fish > ~/.config/fish/completions/p2psim.fish",
)
def completion(args: argparse.Namespace) -> None:
    """``p2psim completion``."""
    from argcomplete.shell_integration import shellcode

    print(shellcode(["p2psim"], shell=args.shell))


def complete(parser: argparse.ArgumentParser) -> None:
    """Answer the shell, and end, if it is the shell that asks."""
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete

        argcomplete.autocomplete(parser)
