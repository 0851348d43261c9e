"""TRL's best-fit-decreasing packing, its own code in an environment of its own, makes the bins of `bfd`."""

import numpy as np
import pytest

from packtool.planning.packing import PackOptions, plan
from tests.interop.peers import ROOT, in_peer

pytestmark = pytest.mark.interop


@pytest.mark.parametrize(("sequence_length", "documents"), [(512, 20_000), (2048, 100_000), (8192, 100_000)])
def test_bins_are_those_of_trl(tmp_path, sequence_length, documents):
    lengths = np.round(np.random.default_rng(0).lognormal(np.log(400), 1.2, documents)).astype(np.int64) + 1
    # TRL keeps a chunk of EOS alone, packtool leaves it out.
    lengths += lengths % sequence_length == 1
    np.save(tmp_path / "lengths.npy", lengths)
    arguments = ("trl", tmp_path / "lengths.npy", sequence_length, tmp_path / "bins.npz")
    in_peer("trl", ROOT, "-m", "benchmarks.peers.plan", *arguments)
    expected = np.load(tmp_path / "bins.npz")
    (only,) = plan("bfd", lengths, PackOptions(sequence_length=sequence_length, mix_rows=False))
    segments = only.segments(np.arange(only.units))
    np.testing.assert_array_equal(segments.offsets, expected["offsets"])
    np.testing.assert_array_equal(segments.document, expected["document"])
    np.testing.assert_array_equal(segments.length, expected["size"])
