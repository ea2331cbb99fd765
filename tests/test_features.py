"""The feature store: right values, and the same bytes after a kill."""

import shutil
from collections import namedtuple
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmark.data.datasets import Dataset, load_dataset
from benchmark.errors import LincBenchError
from benchmark.networks.backbones import Backbone, SplitModel, load_backbone
from benchmark.networks.feature_store import (
    begin_store,
    check_weights,
    compute_chunk,
    finish_store,
    keep_chunk,
    open_store,
    preprocess,
    remove_store,
    store_bytes,
    store_id,
    stores_in,
)
from benchmark.training.loop import TrainingSettings

BACKBONE = Backbone(image_size=32)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load_dataset("digits")


@pytest.fixture(scope="module")
def model(digits: Dataset) -> SplitModel:
    return load_backbone(BACKBONE, 10, None, 0, torch.device("cpu"))


def compute_store(folder: Path, dataset: Dataset, backbone: Backbone, model: SplitModel) -> None:
    for chunk in begin_store(folder, dataset, backbone, model):
        keep_chunk(folder, chunk, compute_chunk(chunk, dataset, backbone, model))
    finish_store(folder)


def test_store_holds_what_the_prefix_computes_in_the_order_of_the_splits(
    tmp_path: Path, digits: Dataset, model: SplitModel
) -> None:
    compute_store(tmp_path / "store", digits, BACKBONE, model)
    everything = np.load(tmp_path / "store" / "features.npy")
    rows = open_store(tmp_path / "store", digits.info)
    train, validation, test = (split[np.arange(len(split))] for split in rows)
    np.testing.assert_array_equal(np.concatenate([train, validation, test]), everything)
    np.testing.assert_array_equal(rows[1][np.array([5, 0, 5])], validation[[5, 0, 5]])
    assert (len(train), len(validation), len(test)) == digits.info.sizes
    assert train.dtype == np.float16
    for stored, split in ((train, digits.train), (validation, digits.validation), (test, digits.test)):
        images = preprocess(list(split.images[0:3]), BACKBONE)
        with torch.no_grad():
            np.testing.assert_allclose(stored[:3], model.prefix(images), rtol=1e-2, atol=1e-2)


def test_chunks_in_any_order_and_after_a_kill_give_the_same_bytes(
    tmp_path: Path, digits: Dataset, model: SplitModel
) -> None:
    compute_store(tmp_path / "whole", digits, BACKBONE, model)
    missing = begin_store(tmp_path / "store", digits, BACKBONE, model)
    assert sum(map(len, missing)) == sum(digits.info.sizes)
    for chunk in missing[:1:-3]:
        keep_chunk(tmp_path / "store", chunk, compute_chunk(chunk, digits, BACKBONE, model))
    assert not (tmp_path / "store").exists(), "it appears when all is there"
    still_missing = begin_store(tmp_path / "store", digits, BACKBONE, model)
    assert still_missing == [chunk for chunk in missing if chunk not in missing[:1:-3]], "it goes on where it stopped"
    for chunk in still_missing:
        keep_chunk(tmp_path / "store", chunk, compute_chunk(chunk, digits, BACKBONE, model))
    finish_store(tmp_path / "store")
    assert (tmp_path / "store" / "features.npy").read_bytes() == (tmp_path / "whole" / "features.npy").read_bytes()


@pytest.mark.parametrize("left", [b"", bytes(500)], ids=["nothing", "zeros"])
def test_a_store_whose_array_a_power_cut_took_is_begun_anew(
    left: bytes, tmp_path: Path, digits: Dataset, model: SplitModel
) -> None:
    everything = begin_store(tmp_path / "store", digits, BACKBONE, model)
    keep_chunk(tmp_path / "store", everything[0], compute_chunk(everything[0], digits, BACKBONE, model))
    next(tmp_path.glob(".partial-*/features.npy")).write_bytes(left)
    assert begin_store(tmp_path / "store", digits, BACKBONE, model) == everything


def test_it_says_what_it_needs_and_refuses_when_the_disk_has_less(
    tmp_path: Path, digits: Dataset, model: SplitModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
    said: list[str] = []
    with pytest.raises(LincBenchError, match=r"need 690\.0 kB and the disk has 1\.0 kB left\. Make room"):
        begin_store(tmp_path / "store", digits, BACKBONE, model, said.append)
    assert "1,797 × 192 × 1 × 1 numbers, 0.7 MB (float16)" in said[0]
    assert stores_in(tmp_path) == []


def test_stores_are_listed_and_removed_finished_or_not(tmp_path: Path, digits: Dataset, model: SplitModel) -> None:
    compute_store(tmp_path / "one", digits, BACKBONE, model)
    begin_store(tmp_path / "two", digits, BACKBONE, model)
    assert [store.name for store in stores_in(tmp_path)] == ["one", "two"]
    assert store_bytes(tmp_path / "one") == store_bytes(tmp_path / "two") > 2 * 192 * sum(digits.info.sizes)
    for store in stores_in(tmp_path):
        remove_store(store)
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_other_weights_is_refused(tmp_path: Path, digits: Dataset, model: SplitModel) -> None:
    begin_store(tmp_path / "store", digits, BACKBONE, model)
    finish_store(tmp_path / "store")
    other_head = load_backbone(BACKBONE, 7, None, 3, torch.device("cpu"))
    check_weights(tmp_path / "store", other_head)
    with torch.no_grad():
        other_head.model.conv_stem.weight[0, 0, 0, 0] += 1
    with pytest.raises(LincBenchError, match=r"other weights.*features clean store"):
        check_weights(tmp_path / "store", other_head)


def test_a_damaged_store_is_refused(tmp_path: Path, digits: Dataset, model: SplitModel) -> None:
    compute_store(tmp_path / "store", digits, BACKBONE, model)
    file = tmp_path / "store" / "features.npy"
    file.write_bytes(file.read_bytes()[:1000])
    with pytest.raises(LincBenchError, match=r"is damaged.*features clean store"):
        open_store(tmp_path / "store", digits.info)


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
    batch = preprocess([grey, colour], Backbone(image_size=16))
    assert batch.shape == (2, 3, 16, 16)
    assert torch.equal(batch[0], torch.ones(3, 16, 16))
    assert torch.equal(batch[1], -torch.ones(3, 16, 16))
