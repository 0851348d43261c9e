"""Reports in a terminal of 80 columns or a log file."""
