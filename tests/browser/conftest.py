"""A headless Chromium for the tests of the page; without one they are skipped, unless the environment demands it."""

import os
import shutil
from collections.abc import Iterator

import pytest
from selenium import webdriver

DEMAND = "LINC_BENCH_BROWSER"
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage"
)


@pytest.fixture(scope="session")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if browser is None or driver is None:
        reason = "the page's tests need Debian's chromium and chromium-driver"
        if os.environ.get(DEMAND) == "required":
            pytest.fail(f"{DEMAND}=required, but {reason}")
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for flag in (*FLAGS.split(), f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options, webdriver.ChromeService(driver))
    chrome.get("about:blank")  # done with what the browser opens for itself
    yield chrome
    chrome.quit()


def show_at(chrome: webdriver.Chrome, width: int, scheme: str = "light", height: int = 900) -> None:
    metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    chrome.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    chrome.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
