"""Object stores: what a URL such as `s3://bucket/packed` stands for, and what goes there and comes from there.

Everything else works on local directories. A dataset in a store has a directory that stands for it: a *mirror*, whose
files are fetched when they are opened (`mirror.py`), or the staging directory of an output, which is uploaded when it
is whole (`staging.py`).
"""
