"""packtool's loader for torchtitan's main branch, of which there is no release yet.

In a configuration: `dataloader=PackedDataLoader.Config(path="rows-2049", epochs=2)`. Earlier states of that branch call
`num_tokens_per_microbatch` `num_tokens_per_batch`, and take pairs as torchtitan 0.3 does (docs/trainers.md), flat.
"""

from dataclasses import dataclass

from torchtitan.components.data.loader import BaseDataLoader
from torchtitan.components.data.types import TokenizedTrainingMicrobatch

import packtool
from packtool.torch import Loader, ValidationLoader


class PackedDataLoader(BaseDataLoader):
    @dataclass(kw_only=True, slots=True)
    class Config(BaseDataLoader.Config):
        path: str
        epochs: int = 1
        repeat: bool = True  # torchtitan's Validator sets it to False to read everything

    def __init__(self, config, *, dp_world_size, dp_rank, max_context_length, num_tokens_per_microbatch, **_):
        rows = num_tokens_per_microbatch // max_context_length
        options = {
            "rank": dp_rank,
            "world_size": dp_world_size,
            "batch_size": rows * dp_world_size,
            "extra_token": True,
        }
        if config.max_num_documents is not None:  # of a microbatch: refuse rows that hold more than their share
            options["pad_cu_seqlens"] = config.max_num_documents // rows
        if config.repeat:
            self.loader = Loader(config.path, epochs=config.epochs, **options)
        else:
            self.loader = ValidationLoader(config.path, drop_last=dp_world_size > 1, **options)
        length, needed = packtool.open(config.path).sequence_length, max_context_length + 1
        assert length == needed, f"rows have {length} tokens: pack them with -L {needed}"

    def __iter__(self):
        for batch in self.loader:
            labels = batch["labels"].flatten()
            yield TokenizedTrainingMicrobatch(
                input=batch["input_ids"].flatten(),
                labels=labels,
                positions=batch["position_ids"].flatten(),
                padding_mask=(batch["document_ids"] < 0).flatten(),
                num_valid_tokens=int((labels != -100).sum()),
            )

    def state_dict(self):
        return self.loader.state_dict()

    def load_state_dict(self, state):
        if state:
            self.loader.load_state_dict(state)
            self.loader.set_epoch(0)  # the run is one pass
