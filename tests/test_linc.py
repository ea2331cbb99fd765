"""LiNC's mathematics as properties, its theorem's limits, and its phases."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.evaluation.trust import FIRST, first_batches_share, first_gradients, log_mixture
from benchmark.identity import settings_of
from benchmark.record import RunRecord
from benchmark.record.recorders import Predict
from benchmark.training import CrossEntropy, TrainingSettings
from benchmark.training.loop import sample_orders
from detectors.linc import (
    COMPONENT,
    CORRECTED_LABELS,
    TRUST,
    TRUST_MIXTURE,
    LiNC,
    LiNCObjective,
    LiNCRecipe,
)
from detectors.linc_loss import soft_target, trust_gradient
from detectors.post_hoc_trust import PostHocTrust


@st.composite
def logits_and_labels(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    n, classes = draw(st.integers(1, 6)), draw(st.integers(2, 7))
    logits = draw(arrays(np.float64, (n, classes), elements=st.floats(-30, 30)))
    labels = draw(arrays(np.int64, n, elements=st.integers(0, classes - 1)))
    return torch.from_numpy(logits), torch.from_numpy(labels)


def paper_loss(logits: torch.Tensor, labels: torch.Tensor, trust: torch.Tensor) -> torch.Tensor:
    log_p = F.log_softmax(logits, dim=1)
    return -(soft_target(trust, log_p.detach().exp(), labels) * log_p).sum(1)


@given(logits_and_labels(), st.floats(0, 1))
def test_autograd_agrees_with_the_closed_form_of_the_trust_gradient(drawn, value) -> None:
    logits, labels = drawn
    trust = torch.full((len(labels),), value, dtype=torch.float64, requires_grad=True)
    paper_loss(logits, labels, trust).sum().backward()
    p = logits.softmax(1)
    entropy = -torch.special.xlogy(p, p).sum(1)
    closed_form = -torch.log_softmax(logits, 1)[torch.arange(len(labels)), labels] - entropy
    torch.testing.assert_close(trust.grad, closed_form, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(trust_gradient(logits.log_softmax(1), labels), closed_form, rtol=1e-9, atol=1e-9)


@given(logits_and_labels(), st.floats(0, 1))
def test_logits_feel_cross_entropy_weighted_by_trust(drawn, value) -> None:
    logits, labels = drawn
    logits.requires_grad_()
    trust = torch.full((len(labels),), value, dtype=torch.float64)
    paper_loss(logits, labels, trust).sum().backward()
    expected = value * (logits.detach().softmax(1) - F.one_hot(labels, logits.shape[1]))
    torch.testing.assert_close(logits.grad, expected, rtol=1e-9, atol=1e-9)


@given(logits_and_labels())
def test_agreement_never_lowers_trust(drawn) -> None:
    logits, _ = drawn
    assert (trust_gradient(logits.log_softmax(1), logits.argmax(1)) <= 1e-12).all()


@given(st.floats(-30, 30), st.floats(-30, 30))
def test_disagreement_lowers_trust_with_two_classes(one, other) -> None:
    logits = torch.tensor([[one, other]], dtype=torch.float64)
    assert trust_gradient(logits.log_softmax(1), logits.argmin(1)) >= -1e-12


def test_disagreement_may_raise_trust_with_three_classes() -> None:
    """The second half of the paper's theorem does not hold: p = (.5, .45, .05), given label 2."""
    log_p = torch.tensor([[0.5, 0.45, 0.05]], dtype=torch.float64).log()
    assert log_p.argmax() != 1
    assert trust_gradient(log_p, torch.tensor([1])).item() == pytest.approx(-0.0572, abs=1e-4)


def objective_after(
    epochs: int, recipe: LiNCRecipe, labels: torch.Tensor, logits: torch.Tensor, abstains: bool = False
) -> LiNCObjective:
    """LiNC's objective after epochs in which the network's logits did not change; two batches per epoch."""
    half = len(labels) // 2
    objective = LiNCObjective(recipe, labels, TrainingSettings(epochs=epochs, batch_size=half), abstains)
    for epoch in range(1, epochs + 1):
        for batch in (torch.arange(half), torch.arange(half, len(labels))):
            objective.loss(epoch, batch, logits[batch])
        objective.end_epoch(epoch, Predict(lambda: [logits]))
    return objective


def planted(n: int = 300, wrong: int = 60) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Logits that point at the clean class with varying firmness, and labels of which the first `wrong` are wrong."""
    generator = torch.Generator().manual_seed(0)
    clean = torch.randint(0, 3, (n,), generator=generator)
    given_labels = clean.clone()
    given_labels[:wrong] = (clean[:wrong] + 1) % 3
    order = torch.randperm(n, generator=generator)
    logits = F.one_hot(clean, 3).float() * (4 + torch.rand(n, 1, generator=generator))
    return logits[order], given_labels[order], clean[order]


def test_the_noisy_cluster_is_relabelled_once_and_nobody_else() -> None:
    logits, labels, clean = planted()
    signals = objective_after(12, LiNCRecipe(), labels, logits).signals()
    corrected, component = torch.from_numpy(signals[CORRECTED_LABELS]), signals[COMPONENT]
    noisy = torch.from_numpy(component == 0)
    assert noisy.any()
    assert (labels != clean)[noisy].all(), "in this plain case the lowest cluster holds wrong labels only"
    assert (corrected[noisy] == clean[noisy]).all()
    assert (corrected[~noisy] == labels[~noisy]).all()
    assert (np.diff(signals[TRUST_MIXTURE][:, 0]) > 0).all(), "means from low to high"


def test_trust_freezes_after_the_soft_phases() -> None:
    logits, labels, _ = planted()
    trust_EN = objective_after(14, LiNCRecipe(), labels, logits).signals()[TRUST]
    assert (trust_EN[9] != trust_EN[8]).any()
    assert all((trust_EN[epoch] == trust_EN[9]).all() for epoch in range(10, 14))


def test_trust_follows_the_papers_update() -> None:
    """α ← α − η(g / B + λα), written out in floats."""
    logits, labels, _ = planted(n=8, wrong=2)
    trust = objective_after(1, LiNCRecipe(), labels, logits).criterion.trust
    p = logits.double().softmax(1)
    for i in range(8):
        gradient = -np.log(p[i, labels[i]].item()) + sum(q * np.log(q) for q in p[i].tolist())
        expected = min(max(1 - (gradient / 4 + 0.1 * 1), 0), 1)  # two batches of four
        assert trust[i].item() == pytest.approx(expected, abs=1e-5)


def test_a_short_last_batch_takes_no_bigger_step() -> None:
    logits, labels, _ = planted(n=6, wrong=1)
    settings = TrainingSettings(epochs=1, batch_size=4)
    whole, cut = (LiNCObjective(LiNCRecipe(), labels, settings) for _ in range(2))
    whole.loss(1, torch.arange(4), logits[:4])
    cut.loss(1, torch.arange(2), logits[:2])
    assert torch.equal(whole.criterion.trust[:2], cut.criterion.trust[:2])


@pytest.mark.parametrize(("soft_correction", "moves"), [("stopgrad", False), ("entropy", True)])
def test_soft_correction_with_stopgrad_leaves_the_noisy_cluster_out(soft_correction: str, moves: bool) -> None:
    logits, labels, _ = planted()
    objective = objective_after(5, LiNCRecipe(soft_correction=soft_correction), labels, logits)
    noisy = objective.criterion.is_noisy.nonzero()[:, 0][:8]
    batch = logits[noisy].clone().requires_grad_()
    before = objective.criterion.trust[noisy]
    objective.loss(6, noisy, batch).backward()
    assert bool((batch.grad.abs() > 1e-6).any()) is moves
    torch.testing.assert_close(objective.criterion.trust[noisy], before * 0.9), "its trust only decays"


def test_hard_phase_is_cross_entropy_on_the_corrected_labels() -> None:
    logits, labels, _ = planted()
    objective, everyone = objective_after(10, LiNCRecipe(), labels, logits), torch.arange(len(labels))
    assert not torch.equal(objective.criterion.labels, labels)
    plain = CrossEntropy(objective.criterion.labels).loss(11, everyone, logits)
    assert torch.equal(objective.loss(11, everyone, logits), plain)


@pytest.mark.parametrize(
    ("hard_correction", "follows"),
    [("once", "nobody"), ("every step", "the noisy cluster"), ("every step, all", "everybody")],
)
def test_who_follows_the_prediction_in_every_step_of_the_hard_phase(hard_correction: str, follows: str) -> None:
    """After the correction the network comes to predict another class for everybody."""
    logits, labels, _ = planted()
    objective = objective_after(10, LiNCRecipe(hard_correction=hard_correction), labels, logits)
    everyone, now = torch.arange(len(labels)), logits.roll(1, dims=1)
    targets = {
        "nobody": objective.criterion.labels,
        "the noisy cluster": now.argmax(1).where(objective.criterion.is_noisy, labels),
        "everybody": now.argmax(1),
    }
    assert len({tuple(target.tolist()) for target in targets.values()}) == 3
    assert torch.equal(objective.loss(11, everyone, now), F.cross_entropy(now, targets[follows]))


def test_trust_that_starts_later_stays_one_until_then() -> None:
    logits, labels, _ = planted()
    usual, late = (objective_after(5, LiNCRecipe(trust_from_epoch=first), labels, logits) for first in (1, 3))
    assert (late.trust_history_EN[:2] == 1).all()
    assert np.array_equal(late.trust_history_EN[2:], usual.trust_history_EN[:3]), "the same steps, two epochs later"


def test_the_score_is_read_after_the_warm_up_or_after_the_soft_correction() -> None:
    logits, labels, _ = planted()
    trust_EN = objective_after(12, LiNCRecipe(), labels, logits).signals()[TRUST]
    record = RunRecord(labels.numpy(), 3, 12, {TRUST.key: trust_EN})
    assert np.array_equal(LiNC().score(record), 1 - trust_EN[4].astype(np.float64))
    assert np.array_equal(LiNC(read_after="soft correction").score(record), 1 - trust_EN[9].astype(np.float64))


@pytest.mark.parametrize("first", [1, 2])
def test_post_hoc_trust_starts_when_lincs_does(first: int) -> None:
    """With logits that do not change, feeding trust back changes nothing, so both are the same."""
    logits, labels, _ = planted()
    recipe = LiNCRecipe(trust_from_epoch=first)
    logits_ENK = logits.numpy()[None].repeat(5, axis=0)
    record = RunRecord.from_arrays(given_labels=labels.numpy(), train_logits=logits_ENK)
    post_hoc = PostHocTrust(recipe, batch_size=len(labels) // 2).score(record)
    assert post_hoc == pytest.approx(1 - objective_after(5, recipe, labels, logits).criterion.trust.numpy(), abs=1e-5)


@pytest.mark.parametrize(("wrong", "corrects"), [(0, False), (160, True)])
def test_it_may_abstain_where_nothing_speaks_for_wrong_labels(wrong: int, corrects: bool) -> None:
    """Held-out classifiers on what the pretrained network sees decide, before training."""
    logits, labels, _ = planted(800, wrong)
    split = LabelledFeatures(np.empty((0, 1)), labels)
    data, settings = TrainingData(split, split, split, 3), TrainingSettings(epochs=12, batch_size=100)
    noise = torch.randn(800, 17, generator=torch.Generator().manual_seed(1))

    def embed() -> np.ndarray:
        return torch.cat([logits + 0.1 * noise[:, :3], noise[:, 3:]], dim=1).numpy()

    def asked() -> np.ndarray:
        pytest.fail("nobody wants it")

    assert LiNCRecipe(may_abstain=True).objective(data, settings, embed).abstains is not corrects
    assert LiNCRecipe().objective(data, settings, asked).abstains is False


def test_who_abstains_learns_trust_and_corrects_nothing() -> None:
    logits, labels, _ = planted()
    signals = objective_after(12, LiNCRecipe(), labels, logits, abstains=True).signals()
    usual = objective_after(12, LiNCRecipe(), labels, logits).signals()
    assert (signals[COMPONENT] == -1).all()
    assert (signals[CORRECTED_LABELS] == labels.numpy()).all()
    assert np.array_equal(signals[TRUST][4], usual[TRUST][4]), "scores are those of LiNC"


def test_a_field_that_came_later_renames_no_run() -> None:
    assert "may_abstain" not in settings_of(LiNCRecipe())
    assert settings_of(LiNCRecipe(may_abstain=True))["may_abstain"] is True
    assert "may_abstain version" in settings_of(LiNCRecipe(may_abstain=True)), "its rule may change, and no other run"


def test_constant_trust_gives_no_noisy_cluster() -> None:
    labels = torch.zeros(40, dtype=torch.int64)
    objective = objective_after(12, LiNCRecipe(), labels, torch.zeros(40, 2))
    signals = objective.signals()
    assert not objective.criterion.is_noisy.any()
    assert (signals[COMPONENT] == -1).all()
    assert (signals[CORRECTED_LABELS] == 0).all()


def test_the_gradients_of_the_first_epoch_follow_from_its_trust() -> None:
    logits, labels, _ = planted()
    settings, recipe = TrainingSettings(epochs=12, batch_size=100, seed=3), LiNCRecipe(trust_rate=0.5)
    objective, batches = LiNCObjective(recipe, labels, settings), next(sample_orders(3, 300)).split(100)
    for batch in batches:
        objective.loss(1, batch, logits[batch])
    objective.end_epoch(1, Predict(lambda: [logits]))
    record = RunRecord(labels.numpy(), 3, 12, {TRUST.key: objective.trust_history_EN})
    gradients, rows = trust_gradient(logits.log_softmax(1), labels), first_gradients(record, recipe, settings)
    assert [(row["class"], row["batch"]) for row in rows] == [(name, batch) for name in "012" for batch in (1, 2, 3)]
    for row in rows:
        batch = batches[row["batch"] - 1]
        members = batch[labels[batch] == int(row["class"])]
        assert row["gradient"] == pytest.approx(gradients[members].mean().item(), abs=1e-3)
    assert first_gradients(record, LiNCRecipe(trust_from_epoch=2), settings) == []


def test_the_share_of_the_noisy_component_that_came_first() -> None:
    settings = TrainingSettings(epochs=12, batch_size=20, seed=3)
    order = next(sample_orders(3, 300)).numpy()
    component = np.full(300, 2, dtype=np.int8)
    component[order[20 * FIRST - 30 : 20 * FIRST + 10]] = 0
    record = RunRecord(np.zeros(300, dtype=np.int64), 3, 12, {COMPONENT.key: component})
    shares = first_batches_share(record, settings)
    assert shares == pytest.approx({"in_first_batches": 20 * FIRST / 300, "noisy_in_first_batches": 0.75})
    assert first_batches_share(record, TrainingSettings(epochs=12, batch_size=100, seed=3)) == {}, "all are in these"


def test_a_mixture_of_the_distance_from_the_highest_trust() -> None:
    rng = np.random.default_rng(0)
    is_mislabelled = np.arange(400) < 80
    distance = np.exp(rng.normal(np.where(is_mislabelled, -1.5, -5.0), 0.4))
    trust_EN = np.repeat((0.95 - distance)[None], 12, axis=0)
    record = RunRecord(np.zeros(400, dtype=np.int64), 3, 12, {TRUST.key: trust_EN})
    found = log_mixture(record, LiNCRecipe(), is_mislabelled)
    assert found["log_precision"] == 1.0
    assert 0.5 < found["log_recall"] <= 1.0, "three components may share the mislabelled samples"
    assert log_mixture(record, LiNCRecipe(components=2), is_mislabelled)["log_recall"] == 1.0
