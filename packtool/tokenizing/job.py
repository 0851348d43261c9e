"""The pieces of a run of `tokenize`: the files that several blocks share, each hashed as a whole, then the blocks."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import msgspec

from packtool.corpus import blocks
from packtool.corpus.pages import agree
from packtool.corpus.records import Block, CorpusFile
from packtool.corpus.source import OTHER_BYTES, changed
from packtool.engines import Engine
from packtool.places.npy import FileEntry
from packtool.progress import Progress
from packtool.storage.names import TOKENIZER
from packtool.storage.output import Output
from packtool.storage.pieces import Pieces
from packtool.storage.schema import InputEntry
from packtool.tokenizing import block as tasks
from packtool.tokenizing.encoder_choice import instead

Done = tasks.BlockResult | tasks.FileDigest


class Job:
    """The pieces of a run: those finished earlier, and those still to do.

    Args:
        output: the blocks' scratch files and records lie there.
        engine: does them, or its share of them.

    Attributes:
        results: of the blocks that are done, by the number of the piece.
        digests: of the files that several blocks share, by the number of the file.
        earlier: numbers of the pieces that an earlier run had done.
        pieces, pieces_here: how many there are, in all and in this run's share.
    """

    def __init__(
        self, context: tasks.Context, files: list[CorpusFile], engine: Engine, output: Output, *, quiet: bool
    ) -> None:
        self.context = context
        self.files = files
        self.engine = engine
        self.results: dict[int, tasks.BlockResult] = {}
        self.digests: dict[int, tasks.FileDigest] = {}
        self._quiet = quiet
        self._blocks = blocks.plan(files)
        self._scratch = output.scratch
        self._split = sorted({block[0].file for block in self._blocks if not block[0].whole})
        self.pieces = len(self._split) + len(self._blocks)
        self._kept = Pieces(output, "block", Done, self._files)  # type: ignore[arg-type]
        share = engine.share
        mine = range(self.pieces) if share is None or share.merges else filter(share.has, range(self.pieces))
        done = self._kept.found(known := list(mine), engine)
        for piece, each in done.items():
            self._take(piece, each)
        self._mine = [] if share is not None and share.merges else known
        self.pieces_here = len(self._mine)
        self.earlier = frozenset(done)
        self._forget(set(self._mine) - done.keys())

    def _files(self, piece: int, done: Done) -> tuple[Path, list[FileEntry | InputEntry]]:
        found = done.files() if isinstance(done, tasks.BlockResult) else []
        return tasks.block_directory(self._scratch, piece), found

    def _take(self, piece: int, done: Done) -> None:
        if isinstance(done, tasks.FileDigest):
            self.digests[self._split[piece]] = done
        else:
            self.results[piece] = done

    def _forget(self, pieces: set[int]) -> None:
        """Leave nothing of pieces that are to be done, or done again."""
        for piece in pieces:
            self._kept.forget(piece)
        for left in self._scratch.glob("block-*"):
            if int(left.name.removeprefix("block-").partition(".")[0]) in pieces:
                shutil.rmtree(left)

    def start_again(self, why: str) -> None:
        """Let the reference encode; forget what the other encoder did."""
        recipe = instead(self.context.recipe, why)
        others = {piece for piece, result in self.results.items() if result.encoder != recipe.encoder}
        self._forget(others)
        for piece in others:
            del self.results[piece]
        self.earlier = self.earlier - others
        self.context = msgspec.structs.replace(self.context, recipe=recipe)

    def missing(self) -> list[int]:
        """List the pieces that are still to do, whoever does them."""
        return [piece for piece in range(self.pieces) if self._done(piece) is None]

    def run(self) -> None:
        """Do what is still to do of this run's share."""
        done = {piece: each for piece in self._mine if (each := self._done(piece)) is not None}
        bytes_of = {piece: self._bytes(self._block(piece)) for piece in self._mine if piece >= len(self._split)}
        before = sum(bytes_of[piece] for piece in done.keys() & bytes_of.keys())
        with Progress(sum(bytes_of.values()), "tokenize", initial=before, quiet=self._quiet) as progress:
            for piece, each in self._kept.run(
                partial(tasks.run, self.context),
                {piece: self._task(piece) for piece in self._mine},
                self.engine.processes,
                done=done,
                on_advance=progress.advance,
                prepare=partial(tasks.prepare, self.context),
                shared=self._scratch / TOKENIZER if not self.context.delivery.sends else None,
            ):
                if piece not in done:
                    self._take(piece, each)
                    progress.add_tokens(_tokens(each))
                    self._limit_errors()
        self._limit_errors()
        self._require_unchanged()

    def _done(self, piece: int) -> Done | None:
        return self.digests.get(self._split[piece]) if piece < len(self._split) else self.results.get(piece)

    def _block(self, piece: int) -> Block:
        return self._blocks[piece - len(self._split)]

    def _task(self, piece: int) -> tasks.Task:
        if piece < len(self._split):
            return tasks.Task(piece, (), (self.files[self._split[piece]],))
        return tasks.Task(piece, self._block(piece), tuple(self.files[span.file] for span in self._block(piece)))

    def _require_unchanged(self) -> None:
        """Make sure that the digests of files that several blocks share are of the bytes that were tokenized.

        Raises:
            DataError: one is not; the blocks that it is about are not kept.
        """
        wrong: list[int] = []
        for piece, result in self.results.items():
            for span in result.spans:
                whole = self.digests.get(span.file)
                if whole is not None and not agree(whole.pages, span.pages):
                    self._kept.forget(piece)
                    self._kept.forget(self._split.index(span.file))
                    wrong.append(span.file)
        if wrong:
            raise changed(self.files[min(wrong)], OTHER_BYTES)

    def _bytes(self, block: Block) -> int:
        """Return the bytes of a block, for progress; if a file has several, about."""
        if block[0].whole:
            return sum(self.files[span.file].bytes for span in block)
        number = block[0].file
        return self.files[number].bytes // sum(other[0].file == number for other in self._blocks)

    def done_now(self) -> dict[str, int]:
        """Return bytes of text and tokens of this run, without what an earlier one had finished."""
        results = [result for number, result in self.results.items() if number not in self.earlier]
        return {
            "text_bytes": sum(span.bytes for result in results for span in result.spans),
            "tokens": sum(map(_tokens, results)),
        }

    def _limit_errors(self) -> None:
        limit = self.context.max_errors
        if limit is not None and sum(span.rejects for r in self.results.values() for span in r.spans) > limit:
            raise tasks.too_many(limit)

    def in_order(self) -> list[tuple[Path, tasks.BlockResult]]:
        """Yield each block's directory and result."""
        return [(tasks.block_directory(self._scratch, piece), self.results[piece]) for piece in sorted(self.results)]


def _tokens(done: Done) -> int:
    return sum(shard.tokens.shape[0] for shard in done.shards) if isinstance(done, tasks.BlockResult) else 0
