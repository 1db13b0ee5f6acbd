# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacts lines of logs, and structured text in them: JSON, YAML, Go and protobuf text, XML, Python, key=value. Pure.

A line is read token by token. What stands behind the name of a secret, or a command with secrets, is hidden whatever it looks like: to
the end of the line, and in the deeper lines below, as where it ends depends on what wrote it. What stands under another name stays if
the name is known to be harmless, else only if it is a number, a code or a name of the cluster.
Words outside of a structure stay if they are words of a language or have a known shape (``words``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from . import log_patterns as patterns
from .fields import HARMLESS
from .harmless_words import Words, is_empty, mask
from .names import is_secret


@dataclass
class _State:
    """A value that continues on the next line.

    indent: of the line with the value's name; deeper lines belong to the value. only_next: the next line too, unless it has a name.
    """

    indent: int | None = None
    only_next: bool = False


class LogLines:
    """Redacts text. is_own: of this collection, so fields of any name may be shown. judges_words: hide words that may be secrets."""

    def __init__(self, words: Words, *, is_own: bool = False, judges_words: bool = True) -> None:
        self.words = words
        self.is_own = is_own
        self.judges = judges_words
        self._shown_entries: dict[str, str] = {}

    def forget(self) -> None:
        """Judge every text anew, since further names are known."""
        self._shown_entries.clear()

    def redact(self, text: str) -> str:
        """Several lines."""
        if "\x00" in text:
            text = patterns.WIDE.sub(lambda match: match[0].replace("\x00", ""), text)
        if "PRIVATE KEY" in text:
            text = patterns.PEM_KEY_END.sub(
                mask("x", "key"), patterns.PEM_WHOLE.sub(lambda match: mask(match[0], "key"), text)
            )
        state = _State()
        parts = patterns.LINE_END.split(text)
        parts[::2] = [self._redact_line(line, state) for line in parts[::2]]
        return "".join(parts)

    def _redact_line(self, line: str, state: _State) -> str:
        header = patterns.HEADER.match(line)
        begin = header.end() if header else 0
        if begin:
            state.__init__()  # type: ignore[misc]  # a new line begins with a new state
        elif state.indent is not None and line.strip():
            if self._is_continued(line, state):
                return line[: len(line) - len(line.lstrip())] + mask(line.strip()) + line[len(line.rstrip()) :]
            state.indent = None
        body = line[begin:]
        if not begin:
            return _Line(self, body, state).show()
        # Logs say the same again and again.
        shown = self._shown_entries.get(body)
        if shown is None:
            shown = _Line(self, body, state, entry=True).show()
            if state == _State() and len(self._shown_entries) < 50_000:
                self._shown_entries[body] = shown
        return line[:begin] + shown

    def _is_continued(self, line: str, state: _State) -> bool:
        """Whether a line belongs to the value of the name that the line above ended with."""
        indent = len(line) - len(line.lstrip())
        deeper = indent > (state.indent or 0) or (indent == state.indent and line.lstrip().startswith("- "))
        if state.only_next:
            state.only_next = False
            return deeper or not re.match(r"""\s*(?:- )?[\w."'-]+\s*[:=]""", line)
        return deeper

    def show_word(self, word: str) -> str:
        """A word that has no name. In a message, only the user of a URL is hidden."""
        return self.words.show(word) if self.judges or ("://" in word and "@" in word) else word


class _Line:
    """One line, as it is read token by token. entry: whether the header of a log stands before it."""

    def __init__(self, lines: LogLines, text: str, state: _State, entry: bool = False) -> None:
        self._lines, self._words = lines, lines.words
        self._text, self._state, self._entry = text, state, entry
        self._out: list[str] = []
        self._at = 0

    def show(self) -> str:
        """The text without what may be a secret."""
        text = self._text
        if "REG_" in text and (match := patterns.REGISTRY.fullmatch(text)):
            return self._show_registry_value(match)
        # What stands behind a command with secrets is hidden.
        command_end = self._find_command_end()
        self._text = text[:command_end]
        read_token, add = patterns.TOKEN.match, self._out.append
        while match := read_token(self._text, self._at):
            kind, token = match.lastgroup, match[0]
            self._at = match.end()
            if kind == "chunk":
                self._read_word(match.start(), token)
            elif kind == "key":
                self._read_key(match)
            elif kind == "quote":
                self._read_quoted(token)
            elif kind == "tag":
                self._read_tag(token)
            elif kind == "url":
                url = token.rstrip(")]},;")
                add(self._words.show(url) + token[len(url) :])
            else:
                add(token)
        if command_end < len(text):
            self._text, self._at = text, command_end
            self._hide_rest()
        return "".join(self._out)

    def _find_command_end(self) -> int:
        """Where the first command ends whose arguments are secrets; the end of the text without one."""
        text, lower = self._text, self._text.lower()
        if not any(word in lower for word in patterns.COMMAND_WORDS):
            return len(text)
        if patterns.PIPED.search(text):
            return 0
        command = patterns.COMMAND.search(text)
        return command.end() if command else len(text)

    def _hide_rest(self) -> None:
        """Hide the rest of the text: where a secret ends depends on what wrote it. Without one, the value is on the next line."""
        remainder = self._text[self._at :]
        value = remainder.strip()
        begin = remainder.index(value) if value else len(remainder)
        self._out.append(remainder[:begin] + (mask(value) + remainder[begin + len(value) :] if value else ""))
        self._at = len(self._text)
        opens = sum(map(value.count, "[{(<")) > sum(map(value.count, "]})>"))
        if not value or opens:
            self._expect_value()

    def _expect_value(self) -> None:
        """Hide what follows on the next lines."""
        self._state.indent, self._state.only_next = len(self._text) - len(self._text.lstrip()), True

    def _read_word(self, begin: int, word: str) -> None:
        text, lower = self._text, word.lower().rstrip(":")
        if "\\" in word and is_secret(word.partition("\\")[0]):
            self._out.append(word.partition("\\")[0] + mask(word))
            return
        glued = patterns.GLUED_FLAG.match(text, begin) if self._lines.judges and word[0] == "-" else None
        if glued:
            self._out.append(word[:2] + mask(glued[0][2:]))
            self._at = glued.end()
            return
        shown = self._lines.show_word(word)
        self._out.append(shown)
        spoken = patterns.SPOKEN.match(text, begin) if lower[:3] in ("pas", "tok", "api", "pin") else None
        token = patterns.AFTER_SCHEME.match(text, self._at) if lower in patterns.SCHEMES else None
        is_flag = word[0] in "-/" and "\\" not in word and is_secret(word.lstrip("-/"))
        if (
            is_flag
            or lower in patterns.SHORT_FLAGS
            or word.startswith("REG_")
            or (spoken and shown == word)
            or (token and not patterns.NOT_A_TOKEN.match(token[1]))
        ):
            self._hide_rest()

    def _read_quoted(self, quote: str) -> None:
        self._out.append(quote)
        match = patterns.PAIR.match(self._text, self._at)
        if match and is_secret(match[1].lstrip("-/")):
            self._out.append(match[0])
            self._at = match.end()
            self._hide_rest()

    def _read_tag(self, tag: str) -> None:
        """Read a tag of XML as any text; behind that of a secret, hide the rest."""
        if any(is_secret(match[1]) for match in patterns.ELEMENT.finditer(tag)):
            element, *attributes = tag.split(maxsplit=1)
            self._out += [element, *(f" {mask(text)}" for text in attributes)]
            self._hide_rest()
        else:
            self._out.append("<")
            self._at -= len(tag) - 1

    def _read_key(self, match: re.Match[str]) -> None:
        text, at, token = self._text, self._at, match[0]
        name = match["name"] or match["quoted"]
        is_account = self._lines.judges and name in ("user", "proxy-user") and token.startswith("--")
        if (
            is_secret(name)
            or (token[0] in "-/" and name in ("p", "u", "pw", "rp"))
            or (is_account and patterns.ACCOUNT.match(text, at))
        ):
            self._hide_secret_value(token, name)
            return
        identity = patterns.ID.match(text, at) if patterns.IDENTIFIED.search(name) else None
        if identity:
            self._out.append(token + identity[0])
            self._at = identity.end()
            return
        quoted = token.rstrip(" \t:=>")[-1:] in ("'", '"', "`")
        follows = at >= len(text) or text[at] in " \t\"'`[{(<\\" or "=" in token or quoted
        if not follows or (len(name) == 1 and text[at : at + 1] == "\\"):
            word = patterns.CHUNK.match(text, match.start())
            if word is None:
                self._out.append(token)
            else:
                self._at = word.end()
                self._read_word(match.start(), word[0])
            return
        self._out.append(self._show_key(token, name))
        # A line of YAML, or of an ini file.
        is_line = not self._entry and patterns.LINE_BEGIN.fullmatch(text, 0, match.start()) is not None
        shown, self._at = self._show_value(name, token, at, is_line)
        self._out.append(shown)

    def _show_registry_value(self, match: re.Match[str]) -> str:
        """A line of the registry."""
        name, value = match["name"], match["value"]
        keep = not is_secret(name) and (_is_harmless(name) or self._lines.is_own or self._words.is_plain(value.strip()))
        shown = _Line(self._lines, value, _State(), entry=True).show() if keep else mask(value)
        return f"{match['lead']}{self._lines.show_word(name)}{match['between']}{shown}"

    def _show_key(self, token: str, name: str) -> str:
        return token if _is_harmless(name) or len(name) < 5 else token.replace(name, self._lines.show_word(name))

    def _show_value(self, name: str, token: str, at: int, is_line: bool) -> tuple[str, int]:
        """(what stands under a name that is not secret, where it ends). Empty if it is to be read on."""
        text, opaque = self._text, name.lower() in patterns.OPAQUE
        if (
            self._lines.is_own
            or not self._lines.judges
            or (_is_harmless(name) and not (name == "key" and token.endswith("=")))
        ):
            return "", at
        if opaque and patterns.BLOCK_MARK.fullmatch(text[at:].strip()):
            self._state.indent = 0
            return text[at:], len(text)
        rest_of_line = patterns.REST_OF_LINE.match(text, at) if is_line or opaque else None
        value = patterns.IN_QUOTES.match(text, at) or rest_of_line or patterns.VALUE.match(text, at)
        in_quotes = value is not None and value.re is patterns.IN_QUOTES
        if value is None or (not opaque and not in_quotes and patterns.PROSE.match(text, value.start("value"))):
            return "", at
        if not in_quotes and not opaque and not is_line and not token.endswith("=") and token[0] not in "\"'`\\":
            # Behind a colon, a word of a sentence may stand.
            return "", at
        content = value["value"]
        is_sentence = content.count(" ") >= 3 and (in_quotes or not token.endswith("="))
        if self._words.is_plain(content) or (not opaque and (is_sentence or patterns.PLACE.match(content))):
            return "", at
        return value["begin"] + mask(content), value.end("value")

    def _hide_secret_value(self, token: str, name: str) -> None:
        """Show the name of a secret, and its value if it is none: a placeholder, or why there is no secret."""
        text, space = self._text, patterns.SPACES.match(self._text, self._at)
        begin = space.end() if space else self._at
        self._out.append(self._show_key(token, name) + text[self._at : begin])
        self._at = begin
        quoted, bare = patterns.QUOTED.match(text, begin), patterns.BARE.match(text, begin)
        if mark := patterns.MARKED.match(text, begin):
            shown = mark[0]
        elif quoted and is_empty(quoted["value"]):
            shown = quoted[0]
        elif bare and is_empty(bare[0].rstrip()):
            shown = bare[0]
        elif ":" in token and "=" not in token and patterns.PROSE.match(text, begin):
            return
        elif patterns.BLOCK_MARK.fullmatch(text[begin:].rstrip()):
            shown, self._state.indent = text[begin:], len(text) - len(text.lstrip())
        else:
            self._hide_rest()
            return
        self._out.append(shown)
        self._at = begin + len(shown)


@lru_cache(maxsize=50_000)
def _is_harmless(name: str) -> bool:
    return re.sub(r"[^a-z0-9]", "", name.lower()) in HARMLESS
