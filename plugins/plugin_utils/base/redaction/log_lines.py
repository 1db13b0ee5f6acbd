# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacts lines of logs, whatever wrote them. Pure.

1. Behind the name of a secret, or a command with secrets, everything is hidden: to the end of the line, and in the deeper lines below, as
   where a secret ends depends on what wrote it.
2. The value of a field is hidden, unless the field is known to be harmless, or the value is a number, a code or a name of the cluster.
3. Any other word is hidden, unless it is a word of a language or has a known shape (``words``).
"""

from __future__ import annotations

import re
from functools import lru_cache

from . import log_patterns as patterns
from .fields import HARMLESS
from .harmless_words import Words, mask
from .names import is_secret


class LogLines:
    """Redacts text by the first rule, and by the others on request."""

    def __init__(self, words: Words, *, judges_fields: bool = True, judges_words: bool = True) -> None:
        self._words = words
        self._judges_fields = judges_fields
        self._judges_words = judges_words

    def redact(self, text: str) -> str:
        """Several lines."""
        if "\x00" in text:
            text = patterns.WIDE.sub(lambda match: match[0].replace("\x00", ""), text)
        if "PRIVATE KEY" in text:
            text = patterns.PEM.sub(lambda match: mask(match[0], "key"), text)
        parts = patterns.LINE_END.split(text)
        # The indent of the last line with a secret, whose deeper lines are hidden; whether the secret begins on the next line.
        indent: int | None = None
        is_awaited = False
        for number in range(0, len(parts), 2):
            line = parts[number]
            content = line.strip()
            if not content:
                continue
            depth = line.index(content)
            header = patterns.HEADER.match(line)
            begin = header.end() if header else 0
            is_item = depth == indent and content.startswith("- ")
            if indent is not None and not begin and (is_awaited or is_item or depth > indent):
                parts[number] = _mask_content(line)
                is_awaited = False
                continue
            end = self._find_secret(line, begin)
            shown, secret = line[begin:end], line[end:] if end is not None else ""
            indent = None if end is None else depth
            is_awaited = not re.search(r"\w", secret) or _is_open(secret)
            parts[number] = line[:begin] + self._show(shown, is_entry=begin > 0) + _mask_content(secret)
        return "".join(parts)

    def _find_secret(self, line: str, begin: int) -> int | None:
        """Where the first secret begins before which its name or its command stands; None without one."""
        if patterns.PIPED.match(line, begin):
            return begin
        commands = (match for match in patterns.COMMAND.finditer(line, begin) if not self._is_harmless_type(match))
        command = next(commands, None)
        for match in patterns.NAME.finditer(line, begin, command.end() if command else len(line)):
            value = self._find_value(line, match)
            if value is not None:
                return value
        return command.end() if command else None

    def _is_harmless_type(self, match: re.Match[str]) -> bool:
        """Whether this is the type of a harmless value of the registry."""
        name, value = match.string[: match.start()], match.string[match.end() :].strip()
        return match["type"] is not None and (_is_harmless(name) or bool(value and self._words.is_plain(value)))

    def _find_value(self, line: str, match: re.Match[str]) -> int | None:
        """Where the value of a name begins that is hidden with the rest of the line."""
        name, lead, end = match["name"], match["lead"], match.end()
        if is_secret(lead.rstrip(":")):
            return match.start("name")
        sign = patterns.SIGN.match(line, end)
        if is_secret(name):
            if lead.startswith("<") or (lead and sign is None):
                return end
            if sign is None or patterns.NO_SECRET.match(line, sign.end()):
                return None
            is_sentence = sign[0].rstrip().endswith(":") and patterns.PROSE.match(line, sign.end())
            return None if is_sentence else sign.end()
        if sign and self._judges_fields and name.lower() in patterns.OPAQUE and sign[0].strip() == ":":
            value = line[sign.end() :].strip()
            if patterns.BLOCK_MARK.fullmatch(value):
                return sign.end()
            is_shown = patterns.STRUCTURE.match(value) or patterns.PROSE.match(value) or self._words.is_plain(value)
            return None if is_shown else sign.end()
        return None

    def _show(self, text: str, *, is_entry: bool) -> str:
        """A text in which nothing announces a secret. is_entry: whether the header of a log stands before it."""
        if not self._judges_words:
            return patterns.URL.sub(lambda match: self._show_url(match[0]), text)
        parts: list[str] = []
        at = 0
        line = None if is_entry else patterns.LINE.fullmatch(text.rstrip())
        if line and self._hides(line["name"], line["sign"], line):
            parts, at = [text[: line.start("value")], mask(line["value"])], line.end("value")
        for match in patterns.TOKEN.finditer(text):
            if match.start() < at:
                # Part of a value that is hidden.
                continue
            parts += [text[at : match.start()], self._show_token(match)]
            at = match.end()
            name = match["name"] or match["quoted"]
            value = (patterns.IN_QUOTES.match(text, at) or patterns.BARE.match(text, at)) if name else None
            if value and self._hides(name, match[0], value):
                parts += [text[at : value.start("value")], mask(value["value"])]
                at = value.end("value")
        return "".join([*parts, text[at:]])

    def _show_token(self, match: re.Match[str]) -> str:
        token, kind = match[0], match.lastgroup
        if kind == "word":
            return self._words.show(token)
        if kind == "url":
            return self._show_url(token)
        if kind == "glued":
            return token[:2] + mask(token[2:])
        name = match["name"] or match["quoted"] or ""
        is_known = len(name) < 5 or _is_harmless(name)
        return token if is_known else token.replace(name, self._words.show(name))

    def _show_url(self, token: str) -> str:
        url = token.rstrip(")]},;")
        return self._words.show(url) + token[len(url) :]

    def _hides(self, name: str, sign: str, value: re.Match[str]) -> bool:
        """Whether a value is hidden since its name is not known. sign: what stands between, such as a colon."""
        is_key = name == "key" and sign.endswith("=")
        if not self._judges_fields or (_is_harmless(name) and not is_key) or self._words.is_plain(value["value"]):
            return False
        if name.lower() in patterns.OPAQUE:
            return True
        content, is_quoted = value["value"], bool(value["quote"])
        is_sentence = content.count(" ") >= 3 and (is_quoted or not sign.endswith("="))
        is_prose = not is_quoted and patterns.PROSE.match(value.string, value.start("value"))
        return not (is_sentence or is_prose or patterns.PLACE.match(content))


def _mask_content(text: str) -> str:
    content = text.strip()
    return text.replace(content, mask(content)) if content else text


def _is_open(text: str) -> bool:
    """Whether more brackets are opened than closed."""
    return sum(map(text.count, "[{(<")) > sum(map(text.count, "]})>"))


@lru_cache(maxsize=50_000)
def _is_harmless(name: str) -> bool:
    return re.sub(r"[^a-z0-9]", "", name.lower()) in HARMLESS
