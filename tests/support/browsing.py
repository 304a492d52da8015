"""Open pages in headless Chromium and collect everything that goes wrong."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("axe_playwright_python", reason="the group `full` is not installed")

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Route, sync_playwright

LAPTOP, PHONE = (1440, 900), (390, 844)

_SERIOUS = ("serious", "critical")


def chromium_path() -> str:
    """Return the path of Chromium. Without it the test is skipped, or fails if ``CI=true``."""
    path = shutil.which("chromium")
    if path is None:
        missing = "there is no chromium"
        pytest.fail(missing) if os.environ.get("CI") == "true" else pytest.skip(missing)
    return path


@contextmanager
def started_browser() -> Iterator[Browser]:
    """Start a browser. While it is open, asyncio sees a running event loop in this thread."""
    path = chromium_path()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path)
        yield browser
        browser.close()


class OpenedPage:
    """A file in its own tab, without network access.

    Args:
        browser: The browser.
        path: The HTML file.
        question: The key of a question to link to.
        address: The URL fragment if there is no question.
        size: Width and height in pixels.
        options: More options of Playwright's ``new_context``, such as ``color_scheme``.

    Attributes:
        page: Playwright's page.
        complaints: Requests, console and script errors, and dialogs.
    """

    def __init__(
        self,
        browser: Browser,
        path: Path,
        *,
        question: str | None = None,
        address: str = "",
        size: tuple[int, int] = LAPTOP,
        **options: Any,
    ) -> None:
        self._url = path.resolve().as_uri()
        self._context = browser.new_context(viewport={"width": size[0], "height": size[1]}, **options)
        self.complaints: list[str] = []
        self._context.route("**/*", self._answer)
        self.page = self._context.new_page()
        self.page.set_default_timeout(30_000)
        self.page.on("console", self._on_message)
        self.page.on("pageerror", lambda error: self.complaints.append(f"script: {error}"))
        self.page.on("dialog", lambda dialog: (self.complaints.append("dialog"), dialog.dismiss()))
        self._context.on("page", lambda _: self.complaints.append("another tab"))
        self.page.goto(
            self._url + (f"#q={quote(question, safe='')}" if question is not None else f"#{address}" if address else "")
        )

    def close(self) -> None:
        """Close the tab."""
        self._context.close()

    def _answer(self, route: Route) -> None:
        if route.request.url.partition("#")[0] == self._url:
            route.continue_()
        else:
            self.complaints.append(f"request: {route.request.url[:200]}")
            route.abort()

    def _on_message(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(f"{message.type}: {message.text[:500]}")

    def open_everything(self, place: str = "main") -> None:
        """Open every collapsed element that matches a selector, including the ones that this reveals."""
        self.page.evaluate(
            """place => {
                for (let round = 0; round < 20; round += 1) {
                    const closed = document.querySelectorAll(`:is(${place}) button[aria-expanded=false]`);
                    closed.forEach(button => button.click());
                    document.querySelectorAll(`:is(${place}) details`).forEach(each => { each.open = true; });
                }
            }""",
            place,
        )

    def serious_violations(self) -> list[str]:
        """Return axe-core's serious and critical violations, each with the first elements."""
        return [
            f"{violation['id']}: {[node['html'][:200] for node in violation['nodes'][:3]]} "
            f"{violation['nodes'][0].get('failureSummary', '')[:300]}"
            for violation in Axe().run(self.page).response["violations"]
            if violation["impact"] in _SERIOUS
        ]

    def lightness(self) -> float:
        """Return the lightness of the page's background, from 0 to 1."""
        value = self.page.evaluate(
            """() => {
                const colour = element => getComputedStyle(element).backgroundColor.match(/[\\d.]+/g).map(Number);
                const opaque = [document.body, document.documentElement].map(colour).find(c => c[3] !== 0);
                return (opaque[0] + opaque[1] + opaque[2]) / 765;
            }"""
        )
        return float(value)

    def is_wider_than_the_window(self) -> bool:
        """Return whether the page scrolls sideways."""
        return bool(self.page.evaluate("document.scrollingElement.scrollWidth > window.innerWidth"))
