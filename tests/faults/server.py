"""Runs commands in forked children, each with a fault armed: everything is loaded already, so a run takes little time.

Reads lines of JSON (`Task`) and answers each with a line of JSON (`Outcome`). Started by `Faults` with the shim loaded.
"""

import ctypes
import json
import os
import signal
import sys
import tempfile
import time
from contextlib import suppress
from typing import Any


def child(task: dict[str, Any], shim: Any, stderr: int) -> int:
    """Run one command line; its exit status."""
    os.setpgid(0, 0)
    os.dup2(stderr, 2)
    os.dup2(os.open(os.devnull, os.O_RDWR), 1)
    from packtool.cli import run

    shim.fault_arm(task["below"].encode(), task["at"], task["how"], task["stays"])
    status = run(task["arguments"])
    calls, failed = shim.fault_calls(), shim.fault_failed().decode()
    shim.fault_arm(b"", -1, 0, 0)
    os.write(stderr, f"\ncalls {calls} {failed}".encode())
    return status


def main() -> None:
    """Serve until the input ends."""
    import packtool.cli
    import packtool.commands.pack
    import packtool.commands.run
    import packtool.commands.shuffle
    import packtool.commands.tokenize
    import packtool.commands.verify  # noqa: F401

    shim = ctypes.CDLL(os.environ["FAULT_SHIM"])
    shim.fault_failed.restype = ctypes.c_char_p
    for line in sys.stdin:
        tasks = json.loads(line)
        running = []
        for task in tasks:
            stderr = tempfile.TemporaryFile()  # noqa: SIM115
            pid = os.fork()
            if pid == 0:
                status = 99
                try:
                    status = child(task, shim, stderr.fileno())
                except BaseException:
                    import traceback

                    os.write(stderr.fileno(), traceback.format_exc().encode())
                finally:
                    os._exit(status)
            running.append((pid, stderr))
        if tasks[0]["after"] is not None:
            time.sleep(tasks[0]["after"])
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(running[0][0], signal.SIGKILL)
        outcomes = []
        for pid, stderr in running:
            _, status = os.waitpid(pid, 0)
            text = os.pread(stderr.fileno(), 1 << 20, 0).decode(errors="replace")
            stderr.close()
            message, _, calls = text.rpartition("\ncalls ")
            exit_code = os.waitstatus_to_exitcode(status)
            number, _, failed = calls.partition(" ")
            outcomes.append(
                [exit_code, message, int(number), failed] if "\ncalls " in text else [exit_code, text, -1, ""]
            )
        sys.stdout.write(json.dumps(outcomes) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
