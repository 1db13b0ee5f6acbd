# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds the secrets that a run holds in any text, whatever encoding, quoting or line breaks the text has. Pure.

Every escape is made of a sign that is no letter and no digit. So a text and a secret are compared by their ASCII letters and
digits alone, once as the text stands and once with escapes decoded. What is found is hidden in the text itself. Non-ASCII
letters are left out on both sides, which makes mojibake the same as the text that it was.
"""

from __future__ import annotations

import base64
import html
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote

HIDDEN = "(redacted)"

# Shorter secrets are parts of too many words; below _LEAST_LETTERS letters and digits, forms of the whole secret are searched.
LEAST = 4
_LEAST_LETTERS = 6

_NO_LETTER = {code: None for code in range(128) if not chr(code).isalnum()}
_FOREIGN = re.compile(r"[^\x00-\x7f]")
# One character as JSON, Go, Python, JavaScript, URLs (also twice) and HTML write it; escapes of controls stand for no letter.
_ESCAPE = re.compile(
    r"\\{1,16}u\{?(?P<u>[0-9a-fA-F]{4})\}?|\\{1,16}U0{0,6}(?P<U>[0-9a-fA-F]{2,6})|\\{1,16}x(?P<x>[0-9a-fA-F]{2})|\\{1,16}(?P<o>[0-3][0-7]{2})"
    r"|%(?:25){0,4}(?P<p>[0-9a-fA-F]{2})|&(?:amp;){0,4}\#(?:x(?P<h>[0-9a-fA-F]{1,6})|(?P<d>[0-9]{1,7}));|&(?P<n>[a-zA-Z]{2,8});"
    r"|=(?P<q>[0-9A-F]{2})|\\{1,16}[abfnrtv]"
)
_MARKS = ("\\", "%", "&", "=")
# A word in which a secret was found: all of it goes, as the rest of a piece of Base64 tells the rest of a secret.
_BEFORE = re.compile(r"[A-Za-z0-9+_=\u0080-\uffff!#$%&*~^-]*\Z")
_AFTER = re.compile(r"[A-Za-z0-9+/_=\u0080-\uffff!#$%&*~^-]*")


def _read_letters(text: str) -> str:
    if not text.isascii():
        text = text.encode("ascii", "ignore").decode("ascii")
    return text.translate(_NO_LETTER)


def _decode(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind is None:
        return " "
    if kind == "n":
        return html.unescape(match[0])
    code = int(match[kind], 8 if kind == "o" else 10 if kind == "d" else 16)
    return chr(code) if code < 0x110000 else " "


def _read_plain(text: str) -> str:
    return text


def _read_decoded(text: str) -> str:
    return _ESCAPE.sub(_decode, text) if any(mark in text for mark in _MARKS) else text


def _read_compatible(text: str) -> str:
    return _FOREIGN.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)


class KnownSecrets:
    """Secrets whose values are known."""

    def __init__(self, values: Iterable[str]) -> None:
        whole = {part.strip() for value in values for part in (value, *value.splitlines())}
        whole = {value for value in whole if len(value) >= LEAST}
        whole |= {unicodedata.normalize(form, value) for value in whole for form in ("NFC", "NFKC", "NFD")}
        self._forms = sorted({form for value in whole for form in _list_forms(value)}, key=len, reverse=True)
        letters_of_secrets = {letters for value in whole for letters in _list_searched_forms(value)}
        self._letters = sorted(
            (letters for letters in letters_of_secrets if len(letters) >= _LEAST_LETTERS), key=len, reverse=True
        )
        codes = (value.encode(code, "replace").hex() for value in whole for code in ("utf-8", "utf-16-le"))
        self._hex = [code for code in codes if len(code) >= 2 * _LEAST_LETTERS]

    def hide(self, text: str) -> str:
        """The text without them. A second time changes nothing."""
        for form in self._forms:
            if form in text:
                text = text.replace(form, HIDDEN)
        if not self._letters:
            return text
        text = self._hide_in(text, _read_plain)
        text = self._hide_in(text, _read_decoded)
        return text if text.isascii() else self._hide_in(text, _read_compatible)

    def _hide_in(self, text: str, read: Callable[[str], str]) -> str:
        whole = _read_letters(read(text))
        spans = [
            (match.start(), match.end())
            for searched, letters in ((self._letters, whole), (self._hex, whole.lower() if self._hex else ""))
            for needle in searched
            if needle in letters
            for match in re.finditer(needle, letters)
        ]
        return _hide_spans(text, spans, read is _read_decoded, read is _read_compatible) if spans else text


def _hide_spans(text: str, spans: list[tuple[int, int]], decoded: bool, compatible: bool) -> str:
    """spans: in the letters of the text, as it is read."""
    places: list[tuple[int, int]] = []
    position = 0
    while position < len(text):
        match = _ESCAPE.match(text, position) if decoded and text[position] in "\\%&=" else None
        character = _decode(match) if match else text[position]
        end = match.end() if match else position + 1
        if compatible:
            character = unicodedata.normalize("NFKC", character)
        places += [(position, end)] * len(_read_letters(character))
        position = end
    ranges = sorted({(places[begin][0], places[end - 1][1]) for begin, end in spans})
    parts, at = [], 0
    for begin, end in ranges:
        if end > at:
            word = _BEFORE.search(text, max(at, begin - 4096), max(at, begin))
            end_match = _AFTER.match(text, end)
            parts += [text[at : word.start() if word else begin], HIDDEN]
            at = end_match.end() if end_match else end
    return "".join([*parts, text[at:]])


def _list_searched_forms(secret: str) -> Iterator[str]:
    """The letters and digits of a secret, and of what Base64 makes of it wherever it stands in the bytes."""
    yield _read_letters(secret)
    # One that has an escape in it loses that too where escapes are decoded.
    yield _read_letters(_read_decoded(secret))
    for raw in (secret.encode("utf-8", "replace"), secret.encode("utf-16-le", "replace")):
        for core in _list_cores(raw):
            yield core.translate(_NO_LETTER)
            yield from (encoded_core.translate(_NO_LETTER) for encoded_core in _list_cores(core.encode("ascii")))


def _list_cores(raw: bytes) -> Iterator[str]:
    """What Base64 makes of bytes at each place, without the characters that depend on their neighbours."""
    for before in range(3):
        last = len(raw) - (len(raw) + before) % 3
        yield base64.b64encode(b"\0" * before + raw[:last]).decode("ascii")[(0, 2, 3)[before] :].rstrip("=")


def _list_forms(secret: str) -> Iterator[str]:
    """How texts write a secret, for those that have too few letters to be recognized by them."""
    yield secret
    escaped = json.dumps(secret)[1:-1]
    yield from (escaped, json.dumps(escaped)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1])
    yield from (
        quote(secret, safe=""),
        quote(secret, safe="").lower(),
        html.escape(secret),
        html.escape(secret, quote=False),
    )
    if not secret.isascii():
        for code in ("latin-1", "cp1252", "cp850", "cp437"):
            yield secret.encode("utf-8").decode(code, "replace")
            if len(_read_letters(secret)) < _LEAST_LETTERS:
                yield secret.encode(code, "replace").decode("utf-8", "replace")
