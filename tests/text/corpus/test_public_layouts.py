"""Records as public data sets have them, in their own names: each is read or refused, and never in part and in silence.

A row is a record, and what becomes of it: the whole text where it is read, and the line that says what is read; or the
options that the refusal shows, "" where it shows none.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import pytest
from tokenizers import Tokenizer

import packtool
from packtool.errors import DataError, PacktoolError
from packtool.formats.token_store import TokenStore
from packtool.warnings import PacktoolWarning
from tests.text.corpus.conftest import SHOWING
from tests.text.corpus.reading import write
from tests.text.tokenizing.runs import ASSET, documents

Q, A, R, S = "What is it all?", "It is so.", "Let me think a bit.", "Be quite brief."
TALK = [{"role": "user", "content": Q}, {"role": "assistant", "content": A}]
IN_PARTS = [{"role": turn["role"], "content": [{"text": turn["content"]}]} for turn in TALK]
SHARED = [{"from": "human", "value": Q}, {"from": "gpt", "value": A}]
OTHERS = [{"author": "x", "text": "y"}]
TOLD = "user:What is it all? assistant:It is so."
THOUGHT = "user:What is it all? assistant:(Let me think a bit.)It is so."
BRIEF = f"system:{S} {TOLD}"
PAST = [["Hello you", "Hi there"]]
EARLIER = f"user:Hello you assistant:Hi there {TOLD}"

PAIRS = (
    *("instruction → output", "question → answer", "query → response", "problem → solution", "document → summary"),
    *("dialogue → summary", "article → highlights", "article → abstract", "input → target", "inputs → targets"),
    *("Context → Response", "input_text → output_text"),
)
"""Sets of a prompt and its answer alone, as the line says what is read."""

READ: dict[str, tuple[dict[str, Any], str, str]] = {
    **{line: (dict(zip(line.split(" → "), (Q, A), strict=True)), TOLD, line) for line in PAIRS},
    "tulu-3-sft-mixture": ({"id": "x", "messages": TALK, "source": "ai2"}, TOLD, "messages; not read: id, source"),
    "SlimOrca": ({"conversations": [{"from": "system", "value": S, "weight": None}, *SHARED]}, BRIEF, "conversations"),
    "OpenHermes-2.5": ({"conversations": SHARED, "custom_instruction": None}, TOLD, "conversations"),
    "OpenOrca": ({"system_prompt": S, "question": Q, "response": A}, BRIEF, "question, system_prompt → response"),
    "ultrachat_200k": ({"prompt": Q, "prompt_id": "1", "messages": TALK}, TOLD, "messages; not read: prompt"),
    "alpaca": ({"instruction": Q, "input": "", "output": A, "text": None}, TOLD, "instruction"),
    "MetaMathQA": ({"type": "GSM", "query": Q, "original_question": "x", "response": A}, TOLD, "query → response"),
    "NuminaMath-CoT": ({"source": "amc", "problem": Q, "solution": A, "messages": TALK}, TOLD, "messages; not read"),
    "OpenMathInstruct-2": ({"problem": Q, "generated_solution": A, "expected_answer": "2"}, TOLD, ": expected_answer"),
    "medical-o1": ({"Question": Q, "Complex_CoT": R, "Response": A}, TOLD, "Response; not read: Complex_CoT"),
    "OpenThoughts": ({"system": S, "conversations": SHARED}, BRIEF, "conversations, system"),
    "s1K": ({"question": Q, "solution": A, "thinking_trajectories": [R]}, TOLD, "not read: thinking_trajectories"),
    "dolphin-r1": ({"messages": TALK[:1], "reasoning": R, "answer": A}, THOUGHT, "messages, reasoning, answer"),
    "reasoning": ({"prompt": Q, "completion": A, "reasoning_content": R}, THOUGHT, "reasoning_content, completion"),
    "LIMA": ({"conversations": [Q, A], "source": "stackexchange"}, TOLD, "conversations; not read: source"),
    "lmsys-chat-1m": ({"conversation": TALK, "turn": 1, "language": "en"}, TOLD, "conversation; not read"),
    "capybara": ({"source": "x", "conversation": [{"input": Q, "output": A}]}, TOLD, "conversation; not read: source"),
    "rounds": ({"id": "1", "chat": [{"human": Q, "assistant": A}]}, TOLD, "chat; not read: id"),
    "text_to_sql": ({"sql_prompt": Q, "sql_context": "", "sql": A, "sql_explanation": "x"}, TOLD, ": sql_explanation"),
    "KTO": ({"prompt": Q, "completion": A, "label": True}, TOLD, "prompt, label → completion"),
    "toolace": (
        {"system": S, "conversations": [{"from": "user", "value": Q}, {"from": "assistant", "value": A}]},
        BRIEF,
        "conversations, system",
    ),
    "UltraFeedback, binarized": ({"prompt": Q, "messages": TALK, "chosen": TALK, "rejected": TALK}, TOLD, "messages"),
    "OpenAI fine-tuning": (
        {"messages": [{"role": "system", "content": S}, *TALK], "parallel_tool_calls": False},
        BRIEF,
        "messages",
    ),
    "Together": ({"messages": [TALK[0], {**TALK[1], "weight": 1}]}, TOLD, "messages"),
    "OpenRouter": (
        {"messages": [TALK[0], {**TALK[1], "reasoning_details": [{"type": "reasoning.text", "text": R}]}]},
        THOUGHT,
        "messages",
    ),
    "Bedrock": ({"system": [{"text": S}], "messages": IN_PARTS}, BRIEF, "messages, system"),
    "Gemini": (
        {
            "systemInstruction": {"parts": [{"text": S}]},
            "contents": [{"role": "user", "parts": [{"text": Q}]}, {"role": "model", "parts": [{"text": A}]}],
        },
        BRIEF,
        "contents, systemInstruction",
    ),
    "Cohere, older": (
        {"chat_history": [{"role": "USER", "message": Q}, {"role": "CHATBOT", "message": A}]},
        TOLD,
        "chat_history",
    ),
    "Cohere, newer": ({"messages": [TALK[0], {"role": "Chatbot", "content": A}]}, TOLD, "messages"),
    "texts of messages": ({"messages": [{"role": "human", "text": Q}, {"role": "gpt", "text": A}]}, TOLD, "messages"),
    "a sequence of datasets": ({"conversations": {"from": ["human", "gpt"], "value": [Q, A]}}, TOLD, "conversations"),
    "a sequence of messages": ({"messages": {"role": ["user", "assistant"], "content": [Q, A]}}, TOLD, "messages"),
    "XTuner": ({"conversation": [{"system": S, "input": Q, "output": A}]}, BRIEF, "conversation"),
    "P3": (
        {"inputs": [1, 2], "inputs_pretokenized": Q, "targets": [3], "targets_pretokenized": A},
        TOLD,
        "inputs_pretokenized → targets_pretokenized",
    ),
    "a thought in an object": ({"messages": [TALK[0], {**TALK[1], "reasoning": {"content": R}}]}, THOUGHT, "messages"),
    "a thought under another name": ({"messages": [TALK[0], {**TALK[1], "cot": R}]}, THOUGHT, "messages"),
    "parts of a thought": (
        {"messages": [IN_PARTS[0], {**TALK[1], "content": [{"type": "thinking", "thinking": R}, {"text": A}]}]},
        THOUGHT,
        "messages",
    ),
    "marks beside a conversation": ({"chat": TALK, "train": True, "loss_mask": [0, 1]}, TOLD, "chat, train, loss_mask"),
    "calls as JSON": ({"messages": [TALK[0], {**TALK[1], "tool_calls": "[]"}]}, TOLD, "messages"),
    "previous turns": ({"question": Q, "answer": A, "previous_turns": PAST}, EARLIER, "previous_turns → answer"),
    "sys": ({"sys": S, "messages": TALK}, BRIEF, "messages, sys"),
    "a mode": ({"input": [TALK[0]], "output": A, "reasoning": "on", "system_prompt": S}, BRIEF, "not read: reasoning"),
    "comments": ({"messages": TALK, "comments": OTHERS, "answers": ["b"]}, TOLD, "messages; not read"),
    "a thread": ({"question": Q, "answer": A, "thread": OTHERS, "answers": ["b"]}, TOLD, "question → answer; not read"),
    "other responses": ({"prompt": Q, "completion": A, "response_1": "a"}, TOLD, "completion; not read: response_1"),
}
"""By the names of public sets and interfaces: a record, what is read of it, and the line that says so."""

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "self-instruct": (
        {"instruction": Q, "instances": [{"input": "x", "output": A}]},
        "instruction,instances[0].input → instances[0].output",
    ),
    "cohere, older": (
        {"preamble": S, "chat_history": TALK, "message": Q, "response": A},
        "message → response --system preamble --history chat_history",
    ),
    "squad": ({"context": "c", "question": Q, "answers": {"text": [A]}}, "context,question → answers.text[0]"),
    "hc3": ({"question": Q, "human_answers": [A], "chatgpt_answers": [A]}, "question → human_answers[0]"),
    "natural questions, open": ({"question": Q, "answer": [A]}, "question → answer[0]"),
    "eli5": ({"title": Q, "answers": {"a_id": ["x"], "text": [A], "score": [1]}}, "title → answers.text[0]"),
    "trivia_qa": ({"question": Q, "answer": {"aliases": [A], "value": A}}, "question → answer.value"),
    "arc": ({"question": Q, "choices": {"text": [A], "label": ["A"]}, "answerKey": "A"}, ""),
    "hh-rlhf": ({"chosen": f"Human: {Q}", "rejected": "b"}, "--text-field chosen"),
    "orca_dpo_pairs": ({"question": Q, "chosen": A, "rejected": "b"}, "question → chosen"),
    "a pair of conversations": ({"chosen": TALK, "rejected": TALK}, "--conversations chosen"),
    "shp": ({"history": Q, "human_ref_A": A, "human_ref_B": "b", "labels": 1}, "history → human_ref_A"),
    "oasst1": ({"message_id": "1", "parent_id": "0", "role": "prompter", "lang": "en", "body": Q}, ""),
    "prm800k": ({"prompt": Q, "completions": [A], "labels": [True]}, ""),
    "pippa": (
        {"bot_name": "b", "conversation": [{"message": Q, "is_human": True}, {"message": A, "is_human": False}]},
        "--conversations conversation --message-fields is_human,message",
    ),
    "coqa": ({"story": "There was a cat.", "questions": [Q, "And then?"], "answers": {"input_text": [A, "No."]}}, ""),
    "OpenThoughts, later": (
        {"problem": Q, "deepseek_reasoning": R, "deepseek_solution": A, "ground_truth_solution": "2"},
        "problem → deepseek_solution --reasoning-field deepseek_reasoning",
    ),
    "dialogues with a summary": ({"dialogue": [Q, A], "summary": "They talk."}, "--conversations dialogue"),
    "oasst2, as trees": ({"prompt": {"text": "It was so.", "replies": [{"text": Q, "role": "assistant"}]}}, ""),
    "Anthropic batch": ({"custom_id": "1", "params": {"model": "m", "system": S, "messages": TALK}}, ""),
    "Super-NaturalInstructions": (
        {"Definition": [S], "Instances": [{"input": Q, "output": [A]}], "Examples": [{"input": Q, "output": A}]},
        "Definition[0],Instances[0].input → Instances[0].output[0]",
    ),
    "texts of turns": ({"id": "1", "data": [Q, A]}, ""),
    "soda": ({"head": "x", "dialogue": [Q, A], "speakers": ["a", "b"]}, "--conversations dialogue"),
    "a topic": ({"topic": "what may be asked", "conversation": TALK}, "--conversations conversation"),
    "langchain": (
        {"messages": [{"type": "human", "data": {"content": Q}}, {"type": "ai", "data": {"content": A}}]},
        "--conversations messages --message-fields type,data.content",
    ),
    "discord": (
        {"thread": [{"author": {"name": "user"}, "body": Q}, {"author": {"name": "bot"}, "body": A}]},
        "--conversations thread --message-fields author.name,body",
    ),
    "wmt": ({"translation": {"de": Q, "en": A}}, ""),
    "ifeval": ({"key": 1, "prompt": Q, "instruction_id_list": ["x"]}, ""),
    "an answer alone": ({"answer": A, "context": "c"}, ""),
    "two solutions": ({"problem": Q, "solution": A, "answer": "2"}, "problem → solution"),
    "a context before an answer": ({"question": Q, "context": "c", "answer": A}, "context,question → answer"),
    "choices in a text": ({"question": Q, "choices": "c", "answer": A}, "choices,question → answer"),
    "boolq": ({"question": Q, "passage": "p", "answer": True}, "passage,question → answer"),
    "a tree of instructions": ({"id": "1", "parent_id": "0", "instruction": Q, "output": A}, "instruction → output"),
    "MOSS": ({"meta_instruction": "m", "chat": {"turn_1": {"Human": Q, "MOSS": A}}}, ""),
    "ChatGPT, exported": ({"mapping": {"a": {"parent": None}}, "current_node": "a"}, ""),
    "OpenAI batch": ({"custom_id": "1", "body": {"messages": TALK}}, "--conversations body.messages"),
    "OpenAI batch, answered": ({"custom_id": "1", "response": {"body": {"id": "1"}}}, ""),
    "segments with labels": ({"segments": [{"label": True, "text": A}]}, ""),
    "xlam": ({"query": Q, "answers": '[{"name": "f"}]'}, "query → answers"),
    "claude, exported": (
        {"chat_messages": [{"sender": "human", "text": Q}, {"sender": "assistant", "text": A}]},
        "--conversations chat_messages --message-fields sender,text",
    ),
    "daily dialog of columns": (
        {"turns": {"speaker": ["user", "bot"], "utterance": [Q, A]}},
        "--conversations turns --message-fields speaker,utterance",
    ),
    "glaive-function-calling": ({"system": "SYSTEM: s", "chat": f"USER: {Q}\n\nASSISTANT: {A}"}, ""),
    "UltraFeedback": ({"instruction": Q, "completions": [{"response": A}]}, "instruction → completions[0].response"),
    "hellaswag": ({"ctx": Q, "endings": ["no", A], "label": "1"}, ""),
    "medqa": ({"question": Q, "options": {"A": "no", "B": A}, "answer_idx": "B", "answer": A}, ""),
    "PKU-SafeRLHF": ({"prompt": Q, "response_0": A, "response_1": "b"}, "prompt → response_0"),
    "webgpt": ({"question": {"full_text": Q}, "answer_0": A}, "question.full_text → answer_0"),
    "HelpSteer3": ({"context": TALK[:1], "response1": A, "response2": "b"}, "context → response1"),
    "arena": ({"conversation_a": TALK, "conversation_b": TALK}, "--conversations conversation_a"),
    "pairs": ({"context": "c", "conversation": [[Q, A]]}, ""),
    "rounds": ({"conversation": [{"question": Q, "answer": A, "context": "c"}]}, ""),
    "RAGBench": ({"question": Q, "documents": ["d"], "response": A}, ""),
    "MS MARCO": ({"query": Q, "answers": [A], "passages": {"passage_text": ["p"], "is_selected": [1]}}, ""),
    "PubMedQA": ({"question": Q, "context": {"contexts": ["c"]}, "long_answer": A, "final_decision": "yes"}, ""),
    "verl": ({"prompt": TALK[:1], "reward_model": {"style": "rule"}}, ""),
}
"""By the names of public sets: a record that is not read by itself, and the options that its message shows; an arrow
stands for those of a prompt and its answer."""

REASONS = {
    "missing-text": "",
    "preference-pairs": "the first record is a preference pair. Name the answer that is to train: ",
    "unclear-fields": "it is not clear which are the prompt and the answer. (Say it, for example --prompt |Name both)",
    "unread-layout": "the first record ",
}
"""By the codes of errors: what their messages say."""

PAIR = {"instruction": Q, "output": A}
LONG = "w " * 40
OF_A_MESSAGE = {
    "info": {"reference_answer": "It was so."},  # AM-DeepSeek-R1-Distilled
    "rationale": "2+2=4",
    "think": R,  # a word of the template
    "function": {"name": "a", "arguments": {"x": 1}},
}
WARNED: dict[str, tuple[dict[str, Any], str]] = {
    **{
        name: ({"messages": [TALK[0], {**TALK[1], name: value}]}, f"nothing reads {name} of a message (1 conversation)")
        for name, value in OF_A_MESSAGE.items()
    },
    "history": ({"messages": TALK, "history": PAST}, "history (the name of earlier turns) is not read"),
    "context": ({"messages": TALK, "context": "It was so."}, "context (the name of a context) is not read"),
    "documents": ({"messages": TALK, "documents": [{"text": "It was so."}]}, "documents (the name of a context)"),
    "OpenAI responses": ({"messages": TALK, "instructions": S}, "instructions (the name of a question) is not read"),
    "COIG": ({"instruction": S, "conversations": SHARED}, "instruction (the name of a question) is not read"),
    "a history that is a text": ({"instruction": Q, "output": A, "history": "It was so."}, "history (the name of"),
    "a schema": (
        {"question": Q, "answer": A, "table_schema": "CREATE TABLE t"},
        "table_schema (the name of a context)",
    ),
    "s1K": ({"question": Q, "solution": A, "attempt": "It may be so."}, "of the first record, attempt (the name of an"),
    "RAG": ({"messages": TALK, "ctxs": [{"title": "t", "text": "It was so."}]}, "ctxs (the name of a context)"),
    "a sentence to translate": (
        {"source": "It was so.", "target": A, "instruction": Q},
        "source (the name of a question)",
    ),
    "reasoning": ({**PAIR, "Complex_CoT": R}, "Complex_CoT (the name of reasoning) is not read"),
    "a note": ({**PAIR, "system_note": S}, "system_note (the name of a system's text) is not"),
    "a long text": ({**PAIR, "notes": LONG}, "notes (a long text) is not read"),
    "turns": ({**PAIR, "past": [*TALK, {"role": "user", "content": R}]}, "past (messages) is not read"),
    "a mark": (
        {"messages": TALK, "mask_history": "x", "train_loss": 0.5},
        "train_loss (the name of a mark) is not read",
    ),
    "beside a text": (
        {"text": TOLD, "raw": LONG, "model_answer": "x"},
        "raw (a long text), model_answer (the name of an answer)",
    ),
    "a text and a layout": (
        {"text": TOLD, "instruction": Q, "input": R, "output": A},
        "has 'text' and 'instruction': the text is read. Give "
        'prompt="instruction,input", completion="output" to read these instead',
    ),
    "a text and its answer": (
        {"text": TOLD, "summary": A},
        "'text' and 'summary': the text is read. "
        'Give prompt="text", completion="summary" to read both as a conversation',
    ),
    "a text of a tree": (
        {"message_id": "1", "parent_id": "0", "text": TOLD, "role": "prompter"},
        "one message of a tree, as OpenAssistant stores them: each 'text' is read by itself",
    ),
    "a word of context": (
        {"messages": [{**TALK[0], "context": "CTX"}, TALK[1]]},
        "nothing reads context of a message (1 conversation)",
    ),
    "harmony": (
        {"messages": [TALK[0], {**TALK[1], "channel": "analysis", "recipient": "all"}]},
        "nothing reads channel of a message (1 conversation), recipient of a message (1 conversation)",
    ),
    "another answer than the chosen": (
        {"messages": TALK, "chosen": [TALK[0], {**TALK[1], "content": R}], "rejected": TALK},
        "of the first record, chosen (messages) is not read",
    ),
    "a word of material": ({"question": Q, "answer": A, "hint": "H"}, "hint (the name of a context) is not read"),
    "calls": ({**PAIR, "tool_calls": [{"name": "f"}]}, "tool_calls (the name of calls) is not read"),
}
"""Records of which something is left out that hardly is on purpose, and the warning."""

LATER: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a text of the prompt": (PAIR, {"input": R}, f"user:{Q} {R} assistant:{A}"),
    "history": (PAIR, {"history": PAST}, EARLIER),
    "history, usual names": ({"prompt": Q, "completion": A}, {"history": [TALK[0]]}, f"user:{Q} {TOLD}"),
    "system": (PAIR, {"system_prompt": S}, BRIEF),
    "reasoning": (PAIR, {"cot": R}, THOUGHT),
    "history of messages": ({"messages": TALK}, {"history": PAST}, "history (the name of earlier turns)"),
    "a system's text": (PAIR, {"my_system_text": S}, "my_system_text (the name of a system's text)"),
    "a rationale": (PAIR, {"rationale": R}, "rationale (the name of reasoning)"),
    "a mark": (PAIR, {"train_flag": False}, "train_flag (the name of a mark)"),
    "a context": ({"question": Q, "answer": A}, {"context": "It was so."}, "context (the name of a context)"),
    "calls": (PAIR, {"tool_calls": [{"name": "f"}]}, "tool_calls (the name of calls)"),
    "a word of context": (PAIR, {"passages": ["P"]}, "passages (the name of a context)"),
    "another answer": (PAIR, {"response": "No."}, "response (the name of an answer)"),
}
"""A record, what a later one has besides, and what is read of that, or why it is refused."""


def typed(shown: str) -> str:
    """The options of a row as they are typed."""
    prompt, arrow, rest = shown.partition(" → ")
    if not arrow:
        return shown
    answer, *more = rest.split()
    return " ".join(["--prompt", shlex.quote(prompt), "--completion", shlex.quote(answer), *more])


def told(place: Path) -> list[str]:
    """The text of each document of a store, in one line."""
    tokenizer = Tokenizer.from_file(str(ASSET))
    return [" ".join(tokenizer.decode(ids).split()) for ids in documents(place)]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("dataset", READ)
def test_what_is_read_is_said(tmp_path: Path, chat: dict[str, Any], dataset: str, name: str) -> None:
    record, expected, line = READ[dataset]
    path = write(tmp_path / name, [record] * 2)
    with catch_warnings():
        simplefilter("ignore")
        result = packtool.tokenize(path, tmp_path / "s", **chat)
    assert told(tmp_path / "s") == [expected] * 2
    assert result.counts["trained_tokens"] > 0
    options = TokenStore(tmp_path / "s").manifest.options
    said = f"{options['read']}; not read: {', '.join(options['not_read'])}"
    assert line in said
    assert (result.run["read"], result.run["not_read"]) == (options["read"], options["not_read"])
    texts = {text for text in (Q, A, R, S) if text in str(record)}
    hidden = {text for text in texts if text not in expected}
    assert not hidden or options["not_read"], "what is left out is said"


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("dataset", REFUSED)
def test_what_is_not_read_is_refused_with_options_that_read_it(
    tmp_path: Path, chat: dict[str, Any], dataset: str, name: str
) -> None:
    record, shown = REFUSED[dataset]
    options = typed(shown)
    path = write(tmp_path / name, [record] * 2)
    with pytest.raises(PacktoolError) as error:
        packtool.tokenize(path, tmp_path / "s", tokenizer=ASSET)
    said = error.value.typed()
    assert re.search(REASONS[error.value.code], said)
    assert options in said
    if options and "--text-field" not in options:
        words = shlex.split(options)
        named = {word[2:].replace("-", "_"): value for word, value in zip(words[::2], words[1::2], strict=True)}
        packtool.tokenize(path, tmp_path / "s", **chat, **named, tool_calls="drop")
        assert TokenStore(tmp_path / "s").manifest.counts["trained_tokens"] > 0
        lines = told(tmp_path / "s")
        assert len(lines) == 2
        assert A not in str(record) or all(A in line for line in lines)


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("case", WARNED)
def test_what_is_left_out_is_warned_of(tmp_path: Path, chat: dict[str, Any], case: str, name: str) -> None:
    record, message = WARNED[case]
    options = {"tokenizer": ASSET} if "text" in record else chat
    with pytest.warns(PacktoolWarning) as caught:
        packtool.tokenize(write(tmp_path / name, [record]), tmp_path / "s", **options)
    assert message in str(caught[0].message)
    assert told(tmp_path / "s") == [TOLD]


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet"])
@pytest.mark.parametrize("case", LATER)
def test_a_field_that_only_later_records_have_is_read_or_refused(
    tmp_path: Path, chat: dict[str, Any], case: str, name: str
) -> None:
    first, more, expected = LATER[case]
    absent = dict.fromkeys(more) if name == "a.parquet" else {}
    path = write(tmp_path / name, [absent | first, first | more])
    if ":" in expected:
        packtool.tokenize(path, tmp_path / "s", **chat)
        assert told(tmp_path / "s") == [TOLD, expected]
        return
    with pytest.raises(PacktoolError) as error:
        packtool.tokenize(path, tmp_path / "s", **chat)
    said = str(error.value)
    asked = name == "a.parquet" and "it is not clear which are the prompt and the answer" in said  # by the column alone
    assert asked or said.startswith(f"{path}:2: {expected} is not read, and the first record lacks it")
    if "messages" not in first:
        named = {"prompt": next(iter(first)), "completion": list(first)[1]}
        with pytest.warns(PacktoolWarning, match=f"nothing reads {next(iter(more))} "):
            packtool.tokenize(path, tmp_path / "s", **chat, **named)


NEXT = {"role": "user", "content": R}
PREFERRED = "its last message has no answer but in chosen or rejected"
LOST: dict[str, tuple[dict[str, Any], str]] = {
    "a chosen answer": ({"messages": [*TALK, NEXT], "chosen": A}, PREFERRED),
    "a pair of answers": ({"messages": [*TALK, NEXT], "chosen": A, "rejected": "No."}, PREFERRED),
    "messages of answers": ({"conversations": [*TALK, NEXT], "chosen": [TALK[1]]}, PREFERRED),
    "rounds": (
        {"messages": [{"human": Q, "assistant": A, "thinking": R}]},
        "message 1 has no role; its fields are human",
    ),
    "a call of Gemini": (
        {"messages": [TALK[0], {"role": "model", "content": [{"functionCall": {"name": "f"}}]}]},
        "the content of message 2 has a part of functionCall, which is not a text",
    ),
}
"""Records whose answer would be lost, and why they are refused."""


@pytest.mark.parametrize("case", LOST)
@pytest.mark.parametrize("first", [None, {"messages": TALK}])
def test_a_record_whose_answer_would_be_lost_is_refused(
    tmp_path: Path, chat: dict[str, Any], case: str, first: dict[str, Any] | None
) -> None:
    record, expected = LOST[case]
    records = [record] if first is None else [first, record]
    with pytest.raises(DataError) as error:
        packtool.tokenize(write(tmp_path / "a.jsonl", records), tmp_path / "s", **chat)
    assert f":{len(records)}: {expected}" in str(error.value)
    assert "--message-fields" not in str(error.value)


EMPTY: tuple[dict[str, Any], ...] = (
    {"prompt": Q, "completion": ""},
    {"messages": [TALK[0], {"role": "assistant", "content": "  "}]},
    {"messages": [TALK[0], {"role": "assistant", "content": [{"type": "text", "text": ""}]}, *TALK]},
    {"messages": [TALK[0], {"role": "assistant", "content": "", "call": {"name": "f"}}]},
)


@pytest.mark.parametrize("record", EMPTY)
def test_answers_without_text_are_counted(tmp_path: Path, chat: dict[str, Any], record: dict[str, Any]) -> None:
    """The end of the turn trains alone, as in Transformers; what does not train may be empty."""
    with pytest.warns(PacktoolWarning) as caught:
        packtool.tokenize([record, {**record, "train": False}], tmp_path / "s", **{**chat, "on_error": "skip"})
    said = " ".join(str(each.message) for each in caught)
    assert "1 answer without text, calls and reasoning: the end of the turn trains alone" in said
    assert ("nothing reads call of a message (1 conversation)" in said) is ("call" in str(record))


def test_any_other_field_that_only_later_records_have_is_counted(tmp_path: Path, chat: dict[str, Any]) -> None:
    path = write(tmp_path / "a.jsonl", [PAIR, {**PAIR, "notes": "n", "x": None}, {**PAIR, "notes": "n", "x": 3}])
    with pytest.warns(PacktoolWarning, match=r"nothing reads notes \(2 conversations\), x \(1 conversation\)\."):
        packtool.tokenize(path, tmp_path / "s", **chat)


@pytest.mark.parametrize("reasoning", ["train", "mask"])
def test_reasoning_that_the_template_leaves_out_is_counted(
    tmp_path: Path, chat: dict[str, Any], reasoning: str
) -> None:
    said = {"messages": [*TALK, TALK[0], {**TALK[1], "reasoning_content": R}]}
    shown = packtool.tokenize([said], tmp_path / "s", reasoning=reasoning, **chat)
    assert "hidden_reasoning_messages" not in shown.counts
    as_json = {**TALK[1], "reasoning_content": f'"{R}"'}
    chat["chat_template"].write_text(SHOWING.replace("m.reasoning_content ~", "m.reasoning_content | tojson ~"))
    shown = packtool.tokenize([{"messages": [TALK[0], as_json]}], tmp_path / "j", **chat)
    assert "hidden_reasoning_messages" not in shown.counts
    chat["chat_template"].write_text(SHOWING.replace("if m.reasoning_content", "if false"))
    hidden = packtool.tokenize([said] * 2, tmp_path / "t", reasoning=reasoning, **chat)
    assert hidden.counts["hidden_reasoning_messages"] == 2


def test_a_field_that_the_template_shows_or_asks_for_is_read(tmp_path: Path, chat: dict[str, Any]) -> None:
    more = {"documents": [{"text": 'It was\n"so".'}], "hidden": True, "channel": "final"}
    record = {"messages": [TALK[0], TALK[1] | more]}
    shown = "{{ m.documents | tojson if m.documents and not m.hidden and m.channel == 'final' }}{{ m.content }}"
    chat["chat_template"].write_text(SHOWING.replace("{{ m.content }}", shown))
    with pytest.warns(PacktoolWarning, match=r"nothing reads documents of a message \(1 conversation\)\."):
        packtool.tokenize([record], tmp_path / "s", **chat)
    chat["chat_template"].write_text(SHOWING.replace("{{ m.content }}", shown.replace("not m", "m")))
    packtool.tokenize([record], tmp_path / "s", **chat, overwrite=True)  # nothing is warned of


def test_an_argument_that_the_template_does_not_use_is_refused(tmp_path: Path, chat: dict[str, Any]) -> None:
    record = {"messages": TALK, "chat_template_kwargs": {"custom_instructions": S, "enable_thinking": True}}
    with pytest.raises(DataError, match="the chat template does not use 'custom_instructions'"):
        packtool.tokenize([record], tmp_path / "s", **chat)
    chat["chat_template"].write_text(SHOWING + "{{ custom_instructions if false }}")
    assert packtool.tokenize([record], tmp_path / "s", **chat).counts["documents"] == 1
