"""Mechanisms, sensitivity, budgets, ledger and accountants: events are accounted for here."""
