"""``p2psim new --part KIND NAME``: a file with a part that works, to be changed, and its test."""

import keyword
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from p2psim.errors import Fault, InputError

#: Kinds that a file can be written of, and the keys with which its test makes the part.
TEMPLATES: Mapping[str, str] = {"topology": "agents=9, reach=2", "loss": "delta=0.5"}

_TEST = '''"""Whether the part keeps the protocol of its kind."""

from {module} import {name}

from p2psim.testing import check_part


def test_{module}() -> None:
    check_part({name}())
    check_part({name}({keys}))
'''


def new_part(kind: str, name: str, folder: str | Path = ".") -> list[Path]:
    """Write a part and its test.

    Parameters
    ----------
    kind : str
        One of `TEMPLATES`.
    name : str
        What scenarios call it: letters, digits and hyphens.
    folder : str or Path
        Made if need be.

    Returns
    -------
    list of Path
        The two files.

    Raises
    ------
    InputError
        If the kind is unknown, the name cannot be a part's, or a file is there already or cannot be written; then
        nothing is.
    """
    if kind not in TEMPLATES:
        raise InputError(
            f"--part: there is no file to begin with for {kind!r}, only for {', '.join(TEMPLATES)}"
        )
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise InputError(
            f"{name!r} is no name of a part: small letters, digits and hyphens, such as my-{kind}"
        )
    module, class_name = name.replace("-", "_"), "".join(word.capitalize() for word in name.split("-"))
    text = (files("p2psim.testing") / "templates" / f"{kind}.txt").read_text(encoding="utf-8")
    for word, value in (("__NAME__", name), ("__CLASS__", class_name), ("__MODULE__", module)):
        text = text.replace(word, value)
    test = _TEST.format(module=module, name=class_name, keys=TEMPLATES[kind])
    written = {Path(folder) / f"{module}.py": text, Path(folder) / f"test_{module}.py": test}
    for path in written:
        if path.exists():
            raise InputError(Fault("is there already; nothing was written", path=str(path)))
    for path, content in written.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        except OSError as error:
            raise InputError(
                Fault(f"cannot be written: {error.strerror or error}", path=str(path))
            ) from error
    return list(written)
