"""Arrays and functions in files: arrays are found again, and functions loaded only as they were written."""

import pickle
from functools import partial
from operator import mul
from pathlib import Path

import numpy as np
import pytest

from packtool.engines.sending import load, save
from packtool.errors import DataError
from packtool.writing import array_files
from packtool.writing.array_files import FileArrays
from tests.shell import python


def test_another_process_calls_it(tmp_path: Path) -> None:
    large, small = np.arange(5000), np.arange(3, dtype="<u2")
    saved = save(partial(mul, large), tmp_path)
    assert [path.stat().st_size for path in tmp_path.glob("array-*")] == [large.nbytes]
    (tmp_path / "saved").write_bytes(pickle.dumps(saved))
    script = (
        "import pickle, sys; from packtool.engines.sending import load; "
        "print(load(pickle.load(open(sys.argv[1], 'rb')))(3).sum())"
    )
    assert int(python(script, tmp_path / "saved")) == 3 * large.sum()
    load.cache_clear()
    assert load(saved)(2).flags.c_contiguous
    (tmp_path / "small").mkdir()
    assert load(save(partial(mul, small), tmp_path / "small"))(2).tolist() == [0, 2, 4]
    assert len(list((tmp_path / "small").iterdir())) == 1


def test_arrays_in_files_are_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "LARGE", 1)
    (tmp_path / "function").mkdir()
    array = FileArrays(tmp_path / "arrays").empty(10_000, np.int64)
    array[:] = np.arange(10_000)
    saved = save(partial(mul, array[:9000]), tmp_path / "function")
    assert [path.name for path in (tmp_path / "function").iterdir()] == ["function.pickle"]
    assert load(saved)(2).tolist() == list(range(0, 18_000, 2))
    again = save(load(saved), tmp_path / "arrays")  # of a mapped one
    assert len(list((tmp_path / "arrays").iterdir())) == 2
    assert load(again)(1)[-1] == 8999
    (tmp_path / "part").mkdir()
    part = save(partial(mul, array[1:]), tmp_path / "part")
    assert len(list((tmp_path / "part").iterdir())) == 1
    load.cache_clear()
    assert load(part)(1)[0] == 1


def test_what_changed_is_not_believed(tmp_path: Path) -> None:
    saved = save(partial(mul, 2), tmp_path)
    assert load(saved)(3) == 6
    load.cache_clear()
    saved.file.write_bytes(pickle.dumps("other"))
    with pytest.raises(DataError, match=r"function\.pickle: changed since it was written"):
        load(saved)(3)
