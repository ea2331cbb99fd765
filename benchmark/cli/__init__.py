"""The command line: parses, calls, prints."""

from benchmark.cli.command_line import main

__all__ = ["main"]
