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

from ansible_collections.kubewin.csi.plugins.module_utils.redaction.fields import HARMLESS
from ansible_collections.kubewin.csi.plugins.module_utils.redaction.names import is_secret
from ansible_collections.kubewin.csi.plugins.module_utils.redaction.words import Words, hidden

# Nested deeper than this, a text is hidden as a whole.
_DEPTH = 12

# The begin of a line of a log: klog, CRI's prefix, zap, logfmt of containerd, csv of others. It begins a new entry.
_HEADER = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\s+(?:std(?:out|err) [FP] )?)?"
    r"(?:[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?\s+(?:\d+\s+)?[\w.-]+:\d+\] ?)?"
)
_GUID_PATH = r"\\{2,8}\?\\{1,8}Volume\{[0-9a-fA-F-]{36}\}\\*"
_TOKEN = re.compile(
    rf"""(?P<mark><\w{{1,10}},[ ]\d+>|\(redacted\))
    |(?P<tag></?[A-Za-z][\w.-]*(?:\s+[\w.:-]+\s*=\s*(?:"[^"]*"|'[^']*'))*\s*/?>)
    |(?P<url>\b[a-zA-Z][\w+.-]{{1,20}}://(?:(?!\\{{1,40}}["'`rn])[^\s"'`<>])+)
    |(?P<key>(?:(?P<kq>\\{{0,40}}["'`])(?P<quoted>[\w$@][\w $./@\[\]:-]*?)(?P=kq)
        |(?:-{{0,2}}|/)(?:\$?[Ee]nv:)?\.?(?P<name>[\w$@][\w$./@-]*))[ \t]*(?::=|=>|==?|:)(?!//|\\{{1,40}}[^"'rn\\]))
    |(?P<volume>{_GUID_PATH})
    |(?P<space>(?:\s|\\{{1,40}}r\\{{1,40}}n|\\{{1,40}}[nt](?![a-z]))+)
    |(?P<quote>\\{{0,40}}["'`])
    |(?P<colon>:(?=\w))
    |(?P<chunk>(?:(?!\\{{1,40}}["'`]|\\{{1,40}}r\\{{1,40}}n|\\{{1,40}}n(?![a-z])|["`]|'(?!\w))[^\s,;=()\[\]{{}}<>|&])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_MARK = re.compile(r"<\w{1,10}, \d+>|\(redacted\)")
_CHUNK = re.compile(r"""(?:(?!\\{1,40}["'`])[^\s"`',;=()\[\]{}<>|&])+""")
_BLOCK = re.compile(r"""[&*\w.]*(?:\[[\w.*]*\][\w.*]*)?(?=[\[({<])""")
_BRACKET = re.compile(r"""[\[({<]|[\])}>]|(?:\\{0,40}["'`])""")
# A value ends before the next pair, and before the quote that closes the text around it.
_BARE = re.compile(r"""(?:(?![;&,|]\s*[\w.-]+\s*[=:])(?!\\{0,40}["'`](?:[\s,;:}\])>]|$))(?!</)[^\s<>]|<(?!/))+""")
_TO_PAIR = re.compile(
    r"""(?:(?![;&,|]?\s+[\w.-]+[=:])(?!\\{0,40}["'`](?:[\s,;:}\])>]|$))(?!</|\\{1,40}r\\{1,40}n).)+"""
)
# Behind "failed to get token: " stands why, not the token.
_PROSE = re.compile(
    r"(?i)\s*(?:rpc error|error|failed|failure|could ?n[o']t|cannot|unable|not\b|no\b|invalid|the\b|connection|dial\b|context"
    r"|unauthori[sz]ed|forbidden|timeout|timed out|EOF|x509:|missing|access\b|permission|get \"?https?:|post \"?https?:|unexpected"
    r"|(?:pods?|secrets?|serviceaccounts?|nodes?|configmaps?) \\*\"|an? \b|is\b|was\b|has\b|operation\b|status\b|system error|access is denied"
    r"|the system|generic|request\b|expired\b|it\b|you\b)"
)
# An id under the name of one.
_ID = re.compile(
    r"""(?:[ \t]|\\{0,40}["'`{])*\{?(?:kubernetes\.io/csi/[\w.-]+\^|[a-z]+://)?(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{64})(?![\w.-])(?:\\{0,40}["'`])?"""
)
_IDENTIFIED = re.compile(
    r"(?i)^(?:uid|.*(?:pod|trace|volume|container|sandbox|disk|node|activity|request|image|device|object|op)[_-]?u?u?id|guid|uniquename|(?:volume|vol)[_-]?(?:name|handle|id)|diskuuid|id)$"
)
# Words behind which a secret stands: schemes of HTTP authentication, flags.
_SCHEMES = frozenset(["bearer", "basic", "negotiate", "ntlm", "digest", "sharedkey", "sharedkeylite"])
_NOT_A_TOKEN = re.compile(
    r"(?i)(?:auth\w*|tokens?|realm|credentials?|access|is|was|not|scheme|type|error|failed|and|or|for|in|to|from|of)[.,:]?$"
)
_SHORT_FLAGS_TEXT = """
-u -p -P -U -pw -w -k --user --proxy-user /p /rp /u /w -pass --pass -password
"""
_SHORT_FLAGS = frozenset(_SHORT_FLAGS_TEXT.split())
# Commands whose arguments are secrets; only flags and paths are shown.
_COMMAND = re.compile(
    r"""(?ix)\b(?:net1?(?:\.exe)?\s+use\s+(?=[*"'\\/]|[a-z]:)|net1?(?:\.exe)?\s+user\s+(?=\S+\s+[^\s])|reg(?:\.exe)?\s+add\s
    |cmdkey(?:\.exe)?\s|setx(?:\.exe)?\s+(?=\S+\s+\S)|sshpass\s|htpasswd\s|smbclient\s|plink(?:\.exe)?\s|psexec(?:64)?(?:\.exe)?\s|sqlcmd\s|runas\s|echo\s+(?=\S+\s*\|)
    |nssm(?:\.exe)?\s+set\s+\S+\s+(?:AppEnvironment(?:Extra)?|ObjectName)\s|docker\s+login\s|az\s+login\s|vault\s+login\s
    |(?:network|ps)credential\s*\(?|convertto-securestring\s|kubectl\s+create\s+secret\s|add-computer\s|autologon\s|bitsadmin\s+/set\w+\s|\blogin\s+\S+\s+password\s|\bpassword\s+51:b:)"""
)
_ARGUMENT = re.compile(
    r"""(?ix)(?:[-/][a-z][\w-]*|/user:.*|\*|[a-z]:|\\\\.*|HK\w+\\.*|[a-z]:\\.*|generic|smbcreds?|REG_\w+|secret|REG|new|-)$"""
)
# A secret that is piped into a command.
_PIPED = re.compile(r"(?i)\|\s*(?:convertto-securestring|\S.*-stdin\b)")
# the password "x", the token is "x", Password for joe: x
_SPOKEN = re.compile(
    r"""(?i)(?:pass(?:word|wd|phrase|code)|token|api[ _-]?key|pin)(?:\s+(?:is|was|of|=))*[ \t]+(?=\\{0,40}["'`])"""
    r"""|pass(?:word|phrase|code)[ ](?:for|of)[ ][^\s:]+:[ \t]*(?=\S)"""
)
_BLOCK_MARK = re.compile(r"[|>][+-]?\d?")
_PLACE = re.compile(r"[A-Za-z]:\\|[\\/]|[a-z]{2,8}://")
_FIELD = re.compile(r"-{0,2}/?[\w.-]+")
_REGISTRY = re.compile(
    r"(?P<lead>\s+)(?P<name>\S[^\r\n]*?)(?P<between>\s+REG_[A-Z_]+(?:\s+|$))(?P<value>.*)", re.DOTALL
)
_YAML = re.compile(
    r"""(?P<indent>[ \t]*(?:-[ \t]+)*)(?:export\s+|set\s+|\$env:)?["']?(?P<name>[\w$./-]{1,80})["']?[ \t]*(?:[:=])(?=[ \t]|$)(?P<value>.*)"""
)
_PEM_KEY_END = re.compile(r"\A(?:(?!-----BEGIN).)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----", re.DOTALL)
_PEM_WHOLE = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# Fields in which anything may stand, whatever their neighbours say.
_OPAQUE_TEXT = """
value values data default stringdata binarydata content contents body payload env environment rawdata
"""
_OPAQUE = frozenset(_OPAQUE_TEXT.split())
_ABOUT_NAME = re.compile(r"(?i)(?:name|key|id|@key)$")
_WIDE = re.compile(r"(?:[\t\r\n\x20-\x7e]\x00){3,}[\t\r\n\x20-\x7e]?|(?:\x00[\t\r\n\x20-\x7e]){3,}")


@dataclass
class _State:
    """What lies open from one line to the next."""

    depth: int = 0
    element: bool = False
    indent: int | None = None
    only_next: bool = False
    once: bool = False


class LogLines:
    """Redacts text. own: text that this collection wrote, in which a field of any name may be shown."""

    def __init__(self, words: Words, *, own: bool = False, judges_words: bool = True) -> None:
        self._words = words
        self._own = own
        self._judges = judges_words
        self._shown: dict[tuple[str, bool], str] = {}
        self._known: set[str] = set()

    def forget(self) -> None:
        """Judge every text anew, since further names are known."""
        self._shown.clear()
        self._known.clear()

    def text(self, text: str) -> str:
        """Several lines."""
        if "\x00" in text:
            text = _WIDE.sub(lambda match: match[0].replace("\x00", ""), text)
        if "PRIVATE KEY" in text:
            text = _PEM_KEY_END.sub(hidden("x", "key"), _PEM_WHOLE.sub(lambda match: hidden(match[0], "key"), text))
        state = _State()
        return "\n".join([self._line(line, state) for line in text.split("\n")])

    def _line(self, line: str, state: _State, depth: int = 0) -> str:
        header = _HEADER.match(line)
        begin = header.end() if header else 0
        if begin:
            state.__init__()  # type: ignore[misc]
        elif state.indent is not None and line.strip():
            if self._continues(line, state):
                return line[: len(line) - len(line.lstrip())] + hidden(line.strip()) + line[len(line.rstrip()) :]
            state.indent = None
        if self._known.issuperset(line[begin:].split(" ")) and not state.depth and not state.element:
            return line
        return line[:begin] + self._show(line[begin:], depth, state, first=True, entry=bool(begin))

    def _continues(self, line: str, state: _State) -> bool:
        """Whether a line belongs to the value of the name that the line above ended with."""
        indent = len(line) - len(line.lstrip())
        deeper = indent > (state.indent or 0) or (indent == state.indent and line.lstrip().startswith("- "))
        if state.once:
            state.__init__()  # type: ignore[misc]
            return True
        if state.only_next:
            state.only_next = False
            return deeper or not re.match(r"""\s*(?:- )?[\w."'-]+\s*[:=]""", line)
        return deeper

    def _nested(self, text: str, depth: int) -> str:
        """A text inside of quotes."""
        if depth > _DEPTH:
            return hidden(text)
        found = self._shown.get((text, False))
        if found is None:
            if len(self._shown) > 50_000:
                self._shown.clear()
            plain = _unescape(text)
            if plain is None:
                found = self._show(text, depth, _State())
            else:
                state = _State()
                found = json.dumps(
                    "\n".join([self._line(line, state, depth) for line in plain.split("\n")]),
                    ensure_ascii=text.isascii(),
                )[1:-1]
            self._shown[text, False] = found
        return found

    def _word(self, word: str) -> str:
        return self._words.show(word) if self._judges else self._message_word(word)

    def _message_word(self, word: str) -> str:
        return self._words.show(word) if "://" in word and "@" in word else word

    def _show(self, text: str, depth: int, state: _State, first: bool = False, entry: bool = False) -> str:
        """One line, or what stands between two quotes. first: whether a line of YAML may begin here. entry: behind a log's header."""
        out: list[str] = []
        at = 0
        if state.depth:
            at, state.depth = _block_end(text, 0, state.depth)
            end = at if state.depth else at - 1
            out += [hidden(text[:end]) if text[:end].strip() else text[:end], text[end:at]]
        elif state.element:
            at = text.find("</")
            state.element = at < 0
            at = len(text) if at < 0 else at
            out.append(hidden(text[:at]) if text[:at].strip() else text[:at])
        elif first and (shown := self._structured_line(text, depth, state, entry)) is not None:
            return shown
        commands = [0] if _PIPED.search(text) else [match.end() for match in _COMMAND.finditer(text)]
        flag = scheme = False
        size = len(text)
        while at < size:
            match = _TOKEN.match(text, at)
            assert match is not None
            kind, token, at = match.lastgroup, match[0], match.end()
            if kind == "space":
                out.append(token)
                continue
            if kind == "key" and flag and token[0] not in "-\"'`\\":
                # The value of a flag that looks like a name.
                rest = _BARE.match(text, match.start())
                at = max(at, rest.end() if rest else at)
                out.append(hidden(text[match.start() : at]))
                flag = False
                continue
            if kind == "key":
                name = match["name"] or match["quoted"]
                closer = token.rstrip(" \t:=>")[-1:]
                value_follows = at >= size or text[at] in " \t\"'`[{(<\\" or "=" in token or closer in "\"'`"
                if is_secret(name) or (token[0] in "-/" and name in ("p", "u", "pw", "rp")):
                    shown, at = self._secret_value(text, token, name, at, state, first and not "".join(out).strip())
                    out.append(shown)
                    continue
                identity = _ID.match(text, at) if _IDENTIFIED.search(name) else None
                if identity:
                    out += [token, identity[0]]
                    at = identity.end()
                    continue
                if not value_follows or (len(name) == 1 and text[at : at + 1] == "\\"):
                    match = _CHUNK.match(text, match.start())
                    if match is None:
                        out.append(token)
                        continue
                    kind, token, at = "chunk", match[0], match.end()
                else:
                    out.append(self._key(token, name))
                    shown, at = self._value(text, name, token, at, depth, state)
                    out.append(shown)
                    flag = scheme = False
                    continue
            if kind == "url":
                url = token.rstrip(")]},;")
                out += [self._words.show(url), token[len(url) :]]
                flag = scheme = False
            elif kind == "tag":
                shown, secret = self._tag(token)
                commands = [command for command in commands if command >= at]
                out.append(shown)
                if secret:
                    end = text.find("</", at)
                    state.element = end < 0
                    end = size if end < 0 else end
                    out.append(hidden(text[at:end]) if text[at:end].strip() else "")
                    at = end
            elif kind == "quote":
                content, end = _quoted(text, at, token)
                named = (
                    content is not None and _FIELD.fullmatch(content) is not None and is_secret(content.lstrip("-/"))
                )
                if content is None:
                    out.append(token)
                elif flag or scheme or (any(command < at for command in commands) and not _ARGUMENT.match(content)):
                    out.append(f"{token}{hidden(content)}{token if end <= size else ''}")
                    at = min(end, size)
                else:
                    out.append(f"{token}{self._nested(content, depth + 1)}{token if end <= size else ''}")
                    at = min(end, size)
                flag, scheme = named and text[at:].lstrip()[:1] in (",", ""), False
                if flag and at >= size:
                    state.indent, state.only_next, flag = 0, True, False
            elif kind == "chunk":
                strict = any(command < at for command in commands)
                if flag or (scheme and not _NOT_A_TOKEN.match(token)) or (strict and not _ARGUMENT.match(token)):
                    rest = _BARE.match(text, at - len(token))
                    at = max(at, rest.end() if rest else at)
                    shown = hidden(text[match.start() : at])
                elif "\\" in token and is_secret(token.partition("\\")[0]):
                    shown = token.partition("\\")[0] + hidden(token)
                else:
                    shown = self._word(token)
                out.append(shown)
                lower = token.lower().rstrip(":")
                flag = (
                    lower in _SHORT_FLAGS
                    or (token.startswith("REG_") and not strict)
                    or (flag and not any(map(str.isalnum, token)))
                ) or (token[0] in "-/" and not flag and "\\" not in token and is_secret(token.lstrip("-/")))
                scheme = lower in _SCHEMES
                spoken = _SPOKEN.match(text, match.start())
                if spoken and shown == token:
                    out.append(text[at : spoken.end()])
                    at, flag = spoken.end(), True
                if (
                    shown == token
                    and depth == 0
                    and not (flag or scheme or strict or is_secret(token))
                    and token[0] not in "-/$"
                ):
                    self._known.add(token)
                if flag and text[at : at + 1] in ('"', "'"):
                    # Elements of a list.
                    between = re.compile(r"""["'],?\s*""").match(text, at)
                    out.append(between[0] if between else "")
                    at = between.end() if between else at
            else:
                out.append(token)
                if kind == "mark":
                    flag = scheme = False
        if flag and first:
            state.indent, state.only_next, state.once = len(text) - len(text.lstrip()), True, True
        return "".join(out)

    def _structured_line(self, text: str, depth: int, state: _State, entry: bool) -> str | None:
        """A line of YAML, of an ini file or of the registry, None if it is none."""
        registry = _REGISTRY.fullmatch(text) if "REG_" in text else None
        if registry:
            name, value = registry["name"], registry["value"]
            keep = not is_secret(name) and (_harmless(name) or self._own or self._words.is_plain(value.strip()))
            return f"{registry['lead']}{self._word(name)}{registry['between']}{self._nested(value, depth) if keep else hidden(value)}"
        line = _YAML.fullmatch(text)
        if line is None:
            return None
        name, value = line["name"], line["value"].strip()
        block = _BLOCK_MARK.fullmatch(value) is not None
        if not is_secret(name) and not (block and name.lower() in _OPAQUE):
            unknown = (
                not entry
                and depth == 0
                and self._judges
                and not self._own
                and not _harmless(name)
                and value[:1] not in ("[", "{", "(", '"', "'", "&", "<", "`")
            )
            if (
                not unknown
                or self._words.is_plain(value)
                or _PROSE.match(value)
                or value.count(" ") >= 3
                or block
                or not value
            ):
                return None
            return (
                text[: line.start("value")]
                + text[line.start("value") : len(text) - len(line["value"].lstrip())]
                + hidden(value)
            )
        if block or not value:
            state.indent, state.only_next = (
                len(line["indent"].replace("-", " ")) if value else len(line["indent"]),
                not value,
            )
            return text
        if value[0] in "[{(\"'&*!" or _PROSE.match(value) or (self._words.is_plain(value) and not value.isdigit()):
            return None
        return text[: line.start("value")] + " " + hidden(value)

    def _key(self, token: str, name: str) -> str:
        return token if _harmless(name) or len(name) < 5 else token.replace(name, self._word(name))

    def _value(self, text: str, name: str, token: str, at: int, depth: int, state: _State) -> tuple[str, int]:
        """(what stands under a name that is not secret, where it ends). Empty if it is to be read on."""
        if name.lower() in _OPAQUE and _BLOCK_MARK.fullmatch(text[at:].strip()):
            state.indent = 0
            return text[at:], len(text)
        if self._own or not self._judges or (_harmless(name) and not (name == "key" and token.endswith("="))):
            return "", at
        space = re.compile(r"[ \t]*").match(text, at)
        begin = space.end() if space else at
        quoted = re.compile(r"""\\{0,40}["'`]""").match(text, begin)
        if quoted:
            content, end = _quoted(text, quoted.end(), quoted[0])
            if content is None:
                return "", at
            place = _PLACE.match(content) and self._nested(content, depth + 1) == content
            plain = (self._words.is_plain(content) or place) and name.lower() not in _OPAQUE
            shown = (
                content
                if plain
                else self._nested(content, depth + 1)
                if _is_sentence(content, self._nested(content, depth + 1), name)
                else hidden(content)
            )
            closing = quoted[0] if end <= len(text) else ""
            return f"{text[at:begin]}{quoted[0]}{shown}{closing}", min(end, len(text))
        if token[0] in "\"'`\\" and token.endswith(":") and begin > at and _PROSE.match(text, begin):
            return "", at
        if token.endswith("=") or (token[0] in "\"'`\\" and text[begin : begin + 1] not in "[{(<"):
            bare = _BARE.match(text, begin) if text[begin : begin + 1] not in "[{(<" else None
            if bare is None:
                return "", at
            chunk = re.match(r"[^,;&|)\]}]*", bare[0])[0]  # type: ignore[index]
            if self._words.is_plain(chunk) and name.lower() not in _OPAQUE:
                return f"{text[at:begin]}{chunk}", begin + len(chunk)
            if _PLACE.match(chunk) and self._word(chunk) == chunk:
                return f"{text[at:begin]}{chunk}", begin + len(chunk)
            return f"{text[at:begin]}{hidden(bare[0])}", bare.end()
        if name.lower() in _OPAQUE and text[begin : begin + 1] not in "[{(<":
            bare = _TO_PAIR.match(text, begin)
            if bare and not _PROSE.match(bare[0]):
                return f"{text[at:begin]}{hidden(bare[0])}", bare.end()
        return "", at

    def _secret_value(self, text: str, token: str, name: str, at: int, state: _State, first: bool) -> tuple[str, int]:
        """(a name and its hidden value, where it ends)."""
        space = re.compile(r"(?:[ \t]|\\{1,40}[rnt])*").match(text, at)
        begin = space.end() if space else at
        lead = self._key(token, name) + text[at:begin]
        if begin >= len(text.rstrip()):
            state.indent, state.only_next = len(text) - len(text.lstrip()), True
            return lead, begin
        mark = _MARK.match(text, begin)
        if mark:
            return lead + mark[0], mark.end()
        quoted = re.compile(r"""\\{0,40}["'`]""").match(text, begin)
        if quoted:
            content, end = _quoted(text, quoted.end(), quoted[0])
            if content is not None:
                closing = quoted[0] if end <= len(text) else ""
                keep = self._words.is_plain(content) and not content.isdigit()
                return f"{lead}{quoted[0]}{content if keep else hidden(content)}{closing}", min(end, len(text))
        block = _BLOCK.match(text, begin)
        if block and (mark := _MARK.match(text, block.end())):
            return lead + text[begin : mark.end()], mark.end()
        if block:
            end, state.depth = _block_end(text, block.end() + 1, 1)
            inside = text[block.end() + 1 : end].strip("]})>")
            return lead + text[begin : block.end()] + (
                hidden(inside, "block") if inside else text[block.end() : end]
            ), end
        if ":" in token and "=" not in token and _PROSE.match(text, begin):
            return lead, begin
        bare = (_TO_PAIR if first or (":" in token and begin > at) else _BARE).match(text, begin)
        if name.lower().endswith(("authorization", "cookie", "authenticate")):
            bare = re.compile(r".+").match(text, begin)
        if bare is None:
            return lead, begin
        value = bare[0].rstrip()
        if _BLOCK_MARK.fullmatch(value) and begin + len(value) >= len(text.rstrip()):
            state.indent = len(text) - len(text.lstrip())
            return lead + value, begin + len(value)
        if self._words.is_plain(value) and not value.isdigit():
            return lead + value, begin + len(value)
        return lead + hidden(value), begin + len(value)

    def _tag(self, tag: str) -> tuple[str, bool]:
        """(a tag of XML, whether the text behind it is a secret)."""
        name = re.match(r"</?([\w.-]+)", tag)[1]  # type: ignore[index]
        secret = is_secret(name)

        def show(match: re.Match[str]) -> str:
            nonlocal secret
            key, value = match[1], match[3]
            secret = secret or (_ABOUT_NAME.search(key) is not None and is_secret(value))
            if _ID.match(value) and _IDENTIFIED.search(key):
                return match[0]
            keep = not (is_secret(key) or key.lower() in _OPAQUE) or self._words.is_plain(value)
            return f"{key}={match[2]}{self._nested(value, 1) if keep else hidden(value)}{match[2]}"

        shown = re.sub(r"""([\w.:-]+)\s*=\s*(["'])(.*?)\2""", show, tag) if "=" in tag else tag
        shown = shown if self._word(name) == name else shown.replace(name, self._word(name), 1)
        return shown, secret and not tag.startswith("</") and not tag.endswith("/>")


@lru_cache(maxsize=50_000)
def _harmless(name: str) -> bool:
    return re.sub(r"[^a-z0-9]", "", name.lower()) in HARMLESS


def _is_sentence(text: str, shown: str, name: str) -> bool:
    """Whether a text under an unknown name is one that people read."""
    return text.count(" ") >= 3 and "<str" not in shown and name.lower() not in _OPAQUE


def _unescape(text: str) -> str | None:
    """A text without the escapes of a string in JSON or Go, None if it has none or would not be the same with them again."""
    if "\\" not in text:
        return None
    try:
        plain = json.loads(f'"{text}"')
    except ValueError:
        return None
    return plain if json.dumps(plain, ensure_ascii=text.isascii())[1:-1] == text else None


def _quoted(text: str, at: int, quote: str) -> tuple[str | None, int]:
    """(what stands between a quote and the one that closes it, where that ends); None if the sign is no quote."""
    slashes, sign = quote[:-1], quote[-1]
    begin = at - len(quote)
    if sign == "'" and begin and text[begin - 1].isalnum():
        return None, at
    found = at
    while (found := text.find(sign, found)) >= 0:
        before = found
        while before > at and text[before - 1] == "\\":
            before -= 1
        run = found - before
        closes = run == len(slashes) or (not slashes and run % 2 == 0)
        if closes and (sign != "'" or not text[found + 1 : found + 2].isalnum()):
            return text[at : found - len(slashes)], found + 1
        found += 1
    # Cut off, or a backslash at the end of a path.
    return (None, at) if sign in "'`" else (text[at:], len(text) + 1)


def _block_end(text: str, at: int, depth: int) -> tuple[int, int]:
    """(where a block of brackets ends, how many are open there)."""
    while depth and (match := _BRACKET.search(text, at)):
        at = match.end()
        sign = match[0]
        if sign in "[({<":
            depth += 1
        elif sign in "])}>":
            depth -= 1
        else:
            content, end = _quoted(text, at, sign)
            at = min(end, len(text)) if content is not None else at
    return (at, 0) if not depth else (len(text), depth)
