"""Names of the accountants; cheap to import."""

from typing import Literal, get_args

AccountantName = Literal["basic", "advanced", "kov", "rdp", "zcdp", "gaussian", "pld", "best"]

ACCOUNTANT_NAMES: tuple[str, ...] = get_args(AccountantName)
