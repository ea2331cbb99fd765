"""How much faster training on cached features is than the plain fine-tune, and how it grows. Run with `make bench`.

Random weights: they take as long as trained ones. Every ratio comes from one run, the two sides by turns.
"""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.disk.files import MappedRows
from benchmark.networks import Backbone
from benchmark.networks.loading import set_up_torch, untrained_backbone
from benchmark.networks.split_model import SplitModel
from benchmark.record import TRAIN_LOGITS, RunShape
from benchmark.record.recorders import IMAGES_AT_ONCE, Predict, Recorder, RunContext, View, input_gradients
from benchmark.record.signals import InputGradientSpread
from benchmark.training import CrossEntropy, TrainingSettings
from benchmark.training.loop import train
from tests.speed.conftest import Note

CLASSES, BATCH = 11, 128
CORES = min(2, os.cpu_count() or 1)


@dataclass(frozen=True)
class Case:
    title: str
    backbone: Backbone
    plain_batch: int
    samples: int  # in the map that training reads
    least_compute: float = 1.0
    least_end_to_end: float = 1.0


CASES = [
    Case("ViT-S/8, 224 px", Backbone("vit_small_patch8_224", 224), 4, 768, 400, 150),
    Case("ViT-S/14, 112 px", Backbone("vit_small_patch14_dinov2", 112), 16, 4096),
    Case("EfficientNet-Lite0, 64 px", Backbone("tf_efficientnet_lite0", 64), 64, 4096),
]
by_model = pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)


@pytest.fixture(autouse=True)
def both_cores() -> Iterator[None]:
    """As a run of the suite sets torch up, but with two threads."""
    threads = torch.get_num_threads()
    set_up_torch(CORES)
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(False)


def by_turns(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """The least seconds of each call, after one round to warm up; a machine that is shared only ever adds time."""
    seconds: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 1):
        for call, taken in zip(calls, seconds, strict=True):
            start = time.perf_counter()
            call()
            if turn:
                taken.append(time.perf_counter() - start)
    return [min(taken) for taken in seconds]


def step(run: Callable[[torch.Tensor], torch.Tensor], model: SplitModel, inputs: torch.Tensor) -> Callable[[], None]:
    labels = torch.arange(len(inputs)) % CLASSES

    def once() -> None:
        model.model.zero_grad()
        F.cross_entropy(run(inputs), labels).backward()

    return once


def random_features(model: SplitModel, case: Case, count: int) -> torch.Tensor:
    images = torch.rand(2, 3, case.backbone.image_size, case.backbone.image_size)
    with torch.no_grad():
        shape = model.features(images).shape[1:]
    return torch.randn(count, *shape)


@by_model
def test_compute_of_a_step(benchmark, case: Case, note: Note) -> None:
    """Features in memory, single precision: the network and nothing else."""
    fast = untrained_backbone(case.backbone, CLASSES)
    plain = untrained_backbone(case.backbone, CLASSES, is_plain=True)
    images = torch.rand(case.plain_batch, 3, case.backbone.image_size, case.backbone.image_size)
    fast_step = step(fast.tail, fast, random_features(fast, case, BATCH))
    plain_seconds, fast_seconds = by_turns(7, step(plain.tail, plain, images), fast_step)
    benchmark.pedantic(fast_step, rounds=5)
    ratio = (plain_seconds / case.plain_batch) / (fast_seconds / BATCH)
    note("plain fine-tune step", case.title, plain_seconds / case.plain_batch)
    note("fast step, compute only", case.title, fast_seconds / BATCH, ratio, "the plain step")
    assert ratio >= case.least_compute


@by_model
def test_training_from_the_map(benchmark, case: Case, note: Note, tmp_path: Path) -> None:
    """The suite's own loop: half precision from disk, shuffled, optimiser, recording of logits."""
    fast = untrained_backbone(case.backbone, CLASSES)
    plain = untrained_backbone(case.backbone, CLASSES, is_plain=True)
    images = torch.rand(case.plain_batch, 3, case.backbone.image_size, case.backbone.image_size)
    np.save(tmp_path / "features.npy", random_features(fast, case, case.samples).half().numpy())
    stored = MappedRows(tmp_path / "features.npy", slice(None))

    def epoch() -> None:
        data = training_data(stored)
        train(fast, data, CrossEntropy(data.train.labels), recorders(fast, data, tmp_path), TrainingSettings(epochs=1))

    def read_once() -> None:
        in_memory.view(torch.float32).sum()

    in_memory = torch.from_numpy(np.load(tmp_path / "features.npy"))
    shuffled = np.random.default_rng(0).permutation(case.samples)

    def gather() -> None:
        for start in range(0, case.samples, BATCH):
            stored[shuffled[start : start + BATCH]]

    calls = step(plain.tail, plain, images), epoch, gather, read_once
    plain_seconds, epoch_seconds, gather_seconds, read_seconds = by_turns(5, *calls)
    benchmark.pedantic(epoch, rounds=3)
    per_image = epoch_seconds / case.samples
    ratio = plain_seconds / case.plain_batch / per_image
    note("training from the map", case.title, per_image, ratio, "the plain step")
    note("gathering shuffled batches", case.title, gather_seconds / case.samples)
    note("reading the features once", case.title, read_seconds / case.samples, epoch_seconds / read_seconds, "training")
    assert ratio >= case.least_end_to_end


def training_data(features: np.ndarray | MappedRows) -> TrainingData:
    labels = torch.arange(len(features)) % CLASSES
    few = LabelledFeatures(features, labels[:2])
    return TrainingData(LabelledFeatures(features, labels), few, few, CLASSES)


def recorders(model: SplitModel, data: TrainingData, folder: Path, epochs: int = 1) -> list:
    shape = RunShape(epochs, len(data.train.labels), CLASSES)
    return [TRAIN_LOGITS.recorder(RunContext(shape, folder, model, data, lambda start, stop: torch.empty(0)))]


def test_several_runs_that_read_each_batch_once(benchmark, note: Note) -> None:
    """What two recipes of one seed would gain by sharing widened tokens: the products for 12 queries at once
    instead of twice for 6."""
    tokens, queries = torch.randn(2, 785, 384), torch.randn(2, 12, 384)
    half = tokens.half()

    def pooled(query: torch.Tensor) -> None:
        widened = half.float()
        (query @ widened.transpose(1, 2)).softmax(-1) @ widened

    together, apart = by_turns(200, lambda: pooled(queries), lambda: (pooled(queries[:, :6]), pooled(queries[:, 6:])))
    benchmark.pedantic(pooled, args=(queries,), rounds=20)
    note("attention of two runs that share a batch", CASES[0].title, together / 2, apart / together, "one by one")


@pytest.mark.parametrize("case", CASES[1:], ids=lambda case: case.title)
def test_input_gradients_of_three_checkpoints(benchmark, case: Case, note: Note) -> None:
    """VoG's one stream, against the whole network forward and backward for each checkpoint."""
    model = untrained_backbone(case.backbone, CLASSES)
    plain = untrained_backbone(case.backbone, CLASSES, is_plain=True)
    images = torch.rand(IMAGES_AT_ONCE, 3, case.backbone.image_size, case.backbone.image_size)
    labels = torch.arange(IMAGES_AT_ONCE) % CLASSES
    snapshots = {epoch: dict(model.trained()) for epoch in (1, 2, 3)}

    def stream() -> None:
        input_gradients(model, snapshots, [View(epoch, "logit") for epoch in snapshots], images, labels)

    def brute() -> None:
        for _ in snapshots:
            pixels = images.clone().requires_grad_()
            torch.autograd.grad(plain.model(pixels).gather(1, labels[:, None]).sum(), pixels)

    brute_seconds, stream_seconds = by_turns(7, brute, stream)
    benchmark.pedantic(stream, rounds=3)
    ratio = brute_seconds / stream_seconds
    note("VoG, three checkpoints", case.title, stream_seconds / IMAGES_AT_ONCE, ratio, "the whole network thrice")
    assert ratio >= 1.25


class Turns(Recorder):
    """Lets several trainings run side by side, so many batches of each in turn, and keeps the seconds of each.

    A shared machine drifts by a fifth within a minute; turns of a quarter of a second meet the same drift.
    """

    keys, batches = ("turns",), 8

    def __init__(self, before: threading.Semaphore, after: threading.Semaphore, warm_up: int) -> None:
        self.before, self.after, self.warm_up = before, after, warm_up
        self.count, self.seconds, self.started = 0, 0.0, 0.0

    def begin(self) -> None:
        self.before.acquire()
        self.started = time.perf_counter()

    def after_batch(self, epoch: int, indices: torch.Tensor, logits: torch.Tensor) -> None:
        self.count += 1
        if self.count % self.batches == 0:
            if self.count > self.warm_up:
                self.seconds += time.perf_counter() - self.started
            self.after.release()
            self.begin()


def test_an_epoch_grows_linearly_with_the_data(benchmark, tmp_path: Path) -> None:
    """One long training per size, all with as many steps, by turns; what is before the first epoch is not counted."""
    case, sizes, passes = CASES[1], [1024, 2048, 4096, 8192, 16384], 3
    set_up_torch(1)
    model = untrained_backbone(case.backbone, CLASSES)
    everything = np.concatenate([random_features(model, case, 1024).half().numpy()] * 16)
    signs = [threading.Semaphore(0) for _ in sizes]
    warm_up = sizes[-1] // BATCH
    turns = [Turns(signs[place], signs[(place + 1) % len(sizes)], warm_up) for place in range(len(sizes))]

    def run(count: int, own: Turns) -> None:
        data, folder = training_data(everything[:count]), tmp_path / str(count)
        folder.mkdir()
        settings = TrainingSettings(epochs=passes * sizes[-1] // count)
        tail = untrained_backbone(case.backbone, CLASSES)
        listening = [*recorders(tail, data, folder, settings.epochs), own]
        own.begin()
        train(tail, data, CrossEntropy(data.train.labels), listening, settings)
        own.after.release()

    def all_sizes() -> None:
        with ThreadPoolExecutor(len(sizes)) as executor:
            running = [executor.submit(run, count, own) for count, own in zip(sizes, turns, strict=True)]
            signs[0].release()
            for future in running:
                future.result()

    benchmark.pedantic(all_sizes, rounds=1)
    per_image = np.array([own.seconds for own in turns]) / ((passes - 1) * sizes[-1])
    exponent = 1 + np.polyfit(np.log(sizes), np.log(per_image), 1)[0]
    print([f"{count:,}: {1e3 * seconds:.4f} ms per image" for count, seconds in zip(sizes, per_image, strict=True)])
    print(f"\nseconds of an epoch grow with n to the power of {exponent:.3f}")
    assert 0.95 <= exponent <= 1.05


# In a process of its own: the peak of what is not a mapped file's own pages, while it works on so many samples.
WATCHED = """
import sys
from pathlib import Path
import torch
from benchmark.overhead.memory import peak_memory
from tests.speed import test_training
torch.set_num_threads(1)
work = getattr(test_training, sys.argv[1])(Path(sys.argv[2]), int(sys.argv[3]))
with peak_memory() as peak:
    work()
print(peak.bytes)
"""
reads_proc = pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")


def peak_of(work: Callable[[Path, int], Callable[[], None]], folder: Path, count: int) -> int:
    command = [sys.executable, "-c", WATCHED, work.__name__, str(folder), str(count)]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    return int(ended.stdout)


def an_epoch(folder: Path, count: int) -> Callable[[], None]:
    data = training_data(MappedRows(folder / "features.npy", slice(count)))
    model = untrained_backbone(CASES[1].backbone, CLASSES)
    objective, listening = CrossEntropy(data.train.labels), recorders(model, data, folder)
    return lambda: train(model, data, objective, listening, TrainingSettings(epochs=1)) and None


@reads_proc
def test_memory_above_the_map_stays_flat(benchmark, tmp_path: Path) -> None:
    case, sizes = CASES[1], [1024, 16384]
    features = random_features(untrained_backbone(case.backbone, CLASSES), case, 1024).half().numpy()
    stored = np.lib.format.open_memmap(tmp_path / "features.npy", "w+", np.float16, (sizes[-1], *features.shape[1:]))
    for start in range(0, sizes[-1], 1024):
        stored[start : start + 1024] = features
    small, large = (peak_of(an_epoch, tmp_path, count) for count in sizes)
    benchmark.pedantic(peak_of, args=(an_epoch, tmp_path, sizes[0]), rounds=1)
    megabytes = [round(count / 1e6) for count in (small, large, stored.nbytes)]
    print(f"\n{megabytes[0]} MB for {sizes[0]:,} samples, {megabytes[1]} MB for {sizes[1]:,}; map: {megabytes[2]} MB")
    assert large - small < 0.1 * small


def spread_of_gradients(folder: Path, count: int) -> Callable[[], None]:
    """What VoG does at the end of a run; images come a few at a time, as from a file."""
    model, size = untrained_backbone(CASES[2].backbone, CLASSES), CASES[2].backbone.image_size
    nothing_cached = np.empty((0, 1), dtype=np.float16)
    labels = torch.arange(count) % CLASSES
    split = LabelledFeatures(nothing_cached, labels)
    context = RunContext(
        RunShape(3, count, CLASSES),
        folder,
        model,
        TrainingData(split, split, split, CLASSES),
        lambda start, stop: torch.rand(stop - start, 3, size, size),
    )
    recorder = InputGradientSpread().recorder(context)
    recorder.at_start()
    for epoch in (1, 2, 3):
        recorder.after_epoch(epoch, Predict(list))
    return recorder.at_end


@reads_proc
def test_memory_of_vog_does_not_grow_with_the_data(benchmark, tmp_path: Path) -> None:
    sizes = [256, 4096]
    small, large = (peak_of(spread_of_gradients, tmp_path, count) for count in sizes)
    benchmark.pedantic(peak_of, args=(spread_of_gradients, tmp_path, sizes[0]), rounds=1)
    print(f"\n{small / 1e6:.0f} MB for {sizes[0]:,} images, {large / 1e6:.0f} MB for {sizes[1]:,}")
    assert large - small < 0.1 * small
