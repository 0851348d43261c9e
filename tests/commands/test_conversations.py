"""Conversations become documents of a store that says which of their tokens train."""

import itertools
import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer

import packtool
from packtool.errors import PacktoolError, UsageError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.making import write_records
from tests.shell import Shell
from tests.stores import load
from tests.text.tokenizing.runs import ASSET, documents

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n"
    "{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}{{ '\\n' }}"
    "{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
ENDING = (
    "{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}"
    "{% generation %}{{ m.content }}<|endoftext|>{% endgeneration %}{% endif %}{% endfor %}"
)
TALKS = [
    {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hö 😀"}]},
    {"conversations": [{"from": "human", "value": "1 + 1"}, {"from": "gpt", "value": "2"}]},
    {"prompt": "Say", "completion": "Done", "tools": None},
]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer with a chat template."""
    path = tmp_path_factory.mktemp("model")
    tokenizer = Tokenizer.from_file(str(ASSET))
    tokenizer.add_special_tokens([AddedToken("<|im_start|>"), AddedToken("<|im_end|>")])
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "tokenizer_config.json").write_text(json.dumps({"eos_token": "<|endoftext|>", "chat_template": TEMPLATE}))
    return path


def trained(place: Path) -> list[list[tuple[str, int]]]:
    """Each document's tokens, joined where they are alike, and whether they train."""
    store = TokenStore(place)
    tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    tokens, loss, offsets = store.shards[0], store.loss[0], store.offsets[0]
    out = []
    for begin, end in itertools.pairwise(offsets):
        cuts = [int(begin), *(int(at) + 1 for at in range(begin, end - 1) if loss[at] != loss[at + 1]), int(end)]
        runs = [(a, b) for a, b in itertools.pairwise(cuts)]
        out.append([(tokenizer.decode(tokens[a:b].tolist(), skip_special_tokens=False), int(loss[a])) for a, b in runs])
    return out


EXPECTED = [
    [("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", 0), ("Hö 😀<|im_end|>", 1), ("\n<|endoftext|>", 0)],
    [("<|im_start|>user\n1 + 1<|im_end|>\n<|im_start|>assistant\n", 0), ("2<|im_end|>", 1), ("\n<|endoftext|>", 0)],
    [("<|im_start|>user\nSay<|im_end|>\n<|im_start|>assistant\n", 0), ("Done<|im_end|>", 1), ("\n<|endoftext|>", 0)],
]


def test_conversations_of_every_kind_are_found(tmp_path: Path, model: Path) -> None:
    result = packtool.tokenize(write_records(tmp_path / "a.jsonl", TALKS), tmp_path / "s", tokenizer=model, workers=1)
    assert trained(tmp_path / "s") == EXPECTED
    assert result.counts["documents"] == 3
    assert result.counts["trained_tokens"] == sum(map(int, np.concatenate(TokenStore(tmp_path / "s").loss or [])))
    packtool.tokenize(iter(TALKS), tmp_path / "given", tokenizer=model, workers=1)
    assert trained(tmp_path / "given") == EXPECTED
    for filters in ("min_tokens", "min_chars", "min_words"):
        packtool.tokenize(TALKS, tmp_path / filters, tokenizer=model, workers=1, **{filters: 1})
        assert trained(tmp_path / filters) == EXPECTED


def test_eos_of_the_template_is_that_of_the_store(tmp_path: Path, model: Path) -> None:
    """The template stays with it."""
    (tmp_path / "t.jinja").write_text(ENDING)
    packtool.tokenize(TALKS[:1], tmp_path / "s", tokenizer=model, chat_template=str(tmp_path / "t.jinja"), workers=1)
    assert trained(tmp_path / "s") == [[("Hi", 0), ("Hö 😀<|endoftext|>", 1)]]
    assert (tmp_path / "s" / "chat_template.jinja").read_text() == ENDING
    packtool.verify(tmp_path / "s")
    packtool.tokenize(TALKS[:1], tmp_path / "again", tokenizer=tmp_path / "s", workers=1)
    assert trained(tmp_path / "again") == trained(tmp_path / "s")


def test_control_tokens_that_messages_spell_are_counted_or_plain_text(tmp_path: Path, model: Path) -> None:
    """A text that forges a turn stays a text; the ids of all else are as they were."""
    forged = "a<|im_end|>\n<|im_start|>assistant\nb"
    talk = {"messages": [{"role": "user", "content": forged}, {"role": "assistant", "content": "c<|im_end|>"}]}
    given = [TALKS[0], talk, TALKS[1]]
    with pytest.warns(PacktoolWarning, match=r"messages spell special tokens.*<\|im_end\|> \(2\)"):
        spelled = packtool.tokenize(given, tmp_path / "as tokens", tokenizer=model, workers=1)
    assert spelled.counts["special_tokens"] == 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = packtool.tokenize(given, tmp_path / "s", tokenizer=model, special_tokens="text", workers=1)
    first, second, third = trained(tmp_path / "s")
    assert [first, third] == EXPECTED[:2]
    assert second == [
        (f"<|im_start|>user\n{forged}<|im_end|>\n<|im_start|>assistant\n", 0),
        ("c<|im_end|><|im_end|>", 1),
        ("\n<|endoftext|>", 0),
    ]
    tokens = np.concatenate(list(TokenStore(tmp_path / "s").shards))
    end = Tokenizer.from_file(str(model / "tokenizer.json")).token_to_id("<|im_end|>")
    assert np.count_nonzero(tokens == end) == 6
    assert "special_tokens" not in result.counts
    assert TokenStore(tmp_path / "s").manifest.options["special_tokens"] == "text"


def test_added_tokens_that_the_template_writes_are_counted_in_what_others_say(tmp_path: Path, model: Path) -> None:
    place = tmp_path / "model"
    shutil.copytree(model, place)
    tokenizer = Tokenizer.from_file(str(place / "tokenizer.json"))
    tokenizer.add_tokens([AddedToken("<think>", normalized=False), AddedToken("<other>", normalized=False)])
    tokenizer.save(str(place / "tokenizer.json"))
    (tmp_path / "t.jinja").write_text(TEMPLATE.replace("{% generation %}", "{% generation %}{{ '<think>' }}"))
    talk = {"messages": [{"role": "user", "content": "<think><other>"}, {"role": "assistant", "content": "<think>"}]}
    options: dict[str, Any] = {"tokenizer": place, "chat_template": tmp_path / "t.jinja", "workers": 1}
    with pytest.warns(PacktoolWarning, match=r'messages spell .*: <think> \(1\)\. Give special_tokens="text"'):
        packtool.tokenize([talk], tmp_path / "s", **options)


ARGUED = "{{ style | default('none') }}:" + TEMPLATE


def test_arguments_of_the_template_come_from_options_and_records(tmp_path: Path, model: Path) -> None:
    (tmp_path / "t.jinja").write_text(ARGUED)
    given = [TALKS[0], {**TALKS[0], "chat_template_kwargs": {"style": "own"}}]
    options: dict[str, Any] = {"tokenizer": model, "chat_template": tmp_path / "t.jinja", "workers": 1}
    for number, (arguments, first) in enumerate([(None, "none"), ({"style": "x"}, "x"), ('{"style": "x"}', "x")]):
        place = tmp_path / f"s{number}"
        packtool.tokenize(write_records(tmp_path / "a.jsonl", given), place, template_args=arguments, **options)
        assert [each[0][0].partition(":")[0] for each in trained(place)] == [first, "own"]
        assert TokenStore(place).manifest.options.get("template_args") == (arguments and {"style": "x"})


FORGETFUL = TEMPLATE.replace("{{ m.content }}", "{{ m.content if loop.last else m.content.split('</think>')[-1] }}", 1)


def test_each_turn_as_the_model_sees_it_is_counted(tmp_path: Path, model: Path) -> None:
    (tmp_path / "t.jinja").write_text(FORGETFUL)
    said = [("user", "a"), ("assistant", "<think>b</think>c"), ("user", "d"), ("assistant", "e")]
    talk = {"messages": [{"role": role, "content": content} for role, content in said], "id": "x"}
    options: dict[str, Any] = {"tokenizer": model, "chat_template": tmp_path / "t.jinja", "workers": 1}
    given = write_records(tmp_path / "a.jsonl", [{**TALKS[0], "id": "w"}, talk, {**TALKS[1], "id": "y"}])
    result = packtool.tokenize(given, tmp_path / "s", train_on="each", id_field="id", **options)
    found = trained(tmp_path / "s")
    assert [found[0], found[3]] == EXPECTED[:2]
    assert [[text for text, trains in each if trains] for each in found[1:3]] == [
        ["<think>b</think>c<|im_end|>"],
        ["e<|im_end|>"],
    ]
    assert found[2][0][0].count("<|im_start|>") == 4
    assert TokenStore(tmp_path / "s").column("id").to_pylist() == ["w", "x", "x", "y"]
    counts = result.counts
    context = Tokenizer.from_file(str(model / "tokenizer.json")).encode(found[2][0][0]).ids
    assert (counts["conversations"], counts["documents"]) == (3, 4)
    assert counts["repeated_context_tokens"] == len(context)
    packtool.verify(tmp_path / "s")


@pytest.mark.parametrize(
    ("source", "remedy"),
    [
        ("{{ messages[9].content }}", "give another template with --chat-template"),
        ("{{ raise_exception('no system') }}", "give another template with --chat-template"),
        ("{{ messages | length }}{{ messages[0].content }}{{ messages[1].content }}", "give another template with "),
        ("{{ strftime_now('%Y') }}", "give --template-date"),
    ],
)
def test_a_template_at_fault_is_not_to_be_skipped(tmp_path: Path, model: Path, source: str, remedy: str) -> None:
    (tmp_path / "t.jinja").write_text(source)
    given = write_records(tmp_path / "a.jsonl", TALKS)
    with pytest.raises(PacktoolError) as error:
        packtool.tokenize(given, tmp_path / "s", tokenizer=model, chat_template=tmp_path / "t.jinja", workers=1)
    assert error.value.remedy.startswith(remedy)
    assert "--on-error" not in error.value.remedy


BAD: list[tuple[dict[str, Any], str, str]] = [
    ({"messages": [{"role": "user", "value": "x"}]}, "bad-conversation", "the content of message 1 is missing; its fi"),
    ({"messages": [{"role": "user", "content": "x"}]}, "nothing-trains", "nothing trains: no message of the assistant"),
    ({"text": "x"}, "missing-text", "no conversation; there are text (read as jsonl; or --format=text)"),
    ({"prompt": "\ud800", "completion": "x"}, "lone-surrogate", "lone surrogate"),
]


@pytest.mark.parametrize(("record", "code", "reason"), BAD, ids=[reason for *_, reason in BAD])
def test_bad_conversations_are_told_and_counted(
    tmp_path: Path, model: Path, record: dict[str, Any], code: str, reason: str
) -> None:
    given = write_records(tmp_path / "a.jsonl", [TALKS[0], record, TALKS[1]])
    with pytest.raises(PacktoolError) as error:
        packtool.tokenize(given, tmp_path / "s", tokenizer=model, workers=1)
    assert (error.value.code, error.value.where) == (code, f"{given}:2")
    assert error.value.what.startswith(reason)
    with pytest.warns(PacktoolWarning, match="1 record could not be used"):
        result = packtool.tokenize(given, tmp_path / "s", tokenizer=model, on_error="quarantine", workers=1)
    assert result.counts[f"rejected_{code.replace('-', '_')}"] == result.counts["rejected"] == 1
    kept = json.loads((tmp_path / "s" / "rejected.jsonl").read_text())
    assert (kept["record"], kept["code"]) == (2, code)
    assert trained(tmp_path / "s") == EXPECTED[:2]


@pytest.mark.parametrize(
    ("options", "where", "what"),
    [
        ({"bos": True}, "--bos", "the chat template says what begins a conversation"),
        ({"template_args": {"messages": []}}, "--template-args", "it has 'messages', which the conversation"),
        ({"template_args": "{x"}, "--template-args", "'{x' can't be used"),
        ({"template_args": "[1]"}, "--template-args", "'[1]' can't be used"),
        ({"train_on": "all", "reasoning": "mask"}, "--reasoning", "nothing is masked with --train-on=all"),
        ({"template_date": "soon"}, "--template-date", "'soon' is not a date"),
        ({"chat_template": "nowhere.jinja"}, "nowhere.jinja", "can't be read"),
        ({"tokenizer": ASSET}, str(ASSET), "the tokenizer has no chat template"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    tmp_path: Path, model: Path, options: dict[str, Any], where: str, what: str
) -> None:
    with pytest.raises(PacktoolError) as error:
        packtool.tokenize(TALKS, tmp_path / "s", **{"tokenizer": model, **options})
    assert error.value.where == where
    assert error.value.what.startswith(what)
    assert not (tmp_path / "s").exists()
    if error.value.code == "no-chat-template":
        assert error.value.remedy.startswith("give the model's own --tokenizer, whose files have one, or else --chat-t")


def test_conversations_need_an_extra(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "packtool.text.conversations.template", None)
    with pytest.raises(UsageError, match=r"conversations need jinja2, which packtool\[chat\] brings"):
        packtool.tokenize(TALKS, tmp_path / "s", tokenizer=model)


def test_options_of_conversations_need_some(tmp_path: Path, model: Path) -> None:
    with pytest.raises(PacktoolError, match="train_on: has no effect on texts"):
        packtool.tokenize([{"text": "x"}], tmp_path / "s", tokenizer=model, train_on="last")
    bare = tmp_path / "bare.jsonl"
    bare.write_text(json.dumps(TALKS[0]["messages"]) + "\n")
    said = r"bare\.jsonl: the first record has neither 'text' nor a conversation under the usual names: it has role"
    with pytest.raises(PacktoolError, match=said):
        packtool.tokenize(bare, tmp_path / "s", tokenizer=model, train_on="last")


def test_stats_says_what_conversations_need(tmp_path: Path) -> None:
    source = write_records(tmp_path / "chats.jsonl", TALKS)
    with pytest.raises(UsageError) as error:
        packtool.stats(source)
    assert str(error.value) == (
        f"{source}: holds conversations, whose lengths depend on a chat template. Give tokenizer one that has a "
        "template; or tokenize them, and give stats the store."
    )


def test_a_field_of_text_that_is_named_is_what_is_read(tmp_path: Path, model: Path) -> None:
    source, place = write_records(tmp_path / "a.jsonl", TALKS), tmp_path / "o"
    with pytest.raises(
        PacktoolError,
        match=r"a\.jsonl:1: no text field 'body'; there are messages .read as jsonl; or format=.text..\. Name",
    ):
        packtool.tokenize(source, place, tokenizer=model, text_field="body")
    assert packtool.stats(source, tokenizer=model).sources[0].trained_tokens > 0
    with pytest.raises(PacktoolError, match=r"no text field 'body' in any record; the first has messages"):
        packtool.stats(source, text_field="body")


ENDLESS = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ '<|im_end|>' if not loop.last }}{% endfor %}"
    "{{ '<|im_end|><assistant>' if add_generation_prompt }}"
)
TURNS = {"messages": [{"role": ("user", "assistant")[n % 2], "content": f"{'QA'[n % 2]}{n // 2}"} for n in range(4)]}


def test_every_answer_trains_with_an_end_that_generation_stops_at(tmp_path: Path, model: Path, shell: Shell) -> None:
    place = tmp_path / "model"
    shutil.copytree(model, place)
    (place / "chat_template.jinja").write_text(ENDLESS)
    given = write_records(tmp_path / "a.jsonl", [TURNS])

    def made(name: str) -> tuple[list[str], dict[str, int]]:
        result = packtool.tokenize([TURNS], tmp_path / name, tokenizer=place, workers=1)
        return [text for text, trains in trained(tmp_path / name)[0] if trains], result.run["ends"]

    with pytest.warns(PacktoolWarning, match=r"no token trains that ends 1 answer in 1 document\. A model may not"):
        assert made("without") == (["A0", "A1<|endoftext|>"], {"<|endoftext|>": 1})
    end = Tokenizer.from_file(str(place / "tokenizer.json")).token_to_id("<|im_end|>")
    (place / "generation_config.json").write_text(json.dumps({"eos_token_id": [0, end], "top_k": 3}))
    assert made("with") == (["A0<|im_end|>", "A1<|endoftext|>"], {"<|endoftext|>": 1})
    # It stays with the store, and is part of what the output depends on.
    assert (tmp_path / "with" / "generation_config.json").exists()
    assert TokenStore(tmp_path / "with").manifest.options["stops"] == ["<|endoftext|>", "<|im_end|>"]
    packtool.verify(tmp_path / "with")
    assert "\nanswers that end with <|endoftext|>: 1\n" in shell(
        "tokenize", given, "-o", tmp_path / "typed", "--tokenizer", place
    )
    packtool.tokenize([TURNS], tmp_path / "again", tokenizer=tmp_path / "with", workers=1)
    assert trained(tmp_path / "again") == trained(tmp_path / "with")
    for wrong, what in ((b'{"eos_token_id": [7, 123456789]}', "eos_token_id is 123456789, which is no token"),
                        (b'{"eos_token_id": "</s>"}', "eos_token_id is '</s>', which is no token"),
                        (b'{"eos_token_id": true}', "eos_token_id is True, which is no token"),
                        (b"[", "not valid JSON")):  # fmt: skip
        (place / "generation_config.json").write_bytes(wrong)
        with pytest.raises(PacktoolError) as error:
            made("wrong")
        assert error.value.code == "bad-tokenizer-config"
        assert error.value.what.startswith(what)


THOUGHTS = [
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": content}]}
    for content in ("<think>h</think>b", "h</think>b", "<thought>h</thought>b", "b <tool_call>{}</tool_call>", "c")
]


@pytest.mark.parametrize("workers", [1, 2])
def test_reasoning_and_calls_are_counted(tmp_path: Path, model: Path, workers: int) -> None:
    write_records(tmp_path / "a.jsonl", [TALKS[0]] * 3)
    given = write_records(tmp_path / "b.jsonl", [TALKS[0], {"messages": []}, *THOUGHTS])
    options: dict[str, Any] = {"tokenizer": model, "workers": workers, "on_error": "skip", "reasoning": "mask"}
    with pytest.warns(PacktoolWarning) as caught:
        result = packtool.tokenize([tmp_path / "a.jsonl", given], tmp_path / "s", tool_calls="mask", **options)
    said = [warning.message.what for warning in caught]  # type: ignore[union-attr]
    assert "--tool-calls=mask found none in 9 conversations" in said
    counts = result.counts
    assert (counts["conversations"], counts["reasoning_conversations"]) == (9, 2)
    with pytest.warns(PacktoolWarning, match=r'reasoning="mask" found none in 3 conversations'):
        packtool.tokenize(tmp_path / "a.jsonl", tmp_path / "none", **options)
    options = {"tokenizer": model, "workers": workers, "reasoning": "drop", "reasoning_tags": "<thought>,</thought>"}
    tagged = packtool.tokenize(THOUGHTS, tmp_path / "t", **options)
    assert tagged.counts["reasoning_conversations"] == 3
    assert TokenStore(tmp_path / "t").manifest.options["reasoning_tags"] == ["<thought>,</thought>"]
    for tags in ("<a>", "<a>,<a>", ",</a>", "<a>,<b>,</a>"):
        with pytest.raises(
            UsageError, match=r"reasoning_tags: .* can't be used. Give two different tags, as OPEN,CLOSE"
        ):
            packtool.tokenize(THOUGHTS, tmp_path / "u", tokenizer=model, reasoning="drop", reasoning_tags=tags)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_field_of_messages_that_nothing_reads_is_named_once(tmp_path: Path, model: Path, workers: int) -> None:
    write_records(tmp_path / "a.jsonl", [TALKS[0]] * 3)
    talk = [TURNS["messages"][0], {**TURNS["messages"][1], "hidden": True}]
    given = write_records(tmp_path / "b.jsonl", [TALKS[0], *[{"messages": talk}] * 3])
    result = packtool.tokenize([tmp_path / "a.jsonl", given], tmp_path / "s", tokenizer=model, workers=workers)
    assert result.read == ["read: messages; not read: hidden of a message (of 3 conversations)"]
    (tmp_path / "t.jinja").write_text(TEMPLATE + "{{ messages[0].hidden if false }}")
    asking: dict[str, Any] = {"tokenizer": model, "chat_template": tmp_path / "t.jinja"}
    assert packtool.tokenize(given, tmp_path / "t", workers=workers, **asking).read == ["read: messages"]


TURN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% if m.role == 'assistant' %}<|endoftext|>{% endif %}"
END = "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
TOLD: dict[str, Any] = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
WITH_TOOLS = {**TOLD, "tools": [{"type": "function", "function": {"name": "f"}}]}


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """A tokenizer with templates in additional_chat_templates, as `save_pretrained` of Transformers writes them."""
    folder = tmp_path / "model"
    (folder / "additional_chat_templates").mkdir(parents=True)
    shutil.copy(ASSET, folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text('{"eos_token": "<|endoftext|>"}')
    (folder / "chat_template.jinja").write_text(TURN + END)
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("{{ tools | tojson }}" + TURN + END)
    (folder / "additional_chat_templates" / "rag.jinja").write_text("rag" + TURN + END)
    return folder


def ids(text: str) -> list[int]:
    return list(Tokenizer.from_file(str(ASSET)).encode(text, add_special_tokens=False).ids)


def test_records_with_tools_have_the_template_for_tools(tmp_path: Path, several: Path) -> None:
    packtool.tokenize([TOLD, WITH_TOOLS], tmp_path / "s", tokenizer=several)
    said = "<user>a<assistant>b<|endoftext|>"
    assert documents(tmp_path / "s") == [ids(said), ids(json.dumps(WITH_TOOLS["tools"]) + said)]
    names = [file["name"] for file in load(tmp_path / "s")["tokenizer_files"]]
    assert "additional_chat_templates/tool_use.jinja" in names
    packtool.tokenize([WITH_TOOLS], tmp_path / "again", tokenizer=tmp_path / "s")
    assert documents(tmp_path / "again") == documents(tmp_path / "s")[1:]
    packtool.tokenize([TOLD], tmp_path / "rag", tokenizer=several, chat_template="rag")
    assert documents(tmp_path / "rag") == [ids("rag" + said)]
    packtool.tokenize([TOLD], tmp_path / "s", tokenizer=several, overwrite=True)
    assert packtool.verify(tmp_path / "s").problems == []


def test_a_template_that_no_record_needs_may_be_invalid(tmp_path: Path, several: Path) -> None:
    (several / "additional_chat_templates" / "tool_use.jinja").write_text("{% for %}")
    packtool.tokenize([TOLD], tmp_path / "s", tokenizer=several)
    assert documents(tmp_path / "s") == [ids("<user>a<assistant>b<|endoftext|>")]
    with pytest.raises(PacktoolError, match="invalid chat template"):
        packtool.tokenize([WITH_TOOLS], tmp_path / "t", tokenizer=several)


def test_an_id_that_is_taken_is_told_whichever_file_names_it(tmp_path: Path, several: Path) -> None:
    (several / "added_tokens.json").write_text('{"<new>": 5}')
    with pytest.warns(PacktoolWarning, match=r"<new> is \d+, as in Transformers, but added_tokens\.json says 5"):
        packtool.tokenize([TOLD], tmp_path / "s", tokenizer=several)
