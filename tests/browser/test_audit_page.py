"""From a folder of images to corrected labels, as a person does it: audit, review by keyboard, export, apply."""

import csv
from pathlib import Path

import pandas as pd
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from benchmark.audit.run_audit import audit
from benchmark.cli.command_line import main
from benchmark.disk import restored
from tests.browser.test_page import _show_at
from tests.browser.test_review import _content, _press
from tests.test_audit import COUNT, SMALL, write_folder


@pytest.mark.long
def test_a_folder_is_audited_reviewed_and_corrected(chromium: Chrome, tmp_path: Path) -> None:
    wrong = write_folder(tmp_path / "images")  # whose classes and files have quotes, brackets, spaces, other scripts
    found = audit(tmp_path / "images", tmp_path / "out", backbone=SMALL, workers=1, say=lambda text: None)
    first = found.samples.head(20).to_dict("records")
    _show_at(chromium, 1400)
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
