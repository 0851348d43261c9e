"""Every option, declared once: a dataclass for each command.

The fields of `PackArguments` are the arguments of `packtool.pack`, the options of `packtool pack`, the keys of `[pack]`
in a TOML file and the rows of docs/cli.md; see `declare` for how. Nothing heavy is imported here, so that `--help`
answers at once.
"""
