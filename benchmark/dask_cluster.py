"""Units on a Dask cluster: of this machine, or of many by Dask's own deployments (SLURM, PBS, Kubernetes …).

Workers see the results folder, the data and the weights under the same paths: a shared file system.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmark.errors import LincBenchError
from benchmark.own_detectors import load_file

try:
    from distributed import Client, LocalCluster, WorkerPlugin, default_client
    from distributed.cfexecutor import ClientExecutor
except ImportError as error:
    raise LincBenchError("--dask needs Dask. Install it with: pip install 'linc-bench[dask]'") from error

LOCAL, CURRENT = "local", "current"
GPU = "GPU"  # the resource that workers with an accelerator declare
SECONDS_TO_CONNECT = 20


class OnDask(ClientExecutor):  # type: ignore[misc]  # Dask has no types
    """Dask's own executor, which can also be told to give up what has not begun."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=wait and not cancel_futures)


class KnowsDetectors(WorkerPlugin):  # type: ignore[misc]
    """Detectors from files of their own, for workers that join later as well."""

    idempotent = True

    def __init__(self, files: tuple[Path, ...]) -> None:
        self.name, self.files = f"detectors {' '.join(map(str, files))}", files

    def setup(self, worker: object) -> None:
        for path in self.files:
            load_file(path)


@contextmanager
def dask_executor(
    address: str, workers: int, detector_files: tuple[Path, ...] = (), device: str = "cpu"
) -> Iterator[OnDask]:
    """On `local` worker processes, on the cluster of the `current` client of this program, or on that of an address."""
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL)  # what goes wrong is told in a sentence, not by every part of Dask at length
    with _client(address, workers) as client:
        if detector_files:
            client.register_plugin(KnowsDetectors(detector_files))
        client.wait_for_workers(1)
        _check(client, device)
        with OnDask(client, pure=False, **({"resources": {GPU: 1}} if device != "cpu" else {})) as executor:
            yield executor


@contextmanager
def _client(address: str, workers: int) -> Iterator[Client]:
    if address == CURRENT:
        try:
            yield default_client()
        except ValueError as error:
            raise LincBenchError(
                "--dask current is for Python programs that have opened a distributed.Client; there is none here."
            ) from error
    elif address == LOCAL:
        # One thread per process, since the threads of a run are its own setting; loopback, since Dask runs any code.
        with (
            LocalCluster(workers, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0") as cluster,
            Client(cluster) as client,
        ):
            yield client
    else:
        try:
            client = Client(address, timeout=SECONDS_TO_CONNECT)
        except (OSError, ValueError) as error:
            raise LincBenchError(
                f"There is no Dask scheduler at {address} ({error}). Give the address that it shows, such as "
                "tcp://127.0.0.1:8786, or use --dask local."
            ) from error
        with client:
            yield client


def _check(client: Client, device: str) -> None:
    """A process that runs two units in threads would have them share torch's settings."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for name, worker in workers.items():
        if worker["nthreads"] != 1:
            raise LincBenchError(
                f"The Dask worker {name} has {worker['nthreads']} threads; a run has its process for itself. Start "
                "workers with --nthreads 1 (and --nworkers as many as there are processors)."
            )
    if device != "cpu" and not any(GPU in worker["resources"] for worker in workers.values()):
        raise LincBenchError(
            f"No Dask worker says that it has an accelerator. Start one per {device} device with: dask worker ADDRESS "
            f"--nthreads 1 --resources {GPU}=1; or choose --device cpu."
        )
