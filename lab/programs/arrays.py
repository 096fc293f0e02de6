"""arrays.py ROUNDS: NumPy computes with arrays of kilobytes and megabytes, most of which are
temporary, and prints checksums."""

import sys

import numpy


def small(random):
    """Many arrays of up to some kilobytes."""
    total = 0
    for _ in range(4000):
        values = random.integers(0, 1000, random.integers(4, 800))
        total += int(numpy.unique(values[values % 3 == 0] * 2 + 1).sum())
    return total


def large(random):
    """Expressions whose parts are arrays of megabytes."""
    x = random.integers(-1000, 1000, 400_000)
    y = numpy.where(x % 2 == 0, x * 3 + 1, x // 2) + numpy.roll(x, 17) * (x > 0)
    grid = (y[:360_000].reshape(600, 600) - y.min()) % 97
    order = numpy.argsort(y, kind="stable")
    sums = numpy.cumsum(numpy.sort(y)[order % 1000])
    return int(sums[-1]) + int((grid.T @ grid)[::7].sum()) + int(numpy.bincount(grid.ravel()).max())


def words(random):
    """Arrays of strings and of objects."""
    texts = numpy.char.add("word-", random.integers(0, 5000, 20_000).astype(str))
    counts = numpy.unique(numpy.char.upper(texts), return_counts=True)[1]
    objects = numpy.array([(text, len(text)) for text in texts[:3000]], dtype=object)
    return int((counts * numpy.arange(len(counts))).sum()) + objects.size


for number in range(int(sys.argv[1])):
    generator = numpy.random.default_rng(number)
    print(number, small(generator), large(generator), words(generator))
