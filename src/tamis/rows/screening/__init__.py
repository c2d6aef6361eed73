"""Online screening: univariate T-score, Fisher score, mutual information, chi-square and Gini index of every feature.

Wang, Barbu: Online Feature Screening for Data Streams with Concept Drift, IEEE TKDE 35(11), 2023 (preprint 2021).
Covered: the mean-variance scores (Section 2.1) and the bin-count scores (Section 2.2), their running and faded forms,
sparse rows, and merging.

=============  ==================  ================================================================
paper          here                meaning
=============  ==================  ================================================================
n_c            count               (faded) number of values of the feature in class c
mu_c, sigma_c  mean, var           their mean and variance (divided by n_c)
alpha          `fading`            factor of the weight of older rows, or `half_life`
K              `n_bins`            bins of about equal weight
N_bc           T[b, c]             (faded) number of values in bin b of class c
eps            `eps`               largest error of a cumulative count, as a fraction of all
=============  ==================  ================================================================

With n = sum_c n_c, m = sum_c n_c m_c / n, r_b = sum_c T[b, c], k_c = sum_b T[b, c], and A_c, B_c the counts of class c
up to and beyond edge h, of sums a and b::

    T      = |m_1 - m_2| / sqrt(v_1 / e_1 + v_2 / e_2)                              (1)
    Fisher = sum_c n_c (m_c - m)^2 / sum_c n_c v_c                                  (2)
    F      = Fisher (n - C) / (C - 1)                                               (3)
    MI     = sum_bc T[b, c] / n log(T[b, c] n / (r_b k_c))                          (4)
    chi2   = sum_bc (T[b, c] - r_b k_c / n)^2 / (r_b k_c / n)                       (5)
    Gini   = max_h sum_c [A_c^2 / a + B_c^2 / b - k_c^2 / n] / n                    (6)

Errata and deviations, each with its reason:

* The printed MS - mu^2 suffers from cancellation if the mean is large: N(1e6, 1) gives a variance of 0.9966 for 0.9849.
  Deviations from the mean are summed instead.
* The printed faded mean and MS are faded *sums*, so their MS - mu^2 is not a variance (it gives -640 for 2.72): sums
  are divided by the faded count.
* e_c in (1) is the effective sample size W^2 / W2 of the faded rows; with the faded count T would be too small.
* The printed alpha = 0.9 cannot apply per row, where it leaves a window of 19 rows and detects nothing; `fade_per`
  determines whether it counts rows or calls. `clock` determines whether the rows of a class fade with all rows or with
  rows of that class.
* Three classes or more: T is the largest of the classes against their rest.
* The printed Algorithm 1 stores a pruned summary back at the level it came from, which voids its bound, and the printed
  update of exact weights is not a bound either; :mod:`tamis.summaries.quantiles` has a certificate instead.
* The printed Algorithm 3 compares the count of *one* bin with the *cumulative* cut h N / K, which gives five bins of
  [1, 200, 400, 399] for 1000 values. Here bin(x) = #{h : F(values below x) >= h / K}, ties included, which is the
  result of sorting all values. A very frequent value may span several bins, some of which are then empty.
* The printed zero count of a sparse feature includes the row of its last stored value: here the zeros are all rows
  minus the stored ones.
* The Gini index is printed as the remaining impurity, smaller for a better feature; (6) is the decrease of the impurity
  by the best edge, so that larger is more relevant in all scores.
* Categories (`categorical`) are unordered: each value is a bin of (4) and (5), and (6) splits the categories in two, in
  the order of their proportion of a class, for every class; for two classes this is the optimal split. In a feature of
  more than 32 categories, those of fewer than 5 rows share a bin, so that identifiers score 0.
* Faded counts are smaller than the evidence: p-values multiply (5), and G = 2 n MI, by W / W2, the effective number of
  rows per weight, which is 1 without fading.
"""

from __future__ import annotations

from tamis.rows.screening.screening import (
    ChiSquare,
    FisherScore,
    GiniIndex,
    MutualInformation,
    Screening,
    TScore,
)

__all__ = ["ChiSquare", "FisherScore", "GiniIndex", "MutualInformation", "Screening", "TScore"]
