"""Names of accountants in scenarios."""

from typing import Annotated

# Registers those of p2psim.
from p2psim.privacy.accounting import accountants as _accountants  # noqa: F401
from p2psim.registry import NameOf

#: The name of any accountant that is registered.
AccountantName = Annotated[str, NameOf("accountant")]
