"""`shuffle` of a token store: rows of a rotated stream, in the order in which batches read them."""

from __future__ import annotations

from packtool.commands.dataset_job import DatasetJob, DatasetResult
from packtool.commands.write_corpus import write_corpus
from packtool.options.pack import PackArguments
from packtool.shuffling import partial
from packtool.storage.manifest import Shuffle
from packtool.storage.token_store import Corpus


def write_partial(job: DatasetJob, record: Shuffle, sequence_length: int) -> DatasetResult:
    """Write the rows of one epoch.

    Raises:
        UsageError: there are fewer than batch size × sequence length tokens.
    """
    assert record.batch_size is not None
    corpus = Corpus(job.inputs)
    plan = partial.plan(
        corpus.lengths(),
        sequence_length=sequence_length,
        batch_size=record.batch_size,
        seed=record.seed,
        epoch=record.epoch,
    )
    options = {
        "sequence_length": sequence_length,
        "remainder": "drop",
        "pad_id": corpus.tokenizer.eos_id,
        "shard_tokens": PackArguments.shard_tokens,
        "segments": True,
    }
    tokens = plan.rows * sequence_length
    figures = {"rows": plan.rows, "tokens": tokens, "bytes": tokens * corpus.dtype.itemsize}
    output = job.begin(record, options, figures=lambda: figures)
    if isinstance(output, DatasetResult):
        return output
    return write_corpus(
        job, output, corpus, [plan], [None], strategy="concat", multi_bucket=False, options=options, record=record
    )
