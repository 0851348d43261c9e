"""The commands as functions: the same names and options as on the command line."""
