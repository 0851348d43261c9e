"""All commands: their options, their help, and how they call the public functions and print what these return.

Importing this loads nothing but names: a function of `packtool` is loaded when it is called, options when help or a
call needs them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

import typer

import packtool
from packtool.cli.build import Definition, GivenValues, Handler
from packtool.cli.dataset_results import show_dataset
from packtool.cli.failures import say
from packtool.cli.found_results import show_places, show_stored
from packtool.cli.info_results import describe_info, plain_info
from packtool.cli.printing import echo, print_json
from packtool.cli.results import export_lines, show_exchange, tokenizer_line
from packtool.cli.stage_results import announce_stage, plain_stage, print_stages
from packtool.cli.store_results import show_store
from packtool.errors import visible
from packtool.options.shared import Terminal
from packtool.support.sizes import plural

COMMANDS: dict[str, Definition] = {}
"""Every command by its name, in the order of the help."""
_PRINTING = ("quiet", "verbose", "json")
_LONG = ("progress", *_PRINTING)
_STAGE = ("config", *_LONG)
"""Options of the terminal: of commands that print, that take long, and that a file may configure."""


def _command(summary: str, terminal: Sequence[str]) -> Callable[[Handler], Handler]:
    """Make a function a command: what it is for, and its options of the terminal."""

    def add(handler: Handler) -> Handler:
        name = handler.__name__.removesuffix("_")
        COMMANDS[name] = Definition(name, summary, terminal, handler)
        return handler

    return add


@_command("Turn text files into a token store.", _STAGE)
def tokenize(values: GivenValues, terminal: Terminal) -> None:
    """Tokenize text files into a token store: every document's tokens, each document ended by EOS.

    Reads JSON Lines, Parquet and plain text, also compressed (gz, zst, bz2, xz). Tens of MB of text per CPU second
    for byte-level BPE tokenizers. Memory: at most a gigabyte or two per worker, however large the corpus.

    \b
    Examples:
    packtool tokenize corpus.jsonl.gz -o store
    packtool tokenize data/ -o store --tokenizer openai-community/gpt2 -j 16
    cat dump.zst | packtool tokenize - -o store --text-field page.body
    """
    show_store(packtool.tokenize(**values), terminal)


@_command("Pack token stores into rows of equal length.", _STAGE)
def pack(values: GivenValues, terminal: Terminal) -> None:
    """Pack token stores into rows of equal length, shuffled, with every token accounted for.

    Plans from document lengths alone (seconds for 100 million documents), then moves each token once.
    Memory: 8 to 20 bytes per document, on disk beyond --memory, and a few megabytes per worker.

    \b
    Examples:
    packtool pack store -o packed --strategy bfd --sequence-length 2048
    packtool pack web code -o packed --strategy concat -L 8192 --seed 7
    packtool pack store -o packed --strategy buckets --buckets 2048,4096,8192
    packtool pack web wiki -o mixed --strategy bfd -L 8192 --mix web=0.4x,wiki=2x
    """
    show_dataset(packtool.pack(**values), terminal, sources=True)


@_command("Shuffle into another order or epoch, at any size.", _STAGE)
def shuffle(values: GivenValues, terminal: Terminal) -> None:
    """Write the rows of a packed dataset in another order: exact, reproducible, within --memory.

    The rows depend only on the corpus, the seed and the epoch, not on the order they had before. Moves each token once,
    or twice where the dataset is larger than --memory.

    \b
    Examples:
    packtool shuffle packed -o epoch1 --epoch 1
    packtool shuffle store -o rotated --method partial -B 64 -L 512
    packtool shuffle packed -o batches --method bucket --batch-tokens 65536
    """
    show_dataset(packtool.shuffle(**values), terminal)


@_command("Write the tokens of rows packed with --index-only.", _STAGE)
def materialize(values: GivenValues, terminal: Terminal) -> None:
    """Write the tokens of a dataset that was packed with --index-only: the same files as without it.

    With --index-only the reverse: write a dataset without its tokens, which readers gather from its token stores.

    \b
    Examples:
    packtool materialize index -o packed
    packtool materialize index -o packed --store /data/tokens
    packtool materialize packed -o index --index-only
    """
    show_dataset(packtool.materialize(**values), terminal)


@_command("Export documents or rows to another tool's format.", ("quiet", "verbose", "json"))
def export(values: GivenValues, terminal: Terminal) -> None:
    """Write token stores or a packed dataset in the format of another trainer.

    Writes every token, in the stored order, one store after the other, and says what else the format can't keep.

    \b
    Examples:
    packtool export packed -o parquet --format parquet
    packtool export tokens -o megatron --format megatron
    packtool export web wiki -o megatron --format megatron --mix web=1x,wiki=3x
    """
    result = packtool.export(**values)
    manifest, lines = result.manifest, []
    if manifest is not None:
        kind = "document"
        if manifest.sequence_lengths:
            kind = "row"
        amounts = f"{plural(manifest.sequences, kind)}, {plural(manifest.tokens, 'token')}"
        lines = [f"{amounts}, as {values['format']}.", *export_lines(manifest)]
    show_exchange(result, terminal, {"manifest": manifest}, lines)


@_command("Import token ids of other tools as a token store.", _PRINTING)
def import_(values: GivenValues, terminal: Terminal) -> None:
    """Make a token store of token ids that another tool has written.

    Checks every id against the tokenizer. Documents that do not end with EOS get one, and are counted; in files without
    boundaries, each EOS ends a document.

    \b
    Examples:
    packtool import data.idx -o tokens --format megatron --tokenizer gpt2.json
    packtool import train.bin -o tokens --format nanogpt --tokenizer gpt2
    """
    result = packtool.import_(**values)
    counts, lines = result.counts, []
    if counts:
        lines = [f"{plural(counts['documents'], 'document')}, {plural(counts['tokens'], 'token')}."]
        lines += [f"EOS added to {plural(counts['eos_added'], 'document')}."] if counts["eos_added"] else []
        lines += [f"{plural(counts['empty'], 'empty document')} left out."] if counts["empty"] else []
        lines += _left_out_of_import(counts)
        if result.run.get("read_as"):
            lines.append(f"Read so: {visible('; '.join(result.run['read_as']))}.")
    show_exchange(result, terminal, {"counts": counts}, lines)


def _left_out_of_import(counts: Mapping[str, int]) -> list[str]:
    """Say what became of padding, of rows of several documents, and of EOS at the beginning, where there are any."""
    lines = []
    if "padding" in counts:
        lines.append(f"{plural(counts['padding'], 'token')} of padding left out.")
    if "divided" in counts:
        lines.append(f"{plural(counts['divided'], 'row')} divided into documents.")
    if "eos_first" in counts:
        lines.append(f"EOS begins documents in {plural(counts['eos_first'], 'file')}; it ends them here.")
    return lines


@_command("Measure a corpus, dataset or blend; compare strategies.", (*_STAGE, "full"))
def stats(values: GivenValues, terminal: Terminal) -> None:
    """Measure a corpus, a token store or a packed dataset; compare strategies before anything is written.

    Of a blend (a TOML file) it says what a run takes of each source: rows, shares, epochs, and when each repeats.

    Reads only lengths and segment tables of stores and datasets, no tokens. Tokenizes text files to a temporary
    directory (TMPDIR), which takes the room of a store: see packtool tokenize --dry-run.

    \b
    Examples:
    packtool stats packed --batch-size 256
    packtool stats store --compare all -L 2048,8192 --html report.html
    packtool stats web code --compare bfd-extra -L 2048 --extra-capacity 10,50
    packtool stats corpus.jsonl.gz --compare concat,bfd -L 2048
    packtool stats blend.toml --html blend.html
    """
    report = packtool.stats(**values)
    if terminal.json:
        print_json(report)
    elif not terminal.quiet:
        from packtool.report.console import results_console
        from packtool.report.terminal import print_stats

        print_stats(report, results_console(), full=terminal.full, page=values["html"])
        tokenizer = getattr(report, "tokenizer", None)
        if tokenizer is not None:
            echo(tokenizer_line(tokenizer, getattr(report, "tokenizer_name", None)))


@_command("Show one row of a packed dataset, or document of a token store, decoded.", ("ids", "json"))
def show(values: GivenValues, terminal: Terminal) -> None:
    """Show one row of a packed dataset: documents in alternating colours, boundaries, cuts, repeats and padding. Or
    show one document of a token store, before it is packed.

    Tokens are decoded with the tokenizer that the dataset keeps. ✂ stands where a document is cut. Where the dataset
    says which tokens train, tokens that train are underlined, and the others pale.

    \b
    Examples:
    packtool show packed --row 12
    packtool show packed --row -1 --bucket 4096
    packtool show packed --row 12 --ids
    packtool show store --document 3
    packtool show store --find corpus.jsonl:17
    """
    shown = packtool.show(**values)
    if terminal.json:
        print_json({"schema_version": 1, **asdict(shown)})
    else:
        from packtool.report.console import results_console
        from packtool.report.row_view import print_row

        print_row(shown, results_console(), ids=terminal.ids)


@_command("Find a document in rows or in a store.", ("json",))
def find(values: GivenValues, terminal: Terminal) -> None:
    """Find the rows of a packed dataset that hold a document, by its id or its input file and line.

    Of a token store it prints the document's number, file, line, tokens, and the columns that were kept with it.

    Exit code 1 when no row or store holds it, 2 when no store knows it.

    \b
    Examples:
    packtool find packed corpus.jsonl:17 --store tokens
    packtool find tokens corpus.jsonl:17
    """
    location = packtool.find(**values)
    if terminal.json:
        print_json({"schema_version": 1, **asdict(location)})
    elif location.stored is not None:
        show_stored(location, location.stored)
    else:
        show_places(location)
    if not location.places and not location.stored:
        raise typer.Exit(1)


@_command("Run all stages of one TOML file, where needed.", (*_LONG, "full"))
def run(values: GivenValues, terminal: Terminal) -> None:
    """Run the stages of a configuration file: tokenize, pack, shuffle, materialize, export, stats.

    Stages that are finished and unchanged are kept, and interrupted ones go on, so running it twice does no harm.
    Several [[pack]] tables try several packings of one tokenization.

    \b
    Examples:
    packtool run corpus.toml --input corpus.jsonl --output data
    packtool run corpus.toml --input corpus.jsonl --output data --dry-run
    """
    dry_run = values["dry_run"]
    stages = packtool.run(**values, announce=None if terminal.quiet or dry_run else announce_stage)
    if terminal.json:
        print_json({"schema_version": 1, "dry_run": dry_run, "stages": list(map(plain_stage, stages))})
    elif not terminal.quiet:
        print_stages(stages, full=terminal.full)


@_command("Say what a path is, and what to do next.", ("json",))
def info(values: GivenValues, terminal: Terminal) -> None:
    """Say what a path is, whether it is complete or unfinished, and what to do next.

    Reads manifests and file sizes only, so it answers at once. packtool verify checks the contents.

    \b
    Examples:
    packtool info packed
    packtool info packed --json
    """
    result = packtool.info(**values)
    if terminal.json:
        print_json({"schema_version": 1, **plain_info(result)})
    else:
        echo("\n".join(map(visible, describe_info(result))))  # a name may hold the end of a line
    raise typer.Exit(1 if result.state in ("damaged", "incomplete") else 0)


@_command("Check files, checksums, segments and ledger.", _LONG)
def verify(values: GivenValues, terminal: Terminal) -> None:
    """Check a dataset against its manifest: files, sizes, checksums, ids, segments and ledger.

    Checks of a packed dataset also that no token is placed twice. Reads every byte twice. Exit code 1 when anything is
    wrong. With --store, given once for each store in the order in which they were packed, it also compares all rows
    with the stores' tokens.

    \b
    Examples:
    packtool verify packed
    packtool verify packed --store tokens
    """
    result = packtool.verify(**values)
    if terminal.json:
        print_json(
            {
                "schema_version": 1,
                "path": str(result.path),
                "kind": result.kind,
                "sound": not result.problems,
                "files": result.files,
                "bytes": result.bytes,
                "tokens": result.tokens,
                "problems": [{"code": p.code, "where": p.where, "what": p.what} for p in result.problems],
            }
        )
    for problem in result.problems:
        say(f"packtool: error[{problem.code}]: {problem.typed()}")
    if not result.problems and not terminal.json and not terminal.quiet:
        amounts = ", ".join(map(plural, (result.files, result.bytes, result.tokens), ("file", "byte", "token")))
        echo(f"{result.path}: nothing wrong in {amounts}.")
    raise typer.Exit(1 if result.problems else 0)


@_command("Show versions, and what is missing.", ("json",))
def doctor(values: GivenValues, terminal: Terminal) -> None:
    """Report versions, and what is missing, with the command that installs it. Changes nothing.

    Exit code 1 when something is missing that packtool cannot do without.

    \b
    Examples:
    packtool doctor
    packtool doctor --json
    """
    checks = packtool.doctor()
    if terminal.json:
        print_json({"schema_version": 1, "checks": list(map(asdict, checks))})
    else:
        for check in checks:
            echo(f"{check.state:7}  {check.name:15}  {check.found}")
            if check.remedy:
                echo(f"{'':7}  {'':15}  {check.remedy}")
    raise typer.Exit(1 if any(check.state == "broken" for check in checks) else 0)
