"""Wrong labels: how many, which, and who knows."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

from benchmark.cli.command_line import command_line, main
from benchmark.data.datasets import load_dataset
from benchmark.data.labelled import ReplacedImages
from benchmark.disk import ResultsFolder
from benchmark.disk.tables import read_table
from benchmark.errors import LincBenchError
from benchmark.noise import AnswerKey, NoiseSettings, Samples, WrongLabels, noise_named
from benchmark.noise.annotators import confusions, majority
from benchmark.noise.by_class import most_similar
from benchmark.noise.flips import write_flips
from benchmark.noise.instance import SPREAD, truncated_normal
from benchmark.statistics.metrics import detection_metrics
from tests.conftest import medmnist_arrays

labels_and_classes = st.integers(2, 9).flatmap(
    lambda classes: st.tuples(st.lists(st.integers(0, classes - 1), min_size=1, max_size=200), st.just(classes))
)
BY_CLASS = ("symmetric", "symmetric-inclusive", "pair", "annotators", "annotators:majority")
OF_IMAGES = ("asymmetric", "instance", "boundary", "boundary:II", "boundary:III")


def corrupted(kind: str, labels: np.ndarray, classes: int, rate: float = 0.3, seed: int = 0) -> np.ndarray:
    return noise_named(kind).corrupt(Samples.of_labels(labels, classes), rate, seed).given["train"]


@pytest.fixture(scope="module")
def digits() -> Samples:
    """Two splits of real images."""
    images, labels = (load_digits().images * 15.9).astype(np.uint8), load_digits().target
    return Samples({"train": 1200, "validation": 597}, labels, 10, (images[:1200], images[1200:]))


@given(labels_and_classes, st.floats(0, 1), st.integers(0, 99))
def test_symmetric_noise_makes_exactly_that_many_labels_wrong(drawn, rate, seed) -> None:
    clean, classes = np.array(drawn[0]), drawn[1]
    given_labels = corrupted("symmetric", clean, classes, rate, seed)
    assert (given_labels != clean).sum() == round(rate * len(clean))
    assert ((given_labels >= 0) & (given_labels < classes)).all()


@pytest.mark.parametrize(("kind", "rate"), [("symmetric", 0), ("symmetric", 0.3), ("symmetric-inclusive", 1)])
def test_rates_that_leave_something_to_find_or_are_meant_are_allowed(kind: str, rate: float) -> None:
    NoiseSettings(kind, rate=rate).check(100, "labels")


def test_no_noise_with_a_minus_is_no_noise() -> None:
    assert str(command_line().parse_args(["run", "--rate", "-0"]).rates) == "[0.0]"


def everywhere(wrong: WrongLabels) -> np.ndarray:
    return np.concatenate(list(wrong.given.values()))


@pytest.mark.parametrize("kind", BY_CLASS + OF_IMAGES)
def test_noise_leaves_its_input_alone_and_repeats_itself(kind: str, digits: Samples) -> None:
    before = digits.labels.copy()
    first, second, other = (noise_named(kind).corrupt(digits, 0.4, seed) for seed in (3, 3, 4))
    assert (digits.labels == before).all()
    assert (everywhere(first) == everywhere(second)).all()
    assert (everywhere(first) != everywhere(other)).any()
    assert {split: len(labels) for split, labels in first.given.items()} == digits.sizes


@pytest.mark.parametrize("kind", BY_CLASS + OF_IMAGES)
@pytest.mark.parametrize("rate", [0.0, 0.05, 0.2, 0.5])
def test_the_true_rate_is_near_the_nominal_one(kind: str, rate: float, digits: Samples) -> None:
    """Exactly, or within four standard deviations of draws; a majority errs less, and redrawn labels may be right."""
    wrong = noise_named(kind).corrupt(digits, rate, 0)
    true_rate = (everywhere(wrong) != digits.labels).mean()
    if kind in ("annotators:majority", "symmetric-inclusive"):
        assert 0 < true_rate < rate or not rate
    elif wrong.chances is None:
        assert true_rate == pytest.approx(rate, abs=1e-3)
    else:
        assert wrong.chances.mean() == pytest.approx(rate, abs=0.01)
        assert abs(true_rate - rate) <= 4 * np.sqrt(rate * (1 - rate) / len(digits.labels)) + 0.01


def test_wrong_classes_are_drawn_uniformly_from_the_others() -> None:
    counts = np.bincount(corrupted("symmetric", np.zeros(60_000, dtype=np.int64), 4, 0.5), minlength=4)
    assert counts[0] == 30_000
    assert (np.abs(counts[1:] - 10_000) < 400).all()


def test_inclusive_noise_keeps_some_labels_right_and_they_do_not_count_as_wrong() -> None:
    """A peer counts every redrawn label as noisy, which caps a perfect detector at 1 − 1/(2C)."""
    clean = np.arange(40_000) % 2
    given_labels = corrupted("symmetric-inclusive", clean, 2, 0.5)
    is_mislabelled = AnswerKey(clean, clean).is_mislabelled(given_labels)
    assert is_mislabelled.mean() == pytest.approx(0.25, abs=0.01)
    assert (is_mislabelled == (given_labels != clean)).all()


def test_pair_noise_goes_to_the_next_class() -> None:
    clean = np.arange(1000) % 5
    wrong = (flipped := corrupted("pair", clean, 5)) != clean
    assert (flipped[wrong] == (clean[wrong] + 1) % 5).all()


def test_asymmetric_noise_goes_to_the_class_that_looks_alike(digits: Samples) -> None:
    flipped = everywhere(noise_named("asymmetric").corrupt(digits, 0.3, 0))
    wrong = flipped != digits.labels
    to = most_similar(digits)
    assert (flipped[wrong] == to[digits.labels[wrong]]).all()
    assert to[9] in (3, 5, 7, 8)
    assert to[1] in (2, 4, 7, 8)


def test_a_matrix_is_followed_and_its_rate_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "raters.csv").write_text("0.7,0.2,0.1\n0,1,0\n0.25,0.25,0.5\n")
    kind = noise_named(f"asymmetric:{tmp_path / 'raters.csv'}")
    assert kind.own_rate == round((0.3 + 0 + 0.5) / 3, 6)
    clean = np.arange(30_000) % 3
    flipped = kind.corrupt(Samples.of_labels(clean, 3), kind.own_rate, 0).given["train"]
    for label, row in enumerate([(0.7, 0.2, 0.1), (0, 1, 0), (0.25, 0.25, 0.5)]):
        assert np.bincount(flipped[clean == label], minlength=3) / 10_000 == pytest.approx(row, abs=0.02)


def test_chances_do_not_depend_on_the_order_of_samples() -> None:
    clean = np.random.default_rng(0).integers(0, 4, 500)
    order = np.random.default_rng(1).permutation(500)
    for kind in ("annotators", "annotators:majority"):
        one, other = (noise_named(kind).corrupt(Samples.of_labels(some, 4), 0.3, 0) for some in (clean, clean[order]))
        assert one.chances[order] == pytest.approx(other.chances)


def test_instance_noise_sends_an_image_to_the_same_class_wherever_it_stands(digits: Samples) -> None:
    images = np.concatenate(digits.images)
    order = np.random.default_rng(1).permutation(len(images))
    shuffled = Samples({"train": len(images)}, digits.labels[order], 10, (images[order],))
    # Where two classes are nearly as likely, the draw decides.
    one, other = (everywhere(noise_named("instance").corrupt(s, 0.9, 0)) for s in (digits, shuffled))
    both_wrong = (one[order] != digits.labels[order]) & (other != shuffled.labels)
    assert both_wrong.sum() > 1000
    assert (one[order] == other)[both_wrong].mean() > 0.9


@pytest.mark.parametrize("rate", [0.05, 0.2, 0.5])
def test_instance_chances_have_the_published_spread(rate: float, digits: Samples) -> None:
    """Drawn from a normal distribution truncated to [0, 1], independently of class and image."""
    chances = noise_named("instance").corrupt(digits, rate, 0).chances
    wanted = truncated_normal(rate)
    assert chances.mean() == pytest.approx(rate, abs=0.01)
    assert chances.std() == pytest.approx(wanted.std(), rel=0.1)
    assert wanted.std() <= SPREAD
    assert ((chances >= 0) & (chances <= 1)).all()


@pytest.mark.parametrize("kind", ["boundary", "boundary:II", "boundary:III"])
def test_boundary_noise_is_that_of_hard_images_and_goes_where_they_are_confused(kind: str, digits: Samples) -> None:
    wrong = noise_named(kind).corrupt(digits, 0.1, 0)
    own_NK = np.eye(10, dtype=bool)[digits.labels]
    confusion_NK = digits.confusion
    others_NK = np.where(own_NK, -1, confusion_NK)
    margin_N = confusion_NK[own_NK] - others_NK.max(axis=1)
    assert np.corrcoef(margin_N, wrong.chances)[0, 1] < -0.8
    flipped = everywhere(wrong)
    is_wrong = flipped != digits.labels
    assert (flipped[is_wrong] == others_NK.argmax(axis=1)[is_wrong]).all()
    hardest = np.argsort(margin_N)[: len(margin_N) // 10]
    assert is_wrong[hardest].sum() / is_wrong.sum() > 0.15, "a tenth if hardness did not matter"


def test_annotators_differ_in_skill_and_confusion_and_majorities_err_less() -> None:
    raters_RKK = confusions(4, 0.3, np.random.default_rng(0))
    assert raters_RKK.sum(axis=2) == pytest.approx(1)
    assert 1 - raters_RKK[:, 0, 0] == pytest.approx(0.3 * np.linspace(0.5, 1.5, 5))
    draws = np.stack([[np.random.default_rng((r, i)).choice(4, p=rater[2]) for i in range(4000)]
                      for r, rater in enumerate(raters_RKK[:3])])  # fmt: skip
    votes = np.stack([(draws == label).sum(axis=0) for label in range(4)])
    simulated = np.where(votes.max(axis=0) > 1, votes.argmax(axis=0), draws[np.arange(4000) % 3, np.arange(4000)])
    expected = majority(*raters_RKK[:3])
    assert expected.sum(axis=1) == pytest.approx(1)
    assert np.bincount(simulated, minlength=4) / 4000 == pytest.approx(expected[2], abs=0.03)
    assert expected[2, 2] > raters_RKK[:3, 2, 2].mean()


@pytest.mark.parametrize("kind", BY_CLASS + OF_IMAGES)
def test_the_place_of_a_sample_says_nothing(kind: str, digits: Samples) -> None:
    """Of a detector that sees the index alone, with samples sorted by class as in a folder, or not."""
    order = np.argsort(digits.labels, kind="stable")
    images = np.concatenate(digits.images)[order]
    by_class = Samples({"train": len(order)}, digits.labels[order], 10, (images,))
    for samples in (digits, by_class):
        aurocs = []
        for seed in range(5):
            is_wrong = everywhere(noise_named(kind).corrupt(samples, 0.3, seed)) != samples.labels
            aurocs.append(detection_metrics(is_wrong, np.arange(len(is_wrong), dtype=float))["auroc"])
        mean = np.mean(aurocs)
        # Annotators and boundaries confuse some classes more, and in a sorted folder the index tells the class.
        assert abs(mean - 0.5) < (0.03 if samples is digits else 0.15), (kind, aurocs)


def two_labels(path: Path, **changes: np.ndarray) -> Path:
    digits = load_digits()
    arrays = medmnist_arrays(digits.target, (digits.images * 15.9).astype(np.uint8), 1200, 300)
    for key in ("train", "val"):
        people = arrays[f"{key}_labels"].copy()
        people[::5] = (people[::5] + 3) % 10
        arrays[f"{key}_labels_people"] = people
    np.savez(path, **(arrays | changes))
    return path


def test_given_labels_are_those_of_the_file(tmp_path: Path) -> None:
    path = two_labels(tmp_path / "digits2.npz")
    kind = noise_named("given:train_labels_people").of_dataset(str(path), None)
    assert kind.own_rate == 0.2
    assert not kind.takes_rate
    digits = load_digits()
    samples = Samples({"train": 1200, "validation": 300}, digits.target[:1500], 10)
    wrong = kind.corrupt(samples, 0.2, 7)
    at = np.r_[0:1200:5, 1200:1500:5]
    assert (np.flatnonzero(everywhere(wrong) != samples.labels) == at).all()
    assert NoiseSettings("given", source=kind.source).title == "given:people"


def test_given_labels_of_a_csv_are_another_column(tmp_path: Path, images: Callable[..., Path]) -> None:
    rows = [f"{i}.png,{'ab'[i % 2]},{'ba'[i % 2] if i % 4 == 0 else 'ab'[i % 2]}" for i in range(40)]
    path = images(tmp_path, ["path,label,rater", *rows])
    kind = noise_named("given:rater").of_dataset(str(path), None)
    assert 0.15 < kind.own_rate < 0.35
    assert {split: len(labels) for split, labels in kind.labels.items()} == {"train": 28, "validation": 4}


@pytest.fixture
def images() -> Callable[..., Path]:
    def write(folder: Path, lines: list[str]) -> Path:
        from PIL import Image

        for i in range(40):
            Image.fromarray(np.full((9, 9), 6 * i, dtype=np.uint8)).save(folder / f"{i}.png")
        (folder / "images.csv").write_text("\n".join(lines) + "\n")
        return folder / "images.csv"

    return write


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(LincBenchError) as raised:
        act()
    return str(raised.value)


def test_labels_of_people_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = two_labels(tmp_path / "a.npz")
    assert "has no labels train_labels_expert" in refusal(
        lambda: noise_named("given:train_labels_expert").of_dataset(str(path), None)
    )
    short = two_labels(tmp_path / "b.npz", train_labels_people=np.zeros(7, dtype=np.int64))
    assert "7 labels in train_labels_people for 1,200 images" in refusal(
        lambda: noise_named("given:train_labels_people").of_dataset(str(short), None)
    )
    odd = two_labels(tmp_path / "c.npz", train_labels_people=np.full(1200, 12))
    assert "the label 12" in refusal(lambda: noise_named("given:train_labels_people").of_dataset(str(odd), None))
    assert "second key of an .npz" in refusal(lambda: noise_named("given:rater").of_dataset("breastmnist", None))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("0.5,0.4\n0,1\n", "Row 1 of the matrix in .* sums to 0.9"),
        ("0.5,0.5\n", "is 1 × 2"),
        ("1.5,-0.5\n0,1\n", "no chances"),
        ("a,b\nc,d\n", "not a matrix of numbers"),
    ],
)
def test_a_wrong_matrix_is_refused_in_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "matrix.csv").write_text(text)
    with pytest.raises(LincBenchError, match=says):
        noise_named(f"asymmetric:{tmp_path / 'matrix.csv'}")


def test_a_matrix_of_other_classes_is_refused(tmp_path: Path) -> None:
    (tmp_path / "two.csv").write_text("0.9,0.1\n0.1,0.9\n")
    kind = noise_named(f"asymmetric:{tmp_path / 'two.csv'}")
    assert "for 2 classes; the data set has 3" in refusal(
        lambda: kind.corrupt(Samples.of_labels(np.arange(9) % 3, 3), 0.1, 0)
    )


def written(path: Path, samples: Samples, kind: str = "symmetric") -> Path:
    about = {"dataset": "digits", "noise": kind, "rate": 0.2, "seed": 5}
    write_flips(path, samples, about, noise_named(kind).corrupt(samples, 0.2, 5))
    return path


def test_a_flip_file_gives_the_same_wrong_labels_again(tmp_path: Path, digits: Samples) -> None:
    kind = noise_named(f"file:{written(tmp_path / 'flips.json', digits)}")
    again, first = kind.corrupt(digits, 0.2, 99), noise_named("symmetric").corrupt(digits, 0.2, 5)
    assert all((again.given[split] == first.given[split]).all() for split in digits.sizes)
    assert kind.own_rate == 0.2
    assert kind.source.startswith("symmetric-")
    assert (tmp_path / "flips.json").stat().st_size < 20_000


def test_a_flip_file_of_other_data_is_refused(tmp_path: Path, digits: Samples) -> None:
    kind = noise_named(f"file:{written(tmp_path / 'flips.json', digits)}")
    changed = digits.labels.copy()
    changed[0] = (changed[0] + 1) % 10
    for other in (
        replace(digits, labels=changed),
        replace(digits, sizes={"train": 1000, "validation": 797}),
        replace(digits, num_classes=11),
    ):
        assert "belongs to other data" in refusal(lambda samples=other: kind.corrupt(samples, 0.2, 0))


def test_damaged_flip_files_are_refused(tmp_path: Path, digits: Samples) -> None:
    whole = json.loads(written(tmp_path / "flips.json", digits).read_text())
    moved = json.loads(json.dumps(whole))
    moved["flips"]["train"]["index"][0] += 1
    for content, says in (
        (whole | {"format": "other"}, "is not a flip file"),
        (moved, "changed by hand"),
        ([1], "is not a flip file"),
        ({}, "is not a flip file"),
        (whole | {"rate": None}, "is not a flip file"),
    ):
        (tmp_path / "damaged.json").write_text(json.dumps(content))
        assert says in refusal(lambda: noise_named(f"file:{tmp_path / 'damaged.json'}"))
    (tmp_path / "damaged.json").write_bytes(b"\x00\xff")
    assert "is not a flip file" in refusal(lambda: noise_named(f"file:{tmp_path / 'damaged.json'}"))


@pytest.mark.parametrize("rate", [-0.1, 1.01, float("nan")])
def test_a_rate_outside_zero_to_one_is_refused(rate: float) -> None:
    with pytest.raises(LincBenchError, match="from 0 to 1"):
        NoiseSettings(rate=rate)


@pytest.mark.parametrize(("kind", "rate"), [("annotators", 0.8), ("instance", 0.001)])
def test_a_rate_that_a_kind_cannot_reach_is_refused(kind: str, rate: float) -> None:
    with pytest.raises(LincBenchError, match=f"'{kind}' noise reaches rates from"):
        noise_named(kind).check_rate(rate)


def test_an_unknown_kind_names_the_known_ones() -> None:
    with pytest.raises(LincBenchError, match="Did you mean 'symmetric'"):
        noise_named("symetric")


def test_a_kind_that_no_table_could_name_is_refused(tmp_path: Path, digits: Samples) -> None:
    about = {"dataset": "digits", "noise": "a|b", "rate": 0.2, "seed": 5}
    write_flips(tmp_path / "flips.json", digits, about, noise_named("symmetric").corrupt(digits, 0.2, 5))
    kind = noise_named(f"file:{tmp_path / 'flips.json'}")
    assert "cannot be the name of a kind of noise" in refusal(lambda: NoiseSettings("file", source=kind.source))


@pytest.mark.parametrize(("text", "says"), [("symmetric:3", "takes nothing"), ("boundary:IV", "one of I, II, III")])
def test_an_option_that_a_kind_has_not_is_refused(text: str, says: str) -> None:
    with pytest.raises(LincBenchError, match=says):
        noise_named(text)


NETWORK = ("--image-size", "32", "--batch-size", "32", "--epochs", "2", "--seed", "0", "--workers", "1")


def train(data: Path, results: Path, *options: str) -> tuple[str, ...]:
    some = ("--dataset", str(data), "--detector", "AUM", "--line-up", "original", "--name", "some")
    return ("run", "demo", *NETWORK, *some, "--results", str(results), *options)


def test_two_groups_compare_on_the_same_wrong_labels(tmp_path: Path, without_report: None) -> None:
    """A run writes a flip file; another one reads it, and its given labels are the same bytes."""
    data, one, other = two_labels(tmp_path / "digits2.npz"), tmp_path / "one", tmp_path / "other"
    assert main(train(data, one, "--noise", "boundary", "--rate", "0.3")) == 0
    (flips,) = (one / "flips").iterdir()
    assert main(train(data, other, "--noise-file", str(flips))) == 0
    labels = [np.load(next((folder / "labels").iterdir())) for folder in (one, other)]
    assert all((labels[0][split] == labels[1][split]).all() for split in ("train", "validation", "test"))
    runs = [read_table(ResultsFolder(folder), "runs").iloc[0] for folder in (one, other)]
    digest = json.loads(flips.read_text())["digest"]
    assert [row["noise"] for row in runs] == ["boundary", f"file:boundary-{digest[:4]}"]
    assert runs[0]["true_rate"] == runs[1]["true_rate"] != runs[0]["rate"] == runs[1]["rate"] == 0.3
    rows = read_table(ResultsFolder(one), "wrong_labels")
    assert rows["count"].sum() == 1200
    assert rows.loc[rows["correct"] != rows["given"], "count"].sum() == round(runs[0]["true_rate"] * 1200)
    assert rows["chance_mean"].iloc[0] == pytest.approx(0.3, abs=0.02)


def test_wrong_labels_of_people_are_trained_on(tmp_path: Path, without_report: None) -> None:
    data, results = two_labels(tmp_path / "digits2.npz"), tmp_path / "out"
    assert main(train(data, results, "--given-labels", "train_labels_people")) == 0
    row = read_table(ResultsFolder(results), "runs").iloc[0]
    assert (row["noise"], row["rate"], row["true_rate"], row["noise_seed"]) == ("given:people", 0.2, 0.2, 0)


def test_images_of_no_class_are_found_as_wrong(tmp_path: Path, without_report: None) -> None:
    """Some images are those of another data set: the same for cached features and for live images."""
    data, results = two_labels(tmp_path / "digits2.npz"), tmp_path / "out"
    images = np.random.default_rng(0).integers(0, 255, (500, 28, 28, 3), dtype=np.uint8)
    np.savez(tmp_path / "grass.npz", **medmnist_arrays(np.arange(500) % 2, images, 400, 60))
    command = train(
        data, results, "--noise", f"open-set:{tmp_path / 'grass.npz'}", "--rate", "0.1", "--detector", "LiNC"
    )
    assert main([*command, "--detector", "nearest neighbours"]) == 0
    runs, metrics = (read_table(ResultsFolder(results), name) for name in ("runs", "metrics"))
    assert set(runs["noise"]) == {"open-set:grass"}
    assert set(runs["true_rate"]) == {0.1}
    assert metrics["status"].eq("ok").all()
    labels = np.load(next((results / "labels").iterdir()))
    place = labels["train_replaced"]
    assert (place >= 0).sum() == len(set(place[place >= 0])) == 120
    assert (labels["validation_replaced"] >= 0).sum() == 30
    embedding = np.load(next(results.glob("runs/*standard*/embedding.npy")))
    nearest = np.sort(np.linalg.norm(embedding[:, None] - embedding[place >= 0][None, :60], axis=2), axis=1)[:, 5]
    assert detection_metrics(place >= 0, -nearest)["auroc"] > 0.99, "they look like each other and like nothing else"
    rows = read_table(ResultsFolder(results), "wrong_labels")
    assert rows.loc[rows["correct"] == -1, "count"].sum() == 120
    assert main([*command, "--plain", "--batch-size", "32", "--epochs", "1"]) == 0
    own, other = (load_dataset(str(tmp_path / f"{name}.npz")).train.images for name in ("digits2", "grass"))
    some = ReplacedImages(own, other, place)[20:60]
    expected = [own[row] if place[row] < 0 else other[place[row]] for row in range(20, 60)]
    assert all((image == wanted).all() for image, wanted in zip(some, expected, strict=True))
    assert 0 < sum(image.ndim == 3 for image in some) < 40
    (flips,) = (path for path in (results / "flips").iterdir())
    assert "give --noise open-set:grass" in refusal(lambda: noise_named(f"file:{flips}"))


def test_open_set_noise_that_cannot_be_is_refused(tmp_path: Path, fails: Callable[..., str]) -> None:
    data, results = two_labels(tmp_path / "digits2.npz"), tmp_path / "out"
    images = np.zeros((40, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "few.npz", **medmnist_arrays(np.arange(40) % 2, images, 20, 10))
    command = train(data, results, "--noise", f"open-set:{tmp_path / 'few.npz'}", "--rate", "0.1")
    assert "has 20 images to replace 120 of the train split" in fails(*command)
    same = fails(*train(data, results, "--noise", f"open-set:{data}"))
    assert "Name another data set after the colon" in same
    assert "Name it after a colon" in fails(*train(data, results, "--noise", "open-set"))


def test_wrong_labels_that_do_not_fit_end_in_a_sentence_and_nothing_is_written(
    tmp_path: Path, fails: Callable[..., str]
) -> None:
    data, results = two_labels(tmp_path / "digits2.npz"), tmp_path / "out"
    samples = Samples({"train": 2}, np.array([0, 1]), 2)
    flips = written(tmp_path / "flips.json", samples)
    command = train(data, results, "--noise-file", str(flips))
    assert "belongs to other data" in fails(*command)
    assert not any((results / name).exists() for name in ("labels", "answers", "flips", "features", "runs"))
    assert "says by itself how many labels are wrong; leave out --rate" in fails(*command, "--rate", "0.3")
    assert "give one of them" in fails(*command, "--given-labels", "train_labels_people")
    assert "does not exist" in fails(*train(data, results, "--noise-matrix", str(tmp_path / "none.csv")))
    assert "reaches rates from 0 to 0.66" in fails(*train(data, results, "--noise", "annotators", "--rate", "0.9"))
