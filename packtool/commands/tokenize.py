"""`tokenize`: turn text files into a token store."""

from __future__ import annotations

from dataclasses import dataclass

from packtool.commands.result import StoreResult
from packtool.engines import engine_for
from packtool.options.signature import takes
from packtool.options.tokenize import TokenizeArguments
from packtool.outputs.claim import open_output
from packtool.places.typed import place_of
from packtool.support.clock import Clock
from packtool.support.temporary import discard_runs
from packtool.text.corpus.find import find
from packtool.text.tokenizing.job import finish, run_blocks
from packtool.text.tokenizing.recipe import StoreRecipe
from packtool.text.tokenizing.tokenizer import load


@dataclass(frozen=True, kw_only=True, repr=False)
class TokenizeResult(StoreResult):
    """The result of `tokenize`."""


@takes(TokenizeArguments)
def tokenize(options: TokenizeArguments) -> TokenizeResult:
    """Tokenize text files, or records that a program has, into a token store.

    A string or a list of strings names files. Any other iterable gives the records themselves: an iterator of texts,
    mappings with the fields, a `Dataset` or `IterableDataset` of Hugging Face. They are read once, in order, and
    numbered from 1.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as place:
    ...     tokenize([{"text": "one"}, {"text": "two"}], f"{place}/store").counts["documents"]
    2

    Raises:
        PacktoolError: whatever is wrong with options, tokenizer, inputs or output.
    """
    with engine_for(options.scheduler, options.workers, "tokenize", at_end=discard_runs) as engine:
        clock = Clock()
        texts = find(options)
        tokenizer = load(options, texts.kind)
        recipe = StoreRecipe.of(options, texts, tokenizer)
        place = place_of(options.output)
        with open_output(place, "tokenize", options, key=recipe.key, inputs=texts.locations) as out:
            if out.preview:
                known = {"files": len(texts.files), "bytes": sum(file.bytes for file in texts.files)}
                return TokenizeResult.previewed(out, options, known, texts.files)
            if out.finished:
                return TokenizeResult.kept_at(out)
            blocks = run_blocks(recipe, tokenizer, texts, options, out, engine)
            counts, run = finish(out, recipe, tokenizer, blocks, clock)
            return TokenizeResult(path=place.shown, counts=counts, run=run)
