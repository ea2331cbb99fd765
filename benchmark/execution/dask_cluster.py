"""An executor on a Dask cluster: of this machine, or of many through Dask's own deployments (SLURM, PBS, Kubernetes …).

Workers see the results folder, the data and the weights under the same paths: a shared file system.
"""

import logging
import pickle
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, nullcontext
from typing import Any

from benchmark.errors import LincBenchError
from benchmark.futures import Initializer, call

try:
    from distributed import Client, LocalCluster, default_client, get_worker
    from distributed.cfexecutor import ClientExecutor
except ImportError as error:
    raise LincBenchError("--dask needs Dask. Install it with: pip install -e '.[dask]'") from error

LOCAL, CURRENT = "local", "current"
GPU = "GPU"  # the resource that workers with an accelerator declare
SECONDS_TO_CONNECT = 20


class OnDask(ClientExecutor):  # type: ignore[misc]
    """Dask's own executor with an initializer, which workers call before each call, and `cancel_futures`.

    Calls travel as bytes, since a scheduler unpickles what it is sent and cannot import users' own detectors.
    """

    def __init__(self, client: Client, initializer: Initializer, **options: Any) -> None:
        super().__init__(client, pure=False, **options)
        self._initializer = initializer

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **named: Any) -> Future[Any]:
        return super().submit(_call, self._initializer, pickle.dumps((function, arguments, named)))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait=wait and not cancel_futures)


def _call(initializer: Initializer, sent: bytes) -> Any:
    worker = get_worker()
    _check_threads(worker.address, worker.state.nthreads)  # it may have joined after the others were checked
    if initializer is not None:
        initializer()
    function, arguments, named = pickle.loads(sent)
    return call(function, *arguments, **named)


@contextmanager
def dask_executor(
    address: str,
    workers: int,
    initializer: Initializer = None,
    device: str = "cpu",
    say: Callable[[str], None] = lambda text: None,
) -> Iterator[OnDask]:
    """On `local` worker processes, on the cluster of this program's `current` client, or on that of an address."""
    for handler in logging.getLogger("distributed").handlers:
        handler.setLevel(logging.CRITICAL)  # we report errors in a sentence; each part of Dask would log them at length
    resources = {} if device == "cpu" else {GPU: 1}
    with _client(address, workers, resources) as client:
        say(f"Dask cluster {client.scheduler.address}; waiting for a worker")
        if _is_open_to_others(client.scheduler.address):
            say("note: it is not encrypted, and Dask runs any code it is sent. Use TLS or a private network.")
        client.wait_for_workers(1)
        _check(client, device)
        options = {"resources": resources} if resources else {}
        with OnDask(client, initializer, **options) as executor:
            yield executor


@contextmanager
def _client(address: str, workers: int, resources: Mapping[str, int]) -> Iterator[Client]:
    if address == LOCAL:
        # One thread per process, since a run sets its own threads; loopback, since Dask runs any code; no memory limit,
        # since Dask would count the pages of mapped features.
        options = {"threads_per_worker": 1, "memory_limit": 0, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
        with LocalCluster(workers, **options, resources=dict(resources)) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = nullcontext(default_client()) if address == CURRENT else Client(address, timeout=SECONDS_TO_CONNECT)
    except (OSError, ValueError) as error:
        problem = (
            f"There is no Dask scheduler at {address} ({error}). Give the address that it shows, such as "
            "tcp://127.0.0.1:8786, or use --dask local."
        )
        if address == CURRENT:
            problem = "--dask current is for Python programs that have opened a distributed.Client; there is none here."
        raise LincBenchError(problem) from error
    with client as connected:
        yield connected


def _check(client: Client, device: str) -> None:
    workers = client.scheduler_info(n_workers=-1)["workers"]
    for name, worker in workers.items():
        _check_threads(name, worker["nthreads"])
    if device != "cpu" and not any(GPU in worker["resources"] for worker in workers.values()):
        raise LincBenchError(
            f"No Dask worker declares an accelerator. Start one per {device} device with: dask worker ADDRESS "
            f"--nthreads 1 --resources {GPU}=1 (of several in a machine, each with its own CUDA_VISIBLE_DEVICES); or "
            "choose --device cpu."
        )


def _check_threads(name: str, threads: int) -> None:
    """Two units in threads of one process would share torch's settings."""
    if threads != 1:
        raise LincBenchError(
            f"The Dask worker {name} has {threads} threads; a run has its process for itself. Start workers with "
            "--nthreads 1 (and --nworkers as many as there are processors)."
        )


def _is_open_to_others(address: str) -> bool:
    return address.startswith("tcp://") and not address.startswith(("tcp://127.", "tcp://localhost:", "tcp://[::1]:"))
