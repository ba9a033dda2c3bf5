"""Headless Chromium, if there is one, driven by the DevTools protocol: the looks and the errors of
pages.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from tornado.websocket import WebSocketClientConnection, websocket_connect

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome", "chrome-headless-shell")
_DEADLINE = 60


class Seen(NamedTuple):
    """The looks of a page at one size. errors: the console's. wide: pixels that the page needs.
    overlaps: texts of charts that are cut off, and pairs of texts that overlap. names: where the
    name of each row of a timeline stands by its bars. picture: PNG.
    """

    errors: list[str]
    wide: int
    overlaps: list[str]
    names: list[str]
    picture: bytes


def find() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


def look(program: str, pages: list[Path], width: int, dark: bool) -> list[Seen]:
    """Return the looks of each page, with all folded parts open."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        command += [
            "--disable-dev-shm-usage",
            "--remote-debugging-port=0",
            f"--user-data-dir={home}",
        ]
        command += ["--disable-background-networking", "about:blank"]
        log = Path(home, "told")
        with open(log, "wb") as stderr, subprocess.Popen(command, stderr=stderr) as process:
            try:
                every = _look(log, pages, width, dark)
                return asyncio.run(asyncio.wait_for(every, _DEADLINE))
            finally:
                process.terminate()


async def _look(log: Path, pages: list[Path], width: int, dark: bool) -> list[Seen]:
    """Return the looks of each page; told: the file in which the browser says the address to
    connect to.
    """
    while not (address := re.search(r"DevTools listening on (\S+)", log.read_text())):
        await asyncio.sleep(0.05)
    socket = await websocket_connect(address[1], max_message_size=1 << 28)
    session = Session(socket)
    target = await session.call("Target.createTarget", url="about:blank")
    attached = await session.call(
        "Target.attachToTarget", targetId=target["targetId"], flatten=True
    )
    session.id = attached["sessionId"]
    for domain in ("Page", "Runtime", "Log"):
        await session.call(f"{domain}.enable")
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    await session.call("Emulation.setDeviceMetricsOverride", **size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    await session.call("Emulation.setEmulatedMedia", features=[scheme])
    looks = [await session.see(page) for page in pages]
    socket.close()
    while await socket.read_message() is not None:  # until it is
        pass
    return looks


class Session:
    """Calls of one browser tab, and the events that the tab sent meanwhile."""

    def __init__(self, socket: WebSocketClientConnection) -> None:
        self.socket = socket
        self.id: str | None = None
        self.told: list[dict[str, Any]] = []
        self._number = 0

    async def call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self.id is not None:
            message["sessionId"] = self.id
        await self.socket.write_message(json.dumps(message))
        while True:
            answer = await self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]

    async def _next(self) -> dict[str, Any]:
        answer = json.loads(await self.socket.read_message() or "{}")
        assert answer, "the browser is gone"
        if "method" in answer:
            self.told.append(answer)
        return answer

    async def see(self, page: Path) -> Seen:
        self.told.clear()
        await self.call("Page.navigate", url=page.absolute().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self.told):
            await self._next()
        await self.value("document.querySelectorAll('details').forEach(d => d.open = true)")
        wide = await self.value("document.documentElement.scrollWidth")
        overlaps = await self.value(_OVERLAPS)
        names = await self.value(_NAMES)
        shot = await self.call(
            "Page.captureScreenshot", captureBeyondViewport=True, clip=await self._all()
        )
        errors = [
            json.dumps(event["params"])
            for event in self.told
            if event["method"] in ("Log.entryAdded", "Runtime.exceptionThrown")
            or event["method"] == "Runtime.consoleAPICalled"
        ]
        return Seen(errors, wide, overlaps, names, base64.b64decode(shot["data"]))

    async def _all(self) -> dict[str, float]:
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        return {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}

    async def value(self, expression: str) -> Any:
        answer = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")


_OVERLAPS = """
(() => {
  const found = [], edge = document.documentElement.clientWidth;
  const texts = [...document.querySelectorAll("svg.chart text, .lanes span")]
    .filter(text => text.textContent.trim())
    .map(text => [text.textContent, text.getBoundingClientRect()]);
  texts.forEach(([one, a], i) => {
    if (a.left < 0 || a.right > edge) found.push(`${one} is cut`);
    texts.slice(i + 1).forEach(([other, b]) => {
      if (a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
        found.push(`${one} | ${other}`);
    });
  });
  return found;
})()
"""

_NAMES = """
(() => {
  const axis = document.querySelector(".times")?.getBoundingClientRect();
  return [...document.querySelectorAll(".lanes li:has(.bars)")].map(row => {
    const name = row.querySelector(".name").getBoundingClientRect();
    const bars = row.querySelector(".bars").getBoundingClientRect();
    if (Math.abs(bars.left - axis.left) > 0.5 || Math.abs(bars.right - axis.right) > 0.5)
      return "bars are not on the axis";
    return name.right <= bars.left ? "left" : name.bottom <= bars.top ? "above" : "over";
  });
})()
"""
