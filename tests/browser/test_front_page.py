"""The front page in a browser: selectors, addresses that keep a view, sorting, figures, dark and narrow screens."""

import json
import os
import re
from pathlib import Path

import pandas as pd
import pytest
from selenium.webdriver import Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from benchmark.display.front_page import (
    Board,
    BoardDetector,
    BoardRow,
    Claims,
    FrontPage,
    PageFigure,
    Selector,
    Topic,
    render_front_page,
)
from benchmark.display.page import PageTable
from tests.browser.conftest import show_at

pytestmark = pytest.mark.long
ROOT = Path(__file__).parents[2]
COMMITTED = ROOT / "results" / "report.html"
HOSTILE = "</script><b onclick=alert(1)>&amp;{{ 7 * 7 }}"
SVG = (
    "<?xml version='1.0'?>\n<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 100 50' width='100pt' height='50pt'>"
    "<defs><style type='text/css'>*{stroke-linejoin: round; stroke-linecap: butt}"
    "text{font-family: 'DejaVu Sans', sans-serif}.s0{fill: #ffffff}.s1{fill: #262626}.s2{fill: #0173b2}</style>"
    "<path id='dot' d='M0 0l2 2z'/></defs><rect class='s0' width='100' height='50'/>"
    "<text class='s1' x='5' y='20'>AUROC</text><use href='#dot' class='s2'/></svg>"
)
ROWS = [
    BoardRow("AUM", "0.950 [0.940, 0.960]", "1.0", 0.05, "better", is_best=True),
    BoardRow("LiNC", "0.900 [0.880, 0.920]", "2.0"),
    BoardRow(HOSTILE, "0.800 [0.700, 0.900]", "3.0", -0.1, "worse"),
    BoardRow("VoG", "0.500 in 1 of 2 runs"),
]
OTHER = [BoardRow("LiNC", "0.700", "1.0"), BoardRow("AUM", "0.600", "2.0", -0.1, "worse")]
SELECTORS = (
    Selector("data", "data set", {"all": "all data sets", "breast": "BreastMNIST"}),
    Selector("metric", "measure", {"auroc": "AUROC", "auprc": "AUPRC"}),
    Selector("noise", "noise", {"symmetric": "symmetric"}),
)


def made_up_page() -> FrontPage:
    views = {("all", "auroc", "symmetric"): ROWS, ("breast", "auroc", "symmetric"): OTHER}
    views |= {("all", "auprc", "symmetric"): OTHER[::-1]}
    detectors = {row.detector: BoardDetector(row.detector, f"about {row.detector}", added=0.02) for row in ROWS}
    detectors["AUM"] = BoardDetector(
        "AUM", "margin", "Pleiss et al.", "https://arxiv.org/abs/2001.10528", "../aum.py", "1", 0.004
    )
    over = {address: "BreastMNIST, digits" if address[0] == "all" else "BreastMNIST" for address in views}
    board = Board(SELECTORS, views, over, ("all", "auroc", "symmetric"), detectors, "How it was measured.", "LiNC")
    claims = Claims(
        "Two were measured.",
        {"reproduced": 1, "contradicted": 1, "not tested": 3},
        PageTable("Numbers", pd.DataFrame({"claim": ["a", "b"], "paper": [0.9, 0.8]})),
    )
    studies = {name: PageFigure(f"figure-{name}", f"Accuracy in {name}", SVG) for name in ("detection", "demo")}
    matrix = PageFigure("figure-matrix", "A matrix", SVG, follows_theme=False)
    return FrontPage(
        "Which is best?", "AUM finds most.", ("Accuracy: better.",), "From 2 runs.",
        PageFigure("figure-hero", "Quality against cost", SVG), board, claims,
        (Topic("accuracy", "Accuracy", "It is better.", studies),),
        (Topic("every_two", "Every two", "", {"every_two": matrix}),),
        {"Every table": "details.html"},
    )  # fmt: skip


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("front") / "report.html"
    path.write_text(render_front_page(made_up_page()))
    return path


@pytest.fixture
def browser(chromium: Chrome, page_file: Path) -> Chrome:
    """The page, freshly opened; what was logged before is forgotten."""
    show_at(chromium, 1400)
    chromium.get("about:blank")
    chromium.get_log("browser"), chromium.get_log("performance")
    chromium.get(page_file.as_uri())
    return chromium


def names(chrome: Chrome) -> list[str]:
    return [cell.text for cell in chrome.find_elements(By.CSS_SELECTOR, "table.board tbody th")]


def shown_address(chrome: Chrome) -> str:
    """As the page knows it; `current_url` asks the browser, which may learn of a change later."""
    return chrome.execute_script("return location.href")


def choose(chrome: Chrome, name: str, text: str) -> None:
    Select(chrome.find_element(By.NAME, name)).select_by_visible_text(text)


def test_the_reference_is_pinned_and_the_others_stand_from_the_highest(browser: Chrome) -> None:
    assert names(browser) == ["LiNC", "AUM", HOSTILE, "VoG"]
    pinned = browser.find_elements(By.CSS_SELECTOR, "tbody.pinned tr")
    assert len(pinned) == 1
    bold = [cell.text for cell in browser.find_elements(By.CSS_SELECTOR, "table.board td b")]
    assert bold == ["0.950 [0.940, 0.960]"], "only what is best for certain"
    links = [link.get_attribute("href") for link in browser.find_elements(By.CSS_SELECTOR, "table.board a")]
    assert [link.rpartition("/")[2] for link in links] == ["aum.py", "2001.10528"]


def test_a_choice_changes_the_view_and_the_address(browser: Chrome) -> None:
    choose(browser, "data", "BreastMNIST")
    assert names(browser) == ["LiNC", "AUM"]
    assert shown_address(browser).endswith("#data=breast")
    assert "BreastMNIST" in browser.find_element(By.CSS_SELECTOR, "#board .view").text
    choose(browser, "metric", "AUPRC")
    assert shown_address(browser).endswith("#metric=auprc"), "the nearest: no view of one data set has it"
    assert browser.find_elements(By.CSS_SELECTOR, "table.board thead th")[1].text == "AUPRC"
    browser.find_element(By.CSS_SELECTOR, "#board button[type=reset]").click()
    assert "#" not in shown_address(browser)
    assert len(names(browser)) == 4


def test_an_address_leads_to_its_view(chromium: Chrome, page_file: Path) -> None:
    for address, shown in (("data=breast", 2), ("data=breast&accuracy=demo", 2), ("data=nowhere&x=y", 4)):
        chromium.get("about:blank")
        chromium.get(f"{page_file.as_uri()}#{address}")
        assert len(names(chromium)) == shown, address
    chromium.get("about:blank")
    chromium.get(f"{page_file.as_uri()}#accuracy=demo")
    figures = chromium.find_elements(By.CSS_SELECTOR, "[data-choice]")
    assert [figure.is_displayed() for figure in figures] == [False, True]
    chromium.execute_script("location.hash = '#data=breast'")
    WebDriverWait(chromium, 10).until(lambda _: len(names(chromium)) == 2, "also if it is changed by hand")


def test_a_heading_sorts_all_but_the_pinned_row(browser: Chrome) -> None:
    button = browser.find_elements(By.CSS_SELECTOR, "table.board thead button")[1]
    button.send_keys(Keys.ENTER)
    assert names(browser) == ["LiNC", "VoG", HOSTILE, "AUM"]
    choose(browser, "data", "BreastMNIST")
    header = browser.find_elements(By.CSS_SELECTOR, "table.board thead th")[1]
    assert header.get_attribute("aria-sort") == "none", "a new view is as reported"


def test_selectors_work_by_keyboard(browser: Chrome) -> None:
    select = browser.find_element(By.NAME, "data")
    select.send_keys("B")
    assert names(browser) == ["LiNC", "AUM"]
    assert not browser.find_element(By.NAME, "noise").is_displayed(), "there is nothing to choose"


def test_a_figure_opens_large_and_closes(browser: Chrome) -> None:
    before = browser.execute_script("return document.querySelectorAll('header svg *').length")
    figure = browser.find_element(By.CSS_SELECTOR, "header figure")
    figure.find_element(By.TAG_NAME, "button").send_keys(Keys.ENTER)
    large = browser.find_element(By.CSS_SELECTOR, "dialog svg")
    assert large.is_displayed()
    assert large.size["width"] > 900
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    WebDriverWait(browser, 10).until(lambda _: not browser.find_elements(By.CSS_SELECTOR, "dialog svg"))
    assert browser.execute_script("return document.querySelectorAll('header svg *').length") == before


def test_figures_follow_dark_screens_and_are_described(browser: Chrome) -> None:
    def fill(selector: str) -> int:
        element = browser.find_element(By.CSS_SELECTOR, selector)
        found = element.value_of_css_property("fill")
        numbers = [float(number) for number in re.findall(r"[\d.]+", found.replace("srgb", ""))[:3]]
        return round(sum(number * (255 if max(numbers) <= 1 else 1) for number in numbers))

    text, blue = "header svg text", "header svg use"
    light = fill(text), fill(blue)
    browser.find_element(By.CSS_SELECTOR, "#every_two summary").click()
    white = fill("#every_two svg text")
    show_at(browser, 1400, "dark")
    assert light[0] < 250 < 450 < fill(text)
    assert fill(blue) == light[1], "colours stay"
    assert fill("#every_two svg text") == white, "text on coloured cells stays"
    for svg in browser.find_elements(By.TAG_NAME, "svg"):
        assert browser.find_element(By.ID, svg.get_attribute("aria-labelledby")).get_attribute("textContent")


def test_the_claims_open_into_their_table(browser: Chrome) -> None:
    parts = browser.find_elements(By.CSS_SELECTOR, ".bar span")
    widths = [part.size["width"] for part in parts]
    assert widths[2] > 2.5 * widths[0] > 0
    table = browser.find_element(By.CSS_SELECTOR, "#claims table")
    assert not table.is_displayed()
    browser.find_element(By.CSS_SELECTOR, "#claims summary").send_keys(Keys.ENTER)
    assert table.is_displayed()


def test_names_are_only_text_and_nothing_is_asked_of_any_host(browser: Chrome) -> None:
    choose(browser, "data", "BreastMNIST")
    choose(browser, "data", "all data sets")
    assert HOSTILE in names(browser)
    assert not browser.find_elements(By.CSS_SELECTOR, "[onclick]")
    assert browser.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert {address.split(":")[0] for address in asked} <= {"file", "data", "about"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 1400])
def test_the_committed_page_fits_the_screen(chromium: Chrome, width: int, scheme: str) -> None:
    """Neither the page nor a table that is open overflows; wide figures scroll in their own frame on a phone."""
    show_at(chromium, width, scheme)
    chromium.get("about:blank")
    chromium.get_log("browser")
    chromium.get(COMMITTED.as_uri())
    assert chromium.get_log("browser") == []
    root = "document.documentElement"
    assert chromium.execute_script(f"return {root}.scrollWidth - {root}.clientWidth") == 0
    for table in chromium.find_elements(By.TAG_NAME, "table"):
        if table.is_displayed():
            assert chromium.execute_script("return arguments[0].getBoundingClientRect().right <= innerWidth", table)
    verdict, hero = (chromium.find_element(By.CSS_SELECTOR, part) for part in (".verdict", "header svg"))
    assert verdict.rect["y"] + verdict.rect["height"] < 900, "on the first screen"
    assert hero.rect["y"] < 900
    if folder := os.environ.get("LINC_BENCH_SCREENSHOTS"):  # to look at
        chromium.save_screenshot(str(Path(folder) / f"front-{width}-{scheme}.png"))


def test_the_committed_page_is_small_and_has_its_answer_without_script() -> None:
    page = COMMITTED.read_text()
    assert len(page.encode()) < 1.5e6
    still = re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)
    assert 'class="verdict"' in still
    assert still.count("<tr") > 15, "the first view of the leaderboard"
