"""What the guide shows runs as shown, in the order in which it stands, and gives what is shown."""

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from p2psim.data.sources import downloaded

ROOT = Path(__file__).parents[1]
GUIDE = (ROOT / "docs" / "guide.md").read_text(encoding="utf-8")

#: Language and text of each block, in order.
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.S)

#: Commands that change the environment, which the guide describes and the README's commands do.
NOT_RUN = ("pip install",)

#: Parts of lines that depend on the machine: times, rates, memory, rounding, identities.
VARYING = re.compile(
    r"^time: .*|about [\d.,]+ MB a process.*|identity [\w…]+|this one is [\w…]+|[\d.]+e[-+]\d+ \(up to"
    r"|difference of the others [\d.e-]+|^ +\d+ +\d+ +[\d.]+ +[\d.]+e\+\d+$",
    re.M,
)


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block and what each shows."""
    parts = re.split(r"^\$ (.*)\n", block, flags=re.M)[1:]
    return list(zip(parts[::2], parts[1::2], strict=True))


def rounded(text: str) -> list[str]:
    """Words of a text, numbers to three digits, without what depends on the machine."""
    number = re.compile(r"\d*\.?\d+(e[+-]?\d+)?")
    return [
        f"{float(word):.3g}" if number.fullmatch(word) else word
        for line in VARYING.sub("", text).splitlines()
        for word in line.split()
    ]


def assert_shown(shown: str, printed: str) -> None:
    """Everything shown was printed, in order; an ellipsis alone in a line stands for lines that are left out."""
    have = rounded(printed)
    for part in re.split(r"^…$", shown, flags=re.M):
        wanted = rounded(part)
        places = [k for k in range(len(have) - len(wanted) + 1) if have[k : k + len(wanted)] == wanted]
        assert places, f"not printed:\n{part}\nprinted:\n{printed}"
        have = have[places[0] + len(wanted) :]


def run(arguments: list[str], folder: Path) -> str:
    """What a command prints; the guide shows both streams as one."""
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, timeout=600)
    return done.stdout + done.stderr


@pytest.mark.verification
@pytest.mark.timeout(900)
def test_the_guide_in_its_order(tmp_path: Path) -> None:
    without = "movielens" if downloaded.located(downloaded.DOWNLOADS["movielens-100k"]) is None else None
    shutil.copytree(ROOT / "scenarios", tmp_path / "scenarios")
    ran = 0
    for number, (language, block) in enumerate(BLOCKS):
        following = BLOCKS[number + 1] if number + 1 < len(BLOCKS) else ("", "")
        if language == "yaml" and (name := re.match(r"name: (\w+)$", block, re.M)):
            (tmp_path / f"{name[1]}.yaml").write_text(block)
        elif language == "python":
            assert following[0] == "text", "what a script prints is shown after it"
            main = "".join(f"    {line}\n" for line in block.splitlines())
            (tmp_path / "script.py").write_text(f"if __name__ == '__main__':\n{main}")
            assert_shown(following[1], run([sys.executable, "script.py"], tmp_path))
        elif language == "console":
            for command, shown in commands(block):
                if not command.startswith(NOT_RUN) and (without is None or without not in command):
                    assert_shown(shown, run([sys.executable, "-m", *shlex.split(command)], tmp_path))
                    ran += 1
    assert ran >= 14
