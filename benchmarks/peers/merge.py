"""Runs in datatrove's environment: its merger moves chunks of 2048 tokens in random order, as it does before training.

PYTHON -m benchmarks.peers.merge TOKENS_FOLDER OUT TOKENS_A_CHUNK
"""

import sys

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.tokens import DocumentTokenizerMerger

source, target, chunk = sys.argv[1:]
merge = DocumentTokenizerMerger(
    source, f"{target}/merged", "tokens", shuffle_chunk_size=int(chunk), seed=0, progress=False
)
LocalPipelineExecutor([merge], logging_dir=f"{target}/logs").run()
