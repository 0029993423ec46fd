"""Models that are PyTorch modules where PyTorch is absent: what is said, and that nothing else needs it."""

import os
import subprocess
import sys

import pytest
from plugin_cases import PLUGINS

from p2psim.core.errors import MissingSourceError
from p2psim.learning.models.torch_model import import_torch

#: Whatever imports PyTorch fails, as if it were not installed.
ABSENT = (
    "import sys; sys.modules['torch'] = None; from p2psim.cli.main import main; sys.exit(main(sys.argv[1:]))"
)
PARTS = ("--parts", "p2psim_torch_parts")


def without(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in an interpreter without PyTorch."""
    path = os.pathsep.join([str(PLUGINS), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, "-c", ABSENT, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
        timeout=200,
    )


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(
        MissingSourceError,
        match=r"^learning\.model: PyTorch is not installed, .*; run pip install 'p2psim\[torch\]'$",
    ):
        import_torch()


def test_a_model_is_listed_but_not_computed() -> None:
    listed = without("list", "convolution", *PARTS)
    assert listed.returncode == 0, listed.stderr
    assert "square grey images" in listed.stdout
    checked = without("check", str(PLUGINS / "convolution.yaml"), *PARTS)
    assert checked.returncode == 2
    assert (
        "learning.model: PyTorch is not installed, which this needs; run pip install 'p2psim[torch]'"
        in checked.stderr
    )
    assert "Traceback" not in checked.stderr


def test_a_scenario_names_no_module() -> None:
    """Only what was let in and registered is known by its kind."""
    for kind in ("convolution", "p2psim_torch_parts:Convolution", "torch.nn.Linear"):
        refused = without("check", str(PLUGINS / "convolution.yaml"), "--set", f"learning.model={kind}")
        assert refused.returncode == 2
        assert "learning.model" in refused.stderr
