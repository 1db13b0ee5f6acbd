# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that announce a secret, and the secrets in a kubeconfig. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

# As a part of a name.
_PARTS = re.compile(
    r"passw|passphrase|passcode|passkey|secret|token|credential|assertion|signature|cookie|authorization|authentication-?value"
    r"|private[_.-]?key|key-?data|connection[_.-]?string|access[_.-]?key|account[_.-]?key|api[_.-]?key|x-auth|session[_.-]?id|htpasswd"
    r"|dockerconfig|dockercfg|user[_.-]?data|securestring|licen[sc]e[_.-]?key|storage[_.-]?key|pull[_.-]?secret",
    re.IGNORECASE,
)
# As a word of a name.
_WORDS_TEXT = """
pass pwd passwd pw pword psk cred creds bearer jwt otp totp apikey passin passout storepass keypass userpass
"""
_LAST = tuple([word] for word in ("auth", "sas", "sig", "hmac", "salt", "dsn", "pat", "rp", "community"))
_WORDS = frozenset(_WORDS_TEXT.split())
_KEYS_TEXT = """
private access account api shared storage session encryption auth client license ssh signing master primary secondary instrumentation
subscription tls host deploy service webhook validation decryption machine
"""
_KEYS = frozenset(_KEYS_TEXT.split())
# What a name is about, if it ends so: the place of a secret, or a property of it.
_PROPERTY = re.compile(
    r"(?:names?|refs?|namespaces?|files?|paths?|dir|directory|seconds|policy|types?|mode|count|class|kind|requests?|review|expiry|expires?"
    r"|prompt|provider|providers|manager|controller|volume|mount|error|status|driver|enabled|disabled|token-?server|created|updated"
    r"|expiration|timestamp|required|requires|republish|length|ttl|issuer|endpoint|url|host|port|algorithm|method)$",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Not a name of a secret, although a part of it is: the current and the former directory.
_DIRECTORIES = frozenset(["pwd", "oldpwd"])

# Names of secrets in a kubeconfig: keys of a user and of its auth-provider, variables and flags of an exec plugin. The texts of all
# other keys stay readable, since a region or a release that were hidden would be hidden in the names of nodes too.
_OF_KUBECONFIG = re.compile(
    r"token$|secret|pass|credential|assertion|private|key-data$|(?<!client-)key$", re.IGNORECASE
)


@lru_cache(maxsize=50_000)
def is_secret(name: str) -> bool:
    """Whether the value under this name is a secret."""
    name = name.rpartition("/")[2]
    words = [word.lower() for word in _SPLIT.findall(name)]
    named = _PARTS.search(name) or not _WORDS.isdisjoint(words) or words[-1:] in _LAST or _is_key(words)
    return bool(named) and not _PROPERTY.search(name.rstrip("\"'`] "))


def _is_key(words: Sequence[str]) -> bool:
    return any(word in ("key", "keys") and before in _KEYS for before, word in pairwise(words))


def is_secret_variable(name: str) -> bool:
    """Whether an environment variable or a variable of Ansible holds a secret."""
    return name.lower() not in _DIRECTORIES and is_secret(name)


def list_texts(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from list_texts(item)
    elif value is not None and not isinstance(value, bool) and str(value):
        yield str(value)


def list_kubeconfig_secrets(value: Any) -> Iterator[str]:
    """The texts in a kubeconfig that are secrets (client-go, tools/clientcmd/api/v1/types.go)."""
    if isinstance(value, Mapping):
        # An entry of an exec plugin's environment.
        if set(value) == {"name", "value"} and _OF_KUBECONFIG.search(str(value["name"])):
            yield from list_texts(value["value"])
        for name, item in value.items():
            yield from list_texts(item) if _OF_KUBECONFIG.search(str(name)) else list_kubeconfig_secrets(item)
        if isinstance(value.get("args"), (list, tuple)):
            yield from _list_flag_secrets([str(item) for item in value["args"]])
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from list_kubeconfig_secrets(item)


def _list_flag_secrets(words: Sequence[str]) -> Iterator[str]:
    for word, following in zip(words, [*words[1:], ""], strict=True):
        flag, equals, text = word.partition("=")
        if flag.startswith("-") and _OF_KUBECONFIG.search(flag) and (text or following):
            yield text if equals else following
