"""A scenario: its text, its model, the rules between its sections, its sweep, and its cells."""
