"""Audits: the mechanism as configured, run on worst-case adjacent data by the production kernels, against its claim."""
