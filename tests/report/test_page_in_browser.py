"""The pages in a real browser, wide and narrow, light and dark: what a reader can see, reach and do there."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from gpolicy.ganeti.commands import shell_line
from tests.cli.command_line import ROOT, gpolicy

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium (the extra `test`)")
from selenium.webdriver.chrome.service import Service  # noqa: E402
from selenium.webdriver.common.action_chains import ActionChains  # noqa: E402
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (BROWSER and DRIVER), reason="needs a browser: apt-get install chromium chromium-driver fonts-dejavu-core"
    ),
]

STATE: Final = ("--state", f"snapshot:{ROOT / 'policies/two-groups.snapshot.json'}")
POLICY: Final = ROOT / "policies/two-groups"
PAGES: Final[dict[str, tuple[str | Path, ...]]] = {
    "plan": ("plan", POLICY, *STATE),
    "capacity": ("capacity", *STATE, "--score"),
    "drift": ("drift", POLICY, *STATE),
    "suggest": ("suggest", *STATE),
    "evacuate": ("evacuate", *STATE, "node1.example.org"),
    "remedy": ("remedy", *STATE),
    "size": ("size", *STATE, "--like", "node1.example.org", "--want", "40x memory=8G disk=100G"),
    "place": ("place", *STATE, "memory=4G", "vcpus=2", "disk=20G"),
    "show": ("show", POLICY),
    "check": ("check", POLICY),
    "test": ("test", POLICY),
}
ALLOWED: Final = "allowed"
"""The page of the same plan, with its guard overridden."""
WIDTHS: Final = (1400, 420)
MANY: Final = "many/index"
"""The page of several clusters: one is not as its policy says, one cannot be read."""
WALL: Final = "wall/index"
"""The page of the same clusters for a wall."""
SITES: Final = {MANY: ("plan", "--all"), WALL: ("clusters",), "wall/ham": ("clusters",)}
SETTINGS: Final = f"""
[clusters.ham]
policy = "{POLICY.name}"
state = "snapshot:cluster.json"
[clusters.ber]
policy = "{POLICY.name}"
state = "snapshot:absent.json"
"""


class Reader:
    """A browser with one page open."""

    def __init__(self, driver: Any, folder: Path) -> None:
        self.driver, self.folder = driver, folder

    def open(self, name: str, *, width: int = 1400, scheme: str = "light") -> None:
        file = self.folder / f"{name}.html"
        if not file.exists() and name in SITES:
            shutil.copytree(POLICY, self.folder / POLICY.name, dirs_exist_ok=True)
            shutil.copy(ROOT / "policies/two-groups.snapshot.json", self.folder / "cluster.json")
            (self.folder / "gpolicy.toml").write_text(SETTINGS, encoding="utf-8")
            gpolicy(*SITES[name], "--pages", file.parent, cwd=self.folder)
        elif not file.exists():
            verb = (*PAGES["plan"], "--allow", "no-shrink") if name == ALLOWED else PAGES[name]
            file.write_text(gpolicy(*verb, "--format", "html").stdout, encoding="utf-8")
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(file.as_uri())

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def unfold(self) -> None:
        self.run("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def press(self, *keys: str) -> None:
        ActionChains(self.driver).send_keys(*keys).perform()


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--force-prefers-reduced-motion"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        yield Reader(driver, tmp_path_factory.mktemp("pages"))
    finally:
        driver.quit()


@pytest.mark.parametrize(("name", "heading"), [("capacity", "fits"), ("plan", "after"), ("plan", "what")])
def test_a_narrow_window_shows_figures_without_scrolling(reader: Reader, name: str, heading: str) -> None:
    reader.open(name, width=420)
    cells = [one for one in reader.driver.find_elements(By.CSS_SELECTOR, f"td[data-is='{heading}']") if one.text]
    assert cells
    assert all(one.rect["x"] + one.rect["width"] <= 420 for one in cells)
    roles = reader.run("return [...document.querySelectorAll('.wide tr')].map((row) => row.getAttribute('role'))")
    assert set(roles) == {"row"}
    gaps = reader.run("return [...document.querySelectorAll('.wide td')].filter((cell) => cell.textContent === '-')")
    assert gaps
    assert not any(gap.is_displayed() for gap in gaps)  # a cell that says nothing takes no line of its own


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", [*PAGES, *SITES])
def test_nothing_is_wider_than_the_window(reader: Reader, name: str, width: int) -> None:
    """What is wider scrolls in its own box, which the keyboard reaches."""
    reader.open(name, width=width)
    reader.unfold()
    outside = reader.run(
        """
        const scrolls = (one) => one
          && (/auto|scroll/.test(getComputedStyle(one).overflowX) || scrolls(one.parentElement));
        return [...document.querySelectorAll('body *')]
          .filter((one) => !one.closest('.skip, .again, script') && one.getBoundingClientRect().right > innerWidth + 1)
          .filter((one) => !scrolls(one)).map((one) => one.outerHTML.slice(0, 120));
        """
    )
    assert outside == []
    assert reader.run("return document.documentElement.scrollWidth") <= width
    unreachable = reader.run(
        """
        return [...document.querySelectorAll('.wide, pre')]
          .filter((one) => one.scrollWidth > one.clientWidth && one.tabIndex < 0)
          .map((one) => one.outerHTML.slice(0, 120));
        """
    )
    assert unreachable == []


def test_the_wall_is_read_on_a_telephone_and_from_afar(reader: Reader) -> None:
    sizes = {}
    for width in (360, 1280, 1920):
        reader.open(WALL, width=width)
        wide = "return [document.documentElement, ...document.querySelectorAll('.wide')].map((one) => one.scrollWidth)"
        assert max(reader.run(wide)) <= width
        value = "return getComputedStyle(document.querySelector('td .value')).fontSize"
        sizes[width] = float(reader.run(value).removesuffix("px"))
    assert sizes[360] >= 18
    assert sizes[1920] >= 1.3 * sizes[1280] > 26


def test_an_index_that_nobody_writes_any_more_says_so(reader: Reader) -> None:
    reader.open(WALL)
    assert "ago" not in reader.find(".made").text
    file = reader.folder / f"{WALL}.html"
    text = file.read_text(encoding="utf-8")
    file.with_name("late.html").write_text(re.sub('data-made="[^"]*"', 'data-made="2026-01-01T00:00:00Z"', text))
    reader.open("wall/late")
    assert "hours ago" in reader.find(".made.bad").text


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["plan", "capacity", "drift", "suggest", "evacuate", *SITES])
def test_the_keyboard_reaches_everything_and_shows_where_it_is(reader: Reader, name: str, width: int) -> None:
    reader.open(name, width=width)
    wanted = reader.run(
        """
        const all = [...document.querySelectorAll('a[href], button, input, summary, [tabindex="0"]')];
        window.wanted = all.filter((one) => one.checkVisibility());
        return window.wanted.length;
        """
    )
    assert wanted > 3
    reached, unseen = set(), []
    for _ in range(wanted + 2):
        reader.press(Keys.TAB)
        place, outline = reader.run(
            """
            const here = document.activeElement;
            return [window.wanted.indexOf(here), getComputedStyle(here).outlineStyle];
            """
        )
        reached.add(place)
        if place >= 0 and outline == "none":
            unseen.append(place)
    assert reached >= set(range(wanted))
    assert unseen == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", [*PAGES, *SITES])
def test_text_can_be_told_from_its_ground(reader: Reader, name: str, scheme: str) -> None:
    """WCAG 2 AA: a contrast of 4.5, of 3 for large text."""
    reader.open(name, scheme=scheme)
    reader.unfold()
    weak = reader.run(
        """
        const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
        const parts = (colour) => {
          canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
          return [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
        };
        const light = (colour) => colour.slice(0, 3)
          .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
          .reduce((sum, part, place) => sum + part * [0.2126, 0.7152, 0.0722][place], 0);
        const ground = (one) => {
          const colour = one ? parts(getComputedStyle(one).backgroundColor) : [1, 1, 1, 1];
          return colour[3] > 0.99 || !one ? colour : ground(one.parentElement);
        };
        const weak = [];
        const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
        while (texts.nextNode()) {
          const one = texts.currentNode.parentElement;
          if (!texts.currentNode.data.trim() || one.closest('script, .again, title')) continue;
          if (!one.checkVisibility()) continue;
          const style = getComputedStyle(one);
          const colours = [parts(one.closest('svg') ? style.fill : style.color), ground(one)].map(light);
          const contrast = (Math.max(...colours) + 0.05) / (Math.min(...colours) + 0.05);
          const size = parseFloat(style.fontSize);
          const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
          if (contrast < (large ? 3 : 4.5)) weak.push([texts.currentNode.data.trim().slice(0, 40), contrast]);
        }
        return weak;
        """
    )
    assert weak == []


@pytest.mark.parametrize("name", [*PAGES, *SITES])
def test_nothing_is_loaded_and_the_policy_of_the_page_is_kept(reader: Reader, name: str) -> None:
    reader.open(name)
    assert "js" in reader.run("return document.documentElement.className")  # its own script runs
    sent = [json.loads(line["message"])["message"] for line in reader.driver.get_log("performance")]
    urls = {item["params"]["request"]["url"] for item in sent if item["method"] == "Network.requestWillBeSent"}
    assert urls <= {(reader.folder / f"{name}.html").as_uri()}
    assert reader.driver.get_log("browser") == []


def test_the_policy_of_the_page_stops_what_is_not_its_own(reader: Reader) -> None:
    reader.open("show")
    reader.run(
        """
        const made = (tag, properties) => document.body.append(Object.assign(document.createElement(tag), properties));
        made('script', { textContent: 'window.strange = 1' });
        made('style', { textContent: 'body { opacity: .5 }' });
        made('img', { src: 'https://example.org/x.png', onerror: null });
        """
    )
    assert reader.run("return [window.strange, getComputedStyle(document.body).opacity]") == [None, "1"]
    assert len([line for line in reader.driver.get_log("browser") if "Content Security Policy" in line["message"]]) == 3


def test_tables_are_sorted_and_filtered(reader: Reader) -> None:
    reader.open("plan")
    table = "[aria-label='Instances that fit beside those that are there']"
    rows = f'return [...document.querySelectorAll("{table} tbody tr")].filter((row) => !row.hidden)'
    read = f"{rows}.map((row) => [...row.cells].slice(0, 5).map((cell) => cell.textContent))"
    before = reader.run(read)
    then = reader.find(f"{table} th:nth-child(5) button")
    then.click()
    ups = reader.run(read)
    heads = [int(row[4]) for row in ups if not row[1].startswith("·")]
    assert heads == sorted(heads) != [int(row[4]) for row in before if not row[1].startswith("·")]
    assert all(row[0] in ("dedicated", "shared", "(cluster)") for row in ups)  # each with the name of its group
    for place, row in enumerate(before):
        if row[1].startswith("·"):  # "old size" stays below its row
            assert ups[ups.index(row) - 1][1] == before[place - 1][1]
    then.send_keys(Keys.ENTER)
    downs = [int(row[4]) for row in reader.run(read) if not row[1].startswith("·")]
    assert downs == heads[::-1] or sorted(downs, reverse=True) == downs
    then.send_keys(Keys.ENTER)
    assert reader.run(read) == before
    reader.find("input[aria-label='Filter Instances that fit beside those that are there']").send_keys("SHARED large")
    assert [row[:2] for row in reader.run(read)] == [["shared", "large"]]
    assert f"1 of {len(before)} rows" in reader.find(".filter [role=status]").text


def test_commands_of_a_stopped_plan_cannot_be_copied(reader: Reader) -> None:
    reader.open("plan")
    assert reader.driver.find_elements(By.CSS_SELECTOR, ".steps .command")
    assert not [one for one in reader.driver.find_elements(By.CSS_SELECTOR, "main button") if "Copy" in one.text]


def test_the_contents_show_what_gets_worse_and_commands_look_like_commands(reader: Reader) -> None:
    reader.open("plan")
    worse = reader.run("return [...document.querySelectorAll('nav a.bad')].map((one) => one.textContent)")
    assert worse == ["Guards", "Capacity", "Violations", "Location and migration"]
    assert "gpolicy remedy PLAN.JSON" in [
        one.text for one in reader.driver.find_elements(By.CSS_SELECTOR, ".note code")
    ]
    assert "`" not in reader.find("main").text
    reader.open(ALLOWED)
    assert "Guards" not in reader.run(
        "return [...document.querySelectorAll('nav a.bad')].map((one) => one.textContent)"
    )


def test_copying_gives_whole_commands(reader: Reader) -> None:
    reader.open(ALLOWED)
    steps = json.loads(gpolicy(*PAGES["plan"], "--format", "json").stdout)["steps"]
    commands = [shell_line(step["argv"]) for step in steps]
    for permission in ("clipboardReadWrite", "clipboardSanitizedWrite"):
        reader.driver.execute_cdp_cmd("Browser.grantPermissions", {"permissions": [permission, "clipboardReadWrite"]})
    clipboard = "const done = arguments[0]; navigator.clipboard.readText().then(done, (error) => done(String(error)))"
    buttons = reader.driver.find_elements(By.CSS_SELECTOR, ".steps .command button")
    assert len(buttons) == len(commands) > 5
    for button, command in zip(buttons[:3], commands, strict=False):
        reader.run("arguments[0].scrollIntoView({block: 'center'})", button)
        button.click()
        assert reader.driver.execute_async_script(clipboard) == command
    (whole,) = [one for one in reader.driver.find_elements(By.CSS_SELECTOR, "button") if "commands" in one.text]
    reader.run("arguments[0].scrollIntoView({block: 'center'})", whole)
    whole.click()
    assert reader.driver.execute_async_script(clipboard) == "\n".join(commands) + "\n"
    assert whole.text == "Copied"


def test_the_contents_follow_and_links_open_what_they_lead_to(reader: Reader) -> None:
    reader.open("plan")
    current = "return [...document.querySelectorAll('nav [aria-current]')].map((one) => one.textContent)"
    assert reader.run(current) == ["Guards"]
    reader.run("document.getElementById('steps').scrollIntoView()")
    reader.driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert reader.run(current) == ["Steps"]
    assert not reader.run("return document.getElementById('redundancy').open")
    reader.find("nav a[href='#redundancy']").click()
    assert reader.run("return document.getElementById('redundancy').open")


def test_light_and_dark_can_be_chosen(reader: Reader) -> None:
    reader.open("plan", scheme="dark")
    ground = "return getComputedStyle(document.body).backgroundColor"
    dark, button = reader.run(ground), reader.find("#theme")
    button.click()
    light = reader.run(ground)
    button.click()
    assert button.text == "Theme: dark"
    assert reader.run(ground) == dark != light


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_parts_of_a_node_can_be_told_apart(reader: Reader, scheme: str) -> None:
    """WCAG 2 AA asks for a contrast of 3 where a picture means something: a part against what lies beside it."""
    reader.open("evacuate", scheme=scheme)
    colours = reader.run(
        """
        const style = (kind) => getComputedStyle(document.querySelector(`.memory .${kind}`));
        return [style('used').fill, style('reserved').fill, style('reserved').stroke, style('free').fill]
          .map((colour) => colour.match(/[0-9]+/g).map(Number));
        """
    )
    used, reserved, line, free = map(_light, colours)
    for one, other in ((used, reserved), (used, free), (line, free)):
        assert (max(one, other) + 0.05) / (min(one, other) + 0.05) >= 3, colours


def _light(colour: list[int]) -> float:
    parts = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in (c / 255 for c in colour))
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["plan", "capacity", "suggest", "evacuate", "remedy", "size"])
def test_the_memory_of_nodes_is_seen_as_far_as_it_goes(reader: Reader, name: str, width: int) -> None:
    """Each bar is inside the window, its parts follow one another, and it has its numbers in words."""
    reader.open(name, width=width)
    reader.unfold()
    bars = reader.driver.find_elements(By.CSS_SELECTOR, ".memory svg")
    assert bars
    for bar in bars[:12]:
        place = bar.rect
        assert 0 <= place["x"] < place["x"] + place["width"] <= width
        assert place["width"] > 100
        assert " memory: " in bar.get_attribute("aria-label")
        parts = reader.run(
            """
            return [...arguments[0].querySelectorAll('rect:not(.free)')].map((one) =>
              [one.x.baseVal.value, one.x.baseVal.value + one.width.baseVal.value]);
            """,
            bar,
        )
        assert all(abs(end - start) < 0.05 for (_, end), (start, _) in itertools.pairwise(parts))
        assert all(0 <= start <= end <= 100.01 for start, end in parts)


def test_the_figures_of_pictures_appear_under_the_pointer(reader: Reader) -> None:
    reader.open("plan")
    dot = reader.find("circle.dot-newly:not(.legend *)")
    reader.run("arguments[0].scrollIntoView({block: 'center'})", dot)
    ActionChains(reader.driver).move_to_element(dot).perform()
    assert reader.find(".tip").text.startswith("1 instance of 14G memory, largest disk 60G: newly violating")


def test_without_scripts_everything_is_there(reader: Reader) -> None:
    reader.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        reader.open("plan")
        assert not reader.find(".tools").is_displayed()
        assert reader.find(".verdict").is_displayed()
        assert len(reader.driver.find_elements(By.CSS_SELECTOR, ".figures > li")) == 6
        assert reader.driver.find_elements(By.CSS_SELECTOR, "main button") == []
        assert all(one.is_displayed() for one in reader.driver.find_elements(By.CSS_SELECTOR, ".command"))
    finally:
        reader.driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
