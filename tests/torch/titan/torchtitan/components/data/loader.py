"""What examples/train/torchtitan_main.py needs of torchtitan's main branch: the interface of a loader.

A configuration builds the class that it belongs to, with what the trainer gives: rank, longest context, and tokens of a
microbatch. The validator sets `repeat`, builds a loader for each validation, and closes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar


class BaseDataLoader(ABC):
    @dataclass(kw_only=True)
    class Config:
        owner: ClassVar[type]
        max_num_documents: int | None = None

        def build(self, **given: Any) -> Any:
            return self.owner(self, **given)

    def __init_subclass__(cls) -> None:
        cls.Config.owner = cls

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    @abstractmethod
    def state_dict(self) -> dict[str, Any]: ...

    @abstractmethod
    def load_state_dict(self, state_dict: dict[str, Any]) -> None: ...

    def close(self) -> None:  # noqa: B027
        """A loader may have nothing to close."""
