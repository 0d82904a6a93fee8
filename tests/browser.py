"""A real headless Chromium, driven over its remote debugging socket by a library that the lock already holds."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from base64 import b64decode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
WAIT = 30.0  # seconds that a slow machine may take to answer


def find_chromium() -> str | None:
    """The system's browser, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


CHROMIUM = find_chromium()
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here, so the page was NOT tried in a browser: apt-get install chromium"
)


class Page:
    """One tab: evaluates expressions, presses keys, and keeps every request and console message."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket, self.count = socket, 0
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.loaded = False
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the DevTools protocol and its result."""
        self.count += 1
        self.socket.send(json.dumps({"id": self.count, "method": method, "params": parameters}))
        while True:
            message = json.loads(self.socket.recv(timeout=WAIT))
            if message.get("id") == self.count:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._notice(message)

    def _notice(self, message: dict[str, Any]) -> None:
        method, parameters = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in {"error", "warning", "assert"}:
            self.complaints.append(str(parameters["args"]))

    def open(self, url: str) -> None:
        """Go to an address and wait until it has loaded."""
        self.loaded = False
        self.call("Page.navigate", url=url)
        deadline = time.monotonic() + WAIT
        while not self.loaded and time.monotonic() < deadline:
            self.evaluate("0")
            time.sleep(0.02)
        assert self.loaded, f"{url} did not load"

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript; what it throws is raised here."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str, code: int) -> None:
        """A key as a person presses it, on what has the focus."""
        text = {"Enter": "\r"}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            extra = {"text": text} if text and kind == "keyDown" else {}
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **extra)

    def resize(self, width: int, height: int, *, phone: bool = False) -> None:
        """The size of the window in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)

    def prefer(self, scheme: str) -> None:
        """A light or a dark page."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self) -> bytes:
        """What the window shows, as PNG."""
        return b64decode(self.call("Page.captureScreenshot", format="png")["data"])


@contextmanager
def open_browser(chromium: str, folder: Path) -> Iterator[Page]:
    """A browser with a profile of its own under `folder`; ended, with all its processes, on leaving."""
    command = [
        chromium, "--headless=new", "--remote-debugging-port=0", f"--user-data-dir={folder}", "--no-sandbox",
        "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with connect(_debugger(folder, process), max_size=None, open_timeout=WAIT, proxy=None) as socket:
            yield Page(socket)
    finally:
        process.terminate()
        process.wait(timeout=WAIT)


def _debugger(folder: Path, process: subprocess.Popen[bytes]) -> str:
    """The socket of the first tab, once the browser has written its port down."""
    from urllib.request import urlopen

    port_file, deadline = folder / "DevToolsActivePort", time.monotonic() + WAIT
    while time.monotonic() < deadline and process.poll() is None:
        if port_file.exists() and len(port_file.read_text().splitlines()) == 2:
            port = port_file.read_text().splitlines()[0]
            with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=WAIT) as answer:
                tabs = [tab for tab in json.load(answer) if tab["type"] == "page"]
            if tabs:
                return str(tabs[0]["webSocketDebuggerUrl"])
        time.sleep(0.05)
    raise RuntimeError(f"the browser gave no debugging port (exit status {process.poll()})")
