"""Progress with time left: bars in a terminal, a line now and then in a log file.

Runs write their epoch to small files in the results folder, so this works the same with every executor.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import NamedTuple

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars
from rich.text import Text

from benchmark.disk import UNREADABLE, ResultsFolder, read_json

SECONDS_BETWEEN_LINES = 15.0


class Note(NamedTuple):
    """What a run says of itself while it is trained and scored."""

    epoch: int
    scoring: str  # the label of a detector, if any
    since: float


def read_note(results: ResultsFolder, run_id: str) -> Note | None:
    with suppress(*UNREADABLE):
        note = read_json(results.running(run_id))
        return Note(int(note["epoch"]), str(note.get("scoring", "")), float(note.get("since", 0)))
    return None


class Progress:
    def __init__(self, console: Console, is_brief: bool = False) -> None:
        self.console, self.is_brief = console, is_brief  # brief: without how networks are split and stored
        self._pending: dict[str, int] = {}  # epochs of each run that is not finished
        self._epochs_done: dict[str, int] = {}  # of pending runs, as last read
        self._began = time.time()
        self._told: dict[tuple[str, str], float] = {}  # for how long a detector of a run has been scored, as last told
        self._said: set[str] = set()

    def say(self, text: str) -> None:
        self._said.add(text)
        self.console.print(Text(text))

    def say_once(self, text: str) -> None:
        if text not in self._said and not self.is_brief:
            self.say(text)

    @contextmanager
    def training(self, results: ResultsFolder, epochs: Mapping[str, int]) -> Iterator[None]:
        """Shows the epochs of all runs, given by run id, 0 for those that are only scored; and slow detectors."""
        self._pending = dict(epochs)
        runs, total = sum(map(bool, epochs.values())), sum(epochs.values())
        title, stop = f"training {runs} {'run' if runs == 1 else 'runs'}, epochs", threading.Event()
        with self.counting(title) if total else nullcontext(lambda done, total: None) as update:

            def watch() -> None:
                while not stop.wait(0.5):
                    update(total - self._epochs_left(results), total)

            watcher = threading.Thread(target=watch, daemon=True)
            watcher.start()
            try:
                yield
            finally:
                stop.set()
                watcher.join()
            update(total - self._epochs_left(results), total)

    def finished(self, run_id: str) -> None:
        self._pending.pop(run_id, None)

    def _epochs_left(self, results: ResultsFolder) -> int:
        pending = dict(self._pending)
        for run_id in filter(pending.__contains__, results.all_running()):
            note = read_note(results, run_id)
            if note is None or note.since < self._began:  # it has just ended, or a killed process left it
                continue
            self._epochs_done[run_id] = min(note.epoch, pending[run_id])
            if note.scoring:
                self._tell_slow(run_id, note.scoring, time.time() - note.since)
        return sum(epochs - self._epochs_done.get(run_id, 0) for run_id, epochs in pending.items())

    def _tell_slow(self, run_id: str, detector: str, seconds: float) -> None:
        """After a while, and whenever it has taken twice as long."""
        if seconds >= 2 * self._told.get((run_id, detector), SECONDS_BETWEEN_LINES / 2):
            self._told[run_id, detector] = seconds
            self.say(f"{detector} has been scoring {run_id} for {duration(seconds)}")

    @contextmanager
    def counting(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """A progress bar; call what is yielded with the number done and the total."""
        if not self.console.is_terminal:
            yield _Lines(self, what)
            return
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Bars(*columns, console=self.console) as bars:
            task = bars.add_task(what, total=None)
            yield lambda done, total: bars.update(task, completed=done, total=total)


class _Lines:
    """The same for a log file: a line every quarter of a minute, and at the end."""

    def __init__(self, progress: Progress, what: str) -> None:
        self.progress, self.what = progress, what
        self.started = self.last = time.monotonic()
        self.first_done: int | None = None
        self.ended = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        self.first_done = done if self.first_done is None else self.first_done
        if self.ended or not (done >= total or now - self.last >= SECONDS_BETWEEN_LINES):
            return
        self.last, self.ended = now, done >= total
        gained, elapsed = done - self.first_done, now - self.started
        left = f", about {duration(elapsed / gained * (total - done))} left" if gained > 0 and not self.ended else ""
        self.progress.say(f"{self.what}: {done:,} of {total:,} after {duration(elapsed)}{left}")


def duration(seconds: float) -> str:
    minute, hour, day = 60, 3600, 86400
    if seconds < 1.5 * minute:
        return f"{seconds:.0f} s"
    if seconds < 1.5 * hour:
        return f"{seconds / minute:.0f} min"
    return f"{seconds / hour:.1f} h" if seconds < 3 * day else f"{seconds / day:.0f} days"
