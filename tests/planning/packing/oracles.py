"""The greedy algorithms item by item, as the papers state them: slow, and plain enough to trust."""

from fractions import Fraction

Piece = tuple[int, int, int]
"""Document, start, length."""


def chunks(lengths: list[int], size: int) -> list[Piece]:
    """Documents cut to chunks of at most `size` tokens; a chunk of EOS alone is left out."""
    pieces = [(d, start, min(size, n - start)) for d, n in enumerate(lengths) for start in range(0, n, size)]
    return [(d, start, n) for d, start, n in pieces if not (n == 1 and start == lengths[d] - 1)]


def decreasing(items: list[Piece]) -> list[Piece]:
    return sorted(items, key=lambda item: -item[2])


def first_fit(items: list[Piece], capacity: int) -> list[list[Piece]]:
    bins: list[list[Piece]] = []
    room: list[int] = []
    for item in decreasing(items):
        for i, left in enumerate(room):
            if left >= item[2]:
                bins[i].append(item)
                room[i] -= item[2]
                break
        else:
            bins.append([item])
            room.append(capacity - item[2])
    return bins


def best_fit(items: list[Piece], capacity: int) -> list[list[Piece]]:
    """Among bins with the least sufficient room, the one that reached it first."""
    bins: list[list[Piece]] = []
    room: list[int] = []
    since: list[int] = []
    for time, item in enumerate(decreasing(items)):
        fitting = [i for i, left in enumerate(room) if left >= item[2]]
        if fitting:
            best = min(fitting, key=lambda i: (room[i], since[i]))
            bins[best].append(item)
            room[best] -= item[2]
            since[best] = time
        else:
            bins.append([item])
            room.append(capacity - item[2])
            since.append(time)
    return bins


def clip(items: list[Piece], size: int) -> list[Piece]:
    """The first `size` tokens of a bin."""
    kept = []
    for document, start, length in items:
        if size > 0:
            kept.append((document, start, min(length, size)))
        size -= length
    return kept


def cut(items: list[Piece], size: int) -> list[list[Piece]]:
    """Items joined to one stream and cut every `size` tokens."""
    rows: list[list[Piece]] = []
    room = 0
    for document, start, length in items:
        at = start
        while at < start + length:
            if not room:
                rows.append([])
                room = size
            taken = min(room, start + length - at)
            rows[-1].append((document, at, taken))
            at, room = at + taken, room - taken
    return rows


def settle(bins: list[list[Piece]], size: int) -> list[list[Piece]]:
    """Bins of at least `size` tokens clipped; the others joined and cut."""
    full = [items for items in bins if sum(n for _, _, n in items) >= size]
    short = [items for items in bins if sum(n for _, _, n in items) < size]
    return [clip(items, size) for items in full] + cut([item for items in short for item in items], size)


def seamless(lengths: list[int], size: int, repetition: Fraction, extra: int) -> list[list[Piece]]:
    rows: list[list[Piece]] = []
    short: list[Piece] = []
    for document, length in enumerate(lengths):
        n = length // size
        overlap = -((-n * repetition * size) // 1)
        if length % size and n and length + overlap >= (n + 1) * size:
            rows += [[(document, i * (length - size) // n, size)] for i in range(n + 1)]
        else:
            rows += [[(document, i * size, size)] for i in range(n)]
            if length % size > 1:
                short.append((document, n * size, length % size))
    return rows + settle(first_fit(short, size + extra), size)


def algorithm_1(lengths: list[int], sizes: list[int], threshold: Fraction) -> list[tuple[int, list[Piece]]]:
    """Algorithm 1 of Bucket Pre-training: the size of each bucket and the pieces in it."""
    sizes = sorted(sizes)
    documents = decreasing([(d, 0, n) for d, n in enumerate(lengths)])
    buckets: list[tuple[int, list[Piece]]] = []
    while documents:
        size = next((size for size in sizes if size >= documents[0][2]), sizes[-1])
        room, inside, left = size, [], []
        for document, start, length in documents:
            if length <= room:
                inside.append((document, start, length))
                room -= length
            elif not inside:
                inside.append((document, start, size))
                room = 0
                left.append((document, start + size, length - size))
            else:
                left.append((document, start, length))
        if left and Fraction(room, size) > threshold:
            # The shortest; of equal ones the last in the order.
            at = min(range(len(left)), key=lambda i: (left[i][2], -i))
            document, start, length = left[at]
            inside.append((document, start, room))
            left[at] = (document, start + room, length - room)
        buckets.append((size, inside))
        documents = left
    return buckets
