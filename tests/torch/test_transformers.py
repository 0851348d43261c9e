"""PackedTrainer: documents apart in the model that it trains, the loaders that it takes, and what it counts."""

import re
from pathlib import Path
from typing import Any

import pytest

from benchmarks.apart import flash, kinds
from tests.making import Make

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from packtool.errors import UsageError  # noqa: E402
from packtool.torch import Loader, ValidationLoader  # noqa: E402
from packtool.torch.transformers import FIELDS, PackedTrainer  # noqa: E402
from packtool.warnings import PacktoolWarning  # noqa: E402


@pytest.fixture(scope="module")
def texts(make: Make) -> Path:
    """Rows of texts, and rows of one text each."""
    bfd = {"strategy": "bfd", "sequence_length": 64}
    records = [{"text": " ".join(f"w{n * m % 97}" for m in range(2 + n % 9))} for n in range(120)]
    return make(records, rows=bfd, alone={**bfd, "max_documents_per_row": 1})


def loader(texts: Path, name: str = "rows", **options: Any) -> Loader:
    return Loader(texts / name, **{"batch_size": 4, "labels": "same", "fields": FIELDS, **options})


def validation(texts: Path, **options: Any) -> ValidationLoader:
    return ValidationLoader([texts / "rows"], **{"batch_size": 4, "labels": "same", "fields": FIELDS, **options})


def trainer(place: Path, model: Any, batches: Any, *, steps: int = 2, options: Any = None, **more: Any) -> Any:
    given = {"report_to": "none", "disable_tqdm": True, "use_cpu": True, "logging_steps": 1, "save_strategy": "no"}
    arguments = transformers.TrainingArguments(str(place), max_steps=steps, **{**given, **(options or {})})
    return PackedTrainer(batches, model=model, args=arguments, **more)


def losses(trained: Any) -> list[float]:
    return [logged["loss"] for logged in trained.state.log_history if "loss" in logged]


FOUND = {
    ("llama", "rows", FIELDS): "packtool: documents of a row do not see each other in this model, tried on a batch",
    ("lfm2", "alone", FIELDS): "packtool: documents of a row were not compared: no row of 16 batches has two",
    ("lfm2", "rows", ("input_ids", "labels")): "documents of a row may see each other: batches have no position_ids",
}


@pytest.mark.parametrize(("name", "rows", "fields"), FOUND)
def test_it_says_once_what_it_found(
    texts: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, rows: str, fields: tuple[str, ...]
) -> None:
    trained = trainer(tmp_path, kinds.make_model(name), loader(texts, rows, fields=fields), steps=18)
    trained.train()
    said = [each for each in caplog.messages if "packtool" in each]
    assert len(said) == 1
    assert FOUND[name, rows, fields] in said[0]


def test_a_validation_on_what_it_trains_on_is_said(texts: Path, tmp_path: Path) -> None:
    with pytest.warns(PacktoolWarning, match="rows: some of its documents are in .*rows, too, which is trained on"):
        trainer(tmp_path, kinds.make_model("llama"), loader(texts), eval_dataset=validation(texts)).train()


def test_a_model_that_mixes_is_not_trained_without_a_word(texts: Path, tmp_path: Path) -> None:
    model = kinds.make_model("lfm2")
    with pytest.raises(UsageError, match=r"Lfm2ForCausalLM: .* by model\.layers\.0\.conv .*flat=True.*check=False"):
        trainer(tmp_path, model, loader(texts)).train()
    trained = trainer(tmp_path, model, loader(texts), check=False)
    trained.train()
    assert len(losses(trained)) == 2


def test_flash_attention_trains_as_sdpa_does(texts: Path, tmp_path: Path) -> None:
    """By stand-ins, in rows and in flat rows, in training and validation; and with the sources of tokens."""
    found = []
    fields = (*FIELDS, "source")
    for attends, flat in ((None, False), (flash.use, False), (flash.use, True)):
        model = kinds.make_model("llama", "eager" if attends else "sdpa")
        if attends is not None:
            attends(model)
        options = {"flat": flat, "eval_dataset": validation(texts, fields=fields)}
        trained = trainer(tmp_path, model, loader(texts, fields=fields), **options)
        flash.CALLS.clear()
        trained.train()
        assert set(flash.CALLS) == ({"varlen"} if attends else set())
        evaluated = trained.evaluate()
        source = texts / "rows"
        found.append([*losses(trained), evaluated["eval_loss"], evaluated[f"eval_loss/{source}"]])
        predicted = trained.predict(validation(texts, fields=fields)).metrics
        assert predicted[f"test_loss/{source}"] == pytest.approx(found[-1][-1])
    for each in found[1:]:
        assert each == pytest.approx(found[0], rel=1e-4)


def test_the_check_changes_nothing_that_is_trained(texts: Path, tmp_path: Path) -> None:
    """Dropout draws the same numbers, and a resumed run has the same losses."""

    def train(check: bool, resume: Path | None = None) -> list[float]:
        transformers.set_seed(5)
        model = kinds.make_model("gpt2", resid_pdrop=0.5, embd_pdrop=0.5)
        options = {"save_strategy": "steps", "save_steps": 2}
        trained = trainer(tmp_path / str(check), model, loader(texts), steps=4, options=options, check=check)
        trained.train(resume_from_checkpoint=None if resume is None else str(resume))
        return losses(trained)

    whole = train(check=False)
    assert train(check=True) == whole
    assert train(check=True, resume=tmp_path / "True" / "checkpoint-2") == whole


def test_weights_that_are_cast_get_their_gradients(texts: Path, tmp_path: Path) -> None:
    """Autocast keeps what it has cast: without gradients in the check, it would train nothing."""
    found = []
    for check in (True, False):
        trained = trainer(tmp_path, kinds.make_model("llama"), loader(texts), options={"bf16": True}, check=check)
        trained.train()
        found.append(losses(trained))
    assert found[0] == found[1]


def test_the_loader_may_come_late(texts: Path, tmp_path: Path) -> None:
    """Checkpoints have the place of the loader that trains."""
    options = {"save_strategy": "steps", "save_steps": 2}
    trained = trainer(tmp_path, kinds.make_model("llama"), None, options=options)
    with pytest.raises(
        UsageError, match=r"loader: there are no batches to train on\. Set trainer\.loader before train"
    ):
        trained.train()
    trained.loader = loader(texts)
    trained.loader = loader(texts, batch_size=2)
    trained.train()
    assert trained.loader.consumed == 4
    again = loader(texts, batch_size=2)
    trained = trainer(tmp_path, kinds.make_model("llama"), None, steps=3)
    trained.loader = again
    trained.train(resume_from_checkpoint=str(tmp_path / "checkpoint-2"))
    assert again.consumed == 6


REFUSED = {
    "its labels are the next tokens, and the model shifts labels once more": {"labels": "next"},
    "global_targets is among its fields, and the Trainer counts": {"fields": (*FIELDS, "global_targets")},
}


@pytest.mark.parametrize("said", REFUSED)
def test_batches_that_would_be_understood_otherwise_are_refused(texts: Path, tmp_path: Path, said: str) -> None:
    model, options = kinds.make_model("llama"), REFUSED[said]
    trained = trainer(tmp_path, model, loader(texts))
    with pytest.raises(UsageError, match=f"^loader: {re.escape(said)}"):
        trainer(tmp_path, model, loader(texts, **options))
    with pytest.raises(UsageError, match=f"^loader: {re.escape(said)}"):
        trained.loader = loader(texts, **options)
    for valid in (validation(texts, **options), {"one": validation(texts, **options)}):
        with pytest.raises(UsageError, match=f"^eval_dataset: {re.escape(said)}"):
            trainer(tmp_path, model, loader(texts), eval_dataset=valid)
    with pytest.raises(UsageError, match=f"^eval_dataset: {re.escape(said)}"):
        trained.evaluate(validation(texts, **options))
    with pytest.raises(UsageError, match=f"^test_dataset: {re.escape(said)}"):
        trained.predict(validation(texts, **options))
