"""The feature store: right values, and the same bytes after an interruption."""

import shutil
from collections import namedtuple
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmark.cli.command_line import main
from benchmark.data.datasets import Dataset, Split, load_dataset
from benchmark.errors import LincBenchError
from benchmark.networks import Backbone
from benchmark.networks.feature_store import (
    begin_store,
    check_weights,
    finish_store,
    keep_chunk,
    open_store,
    remove_store,
    store_bytes,
    store_id,
    stores_in,
)
from benchmark.networks.features import FeatureJob, compute_chunk, compute_features
from benchmark.networks.loading import load_backbone
from benchmark.networks.preprocessing import preprocess
from benchmark.networks.split_model import SplitModel

BACKBONE = Backbone(image_size=32)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    """Some digits: four chunks, one of them short, with borders of splits inside."""
    whole = load_dataset("digits")
    few = [Split(split.images[:count], split.labels[:count]) for split, count in zip(whole.splits, SIZES, strict=True)]
    return Dataset(replace(whole.info, sizes=SIZES), whole.class_names, *few)


SIZES = (300, 40, 60)


@pytest.fixture(scope="module")
def model() -> SplitModel:
    return load_backbone(BACKBONE, 10, None, 0, "cpu")


def compute_store(folder: Path, dataset: Dataset, backbone: Backbone, model: SplitModel) -> None:
    for chunk in begin_store(folder, dataset.info, backbone, model):
        keep_chunk(folder, chunk, compute_chunk(chunk, dataset, backbone, model))
    finish_store(folder)


@pytest.fixture(scope="module")
def store(digits: Dataset, model: SplitModel, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished store; read it, never write to it."""
    folder = tmp_path_factory.mktemp("features") / "store"
    compute_store(folder, digits, BACKBONE, model)
    return folder


def test_store_holds_what_the_prefix_computes_in_the_order_of_the_splits(
    store: Path, digits: Dataset, model: SplitModel
) -> None:
    rows = open_store(store, digits.info)
    train, validation, test = (split[np.arange(len(split))] for split in rows)
    np.testing.assert_array_equal(np.concatenate([train, validation, test]), np.load(store / "features.npy"))
    np.testing.assert_array_equal(rows[1][np.array([5, 0, 5])], validation[[5, 0, 5]])
    assert (len(train), len(validation), len(test)) == digits.info.sizes
    assert train.dtype == np.float16
    for stored, split in ((train, digits.train), (validation, digits.validation), (test, digits.test)):
        images = preprocess(list(split.images[0:3]), BACKBONE)
        with torch.no_grad():
            np.testing.assert_allclose(stored[:3], model.prefix(images), rtol=1e-2, atol=1e-2)


def test_chunks_in_any_order_and_after_an_interruption_give_the_same_bytes(
    store: Path, tmp_path: Path, digits: Dataset, model: SplitModel
) -> None:
    missing = begin_store(tmp_path / "store", digits.info, BACKBONE, model)
    assert sum(map(len, missing)) == sum(digits.info.sizes)
    for chunk in missing[:0:-2]:
        keep_chunk(tmp_path / "store", chunk, compute_chunk(chunk, digits, BACKBONE, model))
    assert not (tmp_path / "store").exists(), "it appears when all is there"
    still_missing = begin_store(tmp_path / "store", digits.info, BACKBONE, model)
    assert still_missing == [chunk for chunk in missing if chunk not in missing[:0:-2]], "it resumes where it stopped"
    for chunk in still_missing:
        keep_chunk(tmp_path / "store", chunk, compute_chunk(chunk, digits, BACKBONE, model))
    finish_store(tmp_path / "store")
    assert (tmp_path / "store" / "features.npy").read_bytes() == (store / "features.npy").read_bytes()


class LosesWorkers(Executor):
    """Runs calls at once, but the worker of every second one is lost, until it is tried again."""

    def __init__(self, times: int) -> None:
        self.left, self.calls = times, 0

    def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.calls += 1
        if self.calls % 2 == 0 and self.left > 0:
            self.left -= 1
            future.set_exception(BrokenExecutor("killed"))
        else:
            future.set_result(function(*arguments, **named))
        return future


@pytest.fixture
def job(odd_or_even: Path, tmp_path: Path) -> FeatureJob:
    info = load_dataset(str(odd_or_even)).info
    return FeatureJob(tmp_path / "store", str(odd_or_even), None, info, BACKBONE, None, 1, "cpu")


def test_features_are_computed_on_an_executor_that_loses_workers(job: FeatureJob, model: SplitModel) -> None:
    said, reported = [], []

    class Bar:
        def __enter__(self) -> Any:
            return lambda done, total: reported.append((done, total))

        def __exit__(self, *_: object) -> None:
            pass

    executor = LosesWorkers(4)
    compute_features(job, executor, job.folder.parent / "locks", said.append, Bar)
    total = sum(job.info.sizes)
    assert reported[0] == (0, total)
    assert reported[-1] == (total, total)
    assert any("trains" in line for line in said)
    dataset, features = load_dataset(job.dataset), np.load(job.folder / "features.npy")
    for chunk in (range(0, 128), range(1152, 1280)):
        expected = compute_chunk(chunk, dataset, BACKBONE, model)
        np.testing.assert_array_equal(features[chunk.start : chunk.stop], expected)
    calls = executor.calls
    compute_features(job, executor, job.folder.parent / "locks")
    assert executor.calls == calls, "it is there already"


def test_a_worker_that_is_lost_again_and_again_is_an_error(job: FeatureJob) -> None:
    class Dead(LosesWorkers):
        def submit(self, function: Any, /, *arguments: Any, **named: Any) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(BrokenExecutor("killed"))
            return future

    with pytest.raises(BrokenExecutor):
        compute_features(job, Dead(0), job.folder.parent / "locks")
    assert not job.folder.exists()


@pytest.mark.parametrize("left", [b"", bytes(500)], ids=["nothing", "zeros"])
def test_a_store_whose_array_a_power_cut_took_is_started_again(
    left: bytes, tmp_path: Path, digits: Dataset, model: SplitModel
) -> None:
    everything = begin_store(tmp_path / "store", digits.info, BACKBONE, model)
    keep_chunk(tmp_path / "store", everything[0], compute_chunk(everything[0], digits, BACKBONE, model))
    next(tmp_path.glob(".partial-*/features.npy")).write_bytes(left)
    assert begin_store(tmp_path / "store", digits.info, BACKBONE, model) == everything


def test_a_store_larger_than_the_free_disk_space_is_an_error(
    tmp_path: Path, digits: Dataset, model: SplitModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 10**9 - 1000, 1000))
    said: list[str] = []
    with pytest.raises(LincBenchError, match=r"need 153\.6 kB and the disk has 1\.0 kB left\. Free"):
        begin_store(tmp_path / "store", digits.info, BACKBONE, model, said.append)
    assert "400 × 192 × 1 × 1 numbers, 153.6 kB (float16)" in said[0]
    assert stores_in(tmp_path) == []


def test_stores_are_listed_and_removed_finished_or_not(
    store: Path, tmp_path: Path, digits: Dataset, model: SplitModel
) -> None:
    shutil.copytree(store, tmp_path / "one")
    begin_store(tmp_path / "two", digits.info, BACKBONE, model)
    assert [store.name for store in stores_in(tmp_path)] == ["one", "two"]
    assert store_bytes(tmp_path / "one") == store_bytes(tmp_path / "two") > 2 * 192 * sum(digits.info.sizes)
    for store in stores_in(tmp_path):
        remove_store(store)
    assert list(tmp_path.iterdir()) == []


def test_a_store_of_other_weights_is_refused(tmp_path: Path, digits: Dataset, model: SplitModel) -> None:
    begin_store(tmp_path / "store", digits.info, BACKBONE, model)
    finish_store(tmp_path / "store")
    other_head = load_backbone(BACKBONE, 7, None, 3, "cpu")
    check_weights(tmp_path / "store", other_head)
    with torch.no_grad():
        other_head.model.conv_stem.weight[0, 0, 0, 0] += 1
    with pytest.raises(LincBenchError, match=r"other weights.*features clean store"):
        check_weights(tmp_path / "store", other_head)


def test_a_damaged_store_is_refused(store: Path, tmp_path: Path, digits: Dataset) -> None:
    shutil.copytree(store, tmp_path / "store")
    file = tmp_path / "store" / "features.npy"
    for content in (file.read_bytes()[:1000], b"no array", b""):
        file.write_bytes(content)
        with pytest.raises(LincBenchError, match=r"is damaged.*features clean store") as refused:
            open_store(tmp_path / "store", digits.info)
        assert "allow_pickle" not in str(refused.value), "numpy's advice"


def test_features_that_overflow_half_precision_are_an_error(tmp_path: Path, digits: Dataset, model: SplitModel) -> None:
    big = deepcopy(model)
    with torch.no_grad():
        big.model.blocks[5][-1].bn3.weight.mul_(1e6)
    with pytest.raises(LincBenchError, match="--feature-dtype float32"):
        compute_store(tmp_path / "store", digits, BACKBONE, big)
    assert not (tmp_path / "store").exists()


def test_identity_follows_data_weights_size_and_precision(digits: Dataset) -> None:
    ids = {
        store_id(digits.info, backbone, threads, "cpu")
        for backbone in (
            BACKBONE,
            Backbone(image_size=64),
            Backbone(image_size=32, weights="sha256:1"),
            Backbone(image_size=32, feature_dtype="float32"),
        )
        for threads in (1, 2)
    }
    assert len(ids) == 8
    same = store_id(digits.info, Backbone(image_size=32, train_final_norm=True), 1, "cpu")
    assert same in ids, "what is trained afterwards does not matter"


def test_preprocess_takes_grey_colour_and_any_shape() -> None:
    grey, colour = np.full((8, 8), 255, np.uint8), np.zeros((5, 9, 3), np.uint8)
    batch = preprocess([grey, colour], Backbone(image_size=16))
    assert batch.shape == (2, 3, 16, 16)
    assert torch.equal(batch[0], torch.ones(3, 16, 16))
    assert torch.equal(batch[1], -torch.ones(3, 16, 16))


@pytest.mark.parametrize("name", ["linked", ".partial-linked"])
def test_of_a_linked_store_only_the_link_is_removed(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], fails: Callable[..., str]
) -> None:
    """A store may lie on another disk, or a link may point to anything."""
    precious, features = tmp_path / "precious", tmp_path / "results" / "features"
    for folder in (precious, features / "own"):
        folder.mkdir(parents=True)
        np.save(folder / "features.npy", np.zeros(10))
    (features / name).symlink_to(precious)
    (features / ".partial-dangling").symlink_to(tmp_path / "nowhere")
    (features / "a file").write_text("not a store")
    assert main(["features", "list", "--results", str(tmp_path / "results")]) == 0
    assert "a file" not in capsys.readouterr().out
    for bad in ("../features/own", f"{features}/own", "own/", ".", "..", "a file"):
        assert "no feature store called" in fails("features", "clean", bad, "--results", tmp_path / "results")
    assert main(["features", "clean", "linked", "dangling", "--results", str(tmp_path / "results")]) == 0
    assert "2 removed, 0 bytes freed" in capsys.readouterr().out
    assert (precious / "features.npy").exists()
    assert sorted(path.name for path in features.iterdir()) == ["a file", "own"]
    assert main(["features", "clean", "--all", "--results", str(tmp_path / "results")]) == 0
    assert [path.name for path in features.iterdir()] == ["a file"]
