"""Duplicates in an audit: contradicting labels come first, leaks are counted, folds keep duplicates together."""

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from PIL import Image

from benchmark.audit import audit_arrays
from benchmark.audit.audited_data import read_audited_data
from benchmark.audit.review_page import SHOWN_TWINS, Review
from benchmark.audit.run_audit import Audit, audit
from benchmark.cli.command_line import main
from benchmark.data.contradictions import (
    MOST_TWINS,
    across_splits,
    contradicting_twins,
    contradictions_first,
    count_duplicates,
    fold_groups,
    joined_groups,
    provable_errors,
)
from benchmark.data.duplicates import Duplicates, no_duplicates
from benchmark.disk import restored
from benchmark.errors import LincBenchError
from benchmark.networks import Backbone
from tests.conftest import medmnist_arrays

SMALL = Backbone(image_size=32)
COUNT = 60
LOOKS = arrays(np.int64, 12, elements=st.integers(0, 4))
LABELS = arrays(np.int64, 12, elements=st.integers(0, 2))


def alike(looks: np.ndarray) -> Duplicates:
    """Images that look like one of five, of which the first two are nearly the same."""
    first = {look: int(np.flatnonzero(looks == look)[0]) for look in looks.tolist()}
    near = [sorted((first[0], first[1]))] if {0, 1} <= set(first) else np.empty((0, 2))
    return Duplicates(
        (len(looks), 0, 0),
        np.array([first[look] for look in looks.tolist()]),
        np.array(near, dtype=np.int64),
        np.full(len(near), 0.999),
    )


@given(LOOKS, LABELS)
def test_of_copies_all_but_the_largest_class_are_wrong_at_least(looks: np.ndarray, labels: np.ndarray) -> None:
    wrong = sum(
        len(own) - max(own.count(label) for label in own)
        for own in (labels[looks == look].tolist() for look in set(looks.tolist()))
    )
    assert provable_errors(alike(looks).copy_of, labels) == wrong


@given(LOOKS, LABELS)
def test_twins_are_the_duplicates_with_another_label(looks: np.ndarray, labels: np.ndarray) -> None:
    found = alike(looks)
    twins = contradicting_twins(found, labels)
    expected = {tuple(sorted(pair[:2])) for pair in found.contradicting_pairs(labels)}
    assert {tuple(sorted((one, other.number))) for one, others in twins.items() for other in others} == expected
    for one, others in twins.items():
        assert [other.is_copy for other in others] == sorted(
            (looks[other.number] == looks[one] for other in others), reverse=True
        )


def test_thousands_of_copies_do_not_name_thousands_each() -> None:
    found = Duplicates((4000, 0, 0), np.zeros(4000, dtype=np.int64), np.empty((0, 2), dtype=np.int64), np.empty(0))
    twins = contradicting_twins(found, np.arange(4000) % 2)
    assert len(twins) == 4000
    assert {len(others) for others in twins.values()} == {MOST_TWINS}


def test_of_copies_all_but_the_most_frequent_label_come_first_then_near_duplicates() -> None:
    """Images 2, 5 and 7 are copies, 5 with another label; so are 3 and 8; 1 and 6 are nearly the same."""
    copy_of = np.array([0, 1, 2, 3, 4, 2, 6, 2, 3, 9])
    found = Duplicates((10, 0, 0), copy_of, np.array([[1, 6], [0, 9]]), np.array([0.999, 0.999]))
    labels = np.array([0, 0, 0, 1, 0, 1, 1, 0, 0, 0])
    ranks = np.array([1, 10, 8, 4, 2, 9, 3, 7, 5, 6])
    twins = contradicting_twins(found, labels)
    order = np.argsort(contradictions_first(ranks, found, labels, twins)).tolist()
    assert order[:2] == [3, 5], "the more suspicious of two labels as frequent, and the rarer one, though it ranks last"
    assert order[2] == 6, "the more suspicious of the near duplicates"
    assert order[3:] == [0, 4, 8, 9, 7, 2, 1], "all others as they were: labels that most copies have, and other twins"


@given(LOOKS, LABELS, st.permutations(range(1, 13)))
def test_labels_that_copies_contradict_come_first_and_no_others_move(
    looks: np.ndarray, labels: np.ndarray, ranks: list[int]
) -> None:
    """As many as must be wrong at least, the rarest labels of each set of copies first."""
    found = replace(alike(looks), near=np.empty((0, 2), dtype=np.int64), correlations=np.empty(0))
    rank_N = np.array(ranks)
    order = np.argsort(contradictions_first(rank_N, found, labels, contradicting_twins(found, labels)))
    first, rest = np.split(order, [provable_errors(found.copy_of, labels)])
    assert np.all(np.diff(rank_N[rest]) > 0)
    for look in set(looks[first].tolist()):
        counts = np.bincount(labels[looks == look])
        own = labels[[number for number in first if looks[number] == look]]
        assert np.all(np.diff(counts[own]) >= 0)
        assert set(labels[[number for number in rest if looks[number] == look]].tolist()) == {
            label for label in np.flatnonzero(counts).tolist() if label not in own
        }
        assert len(set(own.tolist())) == np.count_nonzero(counts) - 1


@given(LOOKS, arrays(np.int64, 12, elements=st.integers(0, 6)))
def test_groups_join_duplicates_and_values_also_by_way_of_others(looks: np.ndarray, patients: np.ndarray) -> None:
    """0 is an empty cell."""
    found, values = alike(looks), ["" if patient == 0 else f"p{patient}" for patient in patients]
    joined = joined_groups(found.groups, values)
    linked = {
        (i, j)
        for i, j in combinations(range(12), 2)
        if found.groups[i] == found.groups[j] or (values[i] and values[i] == values[j])
    }
    reached = np.eye(12, dtype=bool)
    for i, j in linked:
        reached[i, j] = reached[j, i] = True
    for _ in range(12):
        reached = (reached.astype(int) @ reached) > 0
    assert np.array_equal(joined[:, None] == joined[None], reached)


def test_folds_are_refused_where_everything_is_joined() -> None:
    assert fold_groups(no_duplicates(4), ["a", "b", "a", ""], "mine").tolist() == [0, 1, 0, 2]
    found = Duplicates((4, 0, 0), np.array([0, 1, 2, 0]), np.empty((0, 2), dtype=np.int64), np.empty(0))
    with pytest.raises(LincBenchError, match="join all images of mine, so no fold can be held out"):
        fold_groups(found, ["a", "a", "b", "b"], "mine"), fold_groups(found, ["a", "a", "a", "a"], "mine")


def test_values_and_test_images_across_splits_are_counted() -> None:
    splits = ["train", "test", "train", "validation", "", "test"]
    assert across_splits(["a", "a", "b", "b", "c", "c"], splits) == 2, "of c, one has no split"
    assert across_splits(["", "", "b", "b", "", ""], splits) == 1, "empty cells are nobody"
    assert across_splits(["a", "a"], []) == 0
    found = Duplicates((6, 0, 0), np.array([0, 0, 2, 3, 4, 4]), np.array([[1, 3]]), np.array([0.999]))
    counts = count_duplicates(found, np.zeros(6, dtype=np.int64), splits)
    assert (counts.test_images, counts.leaked_test_images) == (2, 1)
    assert counts.sentences == ["1 of 2 test images (50.0%) have a duplicate in training or validation."]
    for some in ((), ("test",) * 6, ("train",) * 6):
        assert count_duplicates(found, np.zeros(6, dtype=np.int64), some).sentences == []


def pictures(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Dark and bright noise."""
    labels = np.arange(COUNT) % 2
    images = np.random.default_rng(seed).integers(0, 128, (COUNT, 16, 16))
    return (images + 100 * labels[:, None, None]).astype(np.uint8), labels


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Audit, Review]:
    """40 training, 8 validation and 12 test images, some of them twice."""
    folder = tmp_path_factory.mktemp("duplicates")
    images, labels = pictures()
    images[50] = images[4] = images[2]  # a leak; and
    labels[50] = 1  # one of three copies has another label
    images[51] = np.clip(images[45].astype(int) + 2, 0, 255)  # a leak of validation
    images[7] = np.clip(images[10].astype(int) + 2, 0, 255)  # labels 1 and 0
    images[22] = images[20]  # with the same label: no contradiction
    np.savez(folder / "twice.npz", **medmnist_arrays(labels, images, 40, 8))
    reviews: list[Review] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("benchmark.audit.run_audit.write_review", lambda path, review: reviews.append(review))
        found = audit(folder / "twice.npz", folder / "out", backbone=SMALL, say=lambda text: None)
    return folder, found, reviews[0]


def test_an_audit_lists_provable_errors_first(audited: tuple[Path, Audit, Review]) -> None:
    folder, found, _ = audited
    rows = pd.read_csv(folder / "out" / "audit.csv", dtype=str, keep_default_na=False).map(restored)
    assert rows["rank"].tolist() == [str(rank) for rank in range(1, COUNT + 1)]
    assert rows["id"][0] == "test/2", "the only copy with this label"
    assert rows["id"][1] in ("train/7", "train/10"), "the more suspicious of two near duplicates"
    named = rows.set_index("id")["duplicate_of"]
    assert named["test/2"] == "train/2|train/4"
    assert named["train/4"] == "test/2"
    assert (named["train/7"], named["train/10"]) == ("train/10", "train/7")
    assert (named.drop(["test/2", "train/2", "train/4", "train/7", "train/10"]) == "").all()
    rest = found.samples.iloc[2:]
    names = [name for name in rest if str(name).endswith(" rank")]
    combined = (
        found.samples[names].assign(**{n: found.samples[n[:-5]].rank(ascending=False) for n in names}).mean(axis=1)
    )
    assert combined[rest.index].is_monotonic_increasing, "all others as suspicious as before"


def test_an_audit_counts_duplicates_and_leaks(audited: tuple[Path, Audit, Review]) -> None:
    folder, found, _ = audited
    counts = json.loads((folder / "out" / "audit.json").read_text())["duplicates"]
    expected = {"exact_pairs": 4, "near_pairs": 2, "contradicting_pairs": 3, "provable_errors": 1}
    expected |= {"groups_across_splits": 2, "test_images": 12, "leaked_test_images": 2}
    assert {name: counts[name] for name in expected} == expected
    said = " ".join(found.sentences)
    assert "must be wrong, since exact copies have others: at least 1. These images are first in the list." in said
    assert "Pairs of duplicates: 6, of which 4 are exact; with different labels: 3 (" in said
    assert "2 of 12 test images (16.7%) have a duplicate in training or validation." in said


def test_the_page_has_twins_beside_their_image(audited: tuple[Path, Audit, Review]) -> None:
    samples = {sample["id"]: sample for sample in audited[2]["samples"]}
    twins = samples["test/2"]["twins"]
    assert [(twin["id"], twin["given"], twin["why"]) for twin in twins] == [
        (id, 0, "The same image with another label") for id in ("train/2", "train/4")
    ]
    (near,) = samples["train/10"]["twins"]
    assert (near["id"], near["given"]) == ("train/7", 1)
    assert near["why"] == "Nearly the same image with another label"
    assert near["thumbnail"] != samples["train/10"]["thumbnail"]
    assert {id for id, sample in samples.items() if "twins" in sample} == {
        *("test/2", "train/2", "train/4", "train/7", "train/10")
    }


def test_a_page_has_few_twins_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = pictures()
    images[:20] = images[0]
    reviews: list[Review] = []
    monkeypatch.setattr("benchmark.audit.run_audit.write_review", lambda path, review: reviews.append(review))
    found = audit_arrays(labels, probabilities=np.full((COUNT, 2), 0.5), images=images, out=tmp_path)
    assert {len(sample["twins"]) for sample in reviews[0]["samples"] if "twins" in sample} == {SHOWN_TWINS}
    assert found.samples["duplicate_of"].head(20).str.count("[|]").tolist() == [9] * 20
    assert "since exact copies have others: at least 10." in " ".join(found.sentences)


def write_csv(folder: Path, rows: list[dict[str, object]]) -> Path:
    images, labels = pictures()
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number}.png")
        rows[number] = {"path": f"{number}.png", "label": "ab"[labels[number]]} | rows[number]
    with (folder / "list.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return folder / "list.csv"


def test_patients_share_a_fold_and_those_in_two_splits_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Twelve patients; two have images in both splits; one image has none; one class has one image."""
    rows: list[dict[str, object]] = [
        {"patient": f"p{number // 5}", "split": "train" if number < 43 else "test"} for number in range(COUNT)
    ]
    rows[0]["split"] = rows[59]["patient"] = " "
    rows[1]["split"] = "Test"
    rows[30]["label"] = "rare"
    source, seen = write_csv(tmp_path, rows), []
    from benchmark.audit import ranking

    def held_out(*about: object) -> np.ndarray:
        seen.append(about[5])
        return original(*about)  # type: ignore[arg-type]

    original = ranking.held_out_probabilities
    monkeypatch.setattr(ranking, "held_out_probabilities", held_out)
    command = ["audit", str(source), "--out", str(tmp_path / "out"), "--fold-by", "patient", "--image-size", "32"]
    assert main([*command, "--workers", "1"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "2 values of patient occur in more than one split." in said
    assert "0 of 18 test images (0.0%) have a duplicate in training or validation." in said
    patients = np.array([number // 5 for number in range(COUNT)])
    patients[59] = -1
    assert len(seen) == 1
    assert np.array_equal(seen[0][:, None] == seen[0], patients[:, None] == patients)
    about = json.loads((tmp_path / "out" / "audit.json").read_text())["duplicates"]
    assert (about["fold_column"], about["values_across_splits"]) == ("patient", 2)
    listed = pd.read_csv(tmp_path / "out" / "audit.csv")
    assert len(listed) == COUNT
    assert "duplicate_of" not in listed
    assert (listed["given"] == "rare").sum() == 1


def test_columns_that_cannot_make_folds_are_refused_and_nothing_is_written(
    tmp_path: Path, fails: Callable[..., str]
) -> None:
    rows: list[dict[str, object]] = [{"patient": "p1" if n % 2 else "", "nobody": " "} for n in range(COUNT)]
    source, out = write_csv(tmp_path, rows), tmp_path / "out"
    np.savez(tmp_path / "few.npz", **medmnist_arrays(np.arange(60) % 2, pictures()[0], 40, 10))
    (tmp_path / "single.csv").write_text("path,label\n" + "".join(f"{number}.png,a\n" for number in range(COUNT)))
    (tmp_path / "short.csv").write_text("path,label\n" + "".join(f"{n}.png,{'ab'[n % 2]}\n" for n in range(39)))

    def refused(path: Path, *options: str) -> str:
        said = fails("audit", path, "--out", out, *options)
        assert not out.exists()
        return said

    assert "'patient' of" in refused(source, "--fold-by", "patient")
    assert "has only one value; folds by it need at least two" in refused(source, "--fold-by", "patient")
    assert "has no values; folds by it need" in refused(source, "--fold-by", "nobody")
    assert "has no column 'Patient'; it has path, label, patient" in refused(source, "--fold-by", "Patient")
    assert "is not a CSV. Leave it out." in refused(tmp_path / "few.npz", "--fold-by", "patient")
    assert "--fold-by is empty" in refused(source, "--fold-by", " ")
    assert "has only one class" in refused(tmp_path / "single.csv")
    assert "39 readable images; an audit needs at least 40" in refused(tmp_path / "short.csv")


def test_splits_are_known_of_every_kind_of_data(tmp_path: Path) -> None:
    images, labels = pictures()
    np.savez(tmp_path / "few.npz", **medmnist_arrays(labels, images, 40, 8))
    assert read_audited_data(tmp_path / "few.npz").splits == ("train",) * 40 + ("validation",) * 8 + ("test",) * 12
    np.savez(tmp_path / "one.npz", **medmnist_arrays(labels, images, 60, 0))
    assert read_audited_data(tmp_path / "one.npz").splits == ()
    rows: list[dict[str, object]] = [{"Split": ("train", " VAL", "test", "other", "")[n % 5]} for n in range(COUNT)]
    splits = read_audited_data(write_csv(tmp_path, rows)).splits
    assert splits[:5] == ("train", "validation", "test", "", "")
    for number, image in enumerate(images):
        path = tmp_path / "data" / ("train" if number % 3 else "test") / "ab"[number % 2] / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    data = read_audited_data(tmp_path / "data")
    assert [split == id.split("/")[0] for id, split in zip(data.ids, data.splits, strict=True)] == [True] * COUNT
    assert read_audited_data(tmp_path / "data" / "train").splits == ()
