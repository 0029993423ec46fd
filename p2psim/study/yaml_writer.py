"""Writing plain values as YAML that people read: sections in blocks, small parts on one line."""

import io
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.nodes import ScalarNode
from ruamel.yaml.representer import SafeRepresenter


class _Representer(SafeRepresenter):
    """Writes everything out: no anchors and aliases, which a reader would have to follow."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_str(self, data: str) -> ScalarNode:
        """Write text in double quotes, where all else has escapes, if it holds more than visible characters."""
        style = None if data.isprintable() else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", data, style)


_Representer.add_representer(str, _Representer.represent_str)


def write(tree: dict[str, Any]) -> str:
    """Write a tree of dictionaries, lists and scalars; reading it gives the same tree."""
    yaml = YAML(typ="safe", pure=True)
    yaml.Representer = _Representer
    yaml.default_flow_style = None  # in one line what has nothing nested
    yaml.allow_unicode = True
    yaml.width = 110
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    text = io.StringIO()
    yaml.dump(tree, text)
    return text.getvalue()
