"""Random inputs, mostly wrong, each with what an independent parse makes of it.

    python -m tests.text.corpus.fuzz KIND CASES [SEED]

reads as many files of one kind: jsonl, archive, parquet or looks, which are beginnings of files of every format. Text
for text what the readers give must be what Python's own parsers give; `packtool.tokenize` must count the same over all
files at once, and must fail exactly on files with a bad record when told to. Run it in a process of its own: memory and
time are bounded, and a crash is seen.
"""

import json
import random
import re
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from zipfile import ZipFile

import pyarrow as pa
from pyarrow import parquet

import packtool
from packtool.errors import PacktoolError
from packtool.options.tokenize import TokenizeArguments
from packtool.text.corpus.discover import discover_files
from packtool.text.corpus.find import find_texts
from packtool.text.corpus.first import first_record
from packtool.text.corpus.read import SpanReader
from packtool.text.corpus.records import Fields, Span
from tests.text.corpus.archives import COMPRESS, zstd_checked
from tests.text.corpus.reading import WRITERS

LIMIT = 1 << 20
MEMORY = {"jsonl": 1 << 29, "archive": 1 << 30, "parquet": 5 << 30}
"""Bytes. A damaged header of a Parquet page may ask Arrow for up to 2 GiB, and two may be read at once."""
MAGIC = re.compile(rb"\x1f\x8b|\x28\xb5\x2f\xfd|BZh|\xfd7zXZ\x00|PAR1|[\x50-\x5f]\x2a\x4d\x18")
OTHERS = re.compile(rb"(?:\xef\xbb\xbf)?\s*(?:\[|\{[^\n]*[{\[,]?\s*\n)|[\0\x80\xff\xfe<]")
"""Beginnings of JSON over several lines, and of what is not read."""
BATCH = 500
SECONDS = 300  # for one batch; it takes two


@dataclass
class Case:
    """A file, and what may come of it: possible lists of texts, with the number of rejects where that is certain.

    Attributes:
        first: where damage may show anywhere, the texts before it; some reject follows.
    """

    data: bytes
    outcomes: list[tuple[list[str], int | None]]
    first: list[str] | None = None


def parse(data: bytes) -> tuple[list[str], int]:
    """JSON Lines as Python reads them: texts, and how many lines can't be used."""
    data = data.removeprefix(b"\xef\xbb\xbf")
    texts, bad = [], 0
    for line in data.split(b"\n"):
        if not line.strip(b" \t\r").removeprefix(b"\xef\xbb\xbf").strip(b" \t\r"):
            continue
        try:
            if len(line.removesuffix(b"\r")) > LIMIT:
                raise ValueError
            record = line.strip(b" \t\r").removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r")
            text = json.loads(record.decode(), parse_int=float)["text"]
            if not isinstance(text, str) or record[:1] != b"{":
                raise ValueError
            text.encode()
            texts.append(text)
        except (ValueError, LookupError, TypeError, AttributeError):
            bad += 1
    return texts, bad


def text(draw: random.Random) -> str:
    """A text with all that makes trouble."""
    alphabets = ("abc de", "äöü \u2028\x85", "日本語", "😀\U0001f9ff", '"\\/\n\t\r', "\ufeff\ufffd\x7f")
    return "".join(draw.choice(draw.choice(alphabets)) for _ in range(draw.randrange(40)))


def line(draw: random.Random) -> bytes:
    """A line of JSON, or what looks like one."""
    good = json.dumps({"id": draw.randrange(99), "text": text(draw)}, ensure_ascii=draw.random() < 0.5).encode()
    other = draw.choice(
        [
            b'{"text": "a", "x": NaN, "y": -Infinity}',
            b'{"text": "a", "x": %s}' % (b"9" * draw.choice([5, 5000])),
            b'{"x": "\\ud800", "text": "a"}',
            b'{"text": "\\ud83d\\ude00 \\ud83d"}',
            b'{"text": "a", "x": "\xff"}',
            b'{"text": "\xed\xa0\x80"}',
            b'{"text": 1, "text": "a"}',
            b'{"text": "a", "text": null}',
            b'{"x": {"text": "a"}}',
            b'["text"]',
            b'[{"text": "a"}]',
            b'"text"',
            b"17",
            b"\x0b" + good,
            b" \t" + good + b" \r",
            b" \t \r",
            b"\x0c",
            b"",
            good + good,
            good[: draw.randrange(len(good))],
            b'{"text":',
            b'"a"}',
            b'{"x": ' + b"[" * 400 + b"]" * 400 + b', "text": "a"}',
            b'{"te\\u0078t": "a"}',
            b"\xef\xbb\xbf" + good,
            good.replace(b'"', b"'"),
            b'{"text": "a\x00b"}',
        ]
    )
    if draw.random() < 0.002:
        other = b'{"text": "%s"}' % (b"0" * draw.choice([LIMIT - 13, LIMIT - 12, LIMIT - 11, 3 * LIMIT]))
    return good if draw.random() < 0.6 else other


def mutate(draw: random.Random, data: bytes) -> bytes:
    """A few bytes flipped, cut out, doubled or put in."""
    out = bytearray(data)
    for _ in range(draw.randrange(1, 4)):
        at = draw.randrange(len(out) + 1)
        match draw.randrange(4):
            case 0 if at < len(out):
                out[at] ^= 1 << draw.randrange(8)
            case 1:
                del out[at : at + draw.randrange(1, 9)]
            case 2:
                out[at:at] = out[at : at + draw.randrange(1, 9)]
            case _:
                out[at:at] = bytes(draw.choice([0, 10, 13, 34, 92, 123, 125, 255]) for _ in range(draw.randrange(1, 4)))
    return bytes(out)


def jsonl(draw: random.Random) -> Case:
    """JSON Lines, mutated every other time."""
    data = draw.choice([b"\n", b"\n", b"\r\n"]).join(line(draw) for _ in range(draw.randrange(12)))
    data = b"\xef\xbb\xbf" * (draw.random() < 0.05) + data + b"\n" * (draw.random() < 0.8)
    if draw.random() < 0.5:
        data = mutate(draw, data)
    is_binary = b"\0" in data and not parse(data)[0]  # without a record, zero bytes make it no text
    if is_binary or MAGIC.match(data) or OTHERS.match(data):
        data = b'{"text": "first"}\n' + data
    return Case(data, [parse(data)])


def archive(draw: random.Random) -> Case:
    """Members of one kind, of which one is damaged every other time: what comes before it stays."""
    kind = draw.choice(list(COMPRESS))
    compress: Callable[[bytes], bytes] = zstd_checked if kind == "zstd" else COMPRESS[kind]
    raws = [b"".join(line(draw) + b"\n" for _ in range(draw.randrange(1, 6))) for _ in range(draw.randrange(1, 4))]
    if not raws[0].strip(b" \t\r\n") or OTHERS.match(raws[0]):
        raws[0] = b'{"text": "first"}\n' + raws[0]
    members = [compress(raw) for raw in raws]
    whole = parse(b"".join(raws))
    if draw.random() < 0.5:
        return Case(b"".join(members), [whole])
    damaged = draw.randrange(len(members))
    before = parse(b"".join(raws[:damaged]))
    data = b"".join([*members[:damaged], mutate(draw, members[damaged]), *members[damaged + 1 :]])
    if not MAGIC.match(data):  # it does not look like an archive any more
        return Case(data, [])
    return Case(data, [whole], before[0])


def table(draw: random.Random) -> Case:
    """A Parquet file with checksums; damage to its pages is found, and leaves what came before."""
    texts = [text(draw) if draw.random() < 0.9 else None for _ in range(draw.randrange(1, 60))]
    sink = pa.BufferOutputStream()
    parquet.write_table(
        pa.table({"id": range(len(texts)), "text": pa.array(texts, pa.string())}),
        sink,
        row_group_size=draw.randrange(1, 30),
        compression=draw.choice(["none", "snappy", "zstd"]),
        use_dictionary=draw.random() < 0.5,
        write_statistics=False,
        write_page_checksum=True,
    )
    data: bytes = sink.getvalue().to_pybytes()
    kept = [each for each in texts if each is not None]
    if draw.random() < 0.3:
        return Case(data, [(kept, texts.count(None))])
    wanted = max(kept, key=len, default="").encode()
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    at = data.find(wanted, 0, footer) if len(wanted) > 8 else -1
    if at < 0 or draw.random() < 0.2:  # headers and footer have no checksum: anything may come of them but a crash
        return Case(mutate(draw, data), [])
    at += draw.randrange(len(wanted))
    damaged = data[:at] + bytes([data[at] ^ 1 << draw.randrange(8)]) + data[at + 1 :]
    return Case(damaged, [(kept[:count], None) for count in range(len(kept) + 1)])


def beginnings(draw: random.Random, folder: Path) -> Iterator[Path]:
    """Files of every format, cut, or with damage near their beginning or end: any may come of them but a crash."""
    records = [
        {"id": place, "messages": [{"role": "user", "content": "a"}], "text": text(draw), "n": [0.5]}
        for place in range(3)
    ]
    for name, write in WRITERS.items():
        write(folder / "whole", records)
        data = (folder / "whole").read_bytes()
        at = draw.choice([0, max(len(data) - 300, 0)])
        damaged = data[:at] + mutate(draw, data[at : at + 300]) + data[at + 300 :]
        if draw.random() < 0.3:
            damaged = damaged[: draw.randrange(len(damaged))]
        path = folder / f"begun.{name}"
        path.write_bytes(damaged)
        yield path


def look(path: Path) -> str:
    """What a command begins with; the code of what it refuses."""
    try:
        texts = find_texts(TokenizeArguments(str(path), str(path.parent / "o")))
        for file in texts.files:
            first_record(file)
    except PacktoolError as error:
        return f"exit {error.exit_code}"
    return "exit 0"


def looks(cases: int, seed: int) -> Counter[str]:
    """Look at damaged files, and at all that arrow-testing has of them."""
    draw, seen = random.Random(seed), Counter[str]()
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for _ in range(cases):
            sys.stderr.write(f"{seed} {sum(seen.values())}\n")
            seen.update(map(look, beginnings(draw, folder)))
        with ZipFile(Path(__file__).with_name("arrow_testing.zip")) as archive:
            for name in archive.namelist():
                sys.stderr.write(f"{name}\n")
                seen[look(Path(archive.extract(name, folder)))] += 1
    return seen


def check(case: Case, path: Path) -> tuple[int, int]:
    """Read one file and compare; the numbers of its texts and rejects."""
    try:
        [file] = discover_files(path).files
    except PacktoolError:
        return -1, 0
    batches = list(SpanReader(file, Span(0), Fields(), limit=LIMIT))
    texts = [each for batch in batches for each in batch.documents]
    rejects = sum(len(batch.rejects) for batch in batches)
    fits = [found for found, bad in case.outcomes if found == texts and bad in (None, rejects)]
    begins = case.first is not None and texts[: len(case.first)] == case.first and rejects > 0
    if case.outcomes and not fits and not begins:
        raise AssertionError(f"{path.name}: {case.data!r} gave {texts!r} and {rejects} rejects")
    return len(texts), rejects


KINDS = {"jsonl": jsonl, "archive": archive, "parquet": table}


def batch(draw: random.Random, kind: str, cases: int, folder: Path, seen: Counter[str]) -> None:
    """Some files: each read, then all tokenized at once, then a few one by one."""
    expected = []
    corpus = folder / "corpus"
    corpus.mkdir()
    for number in range(cases):
        case = KINDS[kind](draw)
        path = corpus / f"{number:04d}.{'parquet' if kind == 'parquet' else 'jsonl'}"
        path.write_bytes(case.data)
        expected.append((path, *check(case, path)))
        seen[kind] += 1
    options = {"workers": 1, "max_record_bytes": LIMIT, "encoder": "tokenizers"}
    result = packtool.tokenize(corpus, folder / "store", on_error="skip", **options)  # type: ignore[arg-type]
    counted = {file["name"]: file for file in result.run["files"]}
    for path, texts, rejects in expected:
        file = counted[path.name]
        assert (file["documents"] + file["empty"], file["rejected"]) == (texts, rejects), path.read_bytes()
    for path, texts, rejects in draw.sample(expected, 10):
        try:
            result = packtool.tokenize(path, folder / path.name, **options)  # type: ignore[arg-type]
            assert not rejects, path.read_bytes()
            assert result.counts["documents"] + result.counts["empty"] == texts
            seen["exit 0"] += 1
        except PacktoolError as error:
            assert rejects, path.read_bytes()
            seen[f"exit {error.exit_code}"] += 1


def peak_memory() -> int:
    """Bytes that this process held at most."""
    found = re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())
    return int(found[1]) << 10


def main(kind: str, cases: int, seed: int) -> None:
    """Run, and say how many of what."""
    warnings.simplefilter("ignore")
    if kind == "looks":
        sys.stdout.write(json.dumps(looks(cases, seed)) + "\n")
        return
    draw = random.Random(f"{kind} {seed}")
    seen: Counter[str] = Counter()
    for first in range(0, cases, BATCH):
        signal.alarm(SECONDS)
        with tempfile.TemporaryDirectory() as folder:
            batch(draw, kind, min(BATCH, cases - first), Path(folder), seen)
    signal.alarm(0)
    assert peak_memory() < MEMORY[kind], f"{peak_memory():,} bytes of memory"
    kinds = {name: seen[name] for name in sorted(seen)}
    sys.stdout.write(json.dumps({**kinds, "peak_mib": peak_memory() >> 20}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
