"""The page ``docs/reference/scenario-language.md``, written from the models.

``python -m p2psim.study.reference`` writes it anew.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

import p2psim
from p2psim.figures import FIGURES
from p2psim.study.catalogue import Part, parts
from p2psim.study.cells import display
from p2psim.study.core_schema import Schemas, phrase
from p2psim.study.meaning import all_meanings
from p2psim.study.scenario import Scenario
from p2psim.study.search import RANGES
from p2psim.study.sweep import MOST_CELLS


def _ranges() -> str:
    return ", ".join(f"`{name}`" for name in RANGES)


_INTRODUCTION = f"""# The scenario language

*Written from the models by `python -m p2psim.study.reference`; edit those, not this page.*

A scenario is a YAML 1.2 file (core schema: `1e-5` is a number, `yes` and `on` are text, duplicate keys are
errors, tags are refused). Everything has a default except what only you can know; unknown keys are errors
that suggest the nearest known one.

- A part with variants is `{{kind: NAME, ...}}`, or just `NAME` when its defaults do.
- A number that may differ between agents is a number for all, or a mapping from agent (index or label) or
  group to number. `.inf` is infinity. A name that is the index of one agent and the label of another is refused,
  unless the mapping names every agent by its label.
- A random quantity is a number or a distribution: `{{uniform: [10, 60]}}` (its ends), `{{exponential: 0.5}}` (its
  mean), `{{lognormal: {{median: 0.5, sigma: 1.0}}}}` (or its `mean`; sigma is that of the logarithm),
  `{{weibull: {{mean: 0.5, shape: 0.7}}}}`, `{{gamma: {{mean: 0.5, shape: 2.0}}}}`, or `{{empirical: delays.txt}}`
  (values of a file, one a line, each as likely as the others; the hash of its contents is written down).
- The sweep gives dotted keys lists of values: `privacy.epsilon: [10, 100]`. A position in a list counts from
  0: `data.features.1.components`. Each combination is a cell, the last key fastest; keys under `zip` advance
  together. A swept key may be left out of its section. More than {MOST_CELLS:,} cells must be confirmed.
- Points in ranges: `random: {{count: 50, seed: 1, keys: {{privacy.epsilon: {{log-uniform: [0.1, 100]}}}}}}` in the
  sweep; `sobol` and `halton` fill the ranges more evenly. A range is {_ranges()} of `[low, high]`, or `choice` of a
  list. A larger count keeps the points that there are; a resolved scenario holds them under `values`.
- `--set KEY=VALUE` takes a dotted key and a YAML value. The lists of a sweep are set as a whole:
  `--set 'sweep.privacy.epsilon=[1, 10]'`.
"""


def reference() -> str:
    """Return the page."""
    schemas = Schemas(Scenario)
    lines = [_INTRODUCTION]
    for part in parts(schemas):
        lines += _section(schemas, part)
    lines += ["## Metrics", "", "What `record.metrics` can name.", ""]
    lines += _table(
        ["metric", "meaning"], [[f"`{name}`", meaning] for name, meaning in all_meanings().items()]
    )
    lines += ["## Figures", "", "What `figure` and `p2psim plot --kind` can name.", ""]
    rows = [[f"`{name}`", figure.meaning, figure.needs] for name, figure in FIGURES.items()]
    lines += _table(["figure", "what it shows", "what it needs"], rows)
    return "\n".join(lines).rstrip() + "\n"


def page() -> Path:
    """Return where the page is in a checkout."""
    return Path(p2psim.__file__).parent.parent / "docs" / "reference" / "scenario-language.md"


def _section(schemas: Schemas, part: Part) -> Iterator[str]:
    if not part.key:
        title = "## The file"
    else:
        mark = "##" if "." not in part.key else "###"
        title = f"{mark} `{part.key}`" + (f": `{part.kind}`" if part.kind else "")
    yield from (title, "", part.meaning, "")
    rows = []
    model: Any = part.schema["cls"]
    for key, schema in schemas.fields(part.schema).items():
        field: FieldInfo = model.model_fields[key]
        if key == "kind":
            continue
        rows.append([f"`{key}`", phrase(schemas, schema), _default(field), field.description or ""])
    if rows:
        yield from _table(["key", "value", "default", "meaning"], rows)
    else:
        yield from ("No keys.", "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True)
    assert default is not PydanticUndefined
    return f"`{display(default)}`" if default is not None else ""


def _table(head: list[str], rows: list[list[str]]) -> Iterator[str]:
    yield f"| {' | '.join(head)} |"
    yield f"|{' --- |' * len(head)}"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def main() -> int:
    """Write the page."""
    page().parent.mkdir(parents=True, exist_ok=True)
    page().write_text(reference(), encoding="utf-8")
    print(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
