"""The scripts are files to run, not a package: let the tests import them as Python itself does, from their folder."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
