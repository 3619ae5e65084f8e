# SPDX-License-Identifier: Apache-2.0
"""badged as a child process, and a scripted daemon. Each wait is for an event; LIMIT only ends a test that hangs."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

import badged

ROOT = Path(__file__).resolve().parents[3]
BIN = Path(os.environ.get("BADGED_BIN", ROOT / ".build/release"))
LIMIT = 300.0


class Process:
    """badged with virtual readers, or another badged at the same socket after `restart`."""

    def __init__(self, config: str = "", readers: int = 1) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="badged-python.")
        self.folder = Path(self._folder.name)
        self.socket = str(self.folder / "badged.sock")
        (self.folder / "state").mkdir()
        head = f"[pcsc]\nenabled = no\n[nfc]\nenabled = no\n[virtual]\nenabled = yes\nreaders = {readers}\n"
        (self.folder / "badged.conf").write_text(head + config)
        self.start()

    def start(self) -> None:
        environment = {name: value for name, value in os.environ.items() if name != "NOTIFY_SOCKET"}
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                [BIN / "badged", "--config", self.folder / "badged.conf", "--socket", self.socket, "--no-ble"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                env={**environment, "STATE_DIRECTORY": str(self.folder / "state")},
            )
        while True:
            try:
                badged.connect(self.socket).close()
                return
            except badged.ConnectError:
                if self.process.poll() is not None:
                    raise AssertionError(self.log()) from None
                time.sleep(0.02)

    def log(self) -> str:
        return (self.folder / "log").read_text()

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(LIMIT)

    def end(self) -> None:
        self.stop()
        self._folder.cleanup()


class Fake:
    """A daemon that does what a function says, once for each connection. Its error is raised at the end of the test."""

    def __init__(self, serve: Callable[[Conversation], object]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="badged-python.")
        self.socket = str(Path(self._folder.name) / "fake.sock")
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(self.socket)
        self._listener.listen()
        self._serve = serve
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        try:
            connection, _ = self._listener.accept()
            with connection:
                connection.settimeout(LIMIT)
                self._serve(Conversation(connection))
        except OSError:
            pass  # the client has left
        except BaseException as error:
            self.error = error

    def __enter__(self) -> Fake:
        self._thread.start()
        return self

    def __exit__(
        self, type_: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(LIMIT)
        self._listener.close()
        self._folder.cleanup()
        if self.error is not None and error is None:
            raise self.error


class Conversation:
    """The side of the daemon."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._lines = connection.makefile("rb")

    def next(self) -> dict[str, Any]:
        """The next command; empty at the end."""
        line = self._lines.readline()
        return dict(json.loads(line)) if line else {}

    def send(self, *messages: dict[str, Any] | bytes) -> None:
        for message in messages:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            self.connection.sendall(data)

    def answer(self, **message: Any) -> dict[str, Any]:
        """Answers the next command, and returns it."""
        command = self.next()
        self.send({**message, "request": command.get("request")})
        return command

    def until_closed(self) -> list[dict[str, Any]]:
        """The commands until the client leaves."""
        commands = []
        while command := self.next():
            commands.append(command)
        return commands
