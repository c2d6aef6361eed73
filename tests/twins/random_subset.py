"""A random subset as it is drawn: the first features of a shuffled list."""

import numpy as np


def random_subset(n_features, n_selected, seed):
    shuffled = np.random.RandomState(seed).permutation(n_features).tolist()
    return sorted(shuffled[:n_selected])
