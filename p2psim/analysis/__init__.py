"""What is made of results: comparisons, and forecasts to hold them against."""
