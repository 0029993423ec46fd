"""Budgets of agents from a table in a CSV file, which become those that a scenario lists itself."""

import math
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, ValidationInfo

from p2psim.core.errors import InputError
from p2psim.core.files import DataPath
from p2psim.network.agent_tables import AgentTable


class BudgetTable(AgentTable):
    """Budgets from a table with one agent per line."""

    column: ClassVar[str] = "epsilon"
    key: ClassVar[str] = "privacy.epsilon"

    path: DataPath = Field(description="a CSV file with columns agent, epsilon")

    def _number(self, text: str, place: str) -> float:
        return math.inf if text.strip() in ("inf", ".inf") else super()._number(text, place)


def with_budgets(privacy: Any, info: ValidationInfo) -> Any:
    """Put the numbers of a table in the place of its path, so that a resolved scenario has them.

    Raises
    ------
    ValueError
        If the table cannot be read.
    """
    epsilon = privacy.get("epsilon") if isinstance(privacy, Mapping) else None
    # An agent may be called path, but its budget is a number.
    if not isinstance(epsilon, Mapping) or not isinstance(epsilon.get("path"), str):
        return privacy
    try:
        table = BudgetTable.model_validate(dict(epsilon), context=info.context).read()
    except InputError as error:
        said = str(error).removeprefix("privacy.").replace(" a epsilon ", " an epsilon ")
        raise ValueError(said) from None
    return {**privacy, "epsilon": {name: value for name, (value, _) in table.items()}}
