"""What became of a unit, and the notes and logs of failures in the results folder."""

from contextlib import suppress
from dataclasses import dataclass, field
from traceback import format_exception

from benchmark.disk import ResultsFolder, write_json, write_text
from benchmark.errors import LincBenchError
from detectors import Detector


@dataclass(frozen=True)
class Outcome:
    run_id: str
    trained: bool = False
    error: str | None = None  # why there is no record
    failures: dict[str, str] = field(default_factory=dict)  # why a detector has no scores, by its label
    is_transient: bool = False  # the error may not come again: a worker was killed, a disk was unavailable

    @property
    def reasons(self) -> list[str]:
        """Everything that failed; empty if all is well."""
        failures = [f"{detector}: {reason}" for detector, reason in self.failures.items()]
        return failures if self.error is None else [self.error]

    def failure_of(self, detector: Detector) -> str | None:
        """Why the detector has no scores of this run."""
        return self.error if self.error is not None else self.failures.get(detector.label)


def error_message(error: BaseException) -> str:
    return str(error) if isinstance(error, LincBenchError) else f"{type(error).__name__}: {error}"


def write_log(results: ResultsFolder, run_id: str, errors: dict[str, BaseException]) -> None:
    """Tracebacks, each under a title."""
    text = "\n".join(f"{title}\n{''.join(format_exception(error))}" for title, error in errors.items())
    with suppress(OSError):  # a full disk is reported anyway
        write_text(results.log(run_id), text)


def note_failure(results: ResultsFolder, outcome: Outcome, attempts: int) -> None:
    """For `linc-bench status`; a success removes the note and the log of earlier failures."""
    note = results.failed(outcome.run_id)
    if not outcome.reasons:
        note.unlink(missing_ok=True)
        results.log(outcome.run_id).unlink(missing_ok=True)
        return
    with suppress(OSError):  # a full disk is reported anyway
        write_json(note, {"reason": "; ".join(outcome.reasons), "attempts": attempts})
