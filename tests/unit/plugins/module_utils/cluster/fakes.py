# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A stand-in for kubernetes.dynamic.DynamicClient's raw layer: answers from a script, remembers what was asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any


class Headers(dict[str, str]):
    """Headers with urllib3's way to several values."""

    def getlist(self, name: str) -> list[str]:
        return [self[name]] if name in self else []


class Response:
    """An answer, unread."""

    def __init__(self, body: Any = None, headers: dict[str, str] | None = None, lines: list[Any] | None = None) -> None:
        self.data = json.dumps(body if body is not None else {}).encode()
        self.headers = Headers(headers or {})
        self._lines = lines or []

    def stream(self, amt: int, decode_content: bool) -> Iterator[bytes]:
        # Cut in the middle of lines, as a network does.
        whole = b"".join(json.dumps(line).encode() + b"\n" for line in self._lines)
        for start in range(0, len(whole), 7):
            yield whole[start : start + 7]


class ApiError(Exception):
    """What the client raises for a status of 400 and more."""

    def __init__(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        super().__init__(str(status))
        self.status = status
        self.body = json.dumps(body if body is not None else {"message": f"status {status}"})
        self.headers = Headers(headers or {})


class Script:
    """Answers in order; the last one for ever."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, str, dict[str, Any]]] = []

    def request(self, method: str, path: str, body: Any = None, **params: Any) -> Any:
        self.asked.append((method, path, {**params, "body": body}))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
