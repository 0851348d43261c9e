"""The formats of other tools, one file each, and what some of them share."""
