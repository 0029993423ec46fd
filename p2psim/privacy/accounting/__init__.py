"""What releases cost: noises by their dominating pairs, lists of releases, and accountants that add them up.

Neighbouring data differ in one record that is replaced by another. Everything is an upper bound on the loss of the
real-number mechanism.
"""
