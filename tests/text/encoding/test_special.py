"""The tokens that begin and end documents: found where they are known, and doubted where they end turns of a chat."""

import json
from pathlib import Path

import pytest

from packtool.text.encoding.load import find_tokenizer, info_of
from packtool.text.encoding.special import CANDIDATES, ENDS_OF_TURNS, candidates, marked
from packtool.warnings import PacktoolWarning
from tests.text.encoding import shapes


def test_which_of_several() -> None:
    both = {"<|endoftext|>": 0, "</s>": 1, "[SEP]": 2}
    assert candidates("eos", both, set()) == ["<|endoftext|>", "</s>"]
    assert candidates("eos", both, {"</s>", "[SEP]"}) == ["</s>"], "RoBERTa: the other is a word like any other"
    assert candidates("eos", {"[SEP]": 2, "[CLS]": 1}, {"[SEP]"}) == ["[SEP]"]
    assert candidates("eos", {"a": 0}, {"a"}) == []
    for each in (token for group in CANDIDATES["eos"] for token in group):
        assert candidates("eos", {"a": 0, each: 1}, set()) == [each]
    spec = {"added_tokens": [{"content": "</s>", "special": False}, {"content": "<eos>", "special": True}]}
    assert candidates("eos", {"</s>": 5, "<eos>": 1}, marked(spec)) == ["<eos>"], "Gemma: the other is HTML"


def test_the_end_of_a_turn_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(shapes.spec(added_tokens=[])).replace("<|endoftext|>", "<|im_end|>"))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "<|im_end|>"}}))
    with pytest.warns(PacktoolWarning, match=r"EOS is '<\|im_end\|>', which ends a turn of a chat") as caught:
        assert info_of(find_tokenizer(path)).eos_token == "<|im_end|>"
    assert str(caught[0].message).endswith("To pretrain, name another with eos_token.")
    with pytest.warns(PacktoolWarning, match="which ends a turn of a chat"):
        info_of(find_tokenizer(path), eos_token="<|im_end|>")
    info_of(find_tokenizer(path), chats=True)  # of conversations it may be the end: a warning would be an error


def test_every_other_token_that_ends_no_document_is_warned_of(tmp_path: Path) -> None:
    """As in Gemma's vocabulary, where </s> is HTML."""
    spec = shapes.spec(added_tokens=[])
    for token, special in (("</s>", False), ("<eos>", True), ("<pad>", True), ("<end_of_turn>", True)):
        number = len(spec["model"]["vocab"])
        spec["model"]["vocab"][token] = number
        spec["added_tokens"].append(shapes.token(token, number, special=special))
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(spec))
    for eos, why in (
        ("</s>", "an ordinary token, which texts may contain"),
        ("<pad>", "which ends no document"),
        ("<end_of_turn>", "which ends a turn of a chat"),
    ):
        with pytest.warns(PacktoolWarning, match=f"EOS is '{eos}', {why}. To pretrain, give eos_token='<eos>'"):
            info_of(find_tokenizer(path), eos_token=eos)
    info_of(find_tokenizer(path), eos_token="<eos>")  # a warning would be an error


def test_a_bos_that_the_model_expects_is_warned_of(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(shapes.spec()))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"add_bos_token": True}))
    with pytest.warns(PacktoolWarning, match="add_bos_token, but documents begin without a BOS. Give bos=True"):
        info_of(find_tokenizer(tmp_path))
    info_of(
        find_tokenizer(tmp_path), chats=True
    )  # the chat template says what begins them: a warning would be an error


def test_no_candidate_ends_turns() -> None:
    assert not ENDS_OF_TURNS.intersection(*[{token for group in CANDIDATES["eos"] for token in group}])
