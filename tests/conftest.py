"""What all tests share: the same examples of properties in every run, and only the parts that ship unless asked for."""

import gc
import os
import signal
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

COMMON = settings(deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("p2psim", COMMON, max_examples=40)
#: For a night: ``pytest --hypothesis-profile=thorough`` tries other examples each time, and more of them.
settings.register_profile("thorough", COMMON, max_examples=400, derandomize=False)
settings.load_profile("p2psim")

# Compile three kernels for all networks, and not one for each set of parts (`test_specialised_kernels`), in this
# process and in those that tests start.
os.environ["P2PSIM_TEST_ALL_PARTS"] = "1"

# Tables fit the terminal: in tests it has the width that is taken where there is none.
os.environ["COLUMNS"] = "80"

# Started in the background or by nohup, a process ignores these, and so would each that tests start and interrupt.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)  # ignored here still, and not where another program starts

# No test switches the machine off, and flushing to disk would take longer than most runs of tests.
os.fsync = lambda descriptor: None

#: The package whose parts some tests register by importing it, which other tests must not see.
EXAMPLES = "p2psim_example_parts"


def _show_examples_only_where_they_are_named(module: Path) -> None:
    if EXAMPLES not in sys.modules:
        return
    from own_parts import parts_of, registered, show

    text, examples = module.read_text(encoding="utf-8"), parts_of(EXAMPLES)
    others = {key: part for key, part in registered().items() if key not in examples}
    is_named = EXAMPLES in text or "from registered import" in text or "import registered" in text
    show(others | examples if is_named else others)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Importing a module may register the examples, and the next one's parameters may be all that is registered."""
    if isinstance(collector, pytest.Module):
        _show_examples_only_where_they_are_named(collector.path)
    return (yield)


@pytest.fixture(scope="module", autouse=True)
def _examples_only_where_they_are_named(request: pytest.FixtureRequest) -> None:
    _show_examples_only_where_they_are_named(Path(request.module.__file__))


def pytest_collection_finish() -> None:
    """Modules and tests that were collected stay: no test looks through them for garbage."""
    gc.collect()
    gc.freeze()
