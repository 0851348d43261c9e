"""Filling bins: the parts of the bin-packing strategies.

lengths ─cut─▶ whole rows, tails ─greedy or algorithm1─▶ runs of equal bins ─filled─▶ counts, or a plan
"""
