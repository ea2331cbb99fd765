"""Every executor runs the same units to the same bytes, and loses no more than what was on the worker that it lost."""

import gc
import json
import os
import signal
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, LocalCluster, Scheduler, SpecCluster, get_worker
from distributed import Worker as DaskWorker
from distributed.scheduler import KilledWorker

from benchmark.cli.command_line import main
from benchmark.disk.results_folder import ResultsFolder
from benchmark.errors import LincBenchError
from benchmark.execution.dask_cluster import OnDask, _is_open_to_others, dask_executor
from benchmark.execution.executors import InProcessExecutor, WorkerDied, WorkerProcesses, make_executor
from benchmark.futures import as_calls_complete
from benchmark.runs import run_study
from benchmark.runs.plan import Sources, plan_study
from benchmark.runs.studies import study_named
from benchmark.runs.units import Outcome
from tests.conftest import score_bytes
from tests.test_interruptions import Quick, epoch_of_any_run, start, wait_for, without_seconds
from tests.test_readme import OWN_DETECTOR
from tests.worker_calls import double, end_process, fail, leave, many_bytes, process_id, raise_unpicklable


@pytest.fixture(scope="module")
def on_dask() -> Iterator[Executor]:
    with make_executor(2, dask="local") as executor:
        yield executor


@pytest.fixture(scope="module")
def on_processes() -> Iterator[Executor]:
    with make_executor(2) as executor:
        yield executor


@pytest.fixture(params=["in process", "processes", "dask"])
def executor(request: pytest.FixtureRequest) -> Executor:
    if request.param == "in process":
        return InProcessExecutor()
    found: Executor = request.getfixturevalue({"processes": "on_processes", "dask": "on_dask"}[request.param])
    return found


def test_results_and_errors_come_back_to_who_asked(executor: Executor) -> None:
    good = [executor.submit(double, number) for number in range(20)]
    bad = executor.submit(fail, 7)
    assert [future.result() for future in good] == list(range(0, 40, 2))
    with pytest.raises(ValueError, match="no 7"):
        bad.result()
    assert executor.submit(double, 4).result() == 8, "an error ends nobody"


def test_two_processes_work(on_processes: Executor, on_dask: Executor) -> None:
    for executor in (on_processes, on_dask):
        seen = {executor.submit(process_id, number).result() for number in range(20)}
        seen |= {future.result() for future in [executor.submit(process_id, number) for number in range(50)]}
        assert len(seen) == 2
        assert os.getpid() not in seen


def test_a_killed_worker_takes_only_its_own_call_with_it() -> None:
    with WorkerProcesses(2) as executor:
        before = [executor.submit(double, number) for number in range(10)]
        killed = executor.submit(end_process, 1)
        after = [executor.submit(double, number) for number in range(10)]
        assert [future.result() for future in (*before, *after)] == 2 * list(range(0, 20, 2))
        with pytest.raises(WorkerDied, match="by signal 9"):
            killed.result()


def test_a_worker_killed_while_idle_is_replaced_before_the_next_call() -> None:
    with WorkerProcesses(1) as executor:
        os.kill(executor.submit(process_id).result(), signal.SIGKILL)
        time.sleep(0.5)
        assert executor.submit(double, 2).result(timeout=60) == 4


@pytest.mark.long
def test_a_worker_killed_while_it_sends_a_result_disturbs_no_other() -> None:
    with WorkerProcesses(2) as executor:
        victim = executor.submit(process_id).result()
        results = [executor.submit(many_bytes, 300_000_000) for _ in range(4)]
        time.sleep(0.3)
        os.kill(victim, signal.SIGKILL)
        assert sum(future.exception(timeout=120) is None for future in results) >= 3
        assert executor.submit(double, 2).result(timeout=60) == 4


def test_giving_up_does_not_wait_for_what_has_begun() -> None:
    executor = WorkerProcesses(1)
    sleeping, waiting = executor.submit(time.sleep, 1000), executor.submit(double, 1)
    wait_for(sleeping.running, "the first call")
    executor.shutdown(cancel_futures=True)
    with pytest.raises(WorkerDied):
        sleeping.result()
    with pytest.raises(CancelledError):
        waiting.result()


def test_what_cannot_be_sent_is_an_error_and_the_worker_lives(on_processes: Executor) -> None:
    with pytest.raises(Exception, match="pickle"):
        on_processes.submit(lambda: 1).result()
    assert on_processes.submit(double, 2).result() == 4


@pytest.mark.parametrize("place", ["on_processes", "on_dask"])
@pytest.mark.parametrize(("call", "says"), [(raise_unpicklable, "UnpicklableError: 1 and 2"), (leave, "SystemExit: 0")])
def test_what_cannot_be_sent_back_or_would_end_us_is_an_error_in_words(
    place: str, call: Callable[[], None], says: str, request: pytest.FixtureRequest
) -> None:
    executor: Executor = request.getfixturevalue(place)
    worker = executor.submit(process_id).result() if place == "on_processes" else None
    with pytest.raises(RuntimeError, match=says):
        executor.submit(call).result(timeout=60)
    assert executor.submit(double, 2).result(timeout=60) == 4
    if worker is not None:
        assert worker in {executor.submit(process_id).result() for _ in range(4)}, "nobody died"


@pytest.mark.usefixtures("without_report")
def test_scores_of_two_processes_are_the_same_bytes(quick: Quick, quick_run: Path, tmp_path: Path) -> None:
    assert main([*quick, "--workers", "2", "--results", str(tmp_path / "results")]) == 0
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)
    assert without_seconds(tmp_path / "results") == without_seconds(quick_run)


@pytest.mark.usefixtures("without_report")
@pytest.mark.long
def test_scores_of_dask_are_the_same_bytes_and_detectors_of_ones_own_reach_its_workers(
    quick: Quick, quick_run: Path, tmp_path: Path
) -> None:
    own = tmp_path / "worst_margin.py"
    own.write_text(OWN_DETECTOR)
    options = ("--detector", f"{own}:WorstMargin", "--workers", "2", "--dask", "local")
    assert main([*quick, *options, "--results", str(tmp_path / "results")]) == 0
    found = score_bytes(tmp_path / "results")
    assert any("worst-margin" in name for name in found)
    assert found.items() >= score_bytes(quick_run).items()


def test_workers_that_cannot_be_started_are_told_and_nothing_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(process: object) -> None:
        raise OSError("Resource temporarily unavailable")

    with WorkerProcesses(1) as executor:
        with monkeypatch.context() as patch:
            patch.setattr("multiprocessing.context.SpawnProcess.start", no_room)
            for _ in range(2):
                with pytest.raises(WorkerDied, match="no worker process could be started"):
                    executor.submit(double, 1).result(timeout=60)
        assert executor.submit(double, 1).result(timeout=60) == 2
    with pytest.raises(RuntimeError, match="after shutdown"):
        executor.submit(double, 1)


def test_the_client_of_a_program_is_used_and_left_open(on_dask: Executor) -> None:
    with dask_executor("current", 1) as executor:
        assert executor.submit(double, 3).result() == 6
    assert on_dask.submit(double, 5).result() == 10


def cluster_here(**options: object) -> LocalCluster:
    """A scheduler and a worker in this very process."""
    return LocalCluster(
        1, **{"threads_per_worker": 1, "processes": False, "dashboard_address": "127.0.0.1:0"} | options
    )


def test_no_scheduler_no_client_and_workers_of_many_threads_are_told(
    quick: Quick, fails: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("benchmark.execution.dask_cluster.SECONDS_TO_CONNECT", 1)
    assert "There is no Dask scheduler at tcp://127.0.0.1:9" in fails(
        *quick, "--dask", "tcp://127.0.0.1:9", "--results", tmp_path
    )
    with (
        cluster_here(threads_per_worker=2) as cluster,
        pytest.raises(LincBenchError, match="has 2 threads; a run has its process for itself"),
        dask_executor(cluster.scheduler_address, 1),
    ):
        pass


def name_of_worker(_: int = 0) -> str:
    return str(get_worker().name)


def test_accelerators_are_taken_by_the_workers_resources() -> None:
    workers = {
        name: {"cls": DaskWorker, "options": {"nthreads": 1, "resources": resources, "dashboard": False}}
        for name, resources in (("plain", {}), ("with a GPU", {"GPU": 1}))
    }
    scheduler = {"cls": Scheduler, "options": {"host": "127.0.0.1", "port": 0, "dashboard": False}}
    with (
        SpecCluster(workers, scheduler) as cluster,
        dask_executor(cluster.scheduler_address, 1, device="cuda") as executor,
    ):
        assert {executor.submit(name_of_worker, number).result() for number in range(10)} == {"with a GPU"}
    with (
        cluster_here() as cluster,
        pytest.raises(LincBenchError, match="No Dask worker declares an accelerator"),
        dask_executor(cluster.scheduler_address, 1, device="cuda"),
    ):
        pass


@pytest.mark.long
def test_a_lost_scheduler_ends_the_command_and_the_next_one_goes_on(
    quick: Quick, quick_run: Path, tmp_path: Path
) -> None:
    code = (
        "from distributed import LocalCluster; import time\n"
        "if __name__ == '__main__':\n"
        "    cluster = LocalCluster(1, threads_per_worker=1, host='127.0.0.1', dashboard_address='127.0.0.1:0')\n"
        "    print(cluster.scheduler_address, flush=True); time.sleep(1000)\n"
    )
    (tmp_path / "cluster.py").write_text(code)
    cluster = subprocess.Popen(
        [sys.executable, tmp_path / "cluster.py"], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        assert cluster.stdout is not None
        address = cluster.stdout.readline().strip()
        process = start(quick, tmp_path / "results", "--dask", address)
        wait_for(lambda: list((tmp_path / "results").glob("running/*.json")), "a unit that runs")
        os.killpg(cluster.pid, signal.SIGKILL)
        said = process.communicate(timeout=120)[0]
    finally:
        cluster.kill()
        cluster.wait()
    assert process.returncode == 1, said
    assert "scheduler" in said
    assert "Traceback" not in said
    assert main([*quick, "--workers", "1", "--results", str(tmp_path / "results")]) == 0
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)


@pytest.mark.long
def test_sigterm_ends_as_ctrl_c_does(quick: Quick, tmp_path: Path) -> None:
    """A cluster that ends a job tells all of its processes."""
    process = start(quick, tmp_path / "results", "--workers", "2", "--epochs", "5000")
    wait_for(lambda: list((tmp_path / "results").glob("running/*.json")), "training")
    os.killpg(process.pid, signal.SIGTERM)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 143, said
    assert "rerun the same command to continue" in said


@pytest.mark.long
def test_a_killed_worker_of_dask_is_replaced_and_the_bytes_are_the_same(
    quick: Quick, quick_run: Path, tmp_path: Path
) -> None:
    process = start(quick, tmp_path / "results", "--dask", "local", "--workers", "2")
    wait_for(lambda: epoch_of_any_run(tmp_path / "results") >= 2, "training")
    for path in (tmp_path / "results").glob("running/*.json"):
        with suppress(OSError, ValueError):
            os.kill(json.loads(path.read_text())["process"], signal.SIGKILL)
    said = process.communicate(timeout=300)[0]
    assert process.returncode == 0, said
    assert score_bytes(tmp_path / "results") == score_bytes(quick_run)


def test_a_unit_that_dask_gives_up_because_of_its_workers_is_tried_again(tmp_path: Path) -> None:
    future: Future[Outcome] = Future()
    future.set_exception(KilledWorker("a unit", SimpleNamespace(address="tcp://127.0.0.1:1"), 3))
    plan = plan_study(study_named("demo"), Sources(ResultsFolder(tmp_path)))
    assert run_study._outcome(plan.units[0], future, plan.sources).is_transient


def test_results_that_were_handed_over_are_not_kept() -> None:
    """Features of all chunks together may be larger than memory."""
    alive: list[weakref.ref] = []
    with ThreadPoolExecutor(1) as executor:
        for _, future in as_calls_complete(executor, np.zeros, [(number,) for number in range(1, 6)]):
            alive.append(weakref.ref(future.result()))
            del future
            gc.collect()
            assert sum(reference() is not None for reference in alive) <= 1


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:8786", "tcp://[::1]:8786", "tls://10.0.0.5:8786", "inproc://1/2"])
def test_only_a_cluster_that_others_could_use_is_told_of(address: str) -> None:
    assert not _is_open_to_others(address)
    assert _is_open_to_others("tcp://10.0.0.5:8786")


def test_a_local_cluster_listens_to_this_machine_alone(on_dask: OnDask) -> None:
    assert on_dask._client.scheduler.address.startswith("tcp://127.0.0.1:")


def test_the_client_closes_with_the_executor() -> None:
    with cluster_here() as cluster:
        with dask_executor(cluster.scheduler_address, 1) as executor:
            client: Client = executor._client
        assert client.status == "closed"
