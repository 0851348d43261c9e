"""JSON as typed values: with one kind of error, and from any number of threads."""

import re

import msgspec
import pytest

from packtool.support.decoding import from_json, from_plain
from tests.making import Make
from tests.shell import python

FIRST_USE = """
import contextlib, importlib, json, pkgutil, sys, threading, time
import msgspec, packtool
from packtool.support import decoding

sys.setswitchinterval(1e-6)
for module in pkgutil.walk_packages(packtool.__path__, "packtool.", onerror=lambda name: None):
    if not module.name.endswith("__main__") and not module.name.startswith("packtool.torch"):
        importlib.import_module(module.name)

def structs(kind):
    yield kind
    for each in kind.__subclasses__():
        yield from structs(each)

def evaluated(*args, known=msgspec._utils._eval_type):
    time.sleep(1e-3)  # where msgspec runs Python to learn the types of fields, others get their turn
    return known(*args)
msgspec._utils._eval_type = evaluated
kinds = [kind for kind in structs(msgspec.Struct) if kind.__module__.startswith("packtool")]
assert len(kinds) > 80
for number, kind in enumerate(kinds):
    fields = [{name: 1} for name in kind.__struct_encode_fields__]  # each is looked up in what is noted
    together = threading.Barrier(8)
    def use(plain, wait):
        together.wait()
        time.sleep(wait)  # some come while the first is at it
        for field in fields:
            with contextlib.suppress(ValueError, TypeError):  # some have arrays, and are never decoded
                decoding.from_plain(field, kind) if plain else decoding.from_json(json.dumps(field), kind)
    threads = [threading.Thread(target=use, args=[number % 3 == 0, number / 2000]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(len(kinds))
"""


def test_a_first_use_of_each_type_by_eight_threads() -> None:
    assert int(python(FIRST_USE)) > 80


OPENED = """
import sys
from concurrent.futures import ThreadPoolExecutor
import packtool
sys.setswitchinterval(1e-6)
with ThreadPoolExecutor(8) as pool:
    print(*{len(rows) for rows in pool.map(lambda _: packtool.open(sys.argv[1]), range(16))})
"""


def test_a_dataset_is_opened_by_eight_threads_as_the_first_act_of_a_process(make: Make) -> None:
    rows = make([5, 9, 17], rows={"strategy": "bfd", "sequence_length": 16}) / "rows"
    for _ in range(5):
        assert int(python(OPENED, rows)) > 0


class Point(msgspec.Struct):
    x: int


@pytest.mark.parametrize(
    ("raw", "kind", "reason"),
    [
        (b'{"x": "1"}', Point, "Expected `int`, got `str` - at `$.x`"),
        (b"[", Point, "Expected `object`, got `array`"),
        (b'{"x": 1', Point, "Input data was truncated"),
        (b'{"y": "\xff"}', Point, "Object missing required field `x`"),
        (b'{"x": "\xff"}', dict[str, object], "not UTF-8"),
        (b'{"y": ' + b"[" * 100_000, Point, "nested too deeply"),
    ],
)
def test_whatever_is_wrong_is_a_value_error(raw: bytes, kind: type, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(reason)}$") as caught:
        from_json(raw, kind)
    assert type(caught.value) is ValueError


def test_plain_data_are_converted() -> None:
    assert from_plain({"x": 1}, Point) == Point(1)
    with pytest.raises(ValueError, match="Expected `int`, got `str`") as caught:
        from_plain({"x": "1"}, Point)
    assert type(caught.value) is ValueError
