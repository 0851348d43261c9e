"""The blocks of a run of `tokenize`: which are done, which are still to do, and doing them."""

from __future__ import annotations

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import msgspec

from packtool.corpus import blocks
from packtool.corpus.pages import agree
from packtool.corpus.records import Block, CorpusFile
from packtool.corpus.source import OTHER_BYTES, changed
from packtool.engines import Engine
from packtool.progress import Progress
from packtool.storage.delivery import Delivery
from packtool.storage.reading import decode, read_file
from packtool.tokenizing import block as tasks
from packtool.tokenizing.span import too_many

_FALLBACK = "fallback.json"


class Job:
    """The blocks of a run: those finished earlier, and those still to do.

    A file that several blocks share is hashed as a whole by a piece of its own; these pieces come before the blocks.

    Args:
        engine: does them, or its share of them.
        delivery: where finished blocks go; by default they stay.

    Attributes:
        results: of the blocks that are done, by number.
        digests: of the files that several blocks share, by number.
        earlier: numbers of the blocks that an earlier run had done.
        pieces, pieces_here: how many there are, in all and in this run's share.
    """

    def __init__(
        self,
        context: tasks.Context,
        files: list[CorpusFile],
        engine: Engine,
        quiet: bool,
        delivery: Delivery | None = None,
    ) -> None:
        self.delivery = delivery or Delivery()
        self.context = context
        self.files = files
        self.engine = engine
        self.results: dict[int, tasks.BlockResult] = {}
        self.digests: dict[int, tasks.FileDigest] = {}
        self._quiet = quiet
        self._blocks = blocks.plan(files)
        self._work = Path(context.work)
        self._split = sorted({block[0].file for block in self._blocks if not block[0].whole})
        self.pieces = len(self._split) + len(self._blocks)
        share = engine.share
        self._mine = frozenset(range(self.pieces) if share is None else filter(share.has, range(self.pieces)))
        self.pieces_here = len(self._mine)
        known = self._mine if share is None or not share.merges else range(self.pieces)
        for piece, number in enumerate(self._split):
            if piece in known and (digest := self._hashed(number)) is not None:
                self.digests[number] = digest
        numbers = [number for number in range(len(self._blocks)) if self._piece(number) in known]
        with ThreadPoolExecutor(engine.workers, thread_name_prefix="packtool") as pool:
            finished = zip(numbers, pool.map(self._finished, numbers), strict=True)
            self.results |= {number: result for number, result in finished if result is not None}
        if share is None or not share.merges:
            tasks.forget(self._work, set(numbers) - self.results.keys())
        self.earlier = frozenset(self.results)

    def _piece(self, block: int) -> int:
        return len(self._split) + block

    def _hashed(self, number: int) -> tasks.FileDigest | None:
        """What an earlier run found a file to be."""
        try:
            return decode(read_file(tasks.digest_record(self._work, number)), tasks.FileDigest)
        except (FileNotFoundError, ValueError):
            return None

    def _finished(self, number: int) -> tasks.BlockResult | None:
        """What an earlier run made of a block; None where that is not, or no longer, as it was written."""
        try:
            result = decode(read_file(tasks.block_record(self._work, number)), tasks.BlockResult)
        except (FileNotFoundError, ValueError):
            return None
        directory = tasks.block_directory(self._work, number)
        return result if all(self.delivery.holds(directory, file) for file in result.files()) else None

    def start_again(self, encoder: str) -> None:
        """Forget what the other encoder did."""
        others = {number for number, result in self.results.items() if result.encoder != encoder}
        tasks.forget(self._work, others)
        for number in others:
            del self.results[number]
        self.earlier = self.earlier & self.results.keys()
        recipe = msgspec.structs.replace(self.context.recipe, encoder=encoder)
        self.context = msgspec.structs.replace(self.context, recipe=recipe)

    def missing(self) -> list[int]:
        """The pieces that are still to do, whoever does them."""
        split = [piece for piece, number in enumerate(self._split) if number not in self.digests]
        return split + [self._piece(n) for n in range(len(self._blocks)) if n not in self.results]

    def run(self) -> None:
        """Do what is still to do of this run's share."""
        for number, found in self.results.items():
            self._send(number, found)
        todo, left = [], 0
        for piece in sorted(self._mine.intersection(self.missing())):
            if piece < len(self._split):
                todo.append(tasks.Task(self._split[piece], (), (self.files[self._split[piece]],)))
            else:
                number = piece - len(self._split)
                block = self._blocks[number]
                todo.append(tasks.Task(number, block, tuple(self.files[span.file] for span in block)))
                left += self._bytes(block)
        done = sum(self._bytes(self._blocks[number]) for number in self.results)
        with (
            Progress(done + left, "tokenize", initial=done, quiet=self._quiet) as progress,
            closing(self._results(todo, progress)) as results,
        ):
            for number, result in results:
                if isinstance(result, tasks.FileDigest):
                    self.digests[todo[number].number] = result
                    if self.context.destination is None:
                        self.delivery.send(self._work, (), tasks.digest_record(self._work, todo[number].number))
                else:
                    self.results[todo[number].number] = result
                    self._send(todo[number].number, result)
                    progress.add_tokens(_tokens(result))
                    self._limit_errors()
        self._limit_errors()
        self._require_unchanged()

    def _send(self, number: int, result: tasks.BlockResult) -> None:
        """Let a finished block go, if no worker has done so."""
        directory = tasks.block_directory(self._work, number)
        if self.context.destination is not None and number not in self.earlier:
            self.delivery.arrived(directory, result.files())
        else:
            self.delivery.send(directory, result.files(), tasks.block_record(self._work, number))

    def _require_unchanged(self) -> None:
        """Make sure that the digests of files that several blocks share are of the bytes that were tokenized.

        Raises:
            DataError: one is not; the blocks that it is about are not kept.
        """
        wrong: list[int] = []
        for number, result in self.results.items():
            for span in result.spans:
                whole = self.digests.get(span.file)
                if whole is not None and not agree(whole.pages, span.pages):
                    self.delivery.forget(tasks.block_record(self._work, number))
                    self.delivery.forget(tasks.digest_record(self._work, span.file))
                    wrong.append(span.file)
        if wrong:
            raise changed(self.files[min(wrong)], OTHER_BYTES)

    def _results(
        self, todo: list[tasks.Task], progress: Progress
    ) -> Generator[tuple[int, tasks.BlockResult | tasks.FileDigest], None, None]:
        function = partial(tasks.run, self.context)
        shared = self._work / "tokenizer.json" if self.context.destination is None else None
        prepare = partial(tasks.prepare, self.context)
        yield from self.engine.run(function, todo, on_advance=progress.advance, prepare=prepare, shared=shared)

    def _bytes(self, block: Block) -> int:
        """Bytes of a block, for progress; where a file has several, about."""
        if block[0].whole:
            return sum(self.files[span.file].bytes for span in block)
        number = block[0].file
        return self.files[number].bytes // sum(other[0].file == number for other in self._blocks)

    def done_now(self) -> dict[str, int]:
        """Bytes of text and tokens of this run, without what an earlier one had finished."""
        results = [result for number, result in self.results.items() if number not in self.earlier]
        return {
            "text_bytes": sum(span.bytes for result in results for span in result.spans),
            "tokens": sum(map(_tokens, results)),
        }

    def _limit_errors(self) -> None:
        limit = self.context.max_errors
        if limit is not None and sum(span.rejects for r in self.results.values() for span in r.spans) > limit:
            raise too_many(limit)

    def in_order(self) -> list[tuple[Path, tasks.BlockResult]]:
        """Each block's directory and result."""
        return [(tasks.block_directory(self._work, number), self.results[number]) for number in sorted(self.results)]


def write_fallback(work: Path, why: str, delivery: Delivery) -> None:
    """Take note that the slower encoder has to encode all blocks: for tasks that begin later, and for a resumed run."""
    delivery.record(work / _FALLBACK, msgspec.json.encode(why))


def read_fallback(work: Path) -> str:
    """Why the slower encoder has to encode all blocks; empty where it need not."""
    try:
        return decode(read_file(work / _FALLBACK), str)
    except (FileNotFoundError, ValueError):
        return ""


def _tokens(result: tasks.BlockResult) -> int:
    return sum(shard.tokens.shape[0] for shard in result.shards)
