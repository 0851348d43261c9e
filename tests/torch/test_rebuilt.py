"""The classes that `info` names are those that the Transformers of these tests builds anew."""

import importlib
import pkgutil

import pytest

from packtool.text.encoding.rebuilt import REBUILT

pytestmark = pytest.mark.torch


def test_the_classes_are_those_with_a_construction_of_their_own() -> None:
    models = importlib.import_module("transformers.models")
    backend = importlib.import_module("transformers.tokenization_utils_tokenizers").TokenizersBackend
    found = set()
    for model in pkgutil.iter_modules(models.__path__):
        package = importlib.import_module(f"transformers.models.{model.name}")
        for module in pkgutil.iter_modules(package.__path__):
            if not module.name.startswith("tokenization"):
                continue
            try:
                code = importlib.import_module(f"{package.__name__}.{module.name}")
            except (ImportError, NameError):  # some need packages that are not here
                continue
            for name, value in vars(code).items():
                own = isinstance(value, type) and value.__module__ == code.__name__ and "__init__" in vars(value)
                if own and issubclass(value, backend) and name == value.__name__:
                    found.add(name.removesuffix("Fast"))
    assert found - {backend.__name__} == REBUILT
