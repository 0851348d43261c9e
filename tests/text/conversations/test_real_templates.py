"""By the templates of real models, every turn that trains does so with an end that generation stops at."""

import itertools
import random

import pytest

from packtool.text.conversations.conversation import Trained
from packtool.text.conversations.ends import Ends
from packtool.text.conversations.reasoning import THINK, without_reasoning
from packtool.text.conversations.spans import documents_of
from packtool.text.faults import Fault
from tests.text.conversations.fuzz import KINDS, conversation
from tests.text.conversations.real_templates import compiled, ends_of, table, templates
from tests.text.conversations.talks import talk_of
from tests.text.conversations.test_reasoning import FORMS, LATER

pytestmark = pytest.mark.interop
WAYS: tuple[Trained, ...] = ("assistant", "last", "each")
ENDLESS = {name for name, (_, ends) in table().items() if "-" in ends.split(" ")}
"""Templates that write no end, not even before the next message: only the last turn of a document can have one."""


@pytest.fixture(scope="module")
def found() -> dict[str, str]:
    return templates()


def test_the_table_of_ends_is_true(found: dict[str, str]) -> None:
    known = table()
    assert found.keys() == known.keys()
    assert {name: ends_of(source, known[name][0]) for name, source in found.items()} == {
        name: ends for name, (_, ends) in known.items()
    }
    assert len(found) > 200
    assert len(ENDLESS) < 10


@pytest.mark.parametrize("name", table())
def test_turns_gain_their_ends_and_nothing_else(found: dict[str, str], name: str) -> None:
    """Against spans without any stop: only blanks and one stop behind a turn are added, or the EOS behind the text."""
    stops, _ = table()[name]
    template, ends = compiled(found[name], stops)
    none = Ends((), ["\0 is in no text"])
    draw = random.Random(name)
    for kind in KINDS:
        talk = talk_of(conversation(draw, kind))
        for train_on in WAYS:
            try:
                plain = documents_of(talk, template, train_on, ends=none)
            except Fault:
                continue
            for before, after in zip(plain, documents_of(talk, template, train_on, ends=ends), strict=True):
                assert (before.text, before.apart) == (after.text, after.apart)
                trained = {place for begin, end in before.spans for place in range(begin, end)}
                more = sorted({place for begin, end in after.spans for place in range(begin, end)} - trained)
                gained = "".join(after.text[place] for place in more)
                assert not template.marks or not gained
                for stop in stops:
                    gained = gained.replace(stop, "")
                assert not gained.strip(), "only stops, and blanks before them"
                assert len(trained) + len(more) == sum(end - begin for begin, end in after.spans)
                if name not in ENDLESS:
                    assert after.open == 0
                assert after.end or after.open


def test_reasoning_in_every_form_is_masked_and_dropped(found: dict[str, str]) -> None:
    masked = dropped = hidden = 0
    for name, source in found.items():
        template, ends = compiled(source, table()[name][0])
        for form, turns in itertools.product((*FORMS, *LATER), (1, 2)):
            said = {"content": form} if isinstance(form, str) else form
            given = [{"role": "user", "content": "Who?"}, {"role": "assistant", **said}] * turns
            talk = talk_of({"messages": given})
            try:
                documents = documents_of(talk, template, "each", ends=ends, masked=[THINK])
            except Fault:
                continue  # no content in parts, or other text changes with the reasoning
            for document in documents:
                trained = "".join(document.text[begin:end] for begin, end in document.spans)
                assert "RRRR" not in trained, (name, form)
                assert trained.count("Yes.") or "Yes." not in document.text, (name, form)  # some cut before </think>
                masked += document.text.count("RRRR")
                hidden += "RRRR" not in document.text
            for document in documents_of(without_reasoning(talk), template, "each", ends=ends):
                assert "RRRR" not in document.text, (name, form)
                assert "Yes." in document.text, (name, form)
                dropped += 1
    assert masked > 3000
    assert dropped > 3000
    assert hidden < masked
