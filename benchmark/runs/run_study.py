"""Runs a study: checks what is there, prepares what runs share, then every unit on an executor, with retries."""

import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from benchmark.disk import find_damage, is_transient
from benchmark.errors import LincBenchError, error_message
from benchmark.execution.progress import Progress, read_note
from benchmark.futures import as_calls_complete, is_lost_worker
from benchmark.runs.inputs import prepare_inputs
from benchmark.runs.plan import Plan, Sources
from benchmark.runs.run_unit import try_unit
from benchmark.runs.units import Outcome, Unit, note_failure

ATTEMPTS = 3
MANY_RECORDS = 100  # checking more than these shows a progress bar


def run_study(plan: Plan, executor: Executor, progress: Progress) -> list[Outcome]:
    """Runs every unit; one that fails does not stop the others, and is tried again when they are done."""
    plan.check_datasets()
    results = plan.sources.results
    outcomes: list[Outcome] = []

    def finish(outcome: Outcome, attempts: int) -> None:
        note_failure(results, outcome, attempts)
        outcomes.append(outcome)
        progress.finished(outcome.run_id)

    with _cancel_on_error(executor):
        damaged = _damaged_records(plan, executor, progress)
        plan = replace(plan, to_train={**plan.to_train, **{unit: f"again: {why}" for unit, why in damaged.items()}})
        unprepared = prepare_inputs(plan, executor, progress)
        pending = [unit for unit in plan.units if unit not in unprepared]
        epochs = {unit.run_id: unit.shape.epochs if unit in plan.to_train else 0 for unit in plan.units}
        with progress.training(results, epochs):
            for unit, error in unprepared.items():
                finish(Outcome(unit.run_id, error=str(error)), attempts=1)
            forced = set(plan.units if plan.force else damaged)
            tries: Counter[tuple[Unit, str]] = Counter()  # by what failed: a unit, or one of its detectors
            given_up: dict[Unit, dict[str, str]] = {unit: {} for unit in pending}
            while pending:
                calls = [(unit, plan.sources, unit in forced, given_up[unit]) for unit in pending]
                pending = []
                for (unit, *_), future in as_calls_complete(executor, try_unit, calls):
                    outcome = _outcome(unit, future, plan.sources)
                    tries[unit, outcome.scoring] += 1
                    if outcome.scoring:
                        forced.discard(unit)  # it was trained
                    if outcome.is_transient and tries[unit, outcome.scoring] < ATTEMPTS:
                        progress.say(f"{unit.run_id} failed ({outcome.error}) and will be tried again.")
                        pending.append(unit)
                    elif outcome.scoring and outcome.scoring not in given_up[unit]:
                        given_up[unit][outcome.scoring] = str(
                            outcome.error
                        )  # the other detectors are scored without it
                        pending.append(unit)
                    else:
                        finish(outcome, tries[unit, outcome.scoring])
    return outcomes


@contextmanager
def _cancel_on_error(executor: Executor) -> Iterator[None]:
    """On an interrupt or error, nothing that has not started should start."""
    try:
        yield
    except BaseException as error:
        executor.shutdown(wait=False, cancel_futures=True)
        if isinstance(error, CancelledError):
            raise LincBenchError(
                "The cluster's scheduler was lost. Finished work is kept; rerun the same command to complete the rest."
            ) from error
        raise


def _outcome(unit: Unit, future: Future[Outcome], sources: Sources) -> Outcome:
    try:
        return future.result()
    except CancelledError:
        raise
    except Exception as error:  # a worker that was killed could not report why
        outcome = Outcome(unit.run_id, error=error_message(error), is_transient=is_lost_worker(error))
        note = read_note(sources.results, unit.run_id)
        if not outcome.is_transient or note is None or not note.scoring:
            return outcome
        limit, why = sources.score_limit, f"{error}{',' * (',' in str(error))} while it was scored"
        is_late = limit is not None and time.time() - note.since >= limit
        reason = f"it took longer than {limit:g} s to score (--score-limit)" if is_late else why
        return replace(outcome, error=reason, is_transient=not is_late, scoring=note.scoring)


def _damaged_records(plan: Plan, executor: Executor, progress: Progress) -> dict[Unit, str]:
    """Records that look whole but differ from their checksums; workers read every byte."""
    folders = {plan.sources.record(unit): unit for unit in plan.units if unit not in plan.to_train}
    damaged = {}
    is_long = len(folders) > MANY_RECORDS
    with progress.counting("checking records") if is_long else nullcontext(lambda done, total: None) as report:
        calls = [(folder,) for folder in folders]
        for number, ((folder,), future) in enumerate(as_calls_complete(executor, find_damage, calls), 1):
            report(number, len(calls))
            try:
                problem = future.result()
            except CancelledError:
                raise
            except Exception as error:
                if is_transient(error):
                    continue  # running the unit fails too, and no other
                if not is_lost_worker(error):
                    raise
                problem = find_damage(folder)
            if problem is not None:
                damaged[folders[folder]] = problem
                progress.say(f"{folder.name} is trained again: {problem}")
    return damaged
