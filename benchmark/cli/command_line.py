"""`linc-bench`: parses, calls a command, and says in a sentence what went wrong."""

import pkgutil
import signal
import threading
from collections.abc import Sequence

from benchmark.cli.parser import command_line
from benchmark.errors import LincBenchError


def main(arguments: Sequence[str] | None = None) -> int:
    _listen_for_sigterm()
    try:
        options = command_line().parse_args(arguments)
        command = pkgutil.resolve_name(f"benchmark.cli.{options.command}")
        return int(command(options))
    except LincBenchError as error:
        return _fail(f"error: {error}")
    except Terminated:
        return _fail("Terminated. Finished work is kept; rerun the same command to continue.", exit_code=143)
    except KeyboardInterrupt:
        return _fail("Interrupted. Finished work is kept; rerun the same command to continue.", exit_code=130)
    except OSError as error:
        if error.strerror is None:
            raise
        where = f" ({error.filename})" if error.filename else ""
        return _fail(
            f"error: {error.strerror}{where}. Finished work is kept. Fix the cause, free some space or choose another "
            "folder (see --help), then rerun the same command."
        )


def _fail(message: str, exit_code: int = 1) -> int:
    from benchmark.cli.terminal import say

    say(message, stderr=True)
    return exit_code


class Terminated(KeyboardInterrupt):
    """The process was asked to end, as a cluster does when a job's time is up."""


def _listen_for_sigterm() -> None:
    """SIGTERM ends a command as Ctrl-C does: locks are freed, workers end, and a message says so."""

    def stop(number: int, frame: object) -> None:
        raise Terminated

    if threading.current_thread() is threading.main_thread():  # other threads cannot set signal handlers
        signal.signal(signal.SIGTERM, stop)
