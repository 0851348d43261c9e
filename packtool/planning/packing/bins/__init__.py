"""Filling bins: what the bin-packing strategies are made of.

lengths ─cut─▶ whole rows, tails ─greedy or algorithm1─▶ runs of equal bins ─filled─▶ counts, or a plan
"""
