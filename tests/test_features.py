"""The feature store: right values, and the same bytes after a kill."""

from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark import features
from benchmark.backbones import Backbone, SplitModel, load_backbone
from benchmark.datasets import Dataset, load_dataset
from benchmark.errors import LincBenchError
from benchmark.features import compute_store, open_store, preprocess, store_id
from benchmark.training import TrainingSettings

BACKBONE = Backbone(image_size=32)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_dataset("digits")


@pytest.fixture(scope="module")
def model(digits: Dataset) -> SplitModel:
    return load_backbone(BACKBONE, 10, None, 0, torch.device("cpu"))


def test_store_holds_what_the_prefix_computes_in_the_order_of_the_splits(
    tmp_path: Path, digits: Dataset, model: SplitModel
) -> None:
    compute_store(tmp_path / "store", digits, BACKBONE, model)
    train, validation, test = open_store(tmp_path / "store", digits.info).splits()
    assert (len(train), len(validation), len(test)) == digits.info.sizes
    assert train.dtype == np.float16
    for stored, split in ((train, digits.train), (validation, digits.validation), (test, digits.test)):
        images = preprocess(list(split.images[0:3]), 32, model.mean, model.std)
        with torch.no_grad():
            np.testing.assert_allclose(stored[:3], model.prefix(images), rtol=1e-2, atol=1e-2)


def test_a_killed_computation_goes_on_to_the_same_bytes(
    tmp_path: Path, digits: Dataset, model: SplitModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(features, "FLUSH_EVERY", 2)
    compute_store(tmp_path / "whole", digits, BACKBONE, model)

    class Killed(BaseException):
        pass

    def kill(done: int, total: int) -> None:
        if done > 600:
            raise Killed

    with pytest.raises(Killed):
        compute_store(tmp_path / "store", digits, BACKBONE, model, kill)
    assert not (tmp_path / "store").exists()
    seen: list[int] = []
    compute_store(tmp_path / "store", digits, BACKBONE, model, lambda done, total: seen.append(done))
    assert seen[0] > 500, "it went on where it stopped"
    assert (tmp_path / "store" / "features.npy").read_bytes() == (tmp_path / "whole" / "features.npy").read_bytes()


def test_features_that_overflow_half_precision_are_an_error(tmp_path: Path, digits: Dataset, model: SplitModel) -> None:
    big = deepcopy(model)
    with torch.no_grad():
        big.model.blocks[5][-1].bn3.weight.mul_(1e6)
    with pytest.raises(LincBenchError, match="--feature-dtype float32"):
        compute_store(tmp_path / "store", digits, BACKBONE, big)
    assert not (tmp_path / "store").exists()


def test_identity_follows_data_weights_size_and_precision(digits: Dataset) -> None:
    ids = {
        store_id(digits.info, backbone, TrainingSettings(threads=threads))
        for backbone in (
            BACKBONE,
            Backbone(image_size=64),
            Backbone(image_size=32, weights="sha256:1"),
            Backbone(image_size=32, feature_dtype="float32"),
        )
        for threads in (1, 2)
    }
    assert len(ids) == 8
    same = store_id(digits.info, Backbone(image_size=32, train_final_norm=True), TrainingSettings(seed=5, epochs=1))
    assert same in ids, "what is trained afterwards does not matter"


def test_preprocess_takes_grey_colour_and_any_shape() -> None:
    grey, colour = np.full((8, 8), 255, np.uint8), np.zeros((5, 9, 3), np.uint8)
    batch = preprocess([grey, colour], 16, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
    assert batch.shape == (2, 3, 16, 16)
    assert torch.equal(batch[0], torch.ones(3, 16, 16))
    assert torch.equal(batch[1], -torch.ones(3, 16, 16))
