"""The review page as a reviewer meets it: decisions by keyboard, kept over a reload, exported as they were typed."""

import base64
import csv
import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from io import BytesIO, StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait
from sklearn.metrics import cohen_kappa_score

from benchmark.audit.apply_review import apply_review, audit_digest
from benchmark.audit.review_page import Review, original_link, thumbnail, write_review
from benchmark.counting.certificate import certificate
from benchmark.counting.certificate_words import in_words
from benchmark.counting.review_sample import CODES, drawn_order, edges_of
from benchmark.data.image_files import FileImages
from benchmark.disk.spreadsheets import as_csv, restored
from benchmark.errors import LincBenchError
from tests.browser.conftest import show_at

pytestmark = pytest.mark.long  # browsers

CLASSES = ("nevus", "melanoma", "keratosis", "naevus, blue")
HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    '"onmouseover="alert(3)',
    "=1+1, and 'more'",
    "two\nlines\r\nand <!--",
    "a carriage\rreturn",
    " spaced  out ",
    "меланома 黑色素瘤 سرطان 🩺",
    "__proto__",
    "{{ 7 * 7 }} &lt; \u2028 \\",
)
FORBIDDEN = "Object.defineProperty(window, 'localStorage', { get() { throw new DOMException('', 'SecurityError'); } })"
FULL = "Storage.prototype.setItem = () => { throw new DOMException('full', 'QuotaExceededError'); }"

Opened = Callable[..., Chrome]
Sample = dict[str, Any]


def picture(shade: int) -> str:
    return thumbnail(np.full((8, 8, 3), [shade % 256, 90, 160], dtype=np.uint8))


def sample(number: int, classes: int = len(CLASSES)) -> Sample:
    return {
        "id": f"image {number}.png",
        "given": number % classes,
        "suggested": (number + 1 + number // classes % (classes - 1)) % classes,  # another
        "confidence": "50 %",
        "group": f"patient {number % 5}",
        "scores": [f"{number / 7:.4g}", "–"],
        "ranks": [number + 1, 7],
        "thumbnail": picture(number),
    }


def review(count: int, audit: str, classes: tuple[str, ...] = CLASSES) -> Review:
    return {
        "title": "Audit of <b>moles</b>",
        "summary_lines": ["1,259 samples", "<i>4 classes</i>"],
        "audit": audit,
        "classes": classes,
        "detectors": ["linc", "aum"],
        "examples": [[picture(40 * label), picture(40 * label + 9)] for label in range(len(classes))],
        "samples": [sample(number, len(classes)) | {"place": number} for number in range(count)],
        "size": count,
        "edges": edges_of(count),
        "order": drawn_order(count).tolist(),
    }


@pytest.fixture
def opened(chromium: Chrome, tmp_path: Path) -> Iterator[Opened]:
    """Opens a review in a browser that knows nothing of it; scripts given run before the page's own."""
    added = []

    def open_review(shown: Review, script: str = "") -> Chrome:
        write_review(tmp_path / "review.html", shown)
        show_at(chromium, 1400)
        chromium.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
        if script:
            source = {"source": script}
            added.append(chromium.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source))
        chromium.get_log("browser")
        chromium.get((tmp_path / "review.html").as_uri())
        return chromium

    yield open_review
    for script in added:
        chromium.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    chromium.get("about:blank")


def _press(chrome: Chrome, *keys: str) -> None:
    """Where the focus is, as a keyboard does."""
    ActionChains(chrome, duration=0).send_keys(*keys).perform()


def _content(chrome: Chrome, name: str) -> str:
    return chrome.execute_script("return document.getElementById(arguments[0]).textContent", name)


def _ids(chrome: Chrome) -> list[str]:
    return chrome.execute_script("return [...document.querySelectorAll('.row .id')].map((id) => id.textContent)")


def _exported(chrome: Chrome, folder: Path) -> list[dict[str, str]]:
    chrome.find_element(By.ID, "export").click()
    file = folder / "decisions.csv"
    WebDriverWait(chrome, 10).until(lambda _: file.exists() and file.stat().st_size)
    with file.open(newline="", encoding="utf-8") as lines:
        rows = [{key: restored(cell) for key, cell in row.items()} for row in csv.DictReader(lines, strict=True)]
    file.unlink()
    return rows


def _row(audit: str, shown: Sample, decision: str, label: str, classes: tuple[str, ...] = CLASSES) -> dict[str, str]:
    return {"audit": audit, "id": shown["id"], "given": classes[shown["given"]], "decision": decision, "label": label}


def test_twenty_samples_by_keyboard_an_undo_a_reload_and_the_export(opened: Opened, tmp_path: Path) -> None:
    shown = review(30, "a1")
    chrome = opened(shown)
    expected = []
    for number, key in enumerate("krask" * 4):
        assert _content(chrome, "name") == f"image {number}.png"
        _press(chrome, key)
        now = shown["samples"][number]
        decision = {"k": "keep", "r": "relabel", "a": "ambiguous", "s": "skip"}[key]
        label = {"keep": CLASSES[now["given"]], "relabel": CLASSES[now["suggested"]]}.get(decision, "")
        expected.append(_row("a1", now, decision, label))
    assert _content(chrome, "reviewed") == "20 of 30 reviewed"
    _press(chrome, "u")
    assert (_content(chrome, "reviewed"), _content(chrome, "name")) == ("19 of 30 reviewed", "image 19.png")
    assert "undone" in _content(chrome, "said")
    chrome.refresh()
    assert (_content(chrome, "reviewed"), _content(chrome, "name")) == ("19 of 30 reviewed", "image 19.png")
    assert _exported(chrome, tmp_path) == expected[:19]
    assert _content(chrome, "said").startswith("19 decisions exported as decisions.csv into your browser's downloads;")
    ActionChains(chrome).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    assert _exported(chrome, tmp_path) == expected[:18], "undone after the reload too"
    assert chrome.get_log("browser") == []


def test_relabelling_by_digit_and_by_list(opened: Opened, tmp_path: Path) -> None:
    shown = review(9, "a2")
    chrome = opened(shown)
    _press(chrome, "3")
    _press(chrome, "l")
    assert chrome.switch_to.active_element.get_attribute("id") == "label"
    _press(chrome, "naevus", Keys.ENTER)
    _press(chrome, "3")  # which is its given label
    chrome.find_element(By.CSS_SELECTOR, "#classes [data-key='2']").click()
    Select(chrome.find_element(By.ID, "label")).select_by_visible_text("melanoma")
    assert _content(chrome, "reviewed") == "4 of 9 reviewed", "looking through the list decides nothing"
    chrome.find_element(By.CSS_SELECTOR, "#other > button").click()
    labels = [("relabel", "keratosis"), ("relabel", "naevus, blue"), ("keep", "keratosis")]
    labels += [("relabel", "melanoma"), ("relabel", "melanoma")]
    assert _exported(chrome, tmp_path) == [
        _row("a2", now, *label) for now, label in zip(shown["samples"], labels, strict=False)
    ]


def test_classes_called_by_digits_have_their_own_keys(opened: Opened, tmp_path: Path) -> None:
    digits = tuple("0123456789")
    shown = review(3, "a3", digits)
    chrome = opened(shown)
    _press(chrome, "7", "0")
    assert [row["label"] for row in _exported(chrome, tmp_path)] == ["7", "0"]


def test_a_decision_can_be_changed_and_the_change_undone(opened: Opened, tmp_path: Path) -> None:
    shown = review(3, "a4")
    chrome = opened(shown)
    _press(chrome, "k", Keys.ARROW_UP, "a")
    assert [row["decision"] for row in _exported(chrome, tmp_path)] == ["ambiguous"]
    _press(chrome, "u")
    assert [row["decision"] for row in _exported(chrome, tmp_path)] == ["keep"]
    assert chrome.find_element(By.ID, "keep").get_attribute("aria-pressed") == "true"
    _press(chrome, "u")
    assert not chrome.find_element(By.ID, "export").is_enabled()
    assert not chrome.find_element(By.ID, "undo").is_enabled()


def test_moving_decides_nothing_and_reviewed_samples_are_passed_over(opened: Opened) -> None:
    chrome = opened(review(6, "a5"))
    names = []
    for key in (Keys.ARROW_DOWN, "j", Keys.ARROW_UP, "i", "i", "j"):
        _press(chrome, key)
        names.append(int(re.findall(r"\d+", _content(chrome, "name"))[0]))
    assert names == [1, 2, 1, 0, 0, 1]
    assert _content(chrome, "reviewed") == "0 of 6 reviewed"
    _press(chrome, "k", "i", "i", "k")
    assert _content(chrome, "name") == "image 2.png", "1 is reviewed already"
    _press(chrome, "k", "k", "k", "k")
    assert "no sample is left" in _content(chrome, "said")


def test_a_suggestion_that_is_the_given_label_cannot_be_taken(opened: Opened) -> None:
    shown = review(4, "a6")
    chrome = opened(shown | {"samples": [shown["samples"][0] | {"suggested": 0}, *shown["samples"][1:]]})
    _press(chrome, "r")
    assert _content(chrome, "reviewed") == "0 of 4 reviewed"
    assert _content(chrome, "said") == "no other label is suggested: relabel by the key of a class"
    assert _content(chrome, "suggested") == "No other label suggested"
    assert not chrome.find_elements(By.CSS_SELECTOR, "#suggested-examples img"), "those of the given label are shown"
    assert chrome.find_element(By.ID, "relabel").text.startswith("No other label suggested")
    assert _content(chrome, "list").count("→") == 3
    _press(chrome, "u")
    assert _content(chrome, "said") == "there is nothing to undo"
    _press(chrome, "j", "r")
    assert _content(chrome, "reviewed") == "1 of 4 reviewed"


def test_filters(opened: Opened) -> None:
    shown = review(60, "a7")
    chrome = opened(shown)

    def check(wanted: Callable[[Sample], bool]) -> None:
        found = [now["id"] for now in shown["samples"] if wanted(now)]
        assert 0 < len(found) < 60
        assert _content(chrome, "count") == f"{len(found)} of 60 samples"
        drawn = _ids(chrome)
        assert drawn == found[: len(drawn)]
        assert len(drawn) >= min(len(found), 8)

    def choose(name: str, text: str) -> None:
        Select(chrome.find_element(By.ID, name)).select_by_visible_text(text)

    choose("by-given", "melanoma")
    check(lambda now: now["given"] == 1)
    assert _content(chrome, "name") == "image 1.png", "the first that passes"
    choose("by-suggested", "nevus")
    check(lambda now: (now["given"], now["suggested"]) == (1, 0))
    reset = chrome.find_element(By.ID, "all")
    reset.click()
    choose("by-group", "patient 3")
    check(lambda now: now["group"] == "patient 3")
    reset.click()
    chrome.find_element(By.ID, "search").send_keys("PNG 4")
    check(lambda now: "4" in now["id"])
    chrome.find_element(By.ID, "search").send_keys(Keys.ENTER)
    _press(chrome, "k", "k")
    reset.click()
    choose("by-state", "reviewed")
    check(lambda now: now["id"] in ("image 4.png", "image 14.png"))
    choose("by-state", "not reviewed")
    check(lambda now: now["id"] not in ("image 4.png", "image 14.png"))
    _press(chrome, Keys.ESCAPE, "k")
    assert _content(chrome, "count") == "57 of 60 samples"
    chrome.find_element(By.ID, "search").send_keys("nowhere")
    assert chrome.find_element(By.ID, "nothing").is_displayed()
    assert not chrome.find_element(By.ID, "view").is_displayed()
    _press(chrome, Keys.ENTER, "k", "r", "1", "a", "s")
    assert _content(chrome, "reviewed") == "3 of 60 reviewed", "there was nothing to decide on"
    assert chrome.get_log("browser") == []


def test_keys_decide_after_a_filter_was_chosen(opened: Opened) -> None:
    """By mouse at once. Who chooses by typing letters, which must not decide, ends it by Enter."""
    chrome = opened(review(60, "f1"))
    Select(chrome.find_element(By.ID, "by-given")).select_by_visible_text("melanoma")
    _press(chrome, "k")
    assert _content(chrome, "reviewed") == "1 of 60 reviewed"
    chrome.execute_script("document.getElementById('by-given').focus()")
    _press(chrome, *"ke")
    assert _content(chrome, "reviewed") == "1 of 60 reviewed"
    assert _content(chrome, "given") == "keratosis"
    _press(chrome, Keys.ENTER)
    assert chrome.switch_to.active_element.get_attribute("id") == "sample"
    _press(chrome, "k")
    assert _content(chrome, "reviewed") == "2 of 60 reviewed"


def test_pictures_are_smooth_or_show_their_pixels(opened: Opened) -> None:
    chrome = opened(review(3, "f2"))
    shown_as = []
    for _ in range(2):
        shown_as.append(chrome.find_element(By.ID, "picture").value_of_css_property("image-rendering"))
        chrome.find_element(By.ID, "smooth").click()
    assert shown_as == ["auto", "pixelated"]
    _press(chrome, "k")
    assert _content(chrome, "reviewed") == "1 of 3 reviewed", "the box left, keys decide again"


def test_no_filter_of_groups_where_there_are_none(opened: Opened) -> None:
    shown = review(3, "a8")
    chrome = opened(shown | {"samples": [now | {"group": ""} for now in shown["samples"]]})
    for name in ("by-group", "group"):
        assert not chrome.find_element(By.ID, name).is_displayed()
    assert chrome.find_element(By.ID, "by-given").is_displayed()


def test_keys_typed_into_fields_or_with_other_keys_decide_nothing(opened: Opened) -> None:
    chrome = opened(review(9, "a9"))
    for name in ("search", "by-given", "label"):
        chrome.execute_script("document.getElementById(arguments[0]).focus()", name)
        _press(chrome, *"krasj1u?")
    for held in (Keys.CONTROL, Keys.ALT, Keys.META):
        chrome.execute_script("document.activeElement.blur()")
        ActionChains(chrome).key_down(held).send_keys("k").key_up(held).perform()
    assert _content(chrome, "reviewed") == "0 of 9 reviewed"
    assert chrome.find_element(By.ID, "search").get_attribute("value") == "krasj1u?"
    assert not chrome.find_element(By.ID, "legend").get_attribute("open")
    chrome.find_element(By.ID, "all").click()
    _press(chrome, "k")
    assert _content(chrome, "reviewed") == "1 of 9 reviewed", "the fields left, keys decide again"


def test_a_key_held_down_decides_once(opened: Opened) -> None:
    chrome = opened(review(9, "b1"))
    for repeats in (False, True, True):
        event = {"type": "keyDown", "key": "k", "text": "k", "autoRepeat": repeats}
        chrome.execute_cdp_cmd("Input.dispatchKeyEvent", event)
    chrome.execute_cdp_cmd("Input.dispatchKeyEvent", {"type": "keyUp", "key": "k"})
    assert _content(chrome, "reviewed") == "1 of 9 reviewed"


def test_the_legend_opens_and_closes(opened: Opened) -> None:
    chrome = opened(review(2, "b2"))
    legend = chrome.find_element(By.CSS_SELECTOR, "#legend ul")
    assert not legend.is_displayed()
    _press(chrome, "?")
    assert legend.is_displayed()
    _press(chrome, "?")
    assert not legend.is_displayed()


def test_hostile_names_are_only_text_and_are_exported_exactly(opened: Opened, tmp_path: Path) -> None:
    plain = review(len(HOSTILE), "b3", HOSTILE)
    samples = [now | {"id": name, "group": name} for now, name in zip(plain["samples"], HOSTILE, strict=True)]
    names = {"title": HOSTILE[0], "detectors": HOSTILE[:2], "summary_lines": HOSTILE}
    chrome = opened(plain | names | {"samples": samples})
    assert _ids(chrome) == list(HOSTILE)
    assert chrome.title == HOSTILE[0]
    expected = []
    for now in samples:
        seen = {name: _content(chrome, name) for name in ("name", "given", "suggested", "group")}
        given, suggested = HOSTILE[now["given"]], HOSTILE[now["suggested"]]
        assert seen == {
            "name": now["id"],
            "given": given,
            "suggested": suggested,
            "group": now["id"],
        }
        expected.append(_row("b3", now, "relabel", suggested, HOSTILE))
        _press(chrome, "r")
    chrome.refresh()
    assert _exported(chrome, tmp_path) == expected
    for number in range(1, len(HOSTILE) + 1):
        Select(chrome.find_element(By.ID, "by-group")).select_by_index(number)
        assert len(_ids(chrome)) == 1
    assert len(chrome.find_elements(By.TAG_NAME, "script")) == 2
    assert not chrome.find_elements(By.CSS_SELECTOR, "[onmouseover], [onerror], img[src=x]")
    assert chrome.get_log("browser") == []


def test_five_thousand_samples_are_as_quick_as_fifty(opened: Opened) -> None:
    pressing = """
        const times = [];
        for (let press = 0; press < 50; press++) {
          const key = "krajs"[press % 5];
          const start = performance.now();
          document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          document.body.offsetHeight;
          times.push(performance.now() - start);
        }
        return times.sort((x, y) => x - y);
    """
    few = opened(review(50, "b4")).execute_script(pressing)
    chrome = opened(review(5000, "b5"))
    many = chrome.execute_script(pressing)
    print(f"a key press takes {few[25]:.1f} ms with 50 samples, {many[25]:.1f} ms with 5,000")
    assert _content(chrome, "reviewed") == "40 of 5000 reviewed"
    assert sum(many) < 10 * sum(few)
    assert 5 < len(_ids(chrome)) < 40
    chrome.execute_script("const list = document.getElementById('list'); list.scrollTop = list.scrollHeight;")
    chrome.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert _ids(chrome)[-1] == "image 4999.png"
    assert len(_ids(chrome)) < 40
    last = chrome.find_elements(By.CSS_SELECTOR, ".row")[-1]
    last.click()
    assert _content(chrome, "name") == "image 4999.png"
    assert chrome.execute_script("return arguments[0].firstChild.naturalWidth", last) > 0
    _press(chrome, "k")
    assert _content(chrome, "name") == "image 3.png", "from the end on to the first that is left"
    assert _ids(chrome)[0] == "image 0.png", "the list follows"


@pytest.mark.parametrize("trouble", [FORBIDDEN, FULL])
def test_without_storage_the_page_says_so_and_works(opened: Opened, tmp_path: Path, trouble: str) -> None:
    shown = review(5, "b6")
    chrome = opened(shown, trouble)
    _press(chrome, "k", "a", "u", "k")
    notice = chrome.find_element(By.ID, "notice")
    assert notice.is_displayed()
    assert "Export" in notice.text
    leaving = "return !window.dispatchEvent(new Event('beforeunload', { cancelable: true }))"
    assert chrome.execute_script(leaving), "asks before decisions are lost"
    assert [row["decision"] for row in _exported(chrome, tmp_path)] == ["keep", "keep"]
    assert not chrome.execute_script(leaving)
    assert chrome.get_log("browser") == []


UNREADABLE = (
    *("{", "null", '[{"id": "image 0.png", "decision": "keep", "label": "length"}, 7]'),
    # What `apply-review` refuses, or counts as kept.
    '[{"id": "image 0.png", "given": 0, "decision": "keep", "label": 1}]',
    '[{"id": "image 0.png", "given": 0, "decision": "relabel", "label": 0}]',
)


@pytest.mark.parametrize("case", range(len(UNREADABLE)))
def test_what_cannot_be_read_does_no_harm(opened: Opened, case: int) -> None:
    audit = f"unreadable-{case}"  # its own: a page that was left may write late
    chrome = opened(review(5, audit))
    chrome.execute_script(f"localStorage.setItem('linc-bench-review-{audit}', arguments[0])", UNREADABLE[case])
    chrome.refresh()
    assert "cannot be read" in chrome.find_element(By.ID, "notice").text
    assert _content(chrome, "reviewed") == "0 of 5 reviewed"
    _press(chrome, "k")
    chrome.refresh()
    assert _content(chrome, "reviewed") == "1 of 5 reviewed"


def test_each_audit_has_its_own_decisions(opened: Opened, tmp_path: Path) -> None:
    _press(opened(review(5, "b8")), "k", "k", "k", "k")
    assert _content(opened(review(5, "b9")), "reviewed") == "0 of 5 reviewed"
    assert _content(opened(review(3, "b8")), "reviewed") == "3 of 3 reviewed"
    shorter = opened(review(3, "b8"))
    _press(shorter, "a")
    exported = _exported(shorter, tmp_path)
    assert [row["id"] for row in exported] == [sample["id"] for sample in review(5, "b8")["samples"][:4]]
    assert [row["given"] for row in exported] == [CLASSES[sample["given"]] for sample in review(5, "b8")["samples"][:4]]
    assert _content(opened(review(5, "b8")), "reviewed") == "4 of 5 reviewed", "a shorter page loses none of the others"


def test_two_windows_share_their_decisions(opened: Opened) -> None:
    chrome = opened(review(5, "c1"))
    first, address = chrome.current_window_handle, chrome.current_url
    chrome.switch_to.new_window("tab")
    chrome.get(address)
    _press(chrome, "k", "k")
    chrome.close()
    chrome.switch_to.window(first)
    WebDriverWait(chrome, 10).until(lambda _: _content(chrome, "reviewed") == "2 of 5 reviewed")
    _press(chrome, "j", "j", "a")
    assert _content(chrome, "reviewed") == "3 of 5 reviewed"


def test_everything_about_a_sample_is_shown(opened: Opened) -> None:
    chrome = opened(review(5, "c2"))
    facts = {name: _content(chrome, name) for name in ("confidence", "group")}
    assert facts == {"confidence": "50 %", "group": "patient 0"}
    _press(chrome, "j")
    chrome.find_element(By.XPATH, "//summary[text()='Scores of each detector']").click()
    rows = chrome.find_elements(By.CSS_SELECTOR, "#detectors tr")
    assert [row.text for row in rows] == ["linc 0.1429 2", "aum – 7"]
    for label, which in [(1, "given-examples"), (2, "suggested-examples")]:
        shades = chrome.find_elements(By.CSS_SELECTOR, f"#{which} img")
        expected = review(5, "c2")["examples"][label]
        assert [shade.get_attribute("src") for shade in shades] == [_address(image) for image in expected]
    assert chrome.find_element(By.ID, "picture").get_attribute("src") == _address(picture(1))


HEADER = ("audit", "id", "given", "decision", "label")
Decisions = Iterable[tuple[str, ...]]


def _import(chrome: Chrome, file: Path) -> None:
    """Chooses the file, and waits until the page has said something about it."""
    chrome.execute_script("document.getElementById('said').textContent = ''")
    chrome.find_element(By.ID, "file").send_keys(str(file))
    said = "return document.getElementById('said').textContent || !document.getElementById('notice').hidden"
    WebDriverWait(chrome, 10).until(lambda _: chrome.execute_script(said))


def _decide(file: Path, shown: Review, decisions: Decisions, classes: tuple[str, ...] = CLASSES) -> Path:
    """What a reviewer's page exports, from (number of the sample, decision, label) of each."""
    samples = shown["samples"]
    rows = [_row(shown["audit"], samples[number], *decision, classes) for number, *decision in decisions]
    file.write_text(as_csv(pd.DataFrame(rows, columns=HEADER)), encoding="utf-8")
    return file


def _refused(chrome: Chrome, file: Path, content: str | bytes) -> str:
    chrome.refresh()
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    _import(chrome, file)
    assert _content(chrome, "reviewed").startswith("0 of "), "nothing of a refused file is taken"
    return chrome.find_element(By.ID, "notice").text.removeprefix(f"Nothing was imported from {file.name}: ")


def test_decisions_are_imported_kept_and_undone_as_a_whole(opened: Opened, tmp_path: Path) -> None:
    shown = review(9, "d1")
    theirs = [(2, "keep", "keratosis"), (3, "relabel", "nevus"), (0, "ambiguous", ""), (5, "skip", "")]
    file = _decide(tmp_path / "theirs.csv", shown, theirs)
    chrome = opened(shown)
    _press(chrome, "j", "k")
    _import(chrome, file)
    assert _content(chrome, "said") == "imported: 4 decisions; 0 as you decided, 0 otherwise"
    assert not chrome.find_element(By.ID, "question").is_displayed()
    assert _content(chrome, "reviewed") == "5 of 9 reviewed"
    chrome.refresh()
    expected = [(0, "ambiguous", ""), (1, "keep", "melanoma"), (2, "keep", "keratosis"), (3, "relabel", "nevus")]
    exported = _exported(chrome, tmp_path)
    assert exported == [_row("d1", shown["samples"][at], *rest) for at, *rest in [*expected, (5, "skip", "")]]
    _press(chrome, "s", "u", "u")
    assert _content(chrome, "said") == "undone: the import of 4 decisions"
    assert [row["id"] for row in _exported(chrome, tmp_path)] == ["image 1.png"], "after a reload too"
    _import(chrome, file)
    _import(chrome, file)
    assert _content(chrome, "said") == "imported: 0 decisions; 4 as you decided, 0 otherwise"
    _press(chrome, "u", "u")
    assert [row["id"] for row in _exported(chrome, tmp_path)] == ["image 1.png"], "each import is undone by itself"
    assert chrome.get_log("browser") == []


def test_an_export_is_imported_as_it_was(opened: Opened, tmp_path: Path) -> None:
    """With names that need quotes or an apostrophe, a mark at the start, other line ends and columns, empty rows."""
    plain = review(len(HOSTILE), "d2", HOSTILE)
    samples = [now | {"id": name} for now, name in zip(plain["samples"], HOSTILE, strict=True)]
    chrome = opened(plain | {"samples": samples})
    _press(chrome, *"krask" * 2)
    chrome.find_element(By.ID, "export").click()
    file = tmp_path / "decisions.csv"
    WebDriverWait(chrome, 10).until(lambda _: file.exists() and file.stat().st_size)
    written = file.rename(tmp_path / "written.csv")
    expected = _exported(chrome, tmp_path)
    _press(chrome, *"u" * 10)
    _import(chrome, written)
    assert _exported(chrome, tmp_path) == expected
    _press(chrome, "u")
    saved = tmp_path / "saved.csv"  # by a spreadsheet
    table = pd.DataFrame(expected)[["label", "decision", "id", "given", "audit"]].assign(notes="")
    table["decision"] = " " + table["decision"].str.upper()
    text = as_csv(pd.concat([table.head(3), pd.DataFrame([[""] * 6], columns=table.columns), table[3:]]))
    rows = list(csv.reader(StringIO(text, newline="")))
    with saved.open("w", newline="", encoding="utf-8-sig") as lines:
        csv.writer(lines, quoting=csv.QUOTE_ALL).writerows(rows)
    assert b"\r\n" in saved.read_bytes()
    _import(chrome, saved)
    assert _exported(chrome, tmp_path) == expected
    assert chrome.get_log("browser") == []


def test_files_that_are_no_decisions_on_this_page_are_refused_with_their_line(opened: Opened, tmp_path: Path) -> None:
    """What `apply-review` refuses, for the same reasons."""
    chrome, file = opened(review(6, "d3")), tmp_path / "theirs <b>.csv"
    table, same = tmp_path / "audit.csv", tmp_path / "same.csv"
    samples = pd.DataFrame({"id": [f"image {n}.png" for n in range(6)], "given": [CLASSES[n % 4] for n in range(6)]})
    table.write_text(as_csv(samples))
    first = ",".join(HEADER) + "\nd3,image 0.png,nevus,keep,nevus\n"
    for line, reason in [
        ("other,image 1.png,melanoma,keep,", "line 3 belongs to another audit, other; this page is of d3."),
        (",image 1.png,melanoma,keep,", "line 3 names no audit. Copy it from another line."),
        ("d3,image 6.png,nevus,keep,", "line 3 names the sample 'image 6.png', which is not on this page."),
        ("d3,__proto__,nevus,keep,", "line 3 names the sample '__proto__', which is not on this page."),
        ("d3,image 1.png,nevus,keep,", "line 3 says that the label of 'image 1.png' was 'nevus'; it was 'melanoma'."),
        ("d3,image 1.png,melanoma,burn,", "line 3 has the decision 'burn'; expected keep, relabel, ambiguous, skip."),
        ("d3,image 1.png,melanoma,toString,", "line 3 has the decision 'toString'; expected keep, relabel, ambig"),
        ("d3,image 1.png,melanoma,relabel,cat", "line 3 relabels to 'cat', which is no class of the audit."),
        ("d3,image 1.png,melanoma,relabel,", "line 3 relabels to '', which is no class of the audit."),
        (
            "d3,image 1.png,melanoma,keep,nevus",
            "line 3 has the decision 'keep' and another label, 'nevus'. Relabel, or",
        ),
        (
            "d3,image 1.png,melanoma,skip,nevus",
            "line 3 has the decision 'skip' and another label, 'nevus'. Relabel, or",
        ),
        ("d3,image 0.png,nevus,skip,", "line 3 decides on 'image 0.png' a second time, after line 2. Keep one"),
        ("d3,image 1.png,melanoma,keep,,", "line 3 has more cells than the header. Quote cells that have commas"),
        ('d3,"image 1.png,melanoma,keep,', "line 3 has a quote that is not closed, or text after a closing quote."),
        ('d3,"image" 1.png,melanoma,keep,', "line 3 has a quote that is not closed, or text after a closing quote."),
        ("\n\nd3,<img src=x>,nevus,keep,", "line 5 names the sample '<img src=x>', which is not on this page."),
        (f"d3,{'x' * 5000},nevus,keep,", f"line 3 names the sample '{'x' * 400}"),
    ]:
        assert _refused(chrome, file, f"{first}{line}\n").startswith(reason), line
        same.write_text(f"{first}{line}\n".replace("d3,", f"{audit_digest(samples)},"))
        if '"image" 1' not in line:  # which pandas reads as `image 1.png`
            with pytest.raises(LincBenchError):
                apply_review(table, [same], tmp_path / "labels.csv")
    assert chrome.execute_script("return document.documentElement.scrollWidth") <= 1400, "a long name is wrapped"
    assert _refused(chrome, file, ",".join(HEADER)) == "it has no decisions."
    assert _refused(chrome, file, "\n".join([",".join(HEADER), ",,,,", ""])) == "it has no decisions."
    assert "no column audit, id, given, decision, label; it has " in _refused(chrome, file, "")
    said = _refused(chrome, file, first.replace(",", ";"))
    assert said.endswith("it has audit;id;given;decision;label. Separate columns by commas.")
    assert _refused(chrome, file, first.encode("utf-16")) == "it is not a CSV file in UTF-8."
    assert not chrome.find_elements(By.CSS_SELECTOR, "img[src=x], #notice *")
    file.write_text(first)
    _import(chrome, file)
    assert not chrome.find_element(By.ID, "notice").is_displayed()
    assert _content(chrome, "reviewed") == "1 of 6 reviewed"
    assert chrome.get_log("browser") == []


def _disputed(opened: Opened, tmp_path: Path, audit: str) -> tuple[Chrome, Review]:
    """A file has the same decision on three of six samples, another on three, and one on a sample not decided here."""
    shown = review(12, audit)
    chrome = opened(shown)
    _press(chrome, *"kkkraa")
    theirs = [(0, "keep", "nevus"), (1, "relabel", "keratosis"), (2, "ambiguous", ""), (3, "relabel", "nevus")]
    file = _decide(
        tmp_path / "theirs.csv", shown, [*theirs, (4, "ambiguous", ""), (5, "skip", ""), (9, "keep", "melanoma")]
    )
    _import(chrome, file)
    assert _content(chrome, "said") == "imported: 1 decisions; 3 as you decided, 3 otherwise"
    return chrome, shown


def test_disagreements_are_counted_shown_and_walked_through(opened: Opened, tmp_path: Path) -> None:
    chrome, _ = _disputed(opened, tmp_path, "d4")
    for _ in range(2):
        question = chrome.find_element(By.ID, "question")
        # Half agree; a quarter (2·2 + 1·1 + 2·2 of 6·6) would by chance.
        kappa = cohen_kappa_score([0, 1, 2, 0, 4, 4], [0, 2, 4, 0, 4, 5])
        assert kappa == pytest.approx((1 / 2 - 1 / 4) / (1 - 1 / 4))
        assert f"the same decision on 3 of 6 samples (50.0 %), kappa {kappa:.2f};" in question.text
        assert "3 left to settle (filter Reviewed: disagreement)" in question.text
        buttons = [button.text for button in question.find_elements(By.TAG_NAME, "button")]
        assert buttons == ["Keep mine (3)", "Take theirs (3)"]
        chrome.refresh()
    assert _content(chrome, "reviewed") == "7 of 12 reviewed"
    Select(chrome.find_element(By.ID, "by-state")).select_by_visible_text("disagreement")
    assert _ids(chrome) == ["image 1.png", "image 2.png", "image 5.png"]
    assert (_content(chrome, "name"), _content(chrome, "proposed")) == ("image 1.png", "imported: relabel to keratosis")
    _press(chrome, "3")  # theirs is taken
    assert (_content(chrome, "name"), _content(chrome, "proposed")) == ("image 2.png", "imported: ambiguous")
    _press(chrome, "k")  # mine is kept
    assert (_content(chrome, "name"), _content(chrome, "proposed")) == ("image 5.png", "imported: skipped")
    assert _ids(chrome) == ["image 2.png", "image 5.png"]
    assert "(50.0 %)" in _content(chrome, "compared"), "as it was before they talked"
    assert _content(chrome, "theirs") == "Take theirs (2)"
    _press(chrome, "s")
    assert _ids(chrome) == ["image 2.png"]
    _press(chrome, "u")
    assert _ids(chrome) == ["image 2.png", "image 5.png"]
    Select(chrome.find_element(By.ID, "by-state")).select_by_visible_text("reviewed")
    assert len(_ids(chrome)) == 7, "among them the disagreements"
    assert chrome.get_log("browser") == []


@pytest.mark.parametrize("answer", ["mine", "theirs"])
def test_the_reviewer_keeps_or_takes_and_can_undo_it(opened: Opened, tmp_path: Path, answer: str) -> None:
    chrome, shown = _disputed(opened, tmp_path, f"d5-{answer}")
    before = [(0, "keep", "nevus"), (1, "keep", "melanoma"), (2, "keep", "keratosis"), (3, "relabel", "nevus")]
    before += [(4, "ambiguous", ""), (5, "ambiguous", "")]
    taken = {1: (1, "relabel", "keratosis"), 2: (2, "ambiguous", ""), 5: (5, "skip", "")} if answer == "theirs" else {}

    def rows(decisions: Decisions) -> list[dict[str, str]]:
        return [_row(shown["audit"], shown["samples"][number], *rest) for number, *rest in decisions]

    mine = [*before, (9, "keep", "melanoma")]
    assert _exported(chrome, tmp_path) == rows(mine), "until there is an answer, this browser's decisions count"
    _import(chrome, tmp_path / "theirs.csv")
    assert "first keep your decisions or take those of the last import" in _content(chrome, "notice")
    chrome.find_element(By.ID, answer).click()
    for _ in range(2):
        assert not chrome.find_element(By.ID, "question").is_displayed()
        assert _exported(chrome, tmp_path) == rows([taken.get(row[0], row) for row in mine])
        chrome.refresh()
    _press(chrome, "u")
    assert _exported(chrome, tmp_path) == rows(before), "the import is taken back as a whole"
    _press(chrome, "u")
    assert _exported(chrome, tmp_path) == rows(before[:5])
    assert chrome.get_log("browser") == []


def test_an_import_is_undone_before_it_is_answered(opened: Opened, tmp_path: Path) -> None:
    chrome, _ = _disputed(opened, tmp_path, "d6")
    _press(chrome, "u")
    assert not chrome.find_element(By.ID, "question").is_displayed()
    assert _content(chrome, "reviewed") == "6 of 12 reviewed"
    shorter = opened(review(2, "d6"))
    _import(shorter, _decide(tmp_path / "two.csv", review(2, "d6"), [(0, "skip", "")]))
    chrome = opened(review(12, "d6"))
    assert _content(chrome, "theirs") == "Take theirs (1)"
    assert [row["decision"] for row in _exported(opened(review(1, "d6")), tmp_path)][:2] == ["keep", "keep"]


def test_one_label_everywhere_has_no_kappa(opened: Opened, tmp_path: Path) -> None:
    shown = review(8, "d7")
    chrome = opened(shown)
    _press(chrome, "a", "a")
    _import(chrome, _decide(tmp_path / "theirs.csv", shown, [(0, "ambiguous", ""), (1, "ambiguous", "")]))
    assert chrome.execute_script("return agreementOf(comparedPairs())").endswith("(100.0 %), kappa –")


ORIGINALS = (
    "plain.png",
    "a b#c?d%20e&f;g=h+i.png",
    "\"quotes' and <b>`.png",
    "меланома 黑色素瘤 🩺 é.png",
    "javascript:alert(1).png",
    r"back\slash:and|pipe.png",
    "%2e%2e.png",
    "~.png",
)


def test_the_picture_and_the_name_link_to_the_original_file(opened: Opened, tmp_path: Path) -> None:
    """Opened in a new tab, the file is the one with that name, whatever the name has in it."""
    files = []
    for shade, name in enumerate(ORIGINALS):
        files.append(tmp_path / "images #1?" / '50 %41 " 类' / name)
        files[-1].parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30 + shade, 20)).save(files[-1])
    shown = review(len(ORIGINALS), "c7")
    for number, now in enumerate(shown["samples"]):
        now |= {"id": ORIGINALS[number], "original": original_link(FileImages(files), number, tmp_path)}
        assert re.fullmatch(r"[\w./%~-]+", now["original"], re.ASCII), "nothing that has a meaning in addresses"
    chrome = opened(shown)
    page = chrome.current_window_handle
    for number, file in enumerate(files):
        links = chrome.find_elements(By.CSS_SELECTOR, "a.original")
        assert len({link.get_attribute("href") for link in links}) == 1
        assert {(link.get_attribute("target"), link.get_attribute("rel")) for link in links} == {("_blank", "noopener")}
        assert _content(chrome, "name") == ORIGINALS[number]
        links[number % 2].click()
        WebDriverWait(chrome, 10).until(lambda _: len(chrome.window_handles) == 2)
        chrome.switch_to.window(next(handle for handle in chrome.window_handles if handle != page))
        WebDriverWait(chrome, 10).until(lambda _: chrome.find_elements(By.TAG_NAME, "img"))
        width = chrome.execute_script("return document.querySelector('img').naturalWidth")
        assert (width, Path(unquote(urlsplit(chrome.current_url).path))) == (30 + number, file)
        chrome.close()
        chrome.switch_to.window(page)
        _press(chrome, "j")
    assert chrome.get_log("browser") == []


def test_a_sample_without_a_file_has_no_link(opened: Opened, tmp_path: Path) -> None:
    assert original_link(np.zeros((3, 8, 8), np.uint8), 0, tmp_path) == ""
    shown = review(3, "c8")
    shown["samples"][0]["original"] = "a.png"
    chrome = opened(shown)
    assert len(chrome.find_elements(By.CSS_SELECTOR, "a.original[href]")) == 2
    _press(chrome, "j")
    assert not chrome.find_elements(By.CSS_SELECTOR, "a.original[href]")


SAME, NEARLY = "The same image with another label", "Nearly the same image with another label"


def twin(number: int, given: int, why: str, name: str = "") -> Sample:
    return {"id": name or f"twin {number}.png", "given": given, "thumbnail": picture(200 + number), "why": why}


def test_duplicates_with_another_label_are_shown_beside_the_picture(opened: Opened) -> None:
    shown = review(4, "c9")
    shown["samples"][0]["twins"] = [twin(1, 2, NEARLY), twin(2, 1, SAME), twin(3, 3, NEARLY)]
    shown["samples"][1]["twins"] = [twin(4, 0, HOSTILE[0], HOSTILE[1])]
    shown["samples"][2]["twins"] = []
    chrome = opened(shown)

    def twins() -> list[tuple[str, list[str], list[str]]]:
        """Under each heading, the captions and the pictures."""
        groups = []
        for heading in chrome.find_elements(By.CSS_SELECTOR, "#twins h3"):
            group = heading.find_element(By.XPATH, "following-sibling::*[1]")
            captions = [name.get_attribute("textContent") for name in group.find_elements(By.CSS_SELECTOR, "bdi")]
            pictures = [image.get_attribute("src") for image in group.find_elements(By.TAG_NAME, "img")]
            groups.append((heading.get_attribute("textContent"), captions, pictures))
        return groups

    addresses = {number: _address(picture(200 + number)) for number in range(5)}
    assert twins() == [
        (NEARLY, ["keratosis", "twin 1.png", "naevus, blue", "twin 3.png"], [addresses[1], addresses[3]]),
        (SAME, ["melanoma", "twin 2.png"], [addresses[2]]),
    ]
    own, others = (chrome.find_element(By.CSS_SELECTOR, name).rect for name in ("#picture", "#twins img"))
    assert own["y"] <= others["y"] < own["y"] + own["height"], "side by side"
    assert others["x"] >= own["x"] + own["width"]
    _press(chrome, "j")
    assert twins() == [(HOSTILE[0], ["nevus", HOSTILE[1]], [addresses[4]])], "names are only text"
    for _ in range(2):
        _press(chrome, "j")
        assert not chrome.find_element(By.ID, "twins").is_displayed()
        assert twins() == []
    assert chrome.get_log("browser") == []


def _address(image: str) -> str:
    return "data:image/webp;base64," + image


def test_no_console_error_and_no_request_to_any_host(opened: Opened, chromium: Chrome) -> None:
    chromium.get_log("performance")
    chrome = opened(review(40, "c3"))
    assert chrome.get_log("browser") == []
    events = [json.loads(entry["message"])["message"] for entry in chrome.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert any(address.startswith("data:image/webp") for address in asked)
    assert {address.split(":")[0] for address in asked} <= {"file", "data"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [400, 800, 1400])
def test_nothing_scrolls_sideways(opened: Opened, width: int, scheme: str) -> None:
    names = ("a_very_long_name_without_any_place_to_break_" * 4, *CLASSES[1:])
    shown = review(40, f"c4-{width}-{scheme}", names)
    first = shown["samples"][0] | {"id": names[0], "group": names[0]}
    first["twins"] = [twin(number, number % 4, SAME, names[0]) for number in range(5)]
    chrome = opened(shown | {"samples": [first, *shown["samples"][1:]]})
    show_at(chrome, width, scheme)
    _press(chrome, "4", "i")
    for name in ("html", "main"):
        wide = "const box = document.querySelector(arguments[0]); return box.scrollWidth - box.clientWidth"
        assert chrome.execute_script(wide, name) == 0
    paper = chrome.find_element(By.TAG_NAME, "body").value_of_css_property("background-color")
    assert (sum(map(int, re.findall(r"\d+", paper)[:3])) > 380) == (scheme == "light")
    if folder := os.environ.get("LINC_BENCH_SCREENSHOTS"):  # to look at
        chrome.save_screenshot(str(Path(folder) / f"review-{width}-{scheme}.png"))


def test_landmarks_and_what_is_announced(opened: Opened) -> None:
    chrome = opened(review(5, "c5"))
    _press(chrome, Keys.TAB)
    skip = chrome.switch_to.active_element
    assert skip.get_attribute("href").endswith("#sample")
    skip.send_keys(Keys.ENTER)
    assert chrome.switch_to.active_element.tag_name == "main"
    _press(chrome, "k")
    live = [region.text for region in chrome.find_elements(By.CSS_SELECTOR, "[aria-live=polite]")]
    assert live == ["1 of 5 reviewed", "keep nevus: image 0.png"]
    assert chrome.find_element(By.TAG_NAME, "progress").get_attribute("value") == "1"
    selected = chrome.find_elements(By.CSS_SELECTOR, "[role=option][aria-selected=true]")
    assert [row.get_attribute("id") for row in selected] == [
        chrome.find_element(By.ID, "list").get_attribute("aria-activedescendant")
    ]
    assert chrome.find_element(By.CSS_SELECTOR, ".row .badge").text == "✓ keep", "in words and by a sign, not by colour"
    for name in ("header", "main", "aside", "[role=search]"):
        assert len(chrome.find_elements(By.CSS_SELECTOR, name)) == 1


def test_same_review_same_bytes(tmp_path: Path) -> None:
    for name in ("one.html", "two.html"):
        write_review(tmp_path / name, review(9, "c6"))
    html = (tmp_path / "one.html").read_bytes()
    assert html == (tmp_path / "two.html").read_bytes()
    assert not re.findall(rb"https?://|@import|url\(", html)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((28, 28), (28, 28)),
        ((28, 28, 1), (28, 28)),
        ((20, 40, 3), (40, 20)),
        ((96, 96, 3), (96, 96)),
        ((64, 64, 3), (64, 64)),
        ((500, 250, 3), (48, 96)),
        ((1, 1), (1, 1)),
        ((2000, 3), (1, 96)),
    ],
)
def test_thumbnails_fit_and_small_images_keep_their_pixels(shape: tuple[int, ...], size: tuple[int, int]) -> None:
    image = np.random.default_rng(0).integers(256, size=shape, dtype=np.uint8)
    drawn = Image.open(BytesIO(base64.b64decode(thumbnail(image))))
    assert (drawn.format, drawn.size) == ("WEBP", size)
    assert thumbnail(image) == thumbnail(image)
    if size == shape[1::-1]:
        expected = np.broadcast_to(image if image.ndim == 3 else image[..., None], (*shape[:2], 3))
        assert np.array_equal(np.asarray(drawn.convert("RGB")), expected)


def _proved(chrome: Chrome) -> list[str]:
    time.sleep(0.1)  # the page computes it after it has reacted
    return [line.text for line in chrome.find_elements(By.CSS_SELECTOR, "#proved p")]


def test_a_review_by_sample_gives_a_certificate_that_moves_and_survives_a_reload(opened: Opened) -> None:
    shown = review(400, "e1")
    order, edges, keys = shown["order"], shown["edges"], "kkrkakkskr"
    chrome = opened(shown)
    assert _proved(chrome) == in_words([0] * 400, edges, order)
    Select(chrome.find_element(By.ID, "way")).select_by_value("sample")
    assert _content(chrome, "name") == shown["samples"][order[0]]["id"]
    decisions = [0] * 400
    words = {"k": "keep", "r": "relabel", "a": "ambiguous", "s": "skip"}
    for turn in range(60):
        key = keys[turn % len(keys)]
        now = shown["samples"][order[turn]]
        if key == "r" and now["given"] == now["suggested"]:
            key = "k"
        assert _content(chrome, "name") == now["id"], "the next of the sample"
        _press(chrome, *("vr" if key == "r" else key))
        decisions[order[turn]] = CODES[words[key]]
        if turn % 7 == 0:
            assert _proved(chrome) == in_words(decisions, edges, order)
    assert "after 60 decisions" in _proved(chrome)[0]
    chrome.refresh()
    assert _proved(chrome) == in_words(decisions, edges, order)
    Select(chrome.find_element(By.ID, "way")).select_by_value("")
    assert _ids(chrome)[0] == shown["samples"][0]["id"]


def test_the_random_sample_is_decided_without_the_suggestion(opened: Opened) -> None:
    shown = review(400, "f3")
    chrome = opened(shown)

    def hints() -> set[bool]:
        found = [chrome.find_element(By.ID, name) for name in ("suggestion", "facts", "relabel")]
        found += chrome.find_elements(By.CSS_SELECTOR, ".row[aria-selected=true] .change bdi + span")
        return {hint.is_displayed() and hint.is_enabled() for hint in found}

    assert hints() == {True}
    Select(chrome.find_element(By.ID, "way")).select_by_value("sample")
    assert _content(chrome, "count") == "400 of 400 in random order"
    assert hints() == {False}
    _press(chrome, "r")
    assert _content(chrome, "said").startswith("the suggestion is hidden: press v")
    first = _content(chrome, "name")
    _press(chrome, "v")
    assert hints() == {False, True}, "not in the list"
    _press(chrome, "k")
    assert hints() == {False}, "of the next one"
    _press(chrome, "i")
    assert _content(chrome, "name") == first
    assert not chrome.find_element(By.ID, "blind").is_displayed(), "it is decided"


@pytest.mark.parametrize("height", [850, 1000])
def test_the_certificate_moves_neither_the_sample_nor_its_keys(opened: Opened, height: int) -> None:
    shown = review(400, f"f4-{height}")
    chrome = opened(shown)
    show_at(chrome, 1400, height=height)
    Select(chrome.find_element(By.ID, "way")).select_by_value("sample")
    chrome.refresh()
    Select(chrome.find_element(By.ID, "way")).select_by_value("sample")
    before = chrome.find_element(By.ID, "before")
    assert before.get_attribute("open"), "the audit's own claims"
    tops = []
    for _ in range(4):
        _proved(chrome)
        tops.append(chrome.find_element(By.ID, "sample").rect["y"])
        end = chrome.find_element(By.ID, "other").rect
        assert end["y"] + end["height"] < height
        _press(chrome, "k")
    assert len(set(tops)) == 1
    assert tops[0] < 200
    assert not before.get_attribute("open"), "what the review says counts"
    before.find_element(By.TAG_NAME, "summary").click()
    _press(chrome, "k")
    _proved(chrome)
    assert before.get_attribute("open"), "opened by the reviewer, it stays open"


def test_page_and_python_agree_to_the_last_digit(opened: Opened) -> None:
    chrome, generator = opened(review(3, "e2")), np.random.default_rng(0)
    cases = []
    for _ in range(200):
        size = int(generator.choice([1, 2, 7, 60, 900, 5000]))
        order = drawn_order(size, int(generator.integers(9))).tolist()
        decisions = np.zeros(size, dtype=int)
        wrong, drawn = generator.random() * 0.4, order[: generator.integers(len(order) + 1)]
        decisions[drawn] = generator.choice([1, 2, 3], len(drawn), p=[0.96 - wrong, wrong + 0.01, 0.03])
        decisions[: generator.integers(size // 3 + 1)] = generator.choice([1, 2], 1)
        cases.append([decisions.tolist(), edges_of(size), order])
    script = "return arguments[0].map((args) => [certificate(...args), in_words(...args)])"
    for case, (numbers, sentences) in zip(cases, chrome.execute_script(script, cases), strict=True):
        assert numbers == certificate(*case)
        assert sentences == in_words(*case)


def test_another_number_of_decisions_is_not_the_sample(opened: Opened) -> None:
    """Decisions by suspicion are facts, and prove nothing of the rest."""
    shown = review(100, "e3")
    chrome = opened(shown)
    _press(chrome, *"rr")
    assert _proved(chrome) == in_words([2, 2] + [0] * 98, shown["edges"], shown["order"])
