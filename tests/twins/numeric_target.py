"""Levels of a number, its prediction and the expected squared error, as their definitions say."""


def levels(y, cuts):
    return [sum(cut < value for cut in cuts) for value in y]


def moments(y, codes):
    means, variances = [], []
    for level in sorted(set(codes)):
        own = [value for value, code in zip(y, codes, strict=True) if code == level]
        mean = sum(own) / len(own)
        means.append(mean)
        variances.append(sum((value - mean) ** 2 for value in own) / len(own))
    return means, variances


def prediction(posterior, means, variances):
    mean = sum(p * m for p, m in zip(posterior, means, strict=True))
    square = sum(p * (m**2 + v) for p, m, v in zip(posterior, means, variances, strict=True))
    return mean, (square - mean**2) ** 0.5


def squared_error(posterior, means, level):
    return (prediction(posterior, means, means)[0] - means[level]) ** 2
