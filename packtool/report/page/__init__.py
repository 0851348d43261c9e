"""Render a report as one self-contained page: style and drawings inline, nothing fetched."""
