"""What LiNC's loss and the logger add to a step of somebody's own loop: the whole network, trained on images."""

import time
from collections.abc import Callable

import pytest
import timm
import torch
import torch.nn.functional as F
from torch import Tensor

from benchmark.record import DynamicsLogger
from detectors.linc_loss import LiNCLoss
from tests.speed.conftest import Note

BATCH, CLASSES, STEPS = 128, 10, 5
MOST = 0.01  # of a step
LABELS = torch.arange(BATCH * STEPS) % CLASSES
Step = Callable[[Tensor, Tensor], Tensor]


def seconds(step: Step, logits: Tensor) -> float:
    """Of one call with its gradient of the logits; the fastest of many."""
    times = []
    for number in range(200):
        indices = torch.arange(BATCH) + BATCH * (number % STEPS)
        leaf = logits.clone().requires_grad_()
        started = time.perf_counter()
        step(leaf, indices).backward()
        times.append(time.perf_counter() - started)
    return min(times)


def test_linc_and_the_logger_in_a_plain_loop(benchmark, tmp_path, compare: Note) -> None:
    model = timm.create_model("tf_efficientnet_lite0", num_classes=CLASSES)
    images, optimiser = torch.randn(BATCH, 3, 64, 64), torch.optim.Adam(model.parameters())

    def plain_step() -> Tensor:
        optimiser.zero_grad()
        logits = model(images)
        F.cross_entropy(logits, LABELS[:BATCH]).backward()
        optimiser.step()
        return logits.detach()

    logits = benchmark.pedantic(plain_step, rounds=STEPS, warmup_rounds=1)
    of_step = benchmark.stats.stats.min
    criterion, log = LiNCLoss(LABELS, BATCH), DynamicsLogger(LABELS, CLASSES, tmp_path)

    def logged(leaf: Tensor, indices: Tensor) -> Tensor:
        log.batch(indices, leaf)
        return F.cross_entropy(leaf, LABELS[indices])

    usual = seconds(lambda leaf, indices: F.cross_entropy(leaf, LABELS[indices]), logits)
    for name, step in (("LiNCLoss", lambda leaf, indices: criterion(leaf, indices)), ("DynamicsLogger", logged)):
        added = max(0.0, seconds(step, logits) - usual)
        share = added / of_step
        print(f"{name}: {100 * share:.3f} % of a plain step of {1000 * of_step:.0f} ms")
        assert share < MOST
        compare(f"own loop, {name}", f"EfficientNet-Lite0, 64 px, batch {BATCH}", added, share, "plain step")


@pytest.mark.parametrize("full", [False, True], ids=["summaries", "all logits"])
def test_logging_a_thousand_classes(benchmark, full: bool, tmp_path, compare: Note) -> None:
    """A batch of 1,024 of a million samples, as on ImageNet; the ratio is to copying the logits once."""
    samples, classes = 100_000 if full else 1_281_167, 1000
    log = DynamicsLogger(torch.arange(samples) % classes, classes, tmp_path, full)
    indices, logits = torch.randperm(samples)[:1024], torch.randn(1024, classes)
    benchmark.pedantic(log.batch, args=(indices, logits), rounds=10, warmup_rounds=1)
    started = time.perf_counter()
    logits.clone()
    copied = time.perf_counter() - started
    of_batch = benchmark.stats.stats.min
    compare(
        f"logging, {'all logits' if full else 'summaries'}",
        "1,024 × 1,000 logits",
        of_batch,
        of_batch / copied,
        "a copy",
    )
