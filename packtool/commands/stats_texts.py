"""`stats` of text files: they are tokenized to a temporary store, and that is measured."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import msgspec

from packtool.choosing.asked import Asked
from packtool.choosing.settle import settle
from packtool.commands.stats_store import NEW_STORE, store_report
from packtool.commands.tokenize import tokenized
from packtool.engines import Engine
from packtool.errors import DataError, UsageError
from packtool.formats import manifest as manifests
from packtool.formats.known import known
from packtool.formats.schema import listed_files
from packtool.options.arguments import as_flags
from packtool.options.stats import StatsArguments
from packtool.options.tokenize import TokenizeArguments
from packtool.places.local import LocalPlace
from packtool.report.compare import Candidate
from packtool.report.types import StoreReport
from packtool.support.temporary import temporary_directory

_TEXT = ("tokenizer", "eos_token", "text_field", "format")  # options of how text files are read


def texts_report(
    location: str, tried: Sequence[Candidate], options: StatsArguments, asked: Asked, engine: Engine
) -> StoreReport:
    """Report on the documents of text files, or on those that are chosen from them.

    The temporary store has the name that it has in the advised command. Records that can't be used are counted.

    Args:
        asked: which documents.

    Raises:
        UsageError: the files hold conversations, and the tokenizer has no chat template.
        DataError: a file can't be read; or the temporary directory has no room for the tokens.
    """
    asked = asked.with_contents()  # here, before everything is tokenized
    how: dict[str, Any] = {}
    for name in (*_TEXT, "workers", "scheduler", "quiet"):
        if getattr(options, name) is not None:
            how[name] = getattr(options, name)
    with temporary_directory() as folder:
        store = LocalPlace(folder / NEW_STORE)
        try:
            made = tokenized(TokenizeArguments(location, store.path, on_error="skip", **how), engine, called=location)
        except UsageError as error:
            if error.code != "no-chat-template":
                raise
            what = "holds conversations, whose lengths depend on a chat template"
            remedy = "give --tokenizer one that has a template; or tokenize them, and give stats the store"
            raise UsageError("not-tokenized", what, remedy=remedy, where=location) from None
        except DataError as error:
            if error.code != "disk-full":
                raise
            remedy = (
                "free some space, or set TMPDIR to a directory on a larger disk; a dry run of tokenize says how much "
                "the tokens take"
            )
            raise DataError("disk-full", error.what, remedy=remedy, where=error.where) from None
        command = ["packtool", "tokenize", location, "-o", NEW_STORE, *as_flags(options, _TEXT)]
        if made.counts["rejected"]:
            command += ["--on-error", "skip"]
        asked = settle(asked, [known(store)], known)
        report = store_report([store], tried, options, asked, engine, f"{shlex.join(command)} && ")
        room = sum(map(attrgetter("bytes"), listed_files(manifests.read(store))))
        return msgspec.structs.replace(report, path=location, temporary_bytes=room)
