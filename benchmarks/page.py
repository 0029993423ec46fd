"""Measure how long a page of a run takes to draw a frame in Chromium, at 20,000 and 200,000 events.

    python benchmarks/page.py [--smoke] [--rounds 3]

A star with so many events is run and its page opened from disk. Work on the main thread is timed,
at moments all over the run: with a stretch in which single events are drawn, with a tenth of the run, and with
the whole run. Needs playwright (`pip install "p2psim[browser]"`) and Chromium; without them nothing is measured.
"""

import shutil
import tempfile
from collections import defaultdict
from pathlib import Path

from measuring import HERE, Row, print_part, progress, rounds, spread

#: Measurements by name, one a round.
Found = dict[str, list[float]]

#: Frames at each width of the stretch.
FRAMES = 60
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run"]
#: Milliseconds of work for each of several moments, at a width of the stretch as a share of the run.
FRAME = """([share, frames]) => {
  const { seek, show, frame, state } = window.p2psim, last = seek(1e9), end = last.time, times = [];
  for (let i = 0; i < frames; i++) {
    seek(Math.floor((last.seq * (i + 0.5)) / frames));
    const middle = state().time;
    show(middle - (share * end) / 2, middle + (share * end) / 2);
    times.push(frame().milliseconds);
  }
  return times;
}"""


def page_of(events: int, folder: Path) -> Path:
    """The page of a star with about so many events."""
    import p2psim
    from p2psim.report.page import write_page
    from p2psim.scenario.model import Scenario

    sets = [
        "replicas=1", "record.events=true", "record.every=100", "data.source.points=100", "data.source.agents=40",
        "network.topology.agents=40", "sweep={privacy.epsilon: [1]}", f"learning.algorithm.horizon={events // 6}",
    ]  # fmt: skip
    result = p2psim.run(Scenario.load(HERE / "star.yaml", sets), folder, progress=False, jobs=1)
    return write_page(result)


def measure(most: int, sizes: tuple[int, ...]) -> Found:
    """Frames of pages of these sizes, round by round."""
    from playwright.sync_api import sync_playwright

    found: Found = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        pages = {size: page_of(size, Path(folder, str(size))) for size in sizes}
        browser = started.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for _ in rounds(most):
            for size, path in pages.items():
                progress(f"page of {size:,} events")
                page = browser.new_page(viewport={"width": 1400, "height": 900})
                page.goto(path.as_uri())
                page.evaluate("window.p2psim.ready")
                times = [t for share in (0.002, 0.1, 1.0) for t in page.evaluate(FRAME, [share, FRAMES])]
                times.sort()
                found[f"{size} median"].append(times[len(times) // 2])
                found[f"{size} slowest"].append(times[-1])
                found[f"{size} mb"].append(path.stat().st_size / 1e6)
                page.close()
        browser.close()
    return found


def measured(most: int, smoke: bool) -> tuple[Found, list[Row]]:
    """What is measured, small if it is only to be seen that it runs."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return {}, [("pages", "not measured: playwright is not installed", "")]
    if shutil.which("chromium") is None:
        return {}, [("pages", "not measured: Chromium is not installed", "")]
    sizes = (2_000,) if smoke else (20_000, 200_000)
    found, told = measure(most, sizes), []
    for size in sizes:
        wanted = "below 16" if size <= 20_000 else "at most 100"
        told.append(
            (f"page of {size:,} events: work per frame, ms", spread(found[f"{size} median"], 1), wanted)
        )
        told.append(
            (
                f"page of {size:,} events: slowest frame, ms",
                spread(found[f"{size} slowest"], 1),
                "at most 100",
            )
        )
        told.append((f"page of {size:,} events, MB", spread(found[f"{size} mb"], 2), "below 5"))
    return found, told


if __name__ == "__main__":
    print_part(__doc__, measured, 3)
