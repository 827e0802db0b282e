"""A process that has imported everything once and makes copies of itself: what a start costs is paid once.

It finds what `./discreet demo` installs, and nothing else (`core_environment`). A caller hands over its standard
streams, its folder and what is to be run; the copy that runs it is a process like any other, which can be killed, and
whose exit code comes back. `python warm.py SOCKET …` is such a caller: shells of the tests find it on their path as
`discreet`. How a fresh process starts is tested with fresh processes (tests/cli/test_start.py).
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

DISCREET = "import sys; from discreet.cli import main; sys.exit(main())"
KILLED = 70


# -- callers: they import little, so that they start at once -----------------------------------------------------------


class Copy:
    """A copy at work: its process number, and when it ends its exit code."""

    def __init__(self, place: str, code: str, arguments: list[str], folder: str, streams: tuple[int, int, int]) -> None:
        self._line = socket.socket(socket.AF_UNIX)
        self._line.connect(place)
        variables = {name: os.environ[name] for name in ("PATH", "COLUMNS") if name in os.environ}
        asked = {"code": code, "arguments": arguments, "folder": folder, "variables": variables}
        body = json.dumps(asked).encode()
        socket.send_fds(self._line, [len(body).to_bytes(4, "big")], streams)
        self._line.sendall(body)
        self._said = self._line.makefile()
        self.pid = int(self._said.readline())

    def wait(self) -> int:
        code = self._said.readline()
        self._said.close()
        self._line.close()
        return int(code) if code else KILLED


# -- the warm process --------------------------------------------------------------------------------------------------


def import_all() -> None:
    import importlib
    import pkgutil

    import matplotlib.pyplot  # noqa: F401 - many a page draws

    import discreet

    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        with suppress(ImportError):  # of an extra
            importlib.import_module(module.name)


def serve(place: str) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(place)
        server.listen(16)
        print("ready", flush=True)
        while True:
            line, _ = server.accept()
            if os.fork() == 0:
                server.close()
                _be_a_copy(line)
            line.close()
            with suppress(ChildProcessError):
                while os.waitpid(-1, os.WNOHANG) != (0, 0):
                    pass


def _be_a_copy(line: socket.socket) -> None:
    import traceback

    code = 1
    try:
        size, files, _, _ = socket.recv_fds(line, 4, 3)
        asked = json.loads(line.makefile("rb").read(int.from_bytes(size, "big")))
        for stream, file in enumerate(files):
            os.dup2(file, stream)
            os.close(file)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have started the tests without Ctrl-C
        os.chdir(asked["folder"])
        os.environ.update(asked["variables"])
        line.sendall(f"{os.getpid()}\n".encode())
        sys.argv = ["-c", *asked["arguments"]]
        exec(compile(asked["code"], "<given>", "exec", dont_inherit=True), {"__name__": "__main__"})
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        line.sendall(f"{code}\n".encode())
        os._exit(code)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        import_all()
        serve(sys.argv[2])
    sys.exit(Copy(sys.argv[1], DISCREET, sys.argv[2:], os.getcwd(), (0, 1, 2)).wait())


# -- the tests' side ---------------------------------------------------------------------------------------------------


class Warm:
    """The warm process, and the folder with its socket and a `discreet` that asks it."""

    def __init__(self, folder: Path) -> None:
        import subprocess

        import core_environment

        self.place, self.programs = str(folder / "socket"), folder / "bin"
        self.programs.mkdir()
        program = self.programs / "discreet"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{__file__}" "{self.place}" "$@"\n')
        program.chmod(0o755)
        self._process = subprocess.Popen(
            [sys.executable, __file__, "serve", self.place],
            env=core_environment.environment(),
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None and self._process.stdout.readline() == "ready\n"

    def start(self, code: str, arguments: list[str], folder: Path, out: Path, err: Path) -> Copy:
        """A copy that runs this code, with its output in two files."""
        with open(os.devnull) as nothing, out.open("w") as said, err.open("w") as warned:
            streams = (nothing.fileno(), said.fileno(), warned.fileno())
            return Copy(self.place, code, arguments, str(folder), streams)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
