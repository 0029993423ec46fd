"""Audits of privacy: the code that releases, run many times on adjacent data."""
