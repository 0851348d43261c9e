"""Reports in a terminal of 80 columns or a log file."""

from packtool.report.terminal.reports import print_answer, print_stats

__all__ = ["print_answer", "print_stats"]
