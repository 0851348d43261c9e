"""Turn text into token ids: find the tokenizer, choose an encoder, and check it against the reference."""
