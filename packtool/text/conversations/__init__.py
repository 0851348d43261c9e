"""Render conversations by a tokenizer's chat template, and find the spans that train.

    record ─▶ `record.py`: messages, tools ─▶ `template.py`: text, marked spans ─▶ `spans.py`: spans ─▶ a mask of tokens

`renderer.py` goes this way with each record.

Pure functions of template and conversation: nothing is read, looked up or kept, and the date is an argument.
"""
