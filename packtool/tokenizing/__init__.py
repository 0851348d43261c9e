"""From text to token ids: which tokenizer, which encoder, and the check that both encoders agree."""
