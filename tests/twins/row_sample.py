"""A sample of rows as its definition says it, one row at a time."""

import math


def row_sample(numbers, codes, most, fading=1.0):
    """Return the rows kept of a stream whose rows draw these numbers."""
    kept = []
    for at in range(len(numbers)):
        kept.append(at)
        age = {row: at - row for row in kept}
        by_number = sorted(kept, key=lambda row: math.log(numbers[row]) - age[row] * math.log(fading))
        first = {}
        for row in by_number:
            first.setdefault(codes[row], []).append(row)
        always = {row for rows in first.values() for row in rows[:2]}
        kept = [
            row
            for row in sorted(by_number)
            if row in always or (row in by_number[:most] and numbers[row] < fading ** age[row])
        ]
    return kept
