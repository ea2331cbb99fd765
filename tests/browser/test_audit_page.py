"""From a folder of images to corrected labels, as a person does it: audit, review by keyboard, export, apply."""

import csv
import os
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait
from sklearn.datasets import load_digits

from benchmark.audit.run_audit import audit
from benchmark.cli.command_line import main
from benchmark.disk import restored
from tests.browser.conftest import show_at
from tests.browser.test_review import _content, _press
from tests.test_audit import COUNT, SMALL, write_folder


@pytest.mark.long
def test_a_folder_is_audited_reviewed_and_corrected(chromium: Chrome, tmp_path: Path) -> None:
    wrong = write_folder(tmp_path / "images")  # whose classes and files have quotes, brackets, spaces, other scripts
    found = audit(tmp_path / "images", tmp_path / "out", backbone=SMALL, workers=1, say=lambda text: None)
    first = found.samples.head(20).to_dict("records")
    show_at(chromium, 1400)
    chromium.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    chromium.get_log("browser")
    chromium.get((tmp_path / "out" / "audit.html").as_uri())
    for sample in first:
        assert _content(chromium, "name") == sample["id"]
        _press(chromium, "r" if sample["suggested"] != sample["given"] else "k")
    _press(chromium, "u")
    chromium.refresh()
    assert _content(chromium, "reviewed") == f"19 of {COUNT} reviewed"
    chromium.find_element(By.ID, "export").click()
    decisions = tmp_path / "decisions.csv"
    WebDriverWait(chromium, 10).until(lambda _: decisions.exists() and decisions.stat().st_size)
    assert main(["apply-review", str(tmp_path / "out" / "audit.csv"), str(decisions)]) == 0
    with (tmp_path / "out" / "reviewed_labels.csv").open(newline="", encoding="utf-8") as file:
        rows = [{name: restored(cell) for name, cell in row.items()} for row in csv.DictReader(file)]
    labels = {row["id"]: row for row in rows}
    assert len(labels) == COUNT
    for sample in first[:19]:
        assert labels[sample["id"]]["label"] == sample["suggested"]
    assert labels[first[19]["id"]]["decision"] == "", "it was undone"
    changed = pd.DataFrame(labels.values()).query("label != given")["id"]
    assert len(changed) > 10
    assert set(changed) <= {sample["id"] for sample in first[:19]}
    assert changed.isin(wrong).mean() > 0.8, "what was changed had been wrong"
    assert chromium.get_log("browser") == []


@pytest.mark.long
def test_the_review_page_as_the_readme_shows_it(chromium: Chrome, tmp_path: Path) -> None:
    """Digits of which a few are in the folder of another class. With LINC_BENCH_SCREENSHOTS it makes the picture."""
    digits, generator = load_digits(), np.random.default_rng(0)
    for number, (image, label) in enumerate(zip(digits.images[:600], digits.target[:600], strict=True)):
        given = (label + generator.integers(1, 10)) % 10 if generator.random() < 0.05 else label
        place = tmp_path / "digits" / str(given)
        place.mkdir(parents=True, exist_ok=True)
        pixels = Image.fromarray((255 - 15.9 * image).astype(np.uint8))
        pixels.resize((96, 96), Image.Resampling.BICUBIC).save(place / f"{number:04}.png")
    audit(tmp_path / "digits", tmp_path / "out", backbone=SMALL, workers=1, say=lambda text: None)
    show_at(chromium, 1000, height=640)
    chromium.get((tmp_path / "out" / "audit.html").as_uri())
    _press(chromium, "r", "r", "r")
    assert _content(chromium, "reviewed") == "3 of 600 reviewed"
    if folder := os.environ.get("LINC_BENCH_SCREENSHOTS"):
        shot = Image.open(BytesIO(chromium.get_screenshot_as_png())).convert("RGB")
        shot.quantize(48, dither=Image.Dither.NONE).save(Path(folder) / "review_page.png", optimize=True)
    assert "figures/audit/review_page.png" in (Path(__file__).parents[2] / "README.md").read_text()
