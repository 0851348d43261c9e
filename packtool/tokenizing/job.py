"""The pieces of a run of `tokenize`: the files that several blocks share, each hashed as a whole, then the blocks."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path

import msgspec

from packtool.corpus import blocks
from packtool.corpus.file_bytes import OTHER_BYTES, agree, changed
from packtool.corpus.records import Block, CorpusFile
from packtool.engines import Engine
from packtool.places.npy import FileEntry
from packtool.progress import Progress
from packtool.storage.names import TOKENIZER
from packtool.storage.output import Output, Pieces
from packtool.storage.schema import InputEntry
from packtool.tokenizing import block as tasks

Done = tasks.BlockResult | tasks.FileDigest


class Job:
    """The pieces of a run: those finished earlier, and those still to do. First come the files that several blocks
    share, then the blocks.

    Args:
        output: the blocks' scratch files and records lie there.
        engine: does them, or its share of them.

    Attributes:
        done: what is done, by the number of the piece.
        earlier: numbers of the pieces that an earlier run had done.
        pieces, pieces_here: how many there are, in all and in this run's share.
    """

    def __init__(
        self, context: tasks.Context, files: list[CorpusFile], engine: Engine, output: Output, *, quiet: bool
    ) -> None:
        self.context = context
        self.files = files
        self.engine = engine
        self._quiet = quiet
        self._blocks = blocks.plan(files)
        self._scratch = output.scratch
        self._split = sorted({block[0].file for block in self._blocks if not block[0].whole})
        self.pieces = len(self._split) + len(self._blocks)
        self._kept = Pieces(output, "block", Done, self._files)  # type: ignore[arg-type]
        share = engine.share
        mine = range(self.pieces) if share is None or share.merges else list(filter(share.has, range(self.pieces)))
        self.done: dict[int, Done] = self._kept.found(mine, engine)
        self._mine = [] if share is not None and share.merges else mine
        self.pieces_here = len(self._mine)
        self.earlier = frozenset(self.done)
        self._forget(set(self._mine) - self.done.keys())
        self._fallback = Pieces(output, "fallback", str)
        if why := self._fallback.recorded([0]).get(0):
            self._start_again(why)

    def _files(self, piece: int, done: Done) -> tuple[Path, list[FileEntry | InputEntry]]:
        files = done.files() if isinstance(done, tasks.BlockResult) else []
        return tasks.block_directory(self._scratch, piece), files

    def _forget(self, pieces: set[int]) -> None:
        """Leave nothing of pieces that are to be done, or done again."""
        for piece in pieces:
            self._kept.forget(piece)
        for left in self._scratch.glob("block-*"):
            if int(left.name.removeprefix("block-").partition(".")[0]) in pieces:
                shutil.rmtree(left)

    def results(self) -> dict[int, tasks.BlockResult]:
        """Return the results of the blocks that are done, in order, by the number of the piece."""
        return {piece: each for piece, each in sorted(self.done.items()) if isinstance(each, tasks.BlockResult)}

    def digests(self) -> dict[int, tasks.FileDigest]:
        """Return the digests of files that several blocks share, by the number of the file."""
        return {self._split[piece]: each for piece, each in self.done.items() if isinstance(each, tasks.FileDigest)}

    def fall_back(self, why: str) -> None:
        """Switch to the reference encoder: here, in tasks that begin later, and in a resumed run."""
        self._fallback.record(0, why)
        self._start_again(why)

    def _start_again(self, why: str) -> None:
        """Discard the fast encoder's work, and let the reference encode."""
        recipe = self.context.recipe.instead(why)
        others = {piece for piece, result in self.results().items() if result.encoder != recipe.encoder}
        self._forget(others)
        self.done = {piece: each for piece, each in self.done.items() if piece not in others}
        self.earlier = self.earlier - others
        self.context = msgspec.structs.replace(self.context, recipe=recipe)

    def missing(self) -> list[int]:
        """List the pieces that remain to be done, by anyone."""
        return [piece for piece in range(self.pieces) if piece not in self.done]

    def run(self) -> None:
        """Run the remaining pieces of this run's share."""
        done = {piece: self.done[piece] for piece in self._mine if piece in self.done}
        todo = {piece: self._task(piece) for piece in self._mine}
        bytes_of = {piece: self._bytes(task.spans) for piece, task in todo.items() if task.spans}
        before = sum(bytes_of[piece] for piece in done.keys() & bytes_of.keys())
        with Progress(sum(bytes_of.values()), "tokenize", initial=before, quiet=self._quiet) as progress:
            for piece, each in self._kept.run(
                partial(tasks.run, self.context),
                todo,
                self.engine.processes,
                done=done,
                on_advance=progress.advance,
                prepare=partial(tasks.prepare, self.context),
                shared=self._scratch / TOKENIZER if not self.context.delivery.sends else None,
            ):
                if piece not in done:
                    self.done[piece] = each
                    progress.add_tokens(each.tokens if isinstance(each, tasks.BlockResult) else 0)
                    self._limit_errors()
        self._limit_errors()
        self._require_unchanged()

    def _task(self, piece: int) -> tasks.Task:
        if piece < len(self._split):
            return tasks.Task(piece, (), (self.files[self._split[piece]],))
        block = self._blocks[piece - len(self._split)]
        return tasks.Task(piece, block, tuple(self.files[span.file] for span in block))

    def _require_unchanged(self) -> None:
        """Make sure that the digests of files that several blocks share are of the bytes that were tokenized.

        Raises:
            DataError: one is not; the blocks that it is about are not kept.
        """
        wrong: list[int] = []
        digests = self.digests()
        for piece, result in self.results().items():
            for span in result.spans:
                if span.file in digests and not agree(digests[span.file].pages, span.pages):
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
        """Return bytes of text and tokens of this run, without those an earlier one had finished."""
        results = [result for number, result in self.results().items() if number not in self.earlier]
        return {
            "text_bytes": sum(span.bytes for result in results for span in result.spans),
            "tokens": sum(result.tokens for result in results),
        }

    def _limit_errors(self) -> None:
        limit = self.context.max_errors
        if limit is None:
            return
        spans = [span for result in self.results().values() for span in result.spans]
        if sum(span.rejects for span in spans) > limit:
            worst = max(spans, key=lambda span: span.rejects)
            reasons = ", ".join(f"{count} {code}" for code, count in sorted(worst.rejected.items()))
            raise tasks.too_many(limit, tasks.shown_file(self.files[worst.file]), f"here {reasons}")

    def in_order(self) -> list[tuple[Path, tasks.BlockResult]]:
        """List each block's directory and result."""
        return [(tasks.block_directory(self._scratch, piece), result) for piece, result in self.results().items()]
