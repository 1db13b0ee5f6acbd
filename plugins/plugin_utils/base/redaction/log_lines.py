# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Redacts lines of logs, and structured text in them: JSON, YAML, Go and protobuf text, XML, Python, key=value. Pure.

A line is read token by token. What stands under the name of a secret is hidden whatever it looks like, a whole block too. What stands
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

    depth: of open brackets. element: whether an XML element is open. indent: of the line with the value's name. only_next: the value
    begins on the next line, unless that line has a name. once: only the next line belongs to the value.
    """

    depth: int = 0
    element: bool = False
    indent: int | None = None
    only_next: bool = False
    once: bool = False


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
        if state.once:
            state.__init__()  # type: ignore[misc]  # a new line begins with a new state
            return True
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
        # Where commands end whose arguments are secrets; whether the next word is the value of a flag, or of a scheme of HTTP.
        self._commands: list[int] = []
        self._flag = self._scheme = False

    def show(self) -> str:
        """The text without what may be a secret."""
        text, state = self._text, self._state
        if state.depth or state.element:
            self._end_open_value()
        elif self._first and (shown := self._redact_structured_line()) is not None:
            return shown
        lower = text.lower()
        if any(word in lower for word in patterns.COMMAND_WORDS):
            self._commands = (
                [0] if patterns.PIPED.search(text) else [match.end() for match in patterns.COMMAND.finditer(text)]
            )
        size, read_token, add = len(text), patterns.TOKEN.match, self._out.append
        while self._at < size:
            match = read_token(text, self._at)
            if match is None:
                break
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
                self._flag = self._scheme = False
            else:
                add(token)
                if kind == "mark":
                    self._flag = self._scheme = False
        if self._flag and self._first:
            state.indent, state.only_next, state.once = len(text) - len(text.lstrip()), True, True
        return "".join(self._out)

    def _end_open_value(self) -> None:
        """Hide the rest of a value that began in a line above."""
        text, state = self._text, self._state
        if state.depth:
            self._at, state.depth = _find_block_end(text, 0, state.depth)
            end = self._at if state.depth else self._at - 1
        else:
            end = text.find("</")
            state.element = end < 0
            self._at = end = len(text) if end < 0 else end
        self._out += [mask(text[:end]) if text[:end].strip() else text[:end], text[end : self._at]]

    def _is_argument(self) -> bool:
        """Whether the word that was just read is an argument of a command with secrets."""
        return bool(self._commands) and min(self._commands) < self._at

    def _hide_value(self, begin: int) -> None:
        """Hide a value without quotes that begins there."""
        value = patterns.BARE.match(self._text, begin)
        self._at = max(self._at, value.end() if value else 0)
        self._out.append(mask(self._text[begin : self._at]))

    def _read_word(self, begin: int, word: str) -> None:
        text, flag = self._text, self._flag
        strict = self._is_argument()
        lower = word.lower().rstrip(":")
        if (
            flag
            or (self._scheme and not patterns.NOT_A_TOKEN.match(word))
            or (strict and not patterns.ARGUMENT.match(word))
        ):
            self._hide_value(begin)
        elif "\\" in word and is_secret(word.partition("\\")[0]):
            self._out.append(word.partition("\\")[0] + mask(word))
        else:
            shown = self._lines.show_word(word)
            self._out.append(shown)
            if shown == word:
                spoken = patterns.SPOKEN.match(text, begin) if lower[:3] in ("pas", "tok", "api", "pin") else None
                if spoken:
                    self._out.append(text[self._at : spoken.end()])
                    self._at, self._flag, self._scheme = spoken.end(), True, False
                    return
        self._scheme = lower in patterns.SCHEMES
        is_flag = word[0] in "-/" and not flag and "\\" not in word and is_secret(word.lstrip("-/"))
        self._flag = (
            is_flag
            or lower in patterns.SHORT_FLAGS
            or (word.startswith("REG_") and not strict)
            or (flag and not any(map(str.isalnum, word)))
        )
        if self._flag and (between := patterns.BETWEEN.match(text, self._at)):
            # Elements of a list.
            self._out.append(between[0])
            self._at = between.end()

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
            self._flag = self._scheme = False
            return
        _quote, content, closing, end = quotation
        hides = self._flag or self._scheme or (self._is_argument() and not patterns.ARGUMENT.match(content))
        self._at = end
        self._out += [quote, mask(content) if hides else self._lines.redact_quoted(content, self._depth + 1), closing]
        # A pair of texts in a list: the name of a secret, and the secret.
        named = patterns.FIELD.fullmatch(content) is not None and is_secret(content.lstrip("-/"))
        self._flag, self._scheme = named and text[self._at :].lstrip()[:1] in (",", ""), False
        if self._flag and self._at >= len(text):
            self._state.indent, self._state.only_next, self._flag = 0, True, False

    def _read_tag(self, tag: str) -> None:
        shown, secret = self._show_tag(tag)
        self._out.append(shown)
        self._commands = [command for command in self._commands if command >= self._at]
        if secret:
            end = self._text.find("</", self._at)
            self._state.element = end < 0
            end = len(self._text) if end < 0 else end
            self._out.append(mask(self._text[self._at : end]) if self._text[self._at : end].strip() else "")
            self._at = end

    def _read_key(self, match: re.Match[str]) -> None:
        text, at, token = self._text, self._at, match[0]
        name = match["name"] or match["quoted"]
        if self._flag and token[0] not in "-\"'`\\":
            # The value of a flag that looks like a name.
            self._hide_value(match.start())
            self._flag = False
            return
        if is_secret(name) or (token[0] in "-/" and name in ("p", "u", "pw", "rp")):
            shown, self._at = self._hide_secret_value(token, name, at)
            self._out.append(shown)
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
        self._flag = self._scheme = False

    def _redact_structured_line(self) -> str | None:
        """A line of YAML, of an ini file or of the registry, None if it is none."""
        text, state = self._text, self._state
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
        block = patterns.BLOCK_MARK.fullmatch(value) is not None
        if not is_secret(name) and not (block and name.lower() in patterns.OPAQUE):
            unknown = (
                not self._entry
                and self._depth == 0
                and self._lines.judges
                and not self._lines.own
                and not _is_harmless(name)
                and value[:1] not in ("[", "{", "(", '"', "'", "&", "<", "`")
            )
            if (
                not unknown
                or self._words.is_plain(value)
                or patterns.PROSE.match(value)
                or value.count(" ") >= 3
                or block
                or not value
            ):
                return None
            return (
                text[: line.start("value")]
                + text[line.start("value") : len(text) - len(line["value"].lstrip())]
                + mask(value)
            )
        if block or not value:
            state.indent, state.only_next = (
                len(line["indent"].replace("-", " ")) if value else len(line["indent"]),
                not value,
            )
            return text
        if value[0] in "[{(\"'&*!" or patterns.PROSE.match(value) or is_empty(value):
            return None
        return text[: line.start("value")] + " " + mask(value)

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

    def _hide_secret_value(self, token: str, name: str, at: int) -> tuple[str, int]:
        """(a name and its hidden value, where it ends)."""
        text, state = self._text, self._state
        first = self._first and not "".join(self._out).strip()
        space = patterns.SPACES.match(text, at)
        begin = space.end() if space else at
        lead = self._show_key(token, name) + text[at:begin]
        if begin >= len(text.rstrip()):
            state.indent, state.only_next = len(text) - len(text.lstrip()), True
            return lead, begin
        if mark := patterns.MARKED.match(text, begin):
            return lead + mark[0], mark.end()
        if quotation := self._find_quotation(begin):
            quote, content, closing, end = quotation
            return f"{lead}{quote}{content if is_empty(content) else mask(content)}{closing}", end
        block = patterns.BLOCK.match(text, begin)
        if block:
            end, state.depth = _find_block_end(text, block.end() + 1, 1)
            inside = text[block.end() + 1 : end].strip("]})>")
            return lead + text[begin : block.end()] + (
                mask(inside, "block") if inside else text[block.end() : end]
            ), end
        if ":" in token and "=" not in token and patterns.PROSE.match(text, begin):
            return lead, begin
        bare = (patterns.TO_PAIR if first or (":" in token and begin > at) else patterns.BARE).match(text, begin)
        if name.lower().endswith(("authorization", "cookie", "authenticate")):
            bare = patterns.ALL.match(text, begin)
        if bare is None:
            return lead, begin
        value = bare[0].rstrip()
        if patterns.BLOCK_MARK.fullmatch(value) and begin + len(value) >= len(text.rstrip()):
            state.indent = len(text) - len(text.lstrip())
            return lead + value, begin + len(value)
        if is_empty(value):
            return lead + value, begin + len(value)
        return lead + mask(value), begin + len(value)

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


def _find_block_end(text: str, at: int, depth: int) -> tuple[int, int]:
    """(where a block of brackets ends, how many are open there)."""
    while depth and (match := patterns.BRACKET.search(text, at)):
        at = match.end()
        sign = match[0]
        if sign in "[({<":
            depth += 1
        elif sign in "])}>":
            depth -= 1
        else:
            content, end = _find_quoted(text, at, sign)
            at = min(end, len(text)) if content is not None else at
    return (at, 0) if not depth else (len(text), depth)
