"""What a shell starts in the background ignores Ctrl-C, and so do its children. Tests send it to theirs: undo that."""

from __future__ import annotations

import signal

signal.signal(signal.SIGINT, signal.default_int_handler)
