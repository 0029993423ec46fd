"""A central learner and its owners: algorithms, kernels, and their replay."""
