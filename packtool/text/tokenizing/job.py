"""The blocks of a run of `tokenize`, and the token store that is made of them."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET

from packtool.engines import Engine
from packtool.formats.names import REJECTED, token_dtype
from packtool.formats.schema import FORMAT_VERSION, LOSS_VERSION, InputEntry, OtherFile, StoreManifest, TokenShard
from packtool.outputs.output import Output
from packtool.outputs.pieces import Pieces
from packtool.outputs.tokenizer_files import write_tokenizer
from packtool.places.local import LocalPlace
from packtool.places.place import Place
from packtool.support.clock import Clock
from packtool.support.progress import Progress
from packtool.support.sizes import plural
from packtool.support.temporary import own_directory
from packtool.text.corpus import blocks
from packtool.text.corpus.records import Block, CorpusFile
from packtool.text.encoding.encoders import EncoderMismatchError, EncoderUnsuitableError
from packtool.text.tokenizing import block as tasks
from packtool.text.tokenizing.counts import SpanCounts
from packtool.text.tokenizing.rejects import RejectLog
from packtool.warnings import warn


class Job:
    """The pieces of a run, of a block each: those finished earlier, and those still to do.

    Args:
        output: the blocks' scratch files and records lie there.
        engine: does them.

    Attributes:
        done: what is done, by the number of the piece.
        earlier: numbers of the pieces that an earlier run had done.
        pieces: how many there are.
    """

    def __init__(
        self, context: tasks.Context, files: list[CorpusFile], engine: Engine, output: Output, *, quiet: bool
    ) -> None:
        self.context = context
        self.files = files
        self.engine = engine
        self._quiet = quiet
        self._blocks = blocks.plan(files)
        self._output = output
        self.pieces = len(self._blocks)
        self._kept = Pieces(output, "block", tasks.BlockResult, tasks.BlockResult.files)
        self.done = self._kept.found(range(self.pieces), engine)
        self.earlier = frozenset(self.done)
        self._fallback = Pieces(output, "fallback", str)
        if why := self._fallback.recorded([0]).get(0):
            self._use_reference(why)

    @property
    def encoders(self) -> set[str]:
        """The encoders of the blocks that are done."""
        return {result.encoder for result in self.done.values()}

    def fall_back(self, error: EncoderMismatchError | EncoderUnsuitableError) -> None:
        """Go on with another encoder. Where the fast one was wrong, discard its work, and let the reference encode: in
        a resumed run, too."""
        if isinstance(error, EncoderMismatchError):
            self._use_reference(error.what)
        else:
            self.context = msgspec.structs.replace(self.context, recipe=self.context.recipe.fallback(error))

    def _use_reference(self, why: str) -> None:
        self._fallback.record(0, why)
        recipe = self.context.recipe.instead(why)
        others = {piece for piece, result in self.done.items() if result.encoder != recipe.encoder}
        for piece in others:
            self._kept.forget(piece)
        self.done = {piece: result for piece, result in self.done.items() if piece not in others}
        self.earlier = self.earlier - others
        self.context = msgspec.structs.replace(self.context, recipe=recipe)

    def run(self) -> None:
        """Run the pieces that are not done."""
        done = dict(self.done)
        todo = {piece: self._task(piece) for piece in range(self.pieces)}
        bytes_of = {piece: self._bytes(task.spans) for piece, task in todo.items()}
        before = sum(bytes_of[piece] for piece in done)
        with Progress(sum(bytes_of.values()), "tokenize", initial=before, quiet=self._quiet) as progress:
            for piece, result in self._kept.run(
                partial(tasks.run, self.context),
                todo,
                self.engine.processes,
                done=done,
                on_advance=progress.advance,
                prepare=partial(tasks.prepare, self.context),
                work=self._work,
            ):
                if piece not in done:
                    self.done[piece] = result
                    progress.add_tokens(sum(span.tokens for span in result.spans))
                    self._limit_errors()
        self._limit_errors()

    @property
    def _work(self) -> Path | None:
        """A directory that workers have to see; None where the store has all that they need."""
        return self._output.scratch if isinstance(self.context.tokenizer_at, LocalPlace) else None

    def _task(self, piece: int) -> tasks.Task:
        spans = self._blocks[piece]
        return tasks.Task(piece, spans, tuple(self.files[span.file] for span in spans))

    def _bytes(self, block: Block) -> int:
        """Return the bytes of a block, for progress; if a file has several, about."""
        if block[0].whole:
            return sum(self.files[span.file].bytes for span in block)
        number = block[0].file
        return self.files[number].bytes // sum(other[0].file == number for other in self._blocks)

    def _limit_errors(self) -> None:
        limit = self.context.max_errors
        if limit is None:
            return
        spans = [span for _, result in sorted(self.done.items()) for span in result.spans]
        if sum(span.rejects for span in spans) > limit:
            worst = max(spans, key=lambda span: span.rejects)
            reasons = ", ".join(f"{count} {code}" for code, count in sorted(worst.rejected.items()))
            raise tasks.too_many(limit, tasks.shown_file(self.files[worst.file]), f"here {reasons}")

    def assemble(
        self, options: dict[str, Any], tokenizer: Mapping[str, bytes], clock: Clock
    ) -> tuple[dict[str, int], dict[str, Any]]:
        """Make a token store of the blocks, all of which are done: join the rejects, and write the manifest. Doing it
        again after it was interrupted gives the same store.

        Args:
            options: for the manifest.
            tokenizer: its files.
            clock: of the run.

        Returns:
            The manifest's counts, and the facts in `run.json`.
        """
        out, context = self._output, self.context
        shards: list[TokenShard] = []
        documents = 0
        per_file = [SpanCounts(number) for number in range(len(self.files))]
        with own_directory(out.scratch, "rejected.") as attempt:
            with closing(RejectLog(attempt / REJECTED)) as log:
                for _, result in sorted(self.done.items()):
                    if result.rejected is not None:
                        before = [counts.records for counts in per_file]
                        log.join(out.place.blocks(result.rejected.name), [file.name for file in self.files], before)
                    first_record = per_file[result.spans[0].file].records
                    for span in result.spans:
                        per_file[span.file].add(span)
                    for shard in result.shards:
                        shards.append(
                            msgspec.structs.replace(shard, first_document=documents, first_record=first_record)
                        )
                        documents += shard.offsets.shape[0] - 1
            rejected = log.entry(REJECTED)
            if rejected is not None:
                out.put(REJECTED, attempt / REJECTED, rejected.xxh3_128)
        total = SpanCounts(-1)
        for counts in per_file:
            total.add(counts)
        files = list(zip(self.files, per_file, strict=True))
        trained = {"trained_tokens": total.trained} if context.chat is not None else {}
        if context.chat is not None and context.chat.train_on == "each":
            trained |= {"conversations": total.conversations, "repeated_context_tokens": total.context}
        manifest = StoreManifest(
            format_version=LOSS_VERSION if any(shard.loss is not UNSET for shard in shards) else FORMAT_VERSION,
            options=options,
            inputs=[InputEntry(file.name, file.bytes, counts.digest) for file, counts in files],
            tokenizer=context.tokenizer,
            dtype=token_dtype(context.tokenizer.vocab_size).str,
            counts=total.flat() | trained,
            rejected=None if rejected is None else OtherFile(*msgspec.structs.astuple(rejected)),
            shards=shards,
            tokenizer_files=write_tokenizer(out, tokenizer),
        )
        now = [span for piece, result in self.done.items() if piece not in self.earlier for span in result.spans]
        run = {
            "written": clock.seconds(),
            "workers": self.engine.workers,
            "encoder": ", ".join(sorted(self.encoders)) or context.recipe.encoder,
            "encoder_why": context.recipe.why,
            "texts_checked": sum(result.checked for result in self.done.values()),
            "text_bytes": total.bytes,
            "this_run": {
                "text_bytes": sum(span.bytes for span in now),
                "tokens": sum(span.tokens for span in now),
            },
            "machine": {"system": platform.platform(), "python": platform.python_version(), "cpus": os.cpu_count()},
            "files": [{"name": file.name, **counts.flat()} for file, counts in files],
        }
        out.finish(manifest, run)
        _warn(out.place, manifest, total.special)
        return manifest.counts, run


def _warn(place: Place, manifest: StoreManifest, special: Mapping[str, int]) -> None:
    """Warn of what was lost, and of texts that hold special tokens, which were counted by id: perhaps from other
    corpora, perhaps from somebody who wants to end a document."""
    counts = manifest.counts
    if counts["rejected"]:
        kept = manifest.rejected is not None
        remedy = f"see {place.where(REJECTED)}" if kept else "use --on-error quarantine to see which, with the reasons"
        what = f"{plural(counts['rejected'], 'record')} could not be used"
        if counts.get("lost_bytes"):
            what += f", and {counts['lost_bytes']:,} bytes of files are lost with all records in them"
        warn("records-rejected", what, remedy=remedy, where=str(place))
    if not counts["documents"]:
        warn("no-documents", "no document is left", remedy="check the input and the filters", where=str(place))
    if special:
        names = {number: text for text, number in manifest.tokenizer.added_tokens.items()}
        most = sorted(special.items(), key=lambda item: (-item[1], int(item[0])))
        listed = ", ".join(f"{names[int(number)]} ({times:,})" for number, times in most[:5])
        hold, remedy = "texts hold", "give --special-tokens text to encode them as plain text"
        if manifest.conversations:
            hold = "messages spell"
            remedy = "give --special-tokens text to encode them as plain text, or clean the messages"
        what = f"{hold} special tokens, which are encoded as such: {listed}{', …' * (len(most) > 5)}"
        warn("special-tokens", what, remedy=remedy, where=str(place))
