"""LiNC as a loss in any loop: the same bits, however batches and processes share the samples."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from benchmark.errors import LincBenchError
from benchmark.networks.last_block import WholeBlock
from benchmark.record import DynamicsLogger
from benchmark.training import TrainingSettings
from benchmark.training.loop import sample_orders, train
from detectors.linc import COMPONENT, CORRECTED_LABELS, TRUST, TRUST_MIXTURE, LiNCObjective, LiNCRecipe
from detectors.linc_loss import PAPER, LiNCLoss, LiNCParameters
from tests.test_training import SETTINGS, Perceptron, data, network

SIZE, EPOCHS = 90, 12
SHORT = LiNCParameters(warm_up=3, soft_epochs=2)


def samples() -> tuple[Tensor, Tensor]:
    split = data(SIZE).train
    return torch.from_numpy(split.features).float(), split.labels


def trained(
    criterion: LiNCLoss,
    settings: TrainingSettings = SETTINGS,
    forward: Callable[[nn.Module, Tensor], Tensor] = lambda model, batch: model(batch),
    parts: int = 1,
    epochs: range = range(EPOCHS),
    state: tuple[nn.Module, torch.optim.Adam] | None = None,
) -> tuple[nn.Module, torch.optim.Adam]:
    """What anybody would write."""
    features, _ = samples()
    model = state[0] if state else network(settings.seed)
    optimiser = state[1] if state else torch.optim.Adam(model.parameters(), settings.learning_rate, fused=True)
    orders = sample_orders(settings.seed, SIZE)
    for _ in range(epochs.start):
        next(orders)
    for _ in epochs:
        for batch in next(orders).split(settings.batch_size):
            optimiser.zero_grad()
            for indices in batch.chunk(parts):
                loss = criterion(forward(model, features[indices]), indices)
                (loss * len(indices) / len(batch)).backward()
            optimiser.step()
        with torch.no_grad():
            criterion.end_epoch(lambda: model(features))
    return model, optimiser


def state_of(criterion: LiNCLoss) -> bytes:
    tensors = {key: value.numpy() for key, value in criterion.state_dict().items() if isinstance(value, Tensor)}
    return pickle.dumps((criterion.epoch, criterion.settings, tensors))


def test_a_plain_loop_and_the_harness_agree_to_the_last_bit() -> None:
    """Trust, mixture and corrected labels, on the same order of batches."""
    settings = replace(SETTINGS, weight_decay=0.0, milestones=())
    recipe, (_, labels) = LiNCRecipe(), samples()
    objective, whole = LiNCObjective(recipe, labels, settings), network(settings.seed)
    train(Perceptron(whole, WholeBlock(whole), (), "all"), data(SIZE), objective, (), settings)
    criterion = LiNCLoss(labels, settings.batch_size)
    model, _ = trained(criterion, settings)
    signals = objective.signals()
    assert (signals[COMPONENT] == 0).any()
    assert not torch.equal(criterion.labels, labels)
    assert np.array_equal(signals[TRUST][-1], criterion.trust.numpy())
    assert np.array_equal(1 - signals[TRUST][PAPER.warm_up - 1], criterion.suspicion.numpy())
    assert np.array_equal(signals[TRUST_MIXTURE], criterion.mixture.numpy())
    assert np.array_equal(signals[COMPONENT], criterion.component.numpy())
    assert np.array_equal(signals[CORRECTED_LABELS], criterion.labels.numpy())
    for own, other in zip(model.parameters(), whole.parameters(), strict=True):
        assert torch.equal(own, other)


@pytest.mark.parametrize("epoch", [1, 3, 4, 5, 8])
def test_a_resumed_training_ends_in_the_same_bits(epoch: int, tmp_path: Path) -> None:
    """Saved before and after each phase, by torch, and loaded without unpickling code."""
    _, labels = samples()
    whole, first, second = (LiNCLoss(labels, 16, SHORT) for _ in range(3))
    trained(whole)
    halfway = trained(first, epochs=range(epoch))
    torch.save(first.state_dict(), tmp_path / "linc.pt")
    second.load_state_dict(torch.load(tmp_path / "linc.pt", weights_only=True))
    trained(second, epochs=range(epoch, EPOCHS), state=halfway)
    assert state_of(second) == state_of(whole)
    assert second.epoch == EPOCHS + 1


def test_a_saved_state_is_no_view_of_the_running_one() -> None:
    criterion = LiNCLoss(samples()[1], 16, SHORT)
    state = criterion.state_dict()
    trained(criterion, epochs=range(2))
    assert bool((state["trust"] == 1).all())


def test_accumulated_gradients_move_trust_as_whole_batches_do() -> None:
    """`batch_size` is that of the optimiser's step, so the parts of a batch move it no further."""
    whole, parts = (LiNCLoss(samples()[1], 16, SHORT) for _ in range(2))
    trained(whole, epochs=range(3))
    trained(parts, parts=4, epochs=range(3))
    torch.testing.assert_close(parts.trust, whole.trust, rtol=0, atol=1e-6)
    assert torch.equal(parts.component, whole.component)


def test_mixed_precision_is_close_and_overflow_leaves_trust_alone() -> None:
    def half(model: nn.Module, batch: Tensor) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16):
            return model(batch)

    full, mixed = (LiNCLoss(samples()[1], 16, SHORT) for _ in range(2))
    trained(full, epochs=range(3))
    trained(mixed, forward=half, epochs=range(3))
    assert mixed.trust.dtype == torch.float32
    torch.testing.assert_close(mixed.trust, full.trust, rtol=0, atol=0.02)
    criterion = LiNCLoss(torch.tensor([0, 1]), 2)
    criterion(torch.tensor([[torch.inf, 0.0], [0.0, 3.0]], dtype=torch.float16), torch.arange(2))
    assert criterion.trust[0] == 1
    assert criterion.trust[1] < 1, "of the other sample it moves"


def test_an_evaluation_without_gradients_moves_nothing() -> None:
    criterion = LiNCLoss(torch.tensor([0, 1]), 2)
    with torch.no_grad():
        criterion(torch.zeros(2, 2), torch.arange(2))
    assert bool((criterion.trust == 1).all())


@pytest.mark.parametrize("form", ["logits", "classes"])
def test_the_prediction_is_asked_for_once_and_may_be_classes(form: str) -> None:
    features, labels = samples()
    criterion, asked = LiNCLoss(labels, 16, SHORT), 0
    model, _ = trained(criterion, epochs=range(4))

    def predict() -> Tensor:
        nonlocal asked
        asked += 1
        logits = model(features).detach()
        return logits if form == "logits" else logits.argmax(1)

    criterion.end_epoch(predict)
    criterion.end_epoch(predict)
    assert asked == 1
    noisy = criterion.is_noisy
    assert torch.equal(criterion.labels[noisy], model(features).argmax(1)[noisy])
    assert torch.equal(criterion.labels[~noisy], labels[~noisy])


def test_mistakes_are_told_in_a_sentence_and_change_nothing() -> None:
    criterion = LiNCLoss(samples()[1], 16, SHORT)
    trained(criterion, epochs=range(4))
    before = state_of(criterion)
    with pytest.raises(LincBenchError, match=r"at the end of epoch 5\. Give `end_epoch` a function"):
        criterion.end_epoch()
    assert state_of(criterion) == before
    other = LiNCLoss(1 - samples()[1].clamp(max=1), 16, SHORT)
    with pytest.raises(LincBenchError, match="belongs to other labels"):
        other.load_state_dict(criterion.state_dict())
    longer = LiNCLoss(samples()[1], 16)
    with pytest.raises(LincBenchError, match=r"'warm_up': 3.* here are .*'warm_up': 5"):
        longer.load_state_dict(criterion.state_dict())


def of_one_process(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    meeting = f"file://{folder}/meeting"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    features, labels = samples()
    criterion, model = LiNCLoss(labels, 16, SHORT), network(SETTINGS.seed)
    with pytest.raises(LincBenchError, match="Several processes train"):
        DynamicsLogger(labels, 3, Path(folder) / f"log {rank}").batch(torch.arange(1), torch.zeros(1, 3))
    parallel = DistributedDataParallel(model)
    optimiser, orders = torch.optim.Adam(model.parameters(), SETTINGS.learning_rate), sample_orders(0, SIZE)
    for _ in range(EPOCHS):
        for batch in next(orders)[:80].split(16):
            optimiser.zero_grad()
            own = batch.chunk(2)[rank]
            criterion(parallel(features[own]), own).backward()
            optimiser.step()
        with torch.no_grad():
            criterion.end_epoch((lambda: model(features)) if rank == 0 else None)
    torch.save(criterion.state_dict(), Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


def of_a_shared_sample(rank: int, folder: str) -> None:
    meeting = f"file://{folder}/meeting"
    torch.distributed.init_process_group("gloo", init_method=meeting, rank=rank, world_size=2)
    criterion = LiNCLoss(torch.tensor([0, 0, 1]), 2)
    logits = torch.tensor([[3.0, 0.0], [0.0, 2.0 + rank]])
    criterion(logits, torch.tensor([2 * rank, 1]))  # sample 1 is in both
    before = criterion.trust.clone()
    criterion.end_epoch()
    torch.save((before, criterion.trust), Path(folder) / f"{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.long
def test_a_sample_that_two_processes_had_gets_the_mean(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(of_a_shared_sample, (str(tmp_path),), nprocs=2)
    (one, after), (other, same) = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    assert torch.equal(after, same)
    assert one[1] != other[1]
    torch.testing.assert_close(after, torch.stack([one[0], (one[1] + other[1]) / 2, other[2]]))


@pytest.mark.parametrize("soft_epochs", [0, 1])
def test_the_soft_phase_may_be_short_or_absent(soft_epochs: int) -> None:
    criterion = LiNCLoss(samples()[1], 16, LiNCParameters(warm_up=3, soft_epochs=soft_epochs))
    trained(criterion, epochs=range(5))
    assert bool(criterion.is_noisy.any())
    assert not torch.equal(criterion.labels, criterion.given_labels)


@pytest.mark.parametrize("labels", [np.arange(6, dtype=np.uint8) % 3, torch.arange(6, dtype=torch.int32) % 3])
def test_labels_may_be_arrays_of_any_whole_numbers(labels: np.ndarray | Tensor) -> None:
    criterion = LiNCLoss(labels, 6)
    criterion(torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.arange(6))
    assert bool((criterion.trust < 1).any())
    assert int(criterion.component.min()) == -1
    for wrong in (np.zeros((6, 1), dtype=int), torch.tensor([0, -1])):
        with pytest.raises(LincBenchError, match="a whole number from 0 for each sample"):
            LiNCLoss(wrong, 6)


@pytest.mark.long
def test_two_processes_end_with_the_trust_of_one(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(of_one_process, (str(tmp_path),), nprocs=2)
    features, labels = samples()
    one, model = LiNCLoss(labels, 16, SHORT), network(SETTINGS.seed)
    optimiser, orders = torch.optim.Adam(model.parameters(), SETTINGS.learning_rate), sample_orders(0, SIZE)
    for _ in range(EPOCHS):
        for batch in next(orders)[:80].split(16):
            optimiser.zero_grad()
            one(model(features[batch]), batch).backward()
            optimiser.step()
        with torch.no_grad():
            one.end_epoch(lambda: model(features))
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    for name, tensor in one.state_dict().items():
        if name in ("epoch", "settings"):
            assert first[name] == second[name] == tensor
            continue
        assert torch.equal(first[name], second[name]), f"both processes have the same {name}"
        torch.testing.assert_close(first[name], tensor, rtol=0, atol=1e-6)
    assert bool(one.is_noisy.any())
    assert bool((one.trust < 0.9).any())
