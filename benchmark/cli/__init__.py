"""The command line: one module per group of commands, each of which parses, calls and prints."""

from benchmark.cli.command_line import main
