"""One Chromium for the tests of a module, and pages that must be quiet in it."""

import shutil

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--no-sandbox", "--disable-dev-shm-usage"]
PATIENCE = 60_000  # milliseconds: a page waits for frames, of which a machine with other work has few


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install 'moe-theory[dev]'")
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip(f"no Chromium on this machine: none of {', '.join(NAMES)} is on the PATH")
    sync_api.expect.set_options(timeout=PATIENCE)
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, address, allowed):
    """Opens the page; at the end nothing may have failed, been logged, or been asked for but what begins as allowed."""
    contexts, said, asked = [], [], []

    def opened(fragment="", **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda failure: said.append(str(failure)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(address + fragment)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert said == []
    assert [url for url in asked if url.split("#")[0] != address and not url.startswith(allowed)] == []


@pytest.fixture
def allowed():
    """How the addresses begin that a page may ask for beside its own."""
    return ("data:",)
