"""A `packtool` command that starts at once: it runs in a fork of a process that has loaded what commands need.

Tests that run many commands through a shell use it; most of a small command's time is loading libraries.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLIENT = """#!{python} -SE
import json, os, socket, sys
connection = socket.socket(socket.AF_UNIX)
connection.connect({address!r})
socket.send_fds(connection, [b"!"], [0, 1, 2])
connection.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode())
connection.shutdown(socket.SHUT_WR)
os._exit(connection.recv(1)[0])
"""


@contextmanager
def warm_command() -> Iterator[str]:
    """Serve while the block runs; yield the text of an executable file that runs `packtool` with its arguments."""
    with tempfile.TemporaryDirectory(prefix="packtool-", dir="/tmp") as directory:  # a socket's path has to be short
        address = str(Path(directory, "socket"))
        server = subprocess.Popen([sys.executable, "-m", "tests.warm", address], stdout=subprocess.PIPE, cwd=ROOT)
        assert server.stdout is not None
        with server.stdout:
            assert server.stdout.readline() == b"ready\n"
            try:
                yield CLIENT.format(python=sys.executable, address=address)
            finally:
                server.kill()
                server.wait()


def serve(address: str) -> None:
    """Run the commands that clients send, each in a fork, until this process is killed."""
    import pyarrow.csv
    import pyarrow.parquet  # noqa: F401
    import tokenizers  # noqa: F401

    import packtool.commands.pack
    import packtool.commands.run
    import packtool.commands.shuffle
    import packtool.commands.stats
    import packtool.commands.tokenize
    import packtool.commands.verify  # noqa: F401

    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    os.write(1, b"ready\n")
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            status = 1
            try:
                status = run(connection)
            finally:
                connection.sendall(bytes([status]))
                os._exit(status)
        connection.close()


def run(connection: socket.socket) -> int:
    """Run a client's command with its files, directory and environment; return its exit status."""
    from packtool.cli import run as command

    _, files, _, _ = socket.recv_fds(connection, 1, 3)
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    with connection.makefile("rb") as sent:
        arguments, directory, environment = json.load(sent)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(environment)
    status = command(arguments)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    return status


if __name__ == "__main__":
    serve(sys.argv[1])
