"""Print reports in a terminal of 80 columns or to a log file."""
