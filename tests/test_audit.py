"""Audits: from a folder, a CSV or an .npz to a ranked list, a review page and corrected labels."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock
from urllib.parse import unquote

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from benchmark.audit.apply_review import COLUMNS, apply_review, audit_digest
from benchmark.audit.audited_data import read_audited_data
from benchmark.audit.ranking import HELD_OUT
from benchmark.audit.run_audit import Audit, audit, flag_rates
from benchmark.audit.settings import DETECTORS
from benchmark.cli.command_line import main
from benchmark.counting.certificate import RIGHT, certificate
from benchmark.counting.certificate import WRONG as WRONG_LABEL
from benchmark.counting.error_count import ErrorCount, count_errors
from benchmark.counting.review_sample import drawn_order, edges_of
from benchmark.data.datasets import describe_dataset
from benchmark.disk.spreadsheets import as_csv, restored
from benchmark.networks import Backbone
from benchmark.networks.feature_store import store_id
from benchmark.runs.scores import read_scores
from benchmark.statistics.held_out import held_out_probabilities

SMALL = Backbone(image_size=32)
CLASSES = ("<b>zero<br>", 'one "quoted"', "две  двойки", "=3")
COUNT, WRONG = 700, 105


def digits() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Images of four digits, their labels with a tenth of them wrong, and which those are."""
    data = load_digits()
    chosen = np.flatnonzero(data.target < len(CLASSES))[:COUNT]
    labels, wrong = data.target[chosen].copy(), np.zeros(len(chosen), dtype=bool)
    generator = np.random.default_rng(0)
    wrong[generator.choice(len(chosen), WRONG, replace=False)] = True
    labels[wrong] = (labels[wrong] + generator.integers(1, len(CLASSES), WRONG)) % len(CLASSES)
    return (data.images[chosen] * 15.9).astype(np.uint8), labels, wrong


def write_folder(folder: Path) -> set[str]:
    """A sub-folder per class, and images that cannot be read; returns the ids of those with a wrong label."""
    images, labels, wrong = digits()
    names = [f"{CLASSES[label]}/{number} & <i>.png" for number, label in enumerate(labels)]
    for image, name in zip(images, names, strict=True):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(folder / name)
    (folder / CLASSES[0] / "damaged.png").write_bytes((folder / names[0]).read_bytes()[:40])
    (folder / CLASSES[1] / "text.jpg").write_text("no image")
    return {name for name, is_wrong in zip(names, wrong, strict=True) if is_wrong}


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, set[str], Audit]:
    folder = tmp_path_factory.mktemp("audit")
    wrong = write_folder(folder / "images")
    return folder, wrong, audit(folder / "images", folder / "out", backbone=SMALL, workers=1, say=lambda text: None)


def test_wrong_labels_are_ranked_first_with_the_right_suggestion(audited: tuple[Path, set[str], Audit]) -> None:
    _, wrong, found = audited
    rows = found.samples
    is_wrong = rows["id"].isin(wrong)
    assert roc_auc_score(is_wrong, -rows["rank"]) > 0.97
    assert is_wrong[:WRONG].mean() > 0.8
    assert (rows["suggested"] != rows["given"])[is_wrong].mean() > 0.9
    assert (rows["suggested"] == rows["given"])[~is_wrong].mean() > 0.9
    assert list(rows["rank"]) == list(range(1, COUNT + 1))
    assert set(rows["component"]) <= {"noisy", "ambiguous", "clean"}
    assert rows.groupby("component")["trust"].mean().idxmin() == "noisy"


def test_every_detector_has_a_score_and_a_rank(audited: tuple[Path, set[str], Audit]) -> None:
    rows = audited[2].samples
    for name in [*(detector.name for detector in DETECTORS), HELD_OUT]:
        assert (rows[f"{name} rank"] == (-rows[name]).rank(method="min")).all(), "1 is the highest score"
    assert np.allclose(rows["trust"], 1 - rows["LiNC"])
    assert rows["confidence"].between(1 / len(CLASSES), 1).all()


def test_the_number_of_wrong_labels_is_estimated(audited: tuple[Path, set[str], Audit]) -> None:
    errors = audited[2].errors
    assert errors.is_evidence
    assert 0 < errors.at_least <= WRONG
    assert errors.sentence.startswith(
        f"At least {errors.at_least} of {COUNT} labels are wrong (95 % confidence); about"
    )
    assert "; no upper bound without a review." in errors.sentence
    assert "With fewer than 1,000 images, this lower bound" in errors.sentence
    assert "With fewer" not in replace(errors, samples=1000).sentence


def test_unreadable_images_are_listed_and_the_rest_is_audited(audited: tuple[Path, set[str], Audit]) -> None:
    folder, _, found = audited
    assert [id for id, _ in found.unreadable] == [f"{CLASSES[0]}/damaged.png", f"{CLASSES[1]}/text.jpg"]
    assert all("cannot be read as an image" in why for _, why in found.unreadable)
    assert len(pd.read_csv(folder / "out" / "unreadable.csv")) == 2
    assert any("could not be read: 2 (see" in sentence for sentence in found.sentences)


def test_written_files_name_the_audit_and_its_settings(audited: tuple[Path, set[str], Audit]) -> None:
    folder, _, found = audited
    written = pd.read_csv(folder / "out" / "audit.csv", dtype=str, keep_default_na=False).map(restored)
    assert list(written) == list(found.samples)
    assert list(written["id"]) == list(found.samples["id"])
    about = json.loads((folder / "out" / "audit.json").read_text())
    page = (folder / "out" / "audit.html").read_text()
    assert f"{COUNT} images, EfficientNet-Lite0 at 32 px; all are shown, 600 of them in a random order." in page
    digest = audit_digest(written)
    assert about["audit"] == digest
    assert about["seeds"] == [0]
    assert {"versions", "commit", "identity", "backbone", "training", "detectors"} <= set(about)
    assert digest in (folder / "out" / "audit.html").read_text()


def test_the_page_links_to_the_original_files(audited: tuple[Path, set[str], Audit]) -> None:
    folder, _, found = audited
    text = (folder / "out" / "audit.html").read_text().split('type="application/json">')[1].split("</script>")[0]
    samples = json.loads(text)["samples"]
    assert [sample["id"] for sample in samples] == list(found.samples["id"])
    for sample in samples:
        file = folder / "out" / unquote(sample["original"])
        assert file.samefile(folder / "images" / sample["id"])


def test_planted_errors_tell_how_likely_labels_are_wrong(audited: tuple[Path, set[str], Audit]) -> None:
    folder, wrong, found = audited
    chance, is_wrong = found.samples["p_wrong"], found.samples["id"].isin(wrong)
    assert chance.between(0, 1).all()
    assert chance[is_wrong].mean() > 0.6
    assert chance[~is_wrong].mean() < 0.1
    assert found.planted is not None
    assert found.planted.sentence in found.sentences
    about = json.loads((folder / "out" / "audit.json").read_text())["planted"]
    assert about["count"] == 50
    assert sum(about["weights"].values()) == pytest.approx(1)
    assert sum(row["samples"] for row in about["reliability"]) == COUNT
    page = (folder / "out" / "audit.html").read_text()
    assert r'"p_wrong": "\u003e99 %"' in page, "more than 99 %: no certainty"
    assert '"p_wrong": "100 %"' not in page
    assert "Check: 50 labels were made wrong in a copy; " in found.planted.sentence
    assert "(by chance: 4)" in found.planted.sentence
    assert page.count("<circle") == len(about["reliability"])


def test_flag_rates_by_class(audited: tuple[Path, set[str], Audit]) -> None:
    found = audited[2]
    rates = found.rates.set_index(["of", "which"])
    assert rates.loc[("all", ""), "samples"] == COUNT
    assert set(rates.loc["class"].index) == set(CLASSES)
    assert rates.loc["class", "samples"].sum() == COUNT
    assert rates.loc[("all", ""), "flagged"] == pytest.approx(found.errors.at_least / COUNT)


def test_a_second_call_gives_the_same_bytes_without_training(
    audited: tuple[Path, set[str], Audit], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, _ = audited
    before = {name: (folder / "out" / name).read_bytes() for name in ("audit.csv", "audit.html", "rates.csv")}
    monkeypatch.setattr("benchmark.runs.run_unit.train_unit", lambda *_: pytest.fail("it was trained already"))
    audit(folder / "images", folder / "out", backbone=SMALL, workers=1, say=lambda text: None)
    assert {name: (folder / "out" / name).read_bytes() for name in before} == before


def write_csv(folder: Path) -> Path:
    """Ids of its own, groups (all wrong labels are in B), a missing image and one without a label."""
    images, labels, wrong = digits()
    with (folder / "list.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["path", "label", "id", "site"])
        for number, (image, label) in enumerate(zip(images, labels, strict=True)):
            Image.fromarray(image).save(folder / f"{number}.png")
            writer.writerow([f"{number}.png", label, f"sample {number}", "AB"[int(wrong[number] or number % 2)]])
        writer.writerow(["missing.png", 0, "lost", "A"])
        writer.writerow(["0.png", " ", "unlabelled", "A"])
    return folder / "list.csv"


def test_a_csv_gives_ids_paths_and_groups_and_lists_what_cannot_be_audited(tmp_path: Path) -> None:
    data = read_audited_data(write_csv(tmp_path), "site")
    assert data.ids == tuple(f"sample {number}" for number in range(COUNT))
    assert data.paths == tuple(f"{number}.png" for number in range(COUNT))
    assert set(data.groups) == {"A", "B"}
    assert data.folds == ""
    folds = read_audited_data(tmp_path / "list.csv", fold_column="site").folds
    assert folds == "2 values of site, each in one fold of the held-out classifiers."
    (lost, why), (unlabelled, reason) = data.unreadable
    assert (lost, unlabelled) == ("lost", "unlabelled")
    assert "'missing.png' in line 702 of" in why
    assert "has no label" in reason


def test_groups_with_more_wrong_labels_are_flagged_more_often(audited: tuple[Path, set[str], Audit]) -> None:
    _, wrong, found = audited
    in_b = found.samples["id"].isin(wrong) | (found.samples.index % 2 == 0)
    rates = flag_rates(found.samples.assign(group=np.where(in_b, "B", "A")), found.errors)
    flagged = rates[rates["of"] == "group"].set_index("which")["flagged"]
    assert flagged["B"] > flagged["A"] + 0.05, "as many are flagged as are wrong at least"


@pytest.mark.long
def test_an_npz_and_a_csv_with_groups_by_the_command(
    tmp_path: Path, odd_or_even: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["--image-size", "32", "--workers", "1", "--shown", "50"]
    assert main(["audit", str(odd_or_even), "--out", str(tmp_path / "npz"), "--seeds", "2", *command]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "1,797 images of 2 classes; the audit takes about" in printed
    assert "No label is proved wrong; about" in printed
    assert "Flag rates" not in printed, "nothing is flagged for certain"
    rows = pd.read_csv(tmp_path / "npz" / "audit.csv").set_index("id")
    assert set(rows.index.str.split("/").str[0]) == {"train", "val", "test"}
    assert not (tmp_path / "npz" / "unreadable.csv").exists()
    paths = sorted(
        (tmp_path / "npz" / "work" / "scores").glob("*/linc-*.npy"), key=lambda path: path.stat().st_mtime_ns
    )
    assert len(paths) == 4, "of two seeds, and of two with planted errors, which come later"
    scores = [read_scores(path)[0] for path in paths[:2]]
    first = ["train/0", "train/1", "train/2"]
    np.testing.assert_allclose(rows.loc[first, "LiNC"], np.mean(scores, axis=0)[:3], rtol=1e-4)
    assert json.loads((tmp_path / "npz" / "audit.json").read_text())["seeds"] == [0, 1]
    path = str(write_csv(tmp_path))
    assert main(["audit", path, "--out", str(tmp_path / "csv"), "--group", "site", *command]) == 0
    printed = capsys.readouterr()
    assert "Flag rates by class and group" in printed.out
    assert "Flagged: the first " in printed.out
    assert "other label suggested" not in printed.out, "it is no error rate; rates.csv has it"
    assert "parameters" not in printed.err
    rates = pd.read_csv(tmp_path / "csv" / "rates.csv")
    of_groups = rates[rates["of"] == "group"].set_index("which")["flagged"]
    assert list(of_groups.index) == ["A", "B"]
    assert of_groups["B"] > of_groups["A"] + 0.05, "all wrong labels come from there"
    rows = pd.read_csv(tmp_path / "csv" / "audit.csv")
    assert set(rows["path"]) == {f"{number}.png" for number in range(COUNT)}, "ids are others"
    assert pd.read_csv(tmp_path / "csv" / "unreadable.csv")["id"].tolist() == ["lost", "unlabelled"]


def folder_of(tmp_path: Path, classes: Iterable[str], count: int) -> Path:
    for name in classes:
        (tmp_path / name).mkdir(parents=True)
        for number in range(count):
            Image.fromarray(np.full((4, 4), number, np.uint8)).save(tmp_path / name / f"{number}.png")
    return tmp_path


def test_data_that_cannot_be_audited_are_refused_with_a_reason(fails: Callable[..., str], tmp_path: Path) -> None:
    def made(name: str) -> Path:
        (tmp_path / name).mkdir()
        return tmp_path / name

    assert "nowhere does not exist" in fails("audit", tmp_path / "nowhere")
    (tmp_path / "notes.txt").write_text("")
    assert "is not a folder of images" in fails("audit", tmp_path / "notes.txt")
    assert "has no images in class sub-folders" in fails("audit", made("empty"))
    assert "has only one class" in fails("audit", folder_of(made("one"), ["cat"], 50))
    assert "10 readable images; an audit needs at least 40" in fails("audit", folder_of(made("few"), ["a", "b"], 5))
    bad = folder_of(made("bad"), ["a", "b"], 20)
    for path in bad.rglob("*.png"):
        path.write_bytes(b"nothing")
    assert "None of the 40 images of bad can be audited. The first:" in fails("audit", bad)
    elsewhere = made("elsewhere") / "list.csv"
    elsewhere.write_text("path,label\n" + "".join(f"{path},a\n" for path in sorted(bad.rglob("*.png"))))
    said = fails("audit", elsewhere)
    assert f"leaves the folder of the CSV, {elsewhere.parent}. Paths are relative to the CSV" in said
    assert f"Move it to {bad / 'a'}, or to a folder above it" in said
    twice = folder_of(made("twice"), ["a", "b"], 30) / "list.csv"
    twice.write_text("path,label\na/1.png,a\nb/1.png,b\na/1.png,b\n")
    assert "'a/1.png' is the id of more than one image of list" in fails("audit", twice)
    assert "has no column 'site'; it has path, label" in fails("audit", twice, "--group", "site")
    assert "names a column of a CSV" in fails("audit", bad, "--group", "site")
    mixed = folder_of(made("mixed"), ["a", "test"], 30)
    assert "has both split folders (test) and others (a)" in fails("audit", mixed)
    good = folder_of(made("good"), ["a", "b"], 25)
    assert "is a file. Choose a folder with --out DIR" in fails("audit", good, "--out", tmp_path / "notes.txt")
    said = fails("audit", good, "--out", tmp_path / "notes.txt" / "out")  # as little as in a read-only folder
    assert "cannot be written to (Not a directory). Choose another with --out DIR" in said


def test_an_audit_overwrites_no_other_files(
    audited: tuple[Path, set[str], Audit], tmp_path: Path, fails: Callable[..., str]
) -> None:
    """Not the images, not the audit of other data, not somebody's own labels."""
    folder, _, found = audited
    assert "is inside the folder of images" in fails("audit", folder / "images", "--out", folder / "images/out")
    other = folder_of(tmp_path / "images", ["a", "b"], 30)
    (other / "audit.csv").write_text("path,label\n" + "".join(f"{c}/{n}.png,{c}\n" for c in "ab" for n in range(30)))
    assert "has audit.csv, which no audit wrote" in fails("audit", other / "audit.csv", "--out", other)
    assert (other / "audit.csv").read_text().startswith("path,label\n")
    (other / "audit.csv").unlink()
    assert "has the audit of other data" in fails("audit", other, "--out", folder / "out")
    row, own = found.samples.iloc[0], tmp_path / "labels.csv"
    own.write_text("path,label\na.png,a\n")
    write_decisions(tmp_path / "d.csv", folder / "out" / "audit.csv", [(row["id"], row["given"], "skip", "")])
    said = fails("apply-review", folder / "out" / "audit.csv", tmp_path / "d.csv", "--out", own)
    assert "exists, and no review wrote it" in said
    assert own.read_text() == "path,label\na.png,a\n"


@pytest.mark.long
def test_an_audit_interrupted_while_it_writes_can_be_resumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder_of(tmp_path / "data", ["a", "b"], 25)

    def again() -> Audit:
        return audit(tmp_path / "data", tmp_path / "out", backbone=SMALL, say=lambda text: None)

    for name in ("write_json", "write_text", "write_review"):
        with monkeypatch.context() as patch:
            patch.setattr(f"benchmark.audit.run_audit.{name}", Mock(side_effect=KeyboardInterrupt))
            with pytest.raises(KeyboardInterrupt):
                again()
    assert len(again().samples) == 50


def test_broken_links_and_names_that_cannot_be_written_are_listed(tmp_path: Path) -> None:
    folder_of(tmp_path / "data", ["a", "b"], 25)
    (tmp_path / "data" / "a" / "link.png").symlink_to("nowhere.png")
    (tmp_path / "data" / "c").mkdir()
    good = (tmp_path / "data" / "a" / "1.png").read_bytes()
    Path(os.fsdecode(bytes(tmp_path / "data" / "a") + b"/caf\xe9.png")).write_bytes(good)
    (tmp_path / "data" / "b" / "two\nlines.png").write_bytes(good)
    (tmp_path / "data" / "b" / "scan.dcm").write_bytes(good)
    (tmp_path / "data" / "b" / ".hidden").write_bytes(good)
    found = read_audited_data(tmp_path / "data")
    assert len(found.ids) == 50
    assert found.class_names == ("a", "b")
    assert {id.encode().decode() for id, _ in found.unreadable} == {
        *("a/link.png", r"a/caf\udce9.png", "b/two\nlines.png", "b/scan.dcm"),
    }


@pytest.mark.long
def test_a_script_without_a_main_guard_can_audit(tmp_path: Path) -> None:
    """With worker processes, each would run the script again."""
    folder_of(tmp_path / "data", ["a", "b"], 25)
    (tmp_path / "script.py").write_text(
        "from benchmark.audit import audit\nfrom benchmark.networks import Backbone\n"
        "print(len(audit('data', 'out', backbone=Backbone(image_size=32)).samples))\n"
    )
    command = [sys.executable, str(tmp_path / "script.py")]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ended.stdout.splitlines()[-1] == "50", ended.stderr


def test_every_split_is_audited_and_images_stay_with_their_ids(tmp_path: Path) -> None:
    for split in ("train", "val", "test"):
        folder = tmp_path / "data" / split
        folder.mkdir(parents=True)
        folder_of(folder, ["a", "b"], 10)
    found = read_audited_data(tmp_path / "data")
    assert len(found.ids) == 60
    for number, id in enumerate(found.ids):
        assert found.class_names[found.labels[number]] == id.split("/")[1]
        assert (found.images[number : number + 1][0] == int(Path(id).stem)).all()


def test_held_out_classifiers_do_not_see_a_samples_own_label() -> None:
    generator = np.random.default_rng(0)
    features, labels = generator.normal(size=(600, 40)), generator.integers(0, 3, 600)
    probabilities = held_out_probabilities(features, labels, 3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1)
    agreement = (probabilities.argmax(axis=1) == labels).mean()
    assert agreement == pytest.approx(1 / 3, abs=0.07), "random labels cannot be predicted"


def test_held_out_classifiers_predict_separable_and_rare_classes() -> None:
    generator = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2, 3], [200, 100, 12, 1])
    features = generator.normal(size=(len(labels), 20)) + 8 * np.eye(20)[labels]
    probabilities = held_out_probabilities(features, labels, 4)
    assert (probabilities.argmax(axis=1) == labels)[:312].mean() > 0.95
    assert np.isfinite(probabilities).all()


@pytest.mark.long
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_the_lower_bound_holds(share: float) -> None:
    """For classifiers that are right where they are sure: nineteen times of twenty, give or take chance."""
    covered = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        truth = generator.integers(0, 2, 1000)
        given = np.where(generator.random(1000) < share, 1 - truth, truth)
        sureness = generator.uniform(0.5, 1, 1000)
        predicted = np.where(generator.random(1000) < sureness**0.1, truth, 1 - truth)
        predicted = np.where(sureness > 0.9, truth, predicted)
        probabilities = np.where(np.eye(2)[predicted] > 0, sureness[:, None], 1 - sureness[:, None])
        errors = count_errors(probabilities, given)
        covered.append(errors.low <= share)
    assert np.mean(covered) >= 0.9


@pytest.mark.long
def test_no_noise_is_claimed_where_confident_classifiers_are_wrong() -> None:
    """Hard images, right labels: the surer, the more seldom mistaken, to the very end."""
    claimed = []
    for seed in range(12):
        generator = np.random.default_rng(seed)
        truth, sureness = generator.integers(0, 2, 1000), generator.uniform(0.5, 1, 1000)
        predicted = np.where(generator.random(1000) < sureness, truth, 1 - truth)
        probabilities = np.where(np.eye(2)[predicted] > 0, sureness[:, None], 1 - sureness[:, None])
        claimed.append(count_errors(probabilities, truth).is_evidence)
    assert np.mean(claimed) < 0.1


@pytest.mark.long
@pytest.mark.parametrize("samples", [5_000, 50_000])
def test_the_lower_bound_holds_for_any_number_of_samples(samples: int) -> None:
    """If disagreement is as the model has it; at shares and slopes that are no round numbers."""
    covered, share = [], 0.05125
    for seed in range(10):
        generator = np.random.default_rng(seed)
        sureness = generator.permutation(np.linspace(1, 0.5, samples))
        differs = generator.random(samples) < share + 0.3125 * (1 - sureness) * 2
        probabilities = np.stack([sureness, 1 - sureness], axis=1)
        errors = count_errors(probabilities, differs.astype(np.int64))
        covered.append(errors.low <= share)
    assert np.mean(covered) >= 0.9


def test_no_evidence_without_wrong_labels_or_with_few_samples() -> None:
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 3, 2000)
    probabilities = 0.9 * np.eye(3)[labels] + 0.1 / 3
    found = count_errors(probabilities, labels)
    assert not found.is_evidence
    assert found.sentence.startswith(
        "No label is proved wrong; about 0 if errors are spread evenly, possibly more; no "
    )
    assert "no evidence" not in found.sentence.lower(), "it might stand beside a list whose head is plainly wrong"
    assert "at most" not in found.sentence
    few = count_errors(probabilities[:60], (labels[:60] + 1) % 3)
    assert (few.is_known, few.is_evidence) == (False, False)
    assert few.sentence.endswith(" 60 images are too few for an estimate; 500 are needed.")


def test_labels_that_copies_contradict_are_wrong_for_certain() -> None:
    assert ErrorCount(600, 0.05, 0.02, provable=3).at_least == 12
    assert ErrorCount(600, 0.05, 0.0, provable=3).at_least == 3
    few = ErrorCount(60, 0.0, 0.0, provable=1)
    assert few.sentence.startswith(
        "At least 1 of 60 labels is wrong (copies of an image have different labels); no upper"
    )
    assert "95 %" not in ErrorCount(600, 0.05, 0.0, provable=3).sentence


def test_other_labels_share_features_and_other_pixels_do_not(tmp_path: Path) -> None:
    images, labels, _ = digits()

    def store(labels: np.ndarray, images: np.ndarray) -> str:
        parts = {"train": slice(0, 500), "val": slice(500, 600), "test": slice(600, None)}
        arrays = {f"{key}_images": images[part] for key, part in parts.items()}
        np.savez(tmp_path / "data.npz", **arrays, **{f"{key}_labels": labels[part] for key, part in parts.items()})
        read_audited_data(tmp_path / "data.npz").write_list(tmp_path)
        return store_id(describe_dataset(str(tmp_path / "samples.audit.json")), SMALL, 1, "cpu")

    changed = images.copy()
    changed[0, 0, 0] += 1
    assert store(labels, images) == store((labels + 1) % 4, images)
    assert store(labels, images) != store(labels, changed)


def write_decisions(path: Path, audit_csv: Path, rows: Iterable[tuple[str, str, str, str]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        samples = pd.read_csv(audit_csv, dtype=str, keep_default_na=False).map(restored)
        digest = audit_digest(samples) if "given" in samples else "another"
        writer.writerows([COLUMNS, *((digest, *row) for row in rows)])


def test_decisions_become_labels(
    audited: tuple[Path, set[str], Audit], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, _, found = audited
    table, decisions = folder / "out" / "audit.csv", tmp_path / "decisions.csv"
    first, second, third = (found.samples.iloc[row] for row in range(3))
    another = next(name for name in CLASSES if name != first["given"])
    rows = [(first["id"], first["given"], "relabel", another), (second["id"], second["given"], "keep", second["given"])]
    write_decisions(decisions, table, [*rows, (third["id"], third["given"], "ambiguous", "")])
    assert main(["apply-review", str(table), str(decisions), "--out", str(tmp_path / "labels.csv")]) == 0
    assert f"3 of {COUNT} labels reviewed: 1 keep, 1 relabel, 1 ambiguous, 0 skip." in capsys.readouterr().out
    labels = pd.read_csv(tmp_path / "labels.csv", dtype=str, keep_default_na=False).map(restored).set_index("id")
    assert len(labels) == COUNT
    assert labels.loc[first["id"]].tolist() == [another, first["given"], "relabel"]
    assert labels.loc[third["id"], "label"] == third["given"], "who is not sure changes nothing"
    untouched = labels.drop([first["id"]])
    assert (untouched["label"] == untouched["given"]).all()
    counts = apply_review(table, [decisions], tmp_path / "labels.csv").counts.set_index("of")
    assert counts.loc["all", ["judged", "wrong"]].tolist() == [2, 1]
    assert not (tmp_path / "labels.1.csv").exists(), "the same decisions again are no other review"
    before = (tmp_path / "labels.csv").read_bytes()
    write_decisions(decisions, table, [(third["id"], third["given"], "ambiguous", "")])
    later = apply_review(table, [decisions], tmp_path / "labels.csv")
    assert later.counts.empty, "nothing was judged"
    assert later.earlier is not None
    assert later.earlier.read_bytes() == before, "no review is lost"
    assert str(later.earlier) in later.sentence


def test_a_review_of_the_random_sample_tells_how_many_labels_are_wrong(
    audited: tuple[Path, set[str], Audit], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, wrong, found = audited
    table, decisions, rows = folder / "out" / "audit.csv", tmp_path / "decisions.csv", found.samples
    drawn = rows[rows["sample"] != ""].sort_values("sample").head(150)
    assert list(drawn["sample"]) == list(range(1, 151))
    others = [next(name for name in CLASSES if name != given) for given in drawn["given"]]
    decided = [
        (id, given, "relabel", other) if id in wrong else (id, given, "keep", given)
        for id, given, other in zip(drawn["id"], drawn["given"], others, strict=True)
    ]
    write_decisions(decisions, table, decided)
    assert main(["apply-review", str(table), str(decisions), "--out", str(tmp_path / "labels.csv")]) == 0
    codes = np.zeros(COUNT, dtype=int)
    codes[drawn.index] = np.where(drawn["id"].isin(wrong), WRONG_LABEL, RIGHT)
    proved = certificate(codes.tolist(), edges_of(COUNT), drawn_order(COUNT).tolist())
    assert proved["sampled"] == 150
    assert proved["low"] <= WRONG <= proved["high"]
    assert proved["high"] - proved["low"] < 0.25 * COUNT
    told = " ".join(capsys.readouterr().out.split())
    assert f"{proved['low']} to {proved['high']} of {COUNT} labels are wrong, with 95 % confidence" in told
    assert f"Estimate: about {proved['about']} of {COUNT}, from {proved['wrong']} wrong labels in the sample" in told
    places = [told.index(word) for word in ("Labels: ", " with 95 % confidence", "Kept and changed labels")]
    assert places == sorted(places), "the file and what is proved come first"
    assert "%" not in told[places[-1] :], "counts: most reviewed images are no random sample"
    shuffled = rows.sample(frac=1, random_state=0)  # as a spreadsheet may sort it
    write_list(tmp_path / "audit.csv", shuffled)
    again = apply_review(tmp_path / "audit.csv", [decisions], tmp_path / "again.csv").proved
    assert again[0].startswith(f"{proved['low']} to {proved['high']} of ")
    write_list(tmp_path / "audit.csv", rows.drop(columns="sample"))  # of an earlier version
    assert not apply_review(tmp_path / "audit.csv", [decisions], tmp_path / "again.csv").proved
    write_decisions(decisions, table, [(rows["id"][0], rows["given"][0], "keep", rows["given"][0])])
    assert "decide on the random sample" in apply_review(table, [decisions], tmp_path / "third.csv").proved[0]


def write_list(path: Path, samples: pd.DataFrame) -> None:
    path.write_text(as_csv(samples, floats=".6g"), encoding="utf-8")


def test_decisions_of_two_reviewers_are_joined_unless_they_disagree(
    audited: tuple[Path, set[str], Audit], tmp_path: Path, fails: Callable[..., str]
) -> None:
    folder, _, found = audited
    table, one, two = folder / "out" / "audit.csv", tmp_path / "one.csv", tmp_path / "two.csv"
    rows = [(row["id"], row["given"], "keep", row["given"]) for _, row in found.samples[:3].iterrows()]
    write_decisions(one, table, rows[:2])
    write_decisions(two, table, rows[1:])
    assert (apply_review(table, [one, two], tmp_path / "labels.csv").labels["decision"] == "keep").sum() == 3
    write_decisions(two, table, [(*rows[1][:2], "ambiguous", "")])
    assert "Reviewers disagree on 1 of the samples" in fails("apply-review", table, one, two)
    write_decisions(two, table, [])
    assert "has no decisions" in fails("apply-review", table, two)


def test_decisions_hold_for_another_audit_of_the_same_labels(audited: tuple[Path, set[str], Audit]) -> None:
    samples = audited[2].samples
    again = samples.sample(frac=1, random_state=0).assign(rank=1, group="A")
    assert audit_digest(again) == audit_digest(samples)
    relabelled = samples.assign(given=samples["given"].replace({CLASSES[0]: CLASSES[1]}))
    assert audit_digest(relabelled) != audit_digest(samples)


def test_invalid_decisions_are_refused_with_a_reason(
    audited: tuple[Path, set[str], Audit], tmp_path: Path, fails: Callable[..., str]
) -> None:
    folder, _, found = audited
    table, decisions = folder / "out" / "audit.csv", tmp_path / "decisions.csv"
    row = found.samples.iloc[0]

    def refused(*rows: tuple[str, str, str, str]) -> str:
        write_decisions(decisions, table, rows)
        said = fails("apply-review", table, decisions, "--out", tmp_path / "labels.csv")
        assert not (tmp_path / "labels.csv").exists()
        return said

    keep = (row["id"], row["given"], "keep", row["given"])
    assert "which is not in the audit" in refused(("nobody", "a", "keep", "a"))
    assert "a second time" in refused(keep, keep)
    assert "says that the label was 'other'" in refused((row["id"], "other", "keep", "other"))
    assert "expected keep, relabel, ambiguous, skip" in refused((row["id"], row["given"], "burn", ""))
    assert "is no class of the audit" in refused((row["id"], row["given"], "relabel", "unicorn"))
    assert "is no class of the audit" in refused((row["id"], row["given"], "relabel", ""))
    another = next(name for name in CLASSES if name != row["given"])
    for decision in ("keep", "ambiguous", "skip"):
        other = found.samples.iloc[1]
        said = refused((other["id"], other["given"], "skip", ""), (row["id"], row["given"], decision, another))
        assert f"Line 3 of {decisions} has the decision '{decision}' and another label, '{another}'" in said
        assert "Relabel, or leave the label empty" in said
    write_decisions(decisions, folder / "out" / "rates.csv", [keep])
    assert "belongs to another audit" in fails("apply-review", table, decisions)
    decisions.write_text("audit;id;given;decision;label\n")
    said = fails("apply-review", table, decisions)
    assert "has no column audit, id, given, decision, label" in said
    assert "Separate columns by commas." in said
    assert "does not exist" in fails("apply-review", table, tmp_path / "none.csv")
    assert f"Did you mean {table}?" in fails("apply-review", table.parent, decisions)
    digest = audit_digest(found.samples)
    decisions.write_text(f"audit,id,given,decision,label\n{digest},x,y,keep,y,\n")
    assert "more cells than its header" in fails("apply-review", table, decisions)
    decisions.write_text(
        f"audit,id,given,decision,label\n{digest},{row['id']},{row['given']},skip\n,{row['id']},,keep,\n"
    )
    assert f"Line 3 of {decisions} names no audit" in fails("apply-review", table, decisions)
    decisions.write_text("audit,id,given,decision,label\n,,,,\n\n")
    assert "has no decisions" in fails("apply-review", table, decisions)
    twice = tmp_path / "audit.csv"
    found.samples.iloc[[0, 0, 1]].to_csv(twice, index=False)
    write_decisions(decisions, twice, [keep])
    assert f"Line 3 of {twice} has the sample '" in fails("apply-review", twice, decisions)


def test_who_relabels_to_the_given_label_keeps_it(
    audited: tuple[Path, set[str], Audit], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As on the page, where choosing the given class is to keep it."""
    folder, _, found = audited
    table, one, two = folder / "out" / "audit.csv", tmp_path / "one.csv", tmp_path / "two.csv"
    row = found.samples.iloc[0]
    write_decisions(one, table, [(row["id"], row["given"], "relabel", row["given"])])
    write_decisions(two, table, [(row["id"], row["given"], "keep", "")])
    assert main(["apply-review", str(table), str(one), str(two), "--out", str(tmp_path / "labels.csv")]) == 0
    assert "labels reviewed: 1 keep, 0 relabel" in capsys.readouterr().out
    counts = apply_review(table, [one, two], tmp_path / "labels.csv").counts.set_index("of")
    assert counts.loc["all", ["judged", "wrong"]].tolist() == [1, 0]


def test_decisions_may_come_from_a_spreadsheet(audited: tuple[Path, set[str], Audit], tmp_path: Path) -> None:
    """With a mark at the start, other line ends, rows and columns of empty cells, and spaces that nobody sees."""
    folder, _, found = audited
    table, plain, saved = folder / "out" / "audit.csv", tmp_path / "plain.csv", tmp_path / "saved.csv"
    first, second, third = (found.samples.iloc[row] for row in range(3))
    another = next(name for name in CLASSES if name != first["given"])
    rows = [(first["id"], first["given"], "relabel", another), (second["id"], second["given"], "keep", "")]
    write_decisions(plain, table, [*rows, (third["id"], third["given"], "skip", "")])
    spaced = [(id, f"{given} ", f" {decision.title()}", f"{label} ") for id, given, decision, label in rows]
    write_decisions(saved, table, [*spaced, (third["id"], third["given"], "SKIP", "")])
    lines = saved.read_text(encoding="utf-8").splitlines()
    (empty, *lines) = ["," * 6, *(f"{line},," for line in lines)]
    lines = [lines[0], empty, *lines[1:], "", empty, ""]
    saved.write_bytes("\r\n".join(lines).encode("utf-8-sig"))
    expected, read = (apply_review(table, [file], tmp_path / "labels.csv") for file in (plain, saved))
    pd.testing.assert_frame_equal(read.labels, expected.labels)
    pd.testing.assert_frame_equal(read.counts, expected.counts)
    assert (read.labels["decision"] == "relabel").sum() == 1
