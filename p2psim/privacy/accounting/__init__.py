"""What releases cost: noises as accountants know them, lists of charges, and accountants that add them up.

Every known noise has one number that says what a release costs: its *loss*, the sensitivity of what is released over
the scale of its noise, in the noise's own norm. Data sets are neighbours when one record of the one is replaced by
another.
"""
