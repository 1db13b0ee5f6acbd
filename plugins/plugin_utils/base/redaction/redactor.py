# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacts support archives and messages. Pure.

A message to the user is shown without the secrets that the run holds and without values under the name of a secret. An archive
goes to other people, so it keeps only what is known to be harmless. Text is redacted before it is truncated, because half of a
secret is not recognized.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..text import mask_controls
from . import structured
from .harmless_words import Words
from .known_secrets import KnownSecrets
from .log_lines import LogLines

# NUL as base.text shows it: what a host printed is masked already.
_MASKED_NUL = mask_controls("\x00")
_HTML_TEXT = re.compile(r"(<(?:style|script)\b.*?</(?:style|script)>|<[^>]*>)", re.DOTALL)


def decode(raw: bytes) -> str:
    """The bytes of a log as text: UTF-16 as Windows programs write it, else UTF-8. What does not decode is shown."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


class Redactor:
    """Replaces secrets. secrets: values that are secrets wherever they stand."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known_secrets = KnownSecrets(secrets)
        self._words = Words()
        self._logs = LogLines(self._words)
        self._own_lines = LogLines(self._words, judges_fields=False)
        self._messages = LogLines(self._words, judges_fields=False, judges_words=False)

    def learn(self, names: Iterable[str]) -> None:
        """Names of the cluster's objects, which are harmless wherever they stand."""
        self._words.learn(names)

    def redact_message(self, text: str) -> str:
        """A message of this collection: only known secrets and named ones are hidden."""
        return self._messages.redact(self._known_secrets.hide(text))

    def hide_known_secrets(self, text: str) -> str:
        """A text that was redacted before, without the secrets that another host holds."""
        return self._known_secrets.hide(text)

    def redact_log(self, raw: bytes | str) -> str:
        """A log, or what a program printed, which does nothing to a terminal."""
        text = decode(raw) if isinstance(raw, bytes) else raw
        return mask_controls(self._logs.redact(self._known_secrets.hide(text.replace(_MASKED_NUL, "\x00"))))

    def redact_objects(self, kind: str, items: Sequence[Mapping[str, Any]]) -> list[Any]:
        self.learn(name for item in items for name in structured.list_object_names(kind, item))
        return [structured.redact_object(kind, item, self._redact_text) for item in items]

    def redact_structure(self, value: Any) -> Any:
        """A structure that this collection made, such as a result."""
        return structured.redact_structure(value, self._redact_text)

    def redact_file(self, path: str, text: str) -> str:
        """A file that this collection wrote, by its name."""
        if path.endswith(".json"):
            return structured.redact_json(text, self._redact_text)
        if path.endswith(".html"):
            parts = _HTML_TEXT.split(text)
            return self._known_secrets.hide(
                "".join(
                    part if at % 2 else html.escape(self._redact_text(html.unescape(part)), quote=False)
                    for at, part in enumerate(parts)
                )
            )
        return self._redact_text(text)

    def _redact_text(self, text: str) -> str:
        return mask_controls(self._own_lines.redact(self._known_secrets.hide(text)))
