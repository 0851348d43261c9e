"""The documentation as a site: `make docs` builds it from these pages and from the docstrings, without network."""

from __future__ import annotations

import re
from pathlib import Path

from pygments.lexers.data import JsonLexer
from sphinx.application import Sphinx

import packtool

project = "packtool"
author = copyright = "the packtool authors"
release = version = packtool.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["Thumbs.db", ".DS_Store"]
root_doc = "index"

myst_heading_anchors = 3  # a heading is found by its words, as where the pages are read as files
autodoc_mock_imports = ["lightning", "torch", "transformers"]
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_rtype = False
toc_object_entries_show_parents = "hide"

smartquotes = False  # options stand in prose, too: --seed is no dash
default_role = "py:obj"  # `name` in a docstring: code, and a link where there is something of that name

html_theme = "furo"
html_title = "packtool"
html_copy_source = False
html_show_sourcelink = False
html_show_sphinx = False
html_show_copyright = False

ROOT = Path(__file__).parents[1]
MOVED = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Pages beside docs/ that the site takes in."""


def from_the_root(text: str) -> str:
    """The links of a page that lies beside docs/, as they lead from inside.

    >>> from_the_root("[a](docs/cli.md#packtool-pack), [b](LICENSE), [c](CONTRIBUTING.md), [d](https://a.b)")
    '[a](cli.md#packtool-pack), [b](../LICENSE), [c](contributing.md), [d](https://a.b)'
    """

    def place(match: re.Match[str]) -> str:
        target = match[1]
        if target.startswith("docs/"):
            target = target.removeprefix("docs/")
        elif target in MOVED:
            target = MOVED[target]
        elif (ROOT / target).exists():
            target = f"../{target}"
        return f"]({target}"

    return re.sub(r"\]\(([^)#\s]+)", place, text)


def _include(app: Sphinx, path: Path, docname: str, content: list[str]) -> None:
    content[0] = from_the_root(content[0])


def as_typed(line: str) -> str:
    """A line of a docstring with options and placeholders as code, so that they become no dash, quote or link.

    >>> as_typed("Implies --bos. With ``pack --index-only`` one FILE:LINE a line.")
    'Implies ``--bos``. With ``pack --index-only`` one ``FILE:LINE`` a line.'
    """
    code = re.split(r"(``.*?``|`[^`]*`)", line)
    code[::2] = [re.sub(r"(?<![\w-])(--[a-z][\w-]*|FILE:LINE)", r"``\1``", words) for words in code[::2]]
    return "".join(code)


def _docstring(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    lines[:] = map(as_typed, lines)


def setup(app: Sphinx) -> None:
    app.add_lexer("jsonl", JsonLexer)
    app.connect("autodoc-process-docstring", _docstring, priority=1)
    app.connect("include-read", _include)
