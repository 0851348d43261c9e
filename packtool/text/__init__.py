"""Texts to ids: a corpus is read, conversations are rendered, texts are encoded, and ids are stored.

corpus ─▶ records ─conversations─▶ texts ─encoding─▶ ids ─tokenizing─▶ token store
"""
