"""The options of `pack`."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Literal

from packtool.options.declare import Excludes, Option
from packtool.options.documents import DocumentOptions
from packtool.options.kinds import COUNT, FLAG, NUMBER, PLACES, TEXT, TEXT_OR_ID
from packtool.options.names import STRATEGIES, StrategyName, any_of
from packtool.options.order import ORDER
from packtool.options.plans import PackOptions
from packtool.options.shared import KEEP, SHARD_TOKENS, IndexOnly, KeptOption, Many, MovingRows, OutputOption


@dataclass(frozen=True)
class PackArguments(DocumentOptions, PackOptions, MovingRows):
    """The arguments of `packtool.pack`."""

    stores: Annotated[
        Many,
        Option(PLACES, "Token stores, in the order their documents are numbered.", metavar="STORE", positional=True),
    ]
    output: OutputOption
    _: KW_ONLY
    strategy: Annotated[
        StrategyName,
        Option(
            TEXT,
            f"Strategy: {any_of(STRATEGIES)}.",
            "Rows",
            metavar="NAME",
            suggestions=STRATEGIES,
            advice="`packtool stats STORE --compare all -L 2048` says what each would make of it",
        ),
    ]
    shuffle: Annotated[
        bool, Option(FLAG, "Shuffle the rows (for concat and padding: the atoms), or keep corpus order.", "Order")
    ] = True
    order_by: Annotated[
        Sequence[str] | str | None,
        Option(
            ORDER,
            "Pack documents in the order of kept fields, so that those that are alike are neighbours: as text, "
            "FIELD:number as numbers, -FIELD turned round; missing values last.",
            "Order",
            metavar="FIELD,...",
            default="corpus order",
            excludes=Excludes(("epoch",), "leave one of the two out: an epoch has an order of its own"),
            recorded=True,
        ),
    ] = None
    too_long: Annotated[
        Literal["error", "drop", "cut", "first"],
        Option(
            TEXT,
            "Conversations longer than a row: stop with an error, drop them, or cut them, which strategies that cut "
            "shorter ones need. Or of all longer documents take the first tokens, and drop the others.",
            "Rows",
        ),
    ] = "error"
    pad_token: Annotated[
        str | int | None,
        Option(TEXT_OR_ID, "Padding token, by text or id.", "Rows", default="the EOS token", recorded=True),
    ] = None
    shard_tokens: Annotated[
        int,
        Option(
            COUNT,
            "Tokens after which a shard closes.",
            "Rarely needed",
            unit="tokens",
            low=1,
            default="256M, which is 2^28",
            recorded=True,
        ),
    ] = SHARD_TOKENS
    segments: Annotated[
        bool,
        Option(FLAG, "Write the table that says which document lies where, or leave it out.", "Output", recorded=True),
    ] = True
    keep: Annotated[KeptOption, KEEP] = ()
    epoch: Annotated[
        int,
        Option(
            NUMBER,
            "Shuffle documents into the order of this epoch before packing, so that they get other neighbours; readers "
            "of an --index-only dataset do so in memory (repack=True).",
            "Order",
            low=0,
            high=(1 << 32) - 1,
            default="0, which is corpus order",
        ),
    ] = 0
    index_only: IndexOnly = False
