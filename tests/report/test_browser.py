"""The page in real headless Chromium: it draws, sorts, searches, opens nodes, and nothing runs that should not."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dssgnn.report import write_report
from report.folders import HOSTILE, write_bare_folder, write_folder

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]


def share(text: str) -> float:
    """The number of ``84.3 %`` or ``> 99.9 %``."""
    return float(text.strip("<>\u00a0%"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    if CHROMIUM is None:
        pytest.skip("needs a chromium on the path (Debian: apt-get install chromium)")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("reports")
    ids = [f"{HOSTILE}{k}" for k in range(300)]
    folders = {
        "plain": write_folder(root / "a", nodes=900),
        "bare": write_bare_folder(root / "b"),
        "edgeless": write_folder(root / "c", nodes=200, graph=False),
        "hostile": write_folder(
            root / "d",
            nodes=300,
            classes=(HOSTILE, "' onload='alert(1)", "x" * 300),
            graph_name=HOSTILE,
            ids=ids,
        ),
        "one class": write_folder(root / "e", nodes=120, classes=(7,)),
    }
    outliers = {"plain": {"another": np.linspace(-2, 3, 50)}, "hostile": {HOSTILE: np.linspace(-2, 3, 50)}}
    for name, folder in folders.items():
        write_report(folder, root / f"{name}.html", outliers=outliers.get(name))
    return {name: root / f"{name}.html" for name in folders}


class Watched:
    """A page, and everything that it complained of or asked for."""

    def __init__(self, browser: Any, path: Path, **context: Any) -> None:
        self.page = browser.new_page(**context)
        self.trouble: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", lambda message: self.trouble.append(message.text))
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.trouble.append("alert"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_selector("html[data-ready]", state="attached", timeout=10_000)
        self.page.wait_for_function(
            "[...document.querySelectorAll('.plot')].every((plot) => plot.firstChild)"
        )

    def column(self, key: str) -> list[str]:
        keys: list[str] = self.page.eval_on_selector_all(
            "#table thead th", "all => all.map(th => th.dataset.key)"
        )
        return list(
            self.page.locator(f"#table tbody tr > :nth-child({keys.index(key) + 1})").all_inner_texts()
        )

    def focused(self) -> str:
        return str(self.page.evaluate("document.activeElement.closest('tr')?.dataset.k ?? ''"))

    def overflows(self) -> bool:
        return bool(self.page.evaluate("document.documentElement.scrollWidth > innerWidth"))


@pytest.fixture
def plain(browser: Any, reports: dict[str, Path]) -> Iterator[Watched]:
    watched = Watched(browser, reports["plain"])
    yield watched
    assert watched.trouble == []
    watched.page.close()


@pytest.mark.parametrize("name", ["plain", "bare", "edgeless", "hostile", "one class"])
@pytest.mark.parametrize("width", [360, 1200])
def test_draws_without_a_complaint_at_any_width(
    browser: Any, reports: dict[str, Path], name: str, width: int
) -> None:
    watched = Watched(browser, reports[name], viewport={"width": width, "height": 740})
    page = watched.page
    assert not watched.overflows()
    page.locator("#table tbody tr").first.click()
    page.wait_for_selector("dialog[open]")
    assert not page.evaluate("(d => d.scrollWidth > d.clientWidth)(document.querySelector('dialog'))")
    page.keyboard.press("Escape")
    assert page.locator("img").count() == 0
    assert not page.evaluate(
        "[...document.querySelectorAll('svg *')].some((e) => /NaN|undefined|Infinity/.test(e.outerHTML))"
    )
    assert "undefined" not in page.inner_text("body")
    assert "NaN" not in page.inner_text("body")
    assert watched.trouble == []
    assert watched.requests == [reports[name].as_uri()]
    page.close()


def test_every_figure_of_a_full_folder_is_drawn(plain: Watched) -> None:
    figures = plain.page.locator("figure")
    assert figures.count() == 12
    for k in range(12):
        assert figures.nth(k).locator("svg[role=img]").count() >= 1
        assert "Bad:" in figures.nth(k).inner_text() or figures.nth(k).get_attribute("id").startswith("by-")
    assert plain.page.locator("#reliability .count").count() == 10
    assert plain.page.locator(".tile").count() == 4


def test_sorting(plain: Watched) -> None:
    head = plain.page.locator("#table thead th[data-key=confidence]")
    for order, falling in (("descending", True), ("ascending", False)):
        head.get_by_role("button").click()
        assert head.get_attribute("aria-sort") == order
        shown = [share(text) for text in plain.column("confidence")]
        assert shown == sorted(shown, reverse=falling)
    assert plain.page.locator("#table th[aria-sort=descending], #table th[aria-sort=ascending]").count() == 1
    plain.page.locator("#table thead th[data-key=id] button").press("Enter")
    ids = [int(text) for text in plain.column("id")]
    assert ids == sorted(ids)


def test_searching_filtering_and_showing_more(plain: Watched) -> None:
    page = plain.page
    assert len(plain.column("id")) == 25
    page.locator("#more").click()
    assert len(plain.column("id")) == 75
    page.locator("#kind").select_option("wrong")
    assert all(text.startswith("✗") for text in plain.column("prediction"))
    page.locator("#kind").select_option("sample")
    assert all("sample" in text for text in plain.column("kinds"))
    page.locator("#kind").select_option("")
    wanted = plain.column("id")[3]
    page.locator("#search").fill(wanted)
    assert wanted in plain.column("id")
    page.locator("#search").fill("EDGE of the b")
    rows = zip(plain.column("label"), plain.column("prediction"), strict=True)
    assert all("edge of the board" in label + prediction for label, prediction in rows)
    page.locator("#search").fill("no such node")
    assert plain.column("id") == []
    assert page.locator("#count").inner_text() == "No listed node matches."


def test_a_node_by_keyboard_alone(plain: Watched) -> None:
    page = plain.page
    page.locator("#table tbody tr").first.focus()
    page.keyboard.press("ArrowDown")
    second = plain.focused()
    page.keyboard.press("Enter")
    dialog = page.locator("dialog[open]")
    name = plain.column("id")[1]
    assert dialog.locator("h2").inner_text() == f"Node {name}"
    values = [share(text) for text in dialog.locator(".bar-value").all_inner_texts()]
    assert sum(values) == pytest.approx(100, abs=0.2)
    assert dialog.locator("svg.near .node, .absent").count() >= 1
    page.keyboard.press("ArrowRight")
    assert dialog.locator("h2").inner_text() == f"Node {plain.column('id')[2]}"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Escape")
    assert dialog.count() == 0
    assert plain.focused() == second


def test_a_neighbour_that_is_listed_opens(plain: Watched) -> None:
    page = plain.page
    for k in range(25):
        page.locator("#table tbody tr").nth(k).click()
        linked = page.locator("dialog .node.linked")
        if linked.count():
            name = linked.first.get_attribute("aria-label").removeprefix("Open ")
            linked.first.press("Enter")
            assert page.locator("dialog h2").inner_text().lower() == name
            return
        page.keyboard.press("Escape")
    pytest.fail("no listed node has a listed neighbour")


def test_light_and_dark(browser: Any, reports: dict[str, Path]) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = Watched(browser, reports["plain"], color_scheme="dark")
    light = Watched(browser, reports["plain"], color_scheme="light")
    night, day = dark.page.evaluate(ground), light.page.evaluate(ground)
    assert night != day
    dark.page.locator("#theme").press("Enter")
    assert dark.page.evaluate(ground) == day
    # Chromium writes a page's storage in another process, later on a busy machine.
    dark.page.wait_for_timeout(500)
    dark.page.reload()
    assert dark.page.evaluate(ground) == day  # remembered
    light.page.locator("#theme").click()
    light.page.emulate_media(media="print")
    assert light.page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "light"
    for watched in (dark, light):
        assert watched.trouble == []
        watched.page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast(browser: Any, reports: dict[str, Path], scheme: str) -> None:
    watched = Watched(browser, reports["plain"], color_scheme=scheme)
    read = "(name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()"

    def luminance(name: str) -> float:
        code = watched.page.evaluate(read, name).removeprefix("#")
        code = "".join(2 * c for c in code) if len(code) == 3 else code
        part = np.array([int(code[k : k + 2], 16) / 255 for k in (0, 2, 4)])
        linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def contrast(front: str, back: str) -> float:
        low, high = sorted([luminance(front), luminance(back)])
        return (high + 0.05) / (low + 0.05)

    for front in ("--ink", "--mute", "--blue", "--orange", "--green"):
        for back in ("--card", "--ground"):
            assert contrast(front, back) >= 4.5, (front, back)
    for k in range(8):
        assert contrast("--ink", f"--c{k}") >= 4.5, k
    watched.page.close()


def test_a_resized_window_is_drawn_again(plain: Watched) -> None:
    width = "document.querySelector('#risk svg[role=img]').getAttribute('width')"
    before = int(plain.page.evaluate(width))
    plain.page.set_viewport_size({"width": 360, "height": 700})
    plain.page.wait_for_function(f"{width} < {before}")
    assert not plain.overflows()
