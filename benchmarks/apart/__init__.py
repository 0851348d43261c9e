"""Which kinds of models keep documents of a row apart, and whether `packtool.torch.check_apart` says so."""
