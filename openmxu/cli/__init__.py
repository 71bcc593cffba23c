"""The command line: the ``openmxu`` command and its subcommands."""

from openmxu.cli.application import main

__all__ = ["main"]
