"""Compare strategies on document lengths alone, before anything is written. No token is touched.

names, options ─candidates─▶ Candidates ─trial.compare─▶ Outcomes: ledger and tallies of the dataset `pack` would write
"""

from packtool.comparing.candidates import Candidate, candidates
from packtool.comparing.trial import Outcome, PassByPass, affordable, compare

__all__ = ["Candidate", "Outcome", "PassByPass", "affordable", "candidates", "compare"]
