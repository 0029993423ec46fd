"""Tutorials run as shown, in the order in which they stand, and print what is shown."""

import re
import shlex
import sys
from pathlib import Path

import pytest
from test_guide import NOT_RUN, assert_shown, commands, run

DOCS = Path(__file__).parents[1] / "docs"


@pytest.mark.verification
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("page", "count", "made"),
    [
        ("tutorial", 9, "runs/clinics/figures/curves-test_rmse.png"),
        ("tutorial_privacy", 8, "runs/wards/ledger.parquet"),
    ],
)
def test_a_tutorial_in_its_order(page: str, count: int, made: str, tmp_path: Path) -> None:
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    blocks = re.findall(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```', text, re.DOTALL | re.MULTILINE)
    ran = 0
    for number, (language, title, block) in enumerate(blocks):
        if language == "yaml":
            (tmp_path / f"{block.split()[1]}.yaml").write_text(block, encoding="utf-8")
        elif title:
            (tmp_path / title).write_text(block, encoding="utf-8")
        elif language == "python":
            (tmp_path / "script.py").write_text(block, encoding="utf-8")
            assert_shown(blocks[number + 1][2], run([sys.executable, "script.py"], tmp_path))
        elif language == "console":
            for command, shown in commands(block):
                if not command.startswith(NOT_RUN):
                    assert_shown(shown, run([sys.executable, "-m", *shlex.split(command)], tmp_path))
                    ran += 1
    assert ran == count
    assert (tmp_path / made).is_file()
