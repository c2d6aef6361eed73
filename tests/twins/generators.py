"""Generators with known truth, slow and obvious: one row, one rule, one coin at a time, from the tables of rules."""

from __future__ import annotations

import math


def person(rng):
    """One row of AGRAWAL: salary, commission, age, elevel, car, zipcode, hvalue, hyears, loan."""
    salary = rng.uniform(20_000, 150_000)
    commission = 0.0 if salary >= 75_000 else rng.uniform(10_000, 75_000)
    zipcode = rng.randint(0, 8)
    return (
        salary, commission, rng.randint(20, 80), rng.randint(0, 4), rng.randint(0, 19), zipcode,
        (9 - zipcode) * 100_000 * rng.uniform(0.5, 1.5), rng.randint(1, 30), rng.uniform(0, 500_000),
    )  # fmt: skip


def agrawal(f, row):
    """The class of a person: 0 where the rule holds."""
    salary, commission, age, elevel, _, _, hvalue, hyears, loan = row
    young, middle = age < 40, 40 <= age < 60
    if f == 1:
        holds = young or age >= 60
    elif f in (2, 6):
        income = salary + (commission if f == 6 else 0)
        if young:
            holds = 50_000 <= income <= 100_000
        elif middle:
            holds = 75_000 <= income <= 125_000
        else:
            holds = 25_000 <= income <= 75_000
    elif f == 3:
        holds = elevel in ({0, 1} if young else {1, 2, 3} if middle else {2, 3, 4})
    elif f == 4:
        if young:
            low, high = (25_000, 75_000) if elevel in {0, 1} else (50_000, 100_000)
        elif middle:
            low, high = (50_000, 100_000) if elevel in {1, 2, 3} else (75_000, 125_000)
        else:
            low, high = (50_000, 100_000) if elevel in {2, 3, 4} else (25_000, 75_000)
        holds = low <= salary <= high
    elif f == 5:
        if young:
            low, high = (100_000, 300_000) if 50_000 <= salary <= 100_000 else (200_000, 400_000)
        elif middle:
            low, high = (200_000, 400_000) if 75_000 <= salary <= 125_000 else (300_000, 500_000)
        else:
            low, high = (300_000, 500_000) if 25_000 <= salary <= 75_000 else (100_000, 300_000)
        holds = low <= loan <= high
    else:
        disposable = 2 / 3 * (salary + commission)
        if f == 7:
            disposable -= loan / 5 + 20_000
        elif f == 8:
            disposable -= 5_000 * elevel + 20_000
        elif f == 9:
            disposable -= 5_000 * elevel + loan / 5 + 10_000
        else:
            equity = hvalue * (hyears - 20) / 10 if hyears >= 20 else 0
            disposable -= 5_000 * elevel + 10_000 - equity / 5
        holds = disposable > 0
    return 0 if holds else 1


COLORS = ["black", "blue", "cyan", "brown", "red", "green", "yellow", "magenta"]
LEVELS = ["veryLow", "low", "normal", "high", "veryHigh"]
PAYMENTS = [0, 30, 60, 90, 120, 150, 180, 210, 240]


def asset_negotiation(f, row):
    """The class of an offer of codes (color, price, payment, amount, deliveryDelay): 1 if it interests."""
    color, payment = COLORS[row[0]], PAYMENTS[row[2]]
    price, amount, delay = ((LEVELS + ["other"] * 3)[row[j]] for j in (1, 3, 4))
    if f == 1:
        wanted = (price == "normal" and amount == "high") or (
            color == "brown" and price == "veryLow" and delay == "high"
        )
    elif f == 2:
        wanted = price == "high" and amount == "veryHigh" and delay == "high"
    elif f == 3:
        wanted = (price == "veryLow" and payment == 0 and amount == "high") or (
            color == "red" and price == "low" and payment == 30
        )
    elif f == 4:
        wanted = (color == "black" and payment == 90 and delay == "veryLow") or (
            color == "magenta" and price == "high" and delay == "veryLow"
        )
    else:
        wanted = (color == "blue" and payment == 60 and amount == "low" and delay == "normal") or (
            color == "cyan" and amount == "low" and delay == "normal"
        )
    return int(wanted)


def binary(name, bits):
    """The class of the relevant bits of BG1, BG2 or BG3."""
    if name == "BG1":
        return int(all(bits))
    a, b, c = bits
    if name == "BG2":
        return int((a and b) or (a and c) or (b and c))
    return int((a and b and c) or not (a or b or c))


def binary_row(name, sampler, wanted, rng):
    """Three relevant bits of a class, as a sampler draws them."""
    bits = [rng.randint(0, 1) for _ in range(3)]
    if sampler == "uniform":
        while binary(name, bits) != wanted:
            bits = [rng.randint(0, 1) for _ in range(3)]
    elif name == "BG1" and wanted:
        bits = [1, 1, 1]
    elif name == "BG1":
        bits = [bit if rng.random() < 0.5 else 0 for bit in bits]
        while all(bits):
            bits = [bit if rng.random() < 0.5 else 0 for bit in bits]
    elif name == "BG2" and wanted:
        if sum(bits) < 2:
            for j in rng.choice([(0, 1), (0, 2), (1, 2)]):
                bits[j] = 1
    elif name == "BG2":
        bits = [0, 0, 0]
        bits[rng.randrange(3)] = 1
    elif wanted:
        bits = [1, 1, 1] if rng.randrange(3) == 0 else [0, 0, 0]
    elif sum(bits) in (0, 3):
        j = rng.randrange(3)
        bits[j] = 1 - bits[j]
    return bits


def stagger(f, row):
    """The class of an object (size small, medium, large; color red, blue, green; shape circle, square, triangle)."""
    size = ["small", "medium", "large"][row[0]]
    color = ["red", "blue", "green"][row[1]]
    shape = ["circle", "square", "triangle"][row[2]]
    if f == 1:
        return int(size == "small" and color == "red")
    if f == 2:
        return int(color == "green" or shape == "circle")
    return int(size in ("medium", "large"))


def redundant(kind, x, low, high):
    """The value made from x where it is not disturbed."""
    middle, width = (low + high) / 2, high - low
    return {
        "linear": lambda: x,
        "copy": lambda: x,
        "quadratic": lambda: (x - middle) ** 2,
        "gaussian": lambda: math.exp(-((x - middle) ** 2) / (2 * (width / 4) ** 2)),
        "cosine": lambda: math.cos(2 * math.pi * (x - low) / width),
    }[kind]()


def share_of_new(t, drift, width):
    """The probability that row t comes from the concept after the drift."""
    return 1 / (1 + math.exp(-4 * (t - drift) / width))


def splitmix64(state):
    """The published generator: the next state, and the number it gives."""
    mask = (1 << 64) - 1
    state = (state + 0x9E3779B97F4A7C15) & mask
    z = state
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return state, z ^ (z >> 31)
