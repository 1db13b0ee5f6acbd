# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which words of a log are harmless: words of a language, numbers, codes, paths and names of the cluster. Pure.

A word is kept if its shape is known; everything else may be a secret and is replaced by its length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import unquote

# Surprise in bits, 0 to 9, of a letter (column: a to z, end of the word) behind another (row: begin of the word, a to z), counted
# over the 13,395 words of Kubernetes' API types and API server and of Python's library. English and its technical words average below 4.4.
_SURPRISE_TEXT = """
343444554764455374345557889 743487594963439483325676684 355636773572663784463898593 375537834944672794535899693 466526792885774785465789691
474365697984537562348674792 465633692994663784544998692 496727544995644793465789781 287729893976673794545788582 553445499984413595339596955
275525965557593567363649782 476517593775556676355769691 376527792973873698455799492 257627893975583388464898793 384335274966764787325599792
654476596854425492444557894 376627754963783492435889593 576646666793677765460579673 375527693966553695445689592 594736743975675477424779691
385726842986784693455879592 444545594993426493339997996 265717772988674886679999793 276637632966643793468967892 463636863996565277627686592
665757695895445386449668670 377717763997684686765786652
"""
_SURPRISE = _SURPRISE_TEXT.split()
_LONG, _SHORT, _MOST = 4.4, 5.3, 40

_HEX, _UUID = r"[0-9a-fA-F]", r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"
# The alphabet of suffixes that Kubernetes generates (apimachinery, pkg/util/rand).
_SUFFIX = r"[bcdfghjklmnpqrstvwxz2456789]"
_SHAPE = re.compile(
    rf"""[-+]?\d{{1,20}}(?:[.,]\d{{1,12}})*(?:%|[a-zA-Zµ]{{1,3}})?            # a number, also with a unit
    |(?:\d+(?:\.\d+)?(?:h|m|s|ms|us|µs|ns))+                             # a duration of Go
    |-?0[xX]{_HEX}{{1,16}}                                               # an HRESULT, a status of NT
    |\d{{4}}[-/]\d\d[-/]\d\d(?:[T_]?\d\d(?::?\d\d)*(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\d\d(?::\d\d)+(?:\.\d+)?Z?   # a time
    |v?\d+(?:\.\d+)+(?:[-+.](?:alpha|beta|rc|gke|eks|rke2|k3s|r|win|windows|hostprocess|build|amd64|ltsc|nanoserver|servercore)[-.\dr]{{0,12}}|-{_HEX}{{12}})*
    |v\d{{1,3}}(?:(?:alpha|beta)\d{{1,2}})?                               # a version of an API
    |\d{{1,3}}(?:\.\d{{1,3}}){{3}}(?:/\d{{1,2}})?|(?:{_HEX}{{0,4}}:){{2,7}}{_HEX}{{0,4}}|(?:{_HEX}{{2}}[:-]){{5}}{_HEX}{{2}}   # addresses
    |sha256:{_HEX}{{64}}                                                   # a digest
    |S-1-\d{{1,2}}(?:-\d{{1,10}}){{1,14}}                                   # a SID
    |(?:pvc|pv|snapshot|snapcontent|vol|volume|pod|csi-vol)-{_UUID}|csi-{_HEX}{{64}}   # names that Kubernetes generates
    |(?:vol|fs|fsap|fsmt|snap|subnet|vpc|eni|sg|ami|i)-{_HEX}{{8}}(?:{_HEX}{{9}})?|(?:naa\.)?6000c29{_HEX}{{25}}   # ids of AWS; disks of VMware
    |[a-z][a-z0-9]*(?:-[a-z0-9]{{1,12}}){{0,5}}?(?:-{_SUFFIX}{{7,10}})?-{_SUFFIX}{{5}}   # a pod of a Deployment or a DaemonSet
    |(?:k8s|k3s|rke2|s3|ec2|x64|x86|amd64|arm64|utf-?8|sha1|sha256|sha512|md5|base64|ipv[46]|http2?)
    |(?:win(?:dows)?\d{{1,4}}|ltsc\d{{4}}|u?int\d{{1,2}}|ext[34]|W3SVC|W32Time)
    |0|[^\w\s]{{1,8}}
    """,
    re.VERBOSE,
)
_GUID = re.compile(_UUID)
_MARK = re.compile(r"<\w{1,10}, \d+>|\(redacted\)")
_LONG_HEX = re.compile(rf"{_HEX}{{32,64}}")
# The plural of an acronym is two pieces: PVCs, URLs.
_PIECE = re.compile(r"[A-Z]{2,}(?=s(?![a-z]))|[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\x00-\x7f]+")
_NUMBERED = re.compile(r"[a-zA-Z]{1,5}\d{1,2}|[a-zA-Z]{1,5}\d{1,2}[a-z]|[a-zA-Z]\d{3}")
_CAMEL_TEXT = """
a i x id of in to on is it io os fs gi mi ki my no by at up do go if or ns db ip un re pv vm rw ro me us uu be ms ui cl ci cd we as an ec kb
mb gb st nd rd th tl hn hk lm cu ad dc tz s
"""
_CAMEL = frozenset(_CAMEL_TEXT.split())
# Words of Kubernetes and of English that do not read like the words that were counted.
_RARE = frozenset(["webhook", "yourself"])
# A contraction, or whose something is: don't, driver's.
_APOSTROPHE = re.compile(r"([A-Za-z]+)'(?:s|t|d|m|re|ve|ll)")
_TRAILING = ".:!?*,;'"
_LEADING = "*$%~-+."
# Parts of a path behind which an id stands: of a pod, a container, an Azure subscription, a volume's device, a driver's volume.
_BEFORE_ID = re.compile(
    r"(?i)(?:pods|containers|subscriptions|sandboxes|volumes?|tenants|[\w-]+(?:\.[\w-]+)*\.(?:com|io|org)|io\.containerd.*|volumeattachments|mounts)"
)
_LONGEST = 8192
_SEPARATORS = re.compile(r"([\\/]+)")
_HARMLESS_PARAMETERS_TEXT = """
timeout timeoutSeconds allowWatchBookmarks resourceVersion fieldSelector labelSelector limit watch api-version container follow fieldManager
force pretty continue sendInitialEvents resourceVersionMatch
"""
_HARMLESS_PARAMETERS = frozenset(_HARMLESS_PARAMETERS_TEXT.split())


# Values that say that there is none, which are shown even under the name of a secret.
PLACEHOLDERS = ("true", "false", "null", "none", "nil", "<nil>", "<unset>", "***stripped***", "********", "<redacted>")


def mask(value: str, kind: str = "str") -> str:
    """Replace a value with its kind and length; a value that was replaced before stays."""
    return value if _MARK.fullmatch(value.strip()) else f"<{kind}, {len(value)}>"


def _is_word(word: str) -> bool:
    """Whether letters read like a word of a language."""
    if len(word) <= 4 or word.lower().removesuffix("s") in _RARE:
        return True
    if not word.isascii():
        return len(word) <= 24
    rows = [ord(letter) - 96 for letter in word.lower()]
    bits = sum(
        int(_SURPRISE[row][column]) for row, column in zip([0, *rows], [*(row - 1 for row in rows), 26], strict=True)
    )
    return bits <= (_SHORT if len(word) < 7 else _LONG) * (len(word) + 1)


def _is_words(letters: str) -> bool:
    """Whether letters are one word, or several with capitals: volumeHandle, MSFT, NodeStageVolume."""
    pieces = _PIECE.findall(letters)
    if len(pieces) == 1:
        return len(letters) <= _MOST and _is_word(letters)
    # A random text has many short pieces.
    if len(letters) > 2 * _MOST or len(letters) < (3 if len(pieces) > 3 else 2) * len(pieces):
        return False
    return all(
        _is_word(piece) if len(piece) > 2 else piece.lower() in _CAMEL or at == 0 or piece.isupper()
        for at, piece in enumerate(pieces)
    )


def _is_identifier(text: str) -> bool:
    parts = [part for part in re.split(r"[-_.~#+^|]+", text) if part]
    short = sum(len(part) <= 2 and not part.isdigit() for part in parts)
    if not parts or short > max(2, len(parts) // 2):
        return False
    return all(
        (part.isdigit() and len(part) <= 20)
        or (_is_words(part) if part.isalpha() else _is_numbered(part, len(parts)) or _SHAPE.fullmatch(part) is not None)
        for part in parts
    )


def _is_numbered(part: str, parts: int) -> bool:
    """Whether a part of a name is a word with a number: worker2, disk3."""
    if _NUMBERED.fullmatch(part):
        return True
    if version := re.fullmatch(r"([A-Za-z]{4,})[vV]\d(?:(?:beta|alpha)\d)?", part):
        return _is_words(version[1])
    word = part.rstrip("0123456789")
    return (
        parts > 1
        and len(part) - len(word) <= 2
        and word.isalpha()
        and word.islower()
        and len(word) <= 12
        and _is_word(word)
    )


class Words:
    """Judges words. Names of the cluster's objects are harmless; they are learned as they are read."""

    def __init__(self) -> None:
        self._names: set[str] = set()
        self._shown: dict[str, str] = {}

    def learn(self, names: Iterable[str]) -> None:
        """Names that are harmless wherever they stand."""
        new = {name.lower() for name in names if len(name) > 2} - self._names
        if new:
            self._names |= new
            self._shown.clear()

    def is_name(self, text: str) -> bool:
        return text.lower() in self._names

    def is_plain(self, text: str) -> bool:
        """Whether this is a name, a number, a code, an id or a truth value: harmless under any name of a field."""
        return (
            not text
            or text.lower() in PLACEHOLDERS
            or self.is_name(text)
            or (_SHAPE.fullmatch(text) is not None and not text.isalpha())
        )

    def show(self, word: str) -> str:
        shown = self._shown.get(word)
        if shown is None:
            if len(self._shown) > 200_000:
                self._shown.clear()
            shown = self._shown[word] = self._judge(word)
        return shown

    def _judge(self, word: str) -> str:
        core = word.rstrip(_TRAILING)
        suffix = word[len(core) :]
        start = core.lstrip(_LEADING)
        lead, core = core[: len(core) - len(start)], start
        if len(core) <= 3 or self.is_name(core) or _SHAPE.fullmatch(core):
            return word
        if len(core) > _LONGEST or core.count("@") > 3:
            return lead + mask(core) + suffix
        if "://" in core:
            return lead + self._show_url(core) + suffix
        before, at, host = core.rpartition("@")
        if at:
            return f"{lead}{mask(before) if ':' in before else self.show(before)}@{self.show(host)}{suffix}"
        if "/" in core or "\\" in core:
            return lead + self._show_path(core) + suffix
        if ":" in core:
            return lead + ":".join(self.show(part) for part in core.split(":")) + suffix
        if "%" in core and unquote(core) != core:
            return word if self._judge(unquote(core)) == unquote(core) else mask(word)
        if apostrophe := _APOSTROPHE.fullmatch(core):
            return word if _is_words(apostrophe[1]) else lead + mask(core) + suffix
        return word if _is_identifier(core) else lead + mask(core) + suffix

    def _show_url(self, url: str) -> str:
        scheme, _sign, place = url.partition("://")
        place, mark, query = re.fullmatch(r"([^?#]*)([?#]?)(.*)", place, re.DOTALL).groups()  # type: ignore[union-attr]  # matches every text
        head = re.match(r"[^/\\]*", place)[0]  # type: ignore[index]  # matches every text
        authority, path = (place, "") if "@" in place and "@" not in head else (head, place[len(head) :])
        user, at, host = authority.rpartition("@")
        if ":" in host and at == "" and not re.search(r":\d*$|\]$|^[A-Za-z]:$", host):
            host = mask(host)
        shown = f"{scheme}://{mask(user) + at if at and user != 'git' else user + at}{self.show(host)}{self._show_path(path) if path else ''}"
        pairs = []
        for pair in query.split("&") if query else ():
            name, equals, value = pair.partition("=")
            keep = self.is_plain(value) or (
                name in _HARMLESS_PARAMETERS and self.show(unquote(value)) == unquote(value)
            )
            pairs.append(f"{self.show(name)}{equals}{value if keep and equals else mask(value) if equals else ''}")
        return shown + mark + "&".join(pairs)

    def _show_path(self, path: str) -> str:
        parts, before, lost = _SEPARATORS.split(path), "", 0
        for at in range(0, len(parts), 2):
            part = parts[at]
            if not part:
                continue
            driver, caret, handle = part.rpartition("^")
            is_id = (_GUID.fullmatch(handle) or _LONG_HEX.fullmatch(handle)) and _BEFORE_ID.fullmatch(
                driver if caret else before
            )
            if not is_id:
                parts[at] = self.show(part)
                lost += parts[at] != part
            before = part
        clear = re.match(r"[\\/.$%~]|[A-Za-z]:", path) or "." in parts[0] or len(parts) > 7
        named = len(parts) // 2 + 1
        return mask(path) if lost and (not clear or 2 * lost >= named + 1) else "".join(parts)
