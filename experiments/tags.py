"""Ten tags of short texts: words selected for each tag, against as many words selected for one label.

    python experiments/tags.py

6,000 texts from a vocabulary of 2,000 words (Zipf). A text has each of ten tags with a probability of 30 to 1 %, and
each tag makes ten words, of any frequency, four times as likely. The first half of the stream selects words with mutual
information, eight for each tag, or as many as their union for one label: the rarest tag of a text (0 without tags), any
tag, or the mean score over tags. The second half tests a logistic regression for each tag: mean average precision over
all tags and over the three rarest, of five seeds.
"""

from __future__ import annotations

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score

from tamis import MutualInformation, PerTarget
from tamis.base import top_mask

N_TEXTS, N_WORDS, N_TAGS, PER_TAG = 6_000, 2_000, 10, 8
SHARES = np.geomspace(0.3, 0.01, N_TAGS)


def texts(seed):
    """Return the words that occur in each text, and its tags."""
    rng = np.random.default_rng(seed)
    rate = 8.0 / np.arange(1, N_WORDS + 1) ** 0.9
    tags = rng.random((N_TEXTS, N_TAGS)) < SHARES
    factor = np.ones((N_TEXTS, N_WORDS))
    for tag in range(N_TAGS):
        words = rng.choice(np.arange(20, N_WORDS), size=10, replace=False)
        factor[:, words] *= np.where(tags[:, tag], 4.0, 1.0)[:, None]
    return (rng.random((N_TEXTS, N_WORDS)) < 1.0 - np.exp(-rate * factor)).astype(np.float64), tags.astype(
        np.int64
    )


def learned(selector, X, y):
    for start in range(0, len(X), 500):
        selector.partial_fit(X[start : start + 500], y[start : start + 500])
    return selector


def precision(X, tags, mask):
    """Return the average precision of each tag in the second half."""
    half = len(X) // 2
    found = []
    for tag in range(N_TAGS):
        model = LogisticRegression(C=0.3, max_iter=500).fit(X[:half, mask], tags[:half, tag])
        found.append(average_precision_score(tags[half:, tag], model.predict_proba(X[half:, mask])[:, 1]))
    return np.array(found)


def run(seed):
    X, tags = texts(seed)
    rows, labels = X[: len(X) // 2], tags[: len(X) // 2]
    per_tag = learned(PerTarget(MutualInformation(PER_TAG, n_bins=2)), rows, labels)
    n_words = int(per_tag.price_)
    rarest = np.where(labels.any(axis=1), N_TAGS - labels[:, ::-1].argmax(axis=1), 0)
    masks = {
        "each tag (`PerTarget`)": per_tag.get_support(),
        "the rarest tag of a text": learned(MutualInformation(n_words, n_bins=2), rows, rarest).get_support(),
        "whether a text has a tag": learned(
            MutualInformation(n_words, n_bins=2), rows, labels.any(axis=1)
        ).get_support(),
        "the mean score over tags": top_mask(per_tag.scores_by_target_.mean(axis=0), n_words),
        "all words": np.ones(N_WORDS, dtype=bool),
    }
    return {name: (mask.sum(), *precision(X, tags, mask)) for name, mask in masks.items()}


def main():
    runs = [run(seed) for seed in range(5)]
    print("| words selected for | words | ten tags | three rarest tags |\n| --- | --- | --- | --- |")
    for name in runs[0]:
        values = np.array([one[name] for one in runs])
        print(
            f"| {name} | {values[:, 0].mean():.0f} | {values[:, 1:].mean():.3f} | {values[:, -3:].mean():.3f} |"
        )


if __name__ == "__main__":
    main()
