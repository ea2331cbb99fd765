"""The plain path: the witness that caching changes nothing, and where augmentation happens."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch

from benchmark.cli.command_line import main
from benchmark.data.datasets import load_dataset
from benchmark.data.labelled import LabelledFeatures, TrainingData
from benchmark.errors import LincBenchError
from benchmark.networks import Backbone
from benchmark.networks.last_block import ClassTokenBlock
from benchmark.networks.loading import load_backbone, untrained_backbone
from benchmark.networks.preprocessing import LiveImages
from benchmark.record import EVAL_LOGITS, TRAIN_LOGITS
from benchmark.record.history import History
from benchmark.record.run_record import open_record
from benchmark.training import CrossEntropy, TrainingSettings
from benchmark.training.loop import flip_and_crop, predict, train
from tests.conftest import score_bytes

BACKBONE = Backbone(image_size=32)


def records(results: Path) -> list:
    return [open_record(folder) for folder in sorted((results / "runs").iterdir(), key=lambda path: path.name)]


@pytest.mark.long
def test_the_plain_path_sees_what_the_fast_one_sees(quick: tuple[str, ...], tmp_path: Path) -> None:
    fast, plain = tmp_path / "fast", tmp_path / "plain"
    short = [*quick, "--epochs", "3", "--detector", "AUM", "--detector", "mean loss"]
    assert main([*short, "--feature-dtype", "float32", "--results", str(fast)]) == 0
    assert main([*short, "--plain", "--results", str(plain)]) == 0
    assert not (plain / "features").exists()
    for one, other in zip(records(fast), records(plain), strict=True):
        assert one.settings["recipe"] == other.settings["recipe"]
        if TRAIN_LOGITS in one:
            for signal in (
                TRAIN_LOGITS,
                EVAL_LOGITS,
            ):  # later, Adam turns rounding into steps wherever gradients are none
                first_one, first_other = one[signal][0], other[signal][0]
                assert np.abs(first_one - first_other).max() < 1e-3 * np.abs(first_one).max()
    tables = [pd.read_csv(results / "metrics.csv").set_index(["detector", "line_up"]) for results in (fast, plain)]
    assert (tables[0]["auroc"] - tables[1]["auroc"]).abs().max() < 0.01


def test_the_plain_path_of_a_vision_transformer_sees_the_same() -> None:
    backbone, digits = Backbone("vit_tiny_patch16_224", 32), load_dataset("digits")
    labels = torch.from_numpy(digits.train.labels[:96])
    images = LiveImages(digits.train.images, backbone)
    logits = []
    for is_plain in (False, True):
        torch.manual_seed(0)
        model = untrained_backbone(backbone, 10, is_plain)
        assert is_plain or isinstance(model.block, ClassTokenBlock)
        with torch.no_grad():
            features = images if is_plain else model.features(torch.from_numpy(images[np.arange(96)])).numpy()
        split = LabelledFeatures(features, labels)
        settings = TrainingSettings(epochs=3, batch_size=32, plain=is_plain)
        train(model, TrainingData(split, split, split, 10), CrossEntropy(labels), [], settings)
        logits.append(predict(model.tail, split))
    assert (logits[0] - logits[1]).abs().max() < 1e-3 * logits[0].abs().max()


@pytest.mark.long
@pytest.mark.parametrize("size", [56])
def test_half_precision_hardly_changes_what_detectors_find(real_data: Path, tmp_path: Path, size: int) -> None:
    weights = real_data / "vit_small_patch14_dinov2.safetensors"
    options = ["--dataset", "breastmnist", "--data-root", str(real_data), "--weights", str(weights), "--seed", "0"]
    options += ["--backbone", "vit_small_patch14_dinov2", "--image-size", str(size), "--epochs", "10"]
    options += [word for name in ("LiNC", "AUM", "DataMaps", "EL2N", "mean loss") for word in ("--detector", name)]
    found = []
    for dtype in ("float16", "float32"):
        assert main(["run", *options, "--feature-dtype", dtype, "--results", str(tmp_path / dtype)]) == 0
        found.append(pd.read_csv(tmp_path / dtype / "metrics.csv").set_index(["detector", "line_up"])["auroc"])
    assert (found[0] - found[1]).abs().max() < 0.002


def live(samples: int = 96) -> TrainingData:
    digits = load_dataset("digits")
    labels = torch.from_numpy(digits.train.labels[:samples])
    split = LabelledFeatures(LiveImages(digits.train.images, BACKBONE), labels)
    return TrainingData(split, split, split, 10)


def trained(augment: bool, seed: int = 0) -> tuple[torch.Tensor, History]:
    model = load_backbone(BACKBONE, 10, None, 0, torch.device("cpu"), is_plain=True)
    data = live()
    settings = TrainingSettings(epochs=2, batch_size=32, plain=True, augment=augment, seed=seed)
    history = train(model, data, CrossEntropy(data.train.labels), [], settings)
    return predict(model.tail, data.test), history


def test_augmentation_repeats_itself_and_touches_training_only() -> None:
    (one, history), (same, _), (without, plain_history) = trained(True), trained(True), trained(False)
    assert torch.equal(one, same)
    assert not torch.equal(one, without)
    assert history.rows[-1]["train_loss"] != plain_history.rows[-1]["train_loss"]
    predicted = history.predictions["test"][-1]
    assert (predicted == one.argmax(1).numpy()).all(), "evaluation sees the images as they are"


def test_flips_and_crops_move_images_and_nothing_else() -> None:
    images = torch.arange(2 * 3 * 16 * 16.0).reshape(2, 3, 16, 16).repeat(50, 1, 1, 1)
    changed = flip_and_crop(images, torch.Generator().manual_seed(0))
    assert changed.shape == images.shape
    assert all(torch.isin(new, old).all() for new, old in zip(changed, images, strict=True)), "its own pixels only"
    as_it_was = [torch.equal(a, b) for a, b in zip(images, changed, strict=True)]
    mirrored = [(row[0, 8, 1:] < row[0, 8, :-1]).sum() > 8 for row in changed]
    assert sum(as_it_was) < 20
    assert 30 < sum(mirrored) < 70, "about half are mirrored"


def test_augmentation_needs_live_images() -> None:
    with pytest.raises(LincBenchError, match="plain path"):
        TrainingSettings(augment=True)


@pytest.mark.long
def test_augmentation_from_the_command_line(quick: tuple[str, ...], tmp_path: Path) -> None:
    """Two workers or none: the same bytes, though images are changed in the background."""
    short = [*quick, "--epochs", "2", "--augment"]
    for workers in ("1", "2"):
        assert main([*short, "--workers", workers, "--results", str(tmp_path / workers)]) == 0
    assert score_bytes(tmp_path / "1") == score_bytes(tmp_path / "2")
