"""One simulation as a function: a scenario and a replica in, events, records and models out."""
