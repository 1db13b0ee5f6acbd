# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacts lines of logs, and structured text in them: JSON, YAML, Go and protobuf text, XML, Python, key=value. Pure.

A line is read token by token. What stands behind the name of a secret, or a command with secrets, is hidden whatever it looks like: to
the end of the line or of the quotation around it, and in the deeper lines below, as where it ends depends on what wrote it. What stands
under another name stays if the name is known to be harmless, else only if it is a number, a code or a name of the cluster.
Words outside of a structure stay if they are words of a language or have a known shape (``words``).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction import log_patterns as patterns
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.fields import HARMLESS
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.names import is_secret
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.words import Words, is_empty, mask

# Nested deeper than this, a text is hidden as a whole.
_DEPTH = 12


@dataclass
class _State:
    """A value that continues on the next line.

    indent: of the line with the value's name; deeper lines belong to the value. only_next: the next line too, unless it has a name.
    """

    indent: int | None = None
    only_next: bool = False


class LogLines:
    """Redacts text. own: of this collection, so fields of any name may be shown. judges_words: hide words that may be secrets."""

    def __init__(self, words: Words, *, own: bool = False, judges_words: bool = True) -> None:
        self.words = words
        self.own = own
        self.judges = judges_words
        self._shown: dict[str, str] = {}
        self._shown_entries: dict[str, str] = {}

    def forget(self) -> None:
        """Judge every text anew, since further names are known."""
        self._shown.clear()
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
        return "\n".join([self._redact_line(line, state) for line in text.split("\n")])

    def _redact_line(self, line: str, state: _State, depth: int = 0) -> str:
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
            return _Line(self, body, depth, state, first=True).show()
        # Logs say the same again and again.
        shown = self._shown_entries.get(body)
        if shown is None:
            shown = _Line(self, body, depth, state, first=True, entry=True).show()
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

    def redact_quoted(self, text: str, depth: int) -> str:
        """A text inside of quotes."""
        if depth > _DEPTH:
            return mask(text)
        shown = self._shown.get(text)
        if shown is None:
            if len(self._shown) > 50_000:
                self._shown.clear()
            plain = _unescape(text)
            if plain is None:
                shown = _Line(self, text, depth, _State()).show()
            else:
                state = _State()
                shown = json.dumps(
                    "\n".join([self._redact_line(line, state, depth) for line in plain.split("\n")]),
                    ensure_ascii=text.isascii(),
                )[1:-1]
            self._shown[text] = shown
        return shown

    def show_word(self, word: str) -> str:
        """A word that has no name. In a message, only the user of a URL is hidden."""
        return self.words.show(word) if self.judges or ("://" in word and "@" in word) else word


class _Line:
    """One line, or what stands between two quotes, as it is read token by token.

    first: whether a line of YAML may begin here. entry: whether the header of a log stands before it.
    """

    def __init__(
        self, lines: LogLines, text: str, depth: int, state: _State, first: bool = False, entry: bool = False
    ) -> None:
        self._lines, self._words = lines, lines.words
        self._text, self._depth, self._state, self._first, self._entry = text, depth, state, first, entry
        self._out: list[str] = []
        self._at = 0

    def show(self) -> str:
        """The text without what may be a secret."""
        text = self._text
        if self._first and (shown := self._redact_structured_line()) is not None:
            return shown
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
                self._read_quoted(match.start(), token)
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
        rest = self._text[self._at :]
        value = rest.strip()
        begin = rest.index(value) if value else len(rest)
        self._out.append(rest[:begin] + (mask(value) + rest[begin + len(value) :] if value else ""))
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

    def _find_quotation(self, begin: int) -> tuple[str, str, str, int] | None:
        """(a quote, what stands behind it, the quote that closes it, where that ends), None if no quotation begins there."""
        quote, size = patterns.QUOTE.match(self._text, begin), len(self._text)
        content, end = _find_quoted(self._text, quote.end(), quote[0]) if quote else (None, begin)
        return (
            None
            if quote is None or content is None
            else (quote[0], content, quote[0] if end <= size else "", min(end, size))
        )

    def _read_quoted(self, begin: int, quote: str) -> None:
        text, quotation = self._text, self._find_quotation(begin)
        if quotation is None:
            self._out.append(quote)
            return
        _quote, content, closing, self._at = quotation
        self._out += [quote, self._lines.redact_quoted(content, self._depth + 1), closing]
        # A pair of texts in a list: the name of a secret, and the secret.
        named = patterns.FIELD.fullmatch(content) is not None and is_secret(content.lstrip("-/"))
        if named and text[self._at :].lstrip()[:1] in (",", ""):
            self._hide_rest()

    def _read_tag(self, tag: str) -> None:
        shown, secret = self._show_tag(tag)
        self._out.append(shown)
        end = self._text.find("</", self._at)
        if secret and end < 0:
            self._hide_rest()
            self._expect_value()
        elif secret:
            self._out.append(mask(self._text[self._at : end]) if self._text[self._at : end].strip() else "")
            self._at = end

    def _read_key(self, match: re.Match[str]) -> None:
        text, at, token = self._text, self._at, match[0]
        name = match["name"] or match["quoted"]
        if is_secret(name) or (token[0] in "-/" and name in ("p", "u", "pw", "rp")):
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
        shown, self._at = self._show_value(name, token, at)
        self._out.append(shown)

    def _redact_structured_line(self) -> str | None:
        """A line of YAML, of an ini file or of the registry, None if it is none."""
        text = self._text
        registry = patterns.REGISTRY.fullmatch(text) if "REG_" in text else None
        if registry:
            name, value = registry["name"], registry["value"]
            keep = not is_secret(name) and (
                _is_harmless(name) or self._lines.own or self._words.is_plain(value.strip())
            )
            shown = self._lines.redact_quoted(value, self._depth) if keep else mask(value)
            return f"{registry['lead']}{self._lines.show_word(name)}{registry['between']}{shown}"
        line = patterns.YAML.fullmatch(text)
        if line is None:
            return None
        name, value = line["name"], line["value"].strip()
        known = (
            self._entry
            or self._depth
            or not self._lines.judges
            or self._lines.own
            or is_secret(name)
            or _is_harmless(name)
        )
        if (
            known
            or value[:1] in ("", "[", "{", "(", '"', "'", "&", "<", "`")
            or self._words.is_plain(value)
            or patterns.PROSE.match(value)
            or value.count(" ") >= 3
            or patterns.BLOCK_MARK.fullmatch(value)
        ):
            return None
        return text[: len(text) - len(line["value"].lstrip())] + mask(value)

    def _show_key(self, token: str, name: str) -> str:
        return token if _is_harmless(name) or len(name) < 5 else token.replace(name, self._lines.show_word(name))

    def _show_value(self, name: str, token: str, at: int) -> tuple[str, int]:
        """(what stands under a name that is not secret, where it ends). Empty if it is to be read on."""
        text, opaque = self._text, name.lower() in patterns.OPAQUE
        if opaque and patterns.BLOCK_MARK.fullmatch(text[at:].strip()):
            self._state.indent = 0
            return text[at:], len(text)
        if (
            self._lines.own
            or not self._lines.judges
            or (_is_harmless(name) and not (name == "key" and token.endswith("=")))
        ):
            return "", at
        space = patterns.BLANKS.match(text, at)
        begin = space.end() if space else at
        if quotation := self._find_quotation(begin):
            quote, content, closing, end = quotation
            nested = self._lines.redact_quoted(content, self._depth + 1)
            shows = not opaque and (
                self._words.is_plain(content)
                or (nested == content and patterns.PLACE.match(content))
                or (content.count(" ") >= 3 and "<str" not in nested)
            )
            return f"{text[at:begin]}{quote}{nested if shows else mask(content)}{closing}", end
        quoted_name = token[0] in "\"'`\\"
        prose = quoted_name and token.endswith(":") and begin > at and patterns.PROSE.match(text, begin)
        if prose or text[begin : begin + 1] in "[{(<" or patterns.QUOTE.match(text, begin):
            return "", at
        if token.endswith("=") or quoted_name:
            bare = patterns.BARE.match(text, begin)
            chunk = patterns.TO_SIGN.match(bare[0]) if bare else None
            if bare is None or chunk is None:
                return "", at
            shows = not opaque and self._words.is_plain(chunk[0])
            if shows or (patterns.PLACE.match(chunk[0]) and self._lines.show_word(chunk[0]) == chunk[0]):
                return text[at:begin] + chunk[0], begin + chunk.end()
            return text[at:begin] + mask(bare[0]), bare.end()
        bare = patterns.TO_PAIR.match(text, begin) if opaque else None
        if bare and not patterns.PROSE.match(bare[0]):
            return text[at:begin] + mask(bare[0]), bare.end()
        return "", at

    def _hide_secret_value(self, token: str, name: str) -> None:
        """Show the name of a secret, and its value if it is none: a placeholder, or why there is no secret."""
        text, space = self._text, patterns.SPACES.match(self._text, self._at)
        begin = space.end() if space else self._at
        self._out.append(self._show_key(token, name) + text[self._at : begin])
        self._at = begin
        quotation, mark, bare = (
            self._find_quotation(begin),
            patterns.MARKED.match(text, begin),
            patterns.BARE.match(text, begin),
        )
        if mark:
            shown = mark[0]
        elif quotation and is_empty(quotation[1]):
            shown = text[begin : quotation[3]]
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

    def _show_tag(self, tag: str) -> tuple[str, bool]:
        """(a tag of XML, whether the text behind it is a secret)."""
        name = re.match(r"</?([\w.-]+)", tag)[1]  # type: ignore[index]  # every token "tag" begins so
        secret = is_secret(name)

        def show(match: re.Match[str]) -> str:
            nonlocal secret
            key, value = match[1], match[3]
            secret = secret or (patterns.ABOUT_NAME.search(key) is not None and is_secret(value))
            if patterns.ID.match(value) and patterns.IDENTIFIED.search(key):
                return match[0]
            keep = not (is_secret(key) or key.lower() in patterns.OPAQUE) or self._words.is_plain(value)
            return f"{key}={match[2]}{self._lines.redact_quoted(value, self._depth + 1) if keep else mask(value)}{match[2]}"

        shown = re.sub(r"""([\w.:-]+)\s*=\s*(["'])(.*?)\2""", show, tag) if "=" in tag else tag
        shown = shown if self._lines.show_word(name) == name else shown.replace(name, self._lines.show_word(name), 1)
        return shown, secret and not tag.startswith("</") and not tag.endswith("/>")


@lru_cache(maxsize=50_000)
def _is_harmless(name: str) -> bool:
    return re.sub(r"[^a-z0-9]", "", name.lower()) in HARMLESS


def _unescape(text: str) -> str | None:
    """A text without the escapes of a string in JSON or Go, None if it has none or would not be the same with them again."""
    if "\\" not in text:
        return None
    try:
        plain = json.loads(f'"{text}"')
    except ValueError:
        return None
    return plain if json.dumps(plain, ensure_ascii=text.isascii())[1:-1] == text else None


def _find_quoted(text: str, at: int, quote: str) -> tuple[str | None, int]:
    """(what stands between a quote and the one that closes it, where that ends); None if the sign is no quote."""
    slashes, sign = quote[:-1], quote[-1]
    begin = at - len(quote)
    if sign == "'" and begin and text[begin - 1].isalnum():
        return None, at
    position = at
    while (position := text.find(sign, position)) >= 0:
        before = position
        while before > at and text[before - 1] == "\\":
            before -= 1
        run = position - before
        closes = run == len(slashes) or (not slashes and run % 2 == 0)
        if closes and (sign != "'" or not text[position + 1 : position + 2].isalnum()):
            return text[at : position - len(slashes)], position + 1
        position += 1
    # Cut off, or a backslash at the end of a path.
    return (None, at) if sign in "'`" else (text[at:], len(text) + 1)
