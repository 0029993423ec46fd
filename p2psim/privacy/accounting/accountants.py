"""All accountants by name."""

from __future__ import annotations

from p2psim.privacy.accounting.accountant import Accountant
from p2psim.privacy.accounting.advanced import ADVANCED
from p2psim.privacy.accounting.basic import BASIC
from p2psim.privacy.accounting.gaussian import GAUSSIAN_ACCOUNTANT
from p2psim.privacy.accounting.kov import KOV
from p2psim.privacy.accounting.rdp import RDP
from p2psim.privacy.accounting.zcdp import ZCDP

__all__ = ["ACCOUNTANTS", "Accountant"]

ACCOUNTANTS: dict[str, Accountant] = {
    accountant.name: accountant for accountant in (BASIC, ADVANCED, KOV, RDP, ZCDP, GAUSSIAN_ACCOUNTANT)
}
