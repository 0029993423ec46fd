"""What every room stands on: errors, options, random numbers, events, and the registry of parts."""

__version__ = "0.2.0"
