"""The formats of other tools, one file for each format, and what several formats share."""
