"""The page of details as a reader meets it: in a browser, by mouse and keyboard, narrow and wide, light and dark."""

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import Select, WebDriverWait

from benchmark.display.page import Page, PagePart, PageTable, Section, render_page
from tests.browser.conftest import show_at

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
HOSTILE = ["<script>alert(1)</script>", '"onmouseover="alert(2)', "</table><img src=x onerror=alert(3)>", "{{ 7 * 7 }}"]
NUMBERS = ["0.9936 ± 0.0018", "–", "−3", "12,345 [12,000, 13,000]", "7 %", "1e-3", "+2.5", "0.07 s"]
NUMBERS_UP = ["−3", "1e-3", "7 %", "0.07 s", "0.9936 ± 0.0018", "+2.5", "12,345 [12,000, 13,000]", "–"]
NUMBERS_DOWN = ["12,345 [12,000, 13,000]", "+2.5", "0.9936 ± 0.0018", "7 %", "0.07 s", "1e-3", "−3", "–"]
PER_RUN = ["detector", "line_up", "recipe", "training_seed", "true_rate", "auroc", "auprc", "status"]


def measured(name: str) -> pd.DataFrame:
    return pd.read_csv(ROOT / "results" / f"{name}.csv").query("study == 'demo'")


def per_run() -> pd.DataFrame:
    return measured("metrics")[PER_RUN].assign(true_rate=lambda rows: rows["true_rate"].map("{:.1%}".format))


def mean_and_spread(rows: pd.DataFrame, by: str, columns: list[str]) -> pd.DataFrame:
    def cell(values: pd.Series) -> str:
        return f"{values.mean():.4f}" + (f" ± {values.std():.4f}" if len(values) > 1 else "")

    return rows.groupby(by)[columns].agg(cell).reset_index()


def demo_page() -> Page:
    """What the demo measured, and two tables made to be difficult."""
    original, accuracy = measured("metrics").query("line_up == 'original'"), measured("accuracy")
    by_detector = mean_and_spread(original, "detector", ["auroc", "auprc"])
    by_recipe = mean_and_spread(accuracy, "recipe", ["best_test", "last_test"])
    filters = ("line_up", "recipe", "training_seed")
    detection = Section(
        "detection",
        "Detection",
        ("Each detector ranks the training samples; mislabelled is the positive class.", "Ties count half."),
        (
            PageTable("Original line-up", by_detector, "± over seeds"),
            PageTable("Every run", per_run(), "One row per run and detector.", filters),
        ),
    )
    accuracy_section = Section("accuracy", "Test accuracy", tables=(PageTable("By recipe", by_recipe),))
    difficult = Section(
        "difficult",
        "Difficult & <odd>",
        tables=(
            PageTable("Numbers", pd.DataFrame({"row": range(len(NUMBERS)), "value": NUMBERS})),
            PageTable(HOSTILE[0], pd.DataFrame({"detector": HOSTILE, HOSTILE[2]: 1.0}), HOSTILE[1], ("detector",)),
        ),
    )
    return Page(
        title="LiNC-Bench: which detector finds mislabelled images best?",
        summary_lines=(
            "Study demo: digits, 1259 samples, 10 classes, 20 % symmetric noise (true rate 20.0 %).",
            "Backbone tf_efficientnet_lite0 at 64 px, 30 epochs, batch 64; 1 noise seed, 3 training seeds.",
        ),
        parts=(
            PagePart("", (detection,)),
            PagePart("demo", (accuracy_section,)),
            PagePart(HOSTILE[0], (difficult,)),
        ),
    )


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render_page(demo_page()))
    return path


@pytest.fixture
def browser(chromium: Chrome, page_file: Path) -> Chrome:
    """The page, freshly opened; what was logged before is forgotten."""
    show_at(chromium, 1400)
    chromium.get_log("browser"), chromium.get_log("performance")
    chromium.get(page_file.as_uri())
    chromium.execute_script("document.querySelectorAll('main details').forEach((part) => { part.open = true; })")
    return chromium


def _table(chrome: Chrome, title: str) -> WebElement:
    tables = chrome.find_elements(By.CSS_SELECTOR, ".table")
    return next(table for table in tables if title in table.find_element(By.CSS_SELECTOR, "caption p").text)


def _column(table: WebElement, name: str) -> list[str]:
    """The visible cells under a heading."""
    at = [header.text for header in table.find_elements(By.CSS_SELECTOR, "thead th")].index(name)
    rows = table.find_elements(By.CSS_SELECTOR, "tbody tr:not([hidden])")
    return [row.find_elements(By.XPATH, "*")[at].text for row in rows]


def _header(table: WebElement, name: str) -> tuple[WebElement, WebElement]:
    header = next(found for found in table.find_elements(By.CSS_SELECTOR, "thead th") if found.text == name)
    return header, header.find_element(By.TAG_NAME, "button")


def _count(table: WebElement) -> str:
    return table.find_element(By.TAG_NAME, "output").text


def test_the_same_page_has_the_same_bytes(page_file: Path) -> None:
    assert render_page(demo_page()) == page_file.read_text()


def test_everything_is_there_without_script_and_nothing_points_elsewhere(page_file: Path) -> None:
    html = page_file.read_text()
    assert "hidden" not in re.sub(r"<(script|style)>.*?</\1>", "", html, flags=re.DOTALL)
    assert html.count("<tbody>") == html.count("<caption") == 5
    text = re.sub(r"^\s*//.*$", "", html, flags=re.M)
    assert not re.findall(r"https?://|//[a-z]|@import|url\(", text)


def test_missing_values_and_empty_tables() -> None:
    table = PageTable("t", pd.DataFrame({"detector": ["a", "b"], "auroc": [0.123456789, float("nan")], "n": [1, 2]}))
    assert table.rows == [["a", "0.1235", "1"], ["b", "–", "2"]]
    assert table.columns == [("detector", False), ("auroc", True), ("n", True)]
    empty = Section("s", "S", tables=(PageTable("e", table.frame[:0]),))
    assert "<tbody>" in render_page(Page("p", (), (PagePart("", (empty,)),)))


def test_no_console_error_and_no_request_to_any_host(browser: Chrome) -> None:
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert any(address.startswith("file:") for address in asked)
    assert {address.split(":")[0] for address in asked} <= {"file", "data"}


def test_a_click_sorts_up_then_down_then_as_reported(browser: Chrome) -> None:
    table = _table(browser, "Numbers")
    header, button = _header(table, "value")
    for order, expected in [("ascending", NUMBERS_UP), ("descending", NUMBERS_DOWN), ("none", NUMBERS)]:
        button.click()
        assert (header.get_attribute("aria-sort"), _column(table, "value")) == (order, expected)


def test_the_keyboard_sorts(browser: Chrome) -> None:
    table = _table(browser, "Original line-up")
    detectors = _column(table, "detector")
    (by_name, button), (by_auc, _) = _header(table, "detector"), _header(table, "auroc")
    button.send_keys(Keys.ENTER)
    assert _column(table, "detector") == sorted(detectors, key=str.lower)
    button.send_keys(Keys.TAB)
    browser.switch_to.active_element.send_keys(Keys.SPACE)
    assert (by_name.get_attribute("aria-sort"), by_auc.get_attribute("aria-sort")) == ("none", "ascending")
    values = [float(cell.split()[0]) for cell in _column(table, "auroc")]
    assert values == sorted(values)


def test_filters_by_text_and_by_column(browser: Chrome) -> None:
    table = _table(browser, "Every run")
    rows = per_run()
    assert _count(table) == f"{len(rows)} of {len(rows)} rows"
    search = table.find_element(By.CSS_SELECTOR, "input[type=search]")
    search.send_keys("lin ORIG")
    text = rows.astype(str).agg("\n".join, axis=1).str.lower()
    found = rows[text.str.contains("lin") & text.str.contains("orig")]
    assert 0 < len(found) < len(rows)
    assert _column(table, "detector") == list(found["detector"])
    assert _count(table) == f"{len(found)} of {len(rows)} rows"
    search.clear()
    Select(table.find_elements(By.TAG_NAME, "select")[0]).select_by_visible_text("hcat")
    assert set(_column(table, "line_up")) == {"hcat"}
    assert _count(table) == f"{(rows['line_up'] == 'hcat').sum()} of {len(rows)} rows"
    _header(table, "auroc")[1].click()
    assert set(_column(table, "line_up")) == {"hcat"}, "sorting keeps the filter"
    table.find_element(By.CSS_SELECTOR, "button[type=reset]").click()
    assert _count(table) == f"{len(rows)} of {len(rows)} rows"


def test_hostile_names_are_only_text(browser: Chrome) -> None:
    table = _table(browser, HOSTILE[0])
    assert _column(table, "detector") == HOSTILE
    assert _header(table, HOSTILE[2])[0].is_displayed()
    choice = Select(table.find_element(By.TAG_NAME, "select"))
    choice.select_by_visible_text(HOSTILE[0])
    assert _column(table, "detector") == [HOSTILE[0]]
    assert len(browser.find_elements(By.TAG_NAME, "script")) == 1
    assert not browser.find_elements(By.CSS_SELECTOR, "[onmouseover], [onerror]")
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_only_tables_scroll_sideways(browser: Chrome, width: int, scheme: str) -> None:
    show_at(browser, width, scheme)
    root = "document.documentElement"
    assert browser.execute_script(f"return {root}.scrollWidth - {root}.clientWidth") == 0
    if folder := os.environ.get("LINC_BENCH_SCREENSHOTS"):  # to look at
        show_at(browser, width, scheme, browser.execute_script(f"return {root}.scrollHeight"))
        browser.save_screenshot(str(Path(folder) / f"page-{width}-{scheme}.png"))


def test_a_dark_screen_gets_a_dark_page(browser: Chrome) -> None:
    def brightness(selector: str) -> int:
        element = browser.find_element(By.CSS_SELECTOR, selector)
        return sum(map(int, re.findall(r"\d+", element.value_of_css_property("background-color"))[:3]))

    assert brightness("body") > 700
    show_at(browser, 1400, "dark")
    assert brightness("body") < 150


def test_landmarks_and_the_skip_link(browser: Chrome) -> None:
    browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    skip = browser.switch_to.active_element
    assert skip.get_attribute("href").endswith("#content")
    assert skip.location["x"] >= 0, "seen once it has the focus"
    skip.send_keys(Keys.ENTER)
    assert browser.switch_to.active_element.tag_name == "main"
    for link in browser.find_elements(By.CSS_SELECTOR, "nav a"):
        assert browser.find_elements(By.ID, link.get_attribute("href").split("#")[1])
    assert all(table.find_elements(By.TAG_NAME, "caption") for table in browser.find_elements(By.TAG_NAME, "table"))
    assert not browser.find_elements(By.CSS_SELECTOR, "th:not([scope])")


def test_a_part_of_the_contents_opens_by_keyboard_and_shows_its_sections(browser: Chrome) -> None:
    contents = browser.find_element(By.TAG_NAME, "nav")
    summary = contents.find_elements(By.TAG_NAME, "summary")[1]
    assert summary.text == HOSTILE[0], "as text"
    link = contents.find_element(By.CSS_SELECTOR, "a[href='#difficult']")
    assert not link.is_displayed()
    summary.send_keys(Keys.ENTER)
    assert link.is_displayed()
    link.click()
    browser.execute_script("document.querySelectorAll('main details').forEach((part) => { part.open = false; })")
    browser.execute_script("location.hash = ''; location.hash = 'difficult'")
    parts = browser.find_elements(By.CSS_SELECTOR, "main details")
    WebDriverWait(browser, 10).until(lambda _: parts[2].get_attribute("open") is not None, "what was asked for")
    assert not any(part.get_attribute("open") is not None for part in parts[:2]), "and no more"
    assert browser.find_element(By.ID, "difficult-title").text == f"{HOSTILE[0]}: Difficult & <odd>"


def test_the_page_that_report_writes(chromium: Chrome, quick_run: Path) -> None:
    """The real one: no complaint, a filter over the runs."""
    chromium.get_log("browser")
    chromium.get((quick_run / "details.html").as_uri())
    assert chromium.get_log("browser") == []
    runs = chromium.find_element(By.ID, "demo-modified/runs")
    runs.find_element(By.TAG_NAME, "summary").click()
    assert len([row for row in runs.find_elements(By.CSS_SELECTOR, "tbody tr") if row.is_displayed()]) == 2
    recipes = next(
        select
        for select in runs.find_elements(By.TAG_NAME, "select")
        if "linc" in [option.text for option in Select(select).options]
    )
    Select(recipes).select_by_visible_text("linc")
    assert len([row for row in runs.find_elements(By.CSS_SELECTOR, "tbody tr") if row.is_displayed()]) == 1
