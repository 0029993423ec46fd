"""Forecasts of scenarios: what their runs will reach, whom it pays to join, and what to choose."""
