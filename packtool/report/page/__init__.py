"""A report as one self-contained page: style and drawings inline, nothing fetched."""

from packtool.report.page.page import page

__all__ = ["page"]
