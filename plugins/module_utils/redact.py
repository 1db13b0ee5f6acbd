# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The edge for text that leaves: secrets are replaced in everything that is put into an archive for support. Pure.

A secret is found in two ways. Values that the run itself holds (passwords, tokens, keys of a kubeconfig) are known, and are
found in every encoding that logs and objects use. Others are found by what stands around them: a name such as
``password=``, a header, the user part of a URL, a private key, or the form of a well-known token; also inside Base64 and
UTF-16. Text is redacted before it is cut to a size, so that no cut leaves half of a secret that nothing recognizes.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_plus

from ansible_collections.kubewin.csi.plugins.module_utils.text import harmless

HIDDEN = "(redacted)"
LEFT_OUT = "(left out)"

# Shorter values are parts of too many words. They are still found by the name beside them.
_LEAST = 4

# Names of secrets in a kubeconfig: keys of a user and of its auth-provider, variables and flags of an exec plugin. The texts of all
# other keys stay readable, since a region or a release that were hidden would be hidden in the names of nodes too.
_OF_KUBECONFIG = re.compile(
    r"token$|secret|pass|credential|assertion|private|key-data$|(?<!client-)key$", re.IGNORECASE
)

# Names of secrets anywhere else, as a part of the name.
_PARTS = (
    r"pass(?:word|wd|phrase|code|$|(?=[_.=:\"'\\\s-]))|pwd|secret|token|credential|assertion|private[_.-]?key|key-data|signature|cookie"
    r"|(?:api|access|account|shared|storage|session|encryption|auth|client|primary|secondary)[_.-]?key|authorization|\bsig$|\bsas$"
    r"|connection[_.-]?string|x-auth"
)
_NAMED = re.compile(_PARTS, re.IGNORECASE)
# Names for the place of a secret, or a property of it.
_ABOUT = re.compile(
    r"(?:names?|refs?|namespaces?|file|path|dir|seconds|policy|type|mode|count|class|kind|requests?|review|expiry|prompt|auth)$",
    re.IGNORECASE,
)
_PLAIN_VALUES = frozenset({"", "true", "false", "null", "none", "nil", "[]", "{}", "<nil>", HIDDEN, LEFT_OUT})


def is_secret(name: str) -> bool:
    """Whether the value under this name is a secret."""
    return bool(_NAMED.search(name)) and not _ABOUT.search(name)


def texts(value: Any) -> Iterator[str]:
    """Every text in it."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for one in value:
            yield from texts(one)
    elif value is not None and not isinstance(value, bool) and str(value):
        yield str(value)


def kubeconfig_secrets(value: Any) -> Iterator[str]:
    """The texts in a kubeconfig that are secrets (client-go, tools/clientcmd/api/v1/types.go)."""
    if isinstance(value, Mapping):
        # An entry of an exec plugin's environment.
        if set(value) == {"name", "value"} and _OF_KUBECONFIG.search(str(value["name"])):
            yield from texts(value["value"])
        for name, one in value.items():
            yield from texts(one) if _OF_KUBECONFIG.search(str(name)) else kubeconfig_secrets(one)
        if isinstance(value.get("args"), (list, tuple)):
            yield from _of_flags([str(one) for one in value["args"]])
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from kubeconfig_secrets(one)


def _of_flags(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        flag, equals, text = word.partition("=")
        if flag.startswith("-") and _OF_KUBECONFIG.search(flag) and (text or following):
            yield text if equals else following


def decoded(raw: bytes) -> str:
    """The bytes of a log as text: UTF-16 as Windows programs write it, else UTF-8. What does not decode is shown."""
    if raw.startswith((b"\xff\xfe", b"\xfe\xff")):
        return raw.decode("utf-16", "replace")
    return raw.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


# UTF-16 inside a text of another encoding, in either order of its bytes.
_WIDE = re.compile(r"(?:[\t\r\n\x20-\x7e]\x00){3,}[\t\r\n\x20-\x7e]?|(?:\x00[\t\r\n\x20-\x7e]){3,}")
# NUL as module_utils.text carries it: texts of a host have passed that edge already.
_CARRIED_NUL = harmless("\x00")

_KEY = r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_KEY_END = r"-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----"
_PRIVATE_KEY = re.compile(rf"{_KEY}.*?(?:{_KEY_END}|\Z)", re.DOTALL)
# A log that was cut may begin in the middle of one.
_REST_OF_KEY = re.compile(rf"\A(?:(?!-----BEGIN).)*?{_KEY_END}", re.DOTALL)

# What has to be in a line for one of the shapes below to be in it; most lines have none.
_WORDS = (
    "pass", "pwd", "secret", "token", "credential", "assertion", "key", "signature", "cookie", "authorization", "sig", "sas",
    "connection", "basic", "bearer", "negotiate", "ntlm", "kerberos", "sharedkey", "x-auth", "securestring", " use ",
)  # fmt: skip

# A value ends before the next pair, and before the quote that closes the text around it.
_BARE = r"""(?:(?![;&,|]\s*[\w.-]+\s*[=:])(?!\\*["'](?:[\s,;:}\])>]|$))[^\s<>])+"""
_VALUE = rf"""(?:(?P<q>\\*["'])(?P<quoted>(?:(?!(?P=q))(?:\\.|[^\\\n]))*)(?P=q)|(?P<bare>{_BARE}))"""
# What stands before the part of the name that says "secret" is left out: looking for it from every place takes long.
_PAIR = re.compile(
    rf"""(?P<name>(?:{_PARTS})[\w.$/\]-]{{0,80}})(?P<between>\\*["']?[ \t]*(?:=>|:=|==?|:)[ \t]*){_VALUE}""",
    re.IGNORECASE,
)
# A flag with its value behind it, also as elements of a list.
_FLAG = re.compile(
    rf"""(?P<name>(?<![\w-])(?:--?|/)[\w.-]{{0,80}}?(?:{_PARTS})[\w.-]{{0,80}})(?P<between>\\*["']?(?:\s*,\s*|[ \t]+)){_VALUE}""",
    re.IGNORECASE,
)
# In YAML a value continues to the end of its line.
_YAML_LINE = re.compile(
    rf"""^(?P<name>[ \t-]*["']?[\w./-]{{0,80}}?(?:{_PARTS})[\w./-]{{0,80}}["']?)(?P<between>:[ \t]+)(?P<bare>[^\s"'|>\[{{&*#][^\n]*)$""",
    re.IGNORECASE,
)
# Lines of a YAML block belong to the key above them while they are indented more; a value may also be the next line.
_YAML_BLOCK = re.compile(
    rf"""^(?P<indent>[ \t-]*)(?P<name>["']?[\w./-]{{0,80}}?(?:{_PARTS})[\w./-]{{0,80}}["']?)(?P<between>:[ \t]*(?P<mark>[|>][+-]?\d*)?[ \t]*\n)"""
    r"""(?P<block>(?(mark)(?:(?P=indent)[ \t]+\S[^\n]*(?:\n|\Z)|[ \t]*\n)+|(?P=indent)[ \t]+(?!- )(?![^\n]*:(?:\s|\Z))[^\s#{\["'][^\n]*(?:\n|\Z)))""",
    re.IGNORECASE | re.MULTILINE,
)
# An entry of a list of variables, in the order that JSON and YAML have it.
_ENTRY = re.compile(
    rf"""(?P<name>\bname\\*["']?\s*:\s*\\*["']?[\w.-]{{0,80}}?(?:{_PARTS})[\w.-]{{0,80}}\\*["']?)(?P<between>\s*,?\s*\\*["']?value\\*["']?\s*:\s*){_VALUE}""",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"""(?P<before>\b(?i:Bearer)\s+)(?=[^\s"']{8,})[^\s"',;]+"""
    r"""|(?P<schemed>\b(?i:Basic|Negotiate|NTLM|Kerberos|SharedKey)\s+)(?=[A-Za-z0-9+/=_.~:-]{0,40}[0-9=A-Z])[A-Za-z0-9+/=_.~:-]{8,}"""
)
# As reg.exe prints a value.
_REGISTRY = re.compile(
    rf"""(?P<name>(?:{_PARTS})[\w.-]{{0,80}})(?P<between>\s+REG_[A-Z_]+\s+)(?P<bare>\S[^\r\n]*)""", re.IGNORECASE
)
_HEADER_LINE = re.compile(
    r"""(?P<name>(?:Proxy-)?Authorization|Set-Cookie|Cookie|X-Auth-Token|X-Api-Key)(?P<between>\\*["']?\s*[:=]\s*\[?)"""
    r"""(?P<bare>[^\n]+?)(?=\\*["'](?:[\s,}\]]|$)|\r|$)""",
    re.IGNORECASE,
)
_URL = re.compile(r"(?P<scheme>\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://)(?P<user>[^\s/:@\"'<>]*)(?P<password>:[^\s/\"'<>]*)?@")
# net use \\server\share PASSWORD /user:NAME
_NET_USE = re.compile(r"(?P<before>\buse\s+(?:[A-Za-z]:\s+)?\\\\+\S+\s+)(?P<value>(?!/)\S+)", re.IGNORECASE)
_SECURE_STRING = re.compile(
    r"(?P<before>ConvertTo-SecureString\s+(?:-\w+\s+)*?)(?P<value>'[^']*'|\"[^\"]*\"|(?!-)\S+)", re.IGNORECASE
)
_AFTER = rf"\g<before>{HIDDEN}"
# Tokens that are known by their form: JSON web tokens, OpenShift, AWS, GitHub, GitLab, Slack, Google, Vault, kubeadm, Azure SAS.
_TOKENS = re.compile(
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"
    r"|\bsha256~[A-Za-z0-9_-]{20,}"
    r"|\b(?:AKIA|ASIA|AROA)[0-9A-Z]{16}\b"
    r"|\bgh[pousr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}"
    r"|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9._-]{10,}|\bhvs\.[A-Za-z0-9_-]{20,}"
    r"|(?<![\w.-])[a-z0-9]{6}\.[a-z0-9]{16}(?![\w.-])"
    r"|(?<=[?&;])(?:sig|X-Amz-Signature|X-Amz-Credential|X-Amz-Security-Token|X-Goog-Signature)=[^&\s\"'<>]+",
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/_-]{16,}={0,2}")
_MORE_LINES = re.compile(r"(?:(?:\r?\n|\\r\\n|\\n)[ \t]*[A-Za-z0-9+/_-]{4,}={0,2}(?=[\s\"'\\]|$))+")
_GAPS = re.compile(r"(?:\s|\\[rn])+")
_DEPTH = 3

# Copies of an object's manifest, and its field managers.
_REPEATED = ("kubectl.kubernetes.io/last-applied-configuration", "managedFields")


class Redactor:
    """Replaces secrets. known: values that are secrets wherever they stand."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        whole = {one.strip() for given in known for one in (given, *given.splitlines())}
        self._known = tuple(sorted((one for one in whole if len(one) >= _LEAST), key=len, reverse=True))
        plain = {form for one in self._known for form in _forms(one)}
        self._plain = tuple(sorted(plain, key=len, reverse=True))
        self._folded = tuple(
            sorted({form for one in self._known for form in _folded_forms(one)}, key=len, reverse=True)
        )
        self._cores = tuple(sorted({core for one in self._known for core in _cores(one)}, key=len, reverse=True))

    def text(self, text: str) -> str:
        """The same text without secrets. Once more changes nothing."""
        return self._text(text, _DEPTH)

    def raw(self, raw: bytes) -> str:
        """The bytes of a log as text without secrets, which does nothing to a terminal."""
        return harmless(self.text(decoded(raw)))

    def data(self, value: Any, name: str = "") -> Any:
        """The same for a structure that JSON is made of, such as an object of the API. name: the key that it stands under."""
        if isinstance(value, Mapping):
            return self._mapping(value)
        if isinstance(value, (list, tuple)):
            hidden = self._flags(value) if all(isinstance(one, str) for one in value) else {}
            return [HIDDEN if at in hidden else self.data(one, name) for at, one in enumerate(value)]
        if value is None or isinstance(value, bool):
            return value
        if name and is_secret(name) and str(value).lower() not in _PLAIN_VALUES:
            return HIDDEN
        return self.text(value) if isinstance(value, str) else value

    def _mapping(self, value: Mapping[str, Any]) -> dict[str, Any]:
        found = {}
        of_secret = value.get("kind") == "Secret"
        entry = is_secret(str(value["name"])) if set(value) >= {"name", "value"} else False
        for key, one in value.items():
            if key in _REPEATED:
                found[str(key)] = LEFT_OUT
            elif (of_secret and key in ("data", "stringData")) or (entry and key == "value"):
                found[str(key)] = HIDDEN
            else:
                found[self.text(str(key))] = self.data(one, str(key))
        return found

    def _flags(self, words: Sequence[str]) -> set[int]:
        """The places of values that stand behind a flag of a secret."""
        return {
            at + 1
            for at, word in enumerate(words[:-1])
            if word.startswith(("-", "/")) and "=" not in word and is_secret(word.lstrip("-/"))
        }

    def _text(self, text: str, depth: int) -> str:
        text = (
            _WIDE.sub(_narrow, text.replace(_CARRIED_NUL, "\x00")) if "\x00" in text or _CARRIED_NUL in text else text
        )
        text = self._without_known(text)
        if "PRIVATE KEY" in text:
            text = _REST_OF_KEY.sub(HIDDEN, _PRIVATE_KEY.sub(HIDDEN, text))
        for shape in (_YAML_BLOCK, _ENTRY):
            text = shape.sub(_hide_value, text)
        text = _TOKENS.sub(HIDDEN, "\n".join(map(_line, text.split("\n"))))
        return self._without_encoded(text, depth) if depth else text

    def _without_known(self, text: str) -> str:
        for form in self._plain:
            if form in text:
                text = text.replace(form, HIDDEN)
        if self._folded:
            lower = text.lower()
            for form in self._folded:
                if form in lower:
                    text = re.sub(re.escape(form), HIDDEN, text, flags=re.IGNORECASE)
                    lower = text.lower()
        if self._cores:
            squeezed = _GAPS.sub("", text)
            for core in self._cores:
                if core in squeezed:
                    text = re.sub(_with_gaps(core), HIDDEN, text)
        return text

    def _without_encoded(self, text: str, depth: int) -> str:
        """Without Base64 that holds a secret."""
        parts, at = [], 0
        while (found := _BASE64.search(text, at)) is not None:
            end = found.end()
            more = _MORE_LINES.match(text, end)
            parts.append(text[at : found.start()])
            if more and self._holds_secret(_GAPS.sub("", found[0] + more[0]), depth):
                parts.append(HIDDEN)
                end = more.end()
            else:
                parts.append(HIDDEN if self._holds_secret(found[0], depth) else found[0])
            at = end
        return "".join([*parts, text[at:]])

    def _holds_secret(self, token: str, depth: int) -> bool:
        return any(self._text(inside, depth - 1) != inside for inside in _inside(token))


def _line(line: str) -> str:
    """A line without what stands behind the name of a secret, in a header or in a URL."""
    if "://" in line and "@" in line:
        line = _URL.sub(_hide_user, line)
    lower = line.lower()
    if not any(word in lower for word in _WORDS):
        return line
    if _NAMED.search(line):
        for shape in (_HEADER_LINE, *((_REGISTRY,) if "REG_" in line else ()), _FLAG, _PAIR, _YAML_LINE):
            line = shape.sub(_hide_value, line)
    line = _HEADER.sub(lambda found: f"{found['before'] or found['schemed']}{HIDDEN}", line)
    return _SECURE_STRING.sub(_AFTER, _NET_USE.sub(_AFTER, line))


def _narrow(found: re.Match[str]) -> str:
    return found[0].replace("\x00", "")


def _hide_value(found: re.Match[str]) -> str:
    groups = found.groupdict()
    # Of an entry the value of "name" is what says it.
    name = re.split(r"[:,]", groups["name"])[-1].strip(" \t-\\\"'")
    value = groups.get("quoted") or groups.get("bare") or groups.get("block") or ""
    if not is_secret(name) or value.strip().lower() in _PLAIN_VALUES:
        return found[0]
    if groups.get("block") is not None:
        return f"{groups['indent']}{groups['name']}{groups['between']}{' ' * len(groups['indent'])}  {HIDDEN}\n"
    mark = groups.get("q") or ""
    return f"{groups['name']}{groups['between']}{mark}{HIDDEN}{mark}"


def _hide_user(found: re.Match[str]) -> str:
    if found["password"] is not None:
        return f"{found['scheme']}{found['user']}:{HIDDEN}@"
    # A token may stand alone; the account of git does too.
    return found[0] if found["user"] in ("", "git", HIDDEN) else f"{found['scheme']}{HIDDEN}@"


def _forms(secret: str) -> Iterator[str]:
    """How a text writes a secret."""
    yield secret
    for ascii_only in (True, False):
        escaped = json.dumps(secret, ensure_ascii=ascii_only)[1:-1]
        yield escaped
        # JSON in JSON.
        yield json.dumps(escaped)[1:-1]
    yield from (html.escape(secret), html.escape(secret, quote=False), html.escape(secret).replace("&#x27;", "&apos;"))
    yield html.escape(secret).replace("&#x27;", "&#39;").replace("&quot;", "&#34;")
    yield secret.replace("'", "'\\''")
    yield secret.replace("'", "''")
    yield secret.replace('"', '""')
    # What cmd.exe and shells put before a character that means something to them.
    yield re.sub(r"([&|<>^%!()])", r"^\1", secret)
    yield re.sub(r"(\W)", r"\\\1", secret)


def _folded_forms(secret: str) -> Iterator[str]:
    """Forms in which the case of letters means nothing, in lower case."""
    for one in (quote(secret, safe=""), quote(secret), quote_plus(secret)):
        if one != secret:
            yield one.lower()
            # In the query of a URL that is itself quoted.
            yield quote(one, safe="").lower()
    for raw in (secret.encode("utf-8", "replace"), secret.encode("utf-16-le", "replace")):
        if len(raw) >= 6:
            yield raw.hex()


def _cores(secret: str) -> Iterator[str]:
    """What Base64 makes of a secret wherever it stands in the bytes, without the characters that depend on its neighbours."""
    encoded = [secret.encode("utf-8", "replace"), secret.encode("utf-16-le", "replace")]
    for one in (*encoded, *map(base64.b64encode, encoded)):
        for before in range(3):
            last = len(one) - (len(one) + before) % 3
            text = base64.b64encode(b"\0" * before + one[:last]).decode("ascii")
            core = text[(0, 2, 3)[before] :].rstrip("=")
            if len(core) >= 6:
                yield core
                yield core.replace("+", "-").replace("/", "_")


def _with_gaps(core: str) -> str:
    """The whole piece of Base64 that holds it, in one line or several."""
    gap = r"(?:\s|\\[rn])*"
    return rf"[A-Za-z0-9+/_-]*{gap.join(map(re.escape, core))}[A-Za-z0-9+/_-]*={{0,2}}"


def _inside(token: str) -> Iterator[str]:
    """What a piece of Base64 may say, as text."""
    bare = token.rstrip("=").replace("-", "+").replace("_", "/")
    if len(bare) % 4 == 1:
        bare = bare[:-1]
    try:
        raw = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        return
    for encoding in ("utf-16-le", "utf-8") if raw[1:2] == b"\0" else ("utf-8",):
        try:
            text = raw.decode(encoding)
        except UnicodeDecodeError:
            continue
        if _is_text(text):
            yield text


def _is_text(text: str) -> bool:
    return bool(text) and all(one.isprintable() or one in "\r\n\t" for one in text)
