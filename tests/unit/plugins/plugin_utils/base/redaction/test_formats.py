# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret survives in a format of a log, a configuration or a command, whatever carries it, although the redactor does not know its value."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.base.redaction.redactor import Redactor
from unit.plugins.plugin_utils.base.redaction.reader import Format, part_survives, read_formats

CASES = read_formats()
LETTERS = "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"
# Keys of Azure, hexadecimal keys and tokens look random; people's passwords do not.
RANDOM: tuple[Callable[[random.Random], str], ...] = (
    lambda draw: "".join(draw.choices(LETTERS, k=20)),
    lambda draw: "".join(draw.choices(f"{LETTERS}+/", k=43)) + "=",
    lambda draw: f"{draw.getrandbits(160):040x}",
)
CHOSEN = ("sommerregen", "Winterabend7", "correcthorse-battery", "Passwort1234")
CARRIERS: dict[str, Callable[[str], str]] = {
    "klog": lambda text: f"I0606 13:04:00.928714    4260 server.go:12] {text}",
    "JSON": lambda text: json.dumps({"level": "info", "msg": text}),
    "klog, a quoted value": lambda text: f'E0606 13:04:00.928714    4260 server.go:12] "Failed" err={json.dumps(text)}',
    "CRI": lambda text: f"2024-05-01T10:00:00.123456789Z stderr F {text}",
    "gRPC": lambda text: f"rpc error: code = Internal desc = {text}",
    "lines of Windows": lambda text: text.replace("\n", "\r\n"),
    "UTF-16": lambda text: text.encode("utf-16-le").decode("latin-1"),
}  # fmt: skip


def planted(case: Format, draw: random.Random) -> list[str]:
    """Secrets as they may stand in this format."""
    secrets = [make(draw) for make in RANDOM]
    if "://" in case.text:
        secrets = [secret for secret in secrets if "/" not in secret]
    return secrets if case.unnamed else [*secrets, *CHOSEN]


def test_the_corpus_has_its_size() -> None:
    assert len(CASES) >= 350
    assert len({case.title for case in CASES}) == len(CASES)
    assert all(case.text.count("@@") >= 1 for case in CASES)


@pytest.mark.parametrize("name", ["kubernetes", "windows", "urls", "alone"])
def test_no_planted_secret_survives(name: str) -> None:
    leaks = []
    redactor, draw = Redactor(), random.Random(7)
    for case in CASES:
        if not case.title.startswith(name):
            continue
        secrets = planted(case, draw)
        texts = [(case.plant(secret), secret) for secret in secrets]
        texts += [
            (carry(case.plant(secret)), secret)
            for carry, secret in zip(CARRIERS.values(), [*secrets, *secrets], strict=False)
        ]
        for text, secret in texts:
            shown = redactor.redact_log(text)
            if part := part_survives(secret, shown):
                leaks.append((case.title, part, text, shown))
    assert not leaks


@pytest.mark.parametrize("carrier", CARRIERS)
def test_no_planted_secret_survives_in_a_log_of_all_formats(carrier: str) -> None:
    """Neighbours do not change what is hidden: one log of all cases, one after the other."""
    draw = random.Random(carrier)
    chosen = [(case, draw.choice(planted(case, draw))) for case in CASES]
    shown = Redactor().redact_log("\n".join(CARRIERS[carrier](case.plant(secret)) for case, secret in chosen))
    assert not [
        (case.title, secret)
        for case, secret in chosen
        if any(secret[at : at + 8] in shown for at in range(len(secret) - 7))
    ]


def test_words_that_were_shown_before_are_no_password_elsewhere() -> None:
    """Each word of the last line stands in a sentence above, and the last of them is joe's password there."""
    shown = Redactor().redact_log(
        "net user joe is sommerregen\nnet and user and joe and sommerregen\nnet user joe sommerregen"
    )
    assert shown.splitlines()[2] == "net user <str, 15>"


def test_random_letters_that_happen_to_read_like_words_are_rare() -> None:
    redactor, draw = Redactor(), random.Random(7)
    texts = ["".join(draw.choices(LETTERS, k=20)) for _count in range(5000)]
    assert sum(redactor.redact_log(text) == text for text in texts) < 8


@pytest.mark.parametrize(
    "text",
    [
        "mysql -ujoe -p@@ db",
        "curl -sSu joe:@@ https://host/x",
        'Content-Disposition: form-data; name="password"\r\n\r\n@@',
        "password=@@",
        "password: none, @@",
        "password=null @@==",
    ],
)
def test_a_message_hides_what_is_named_although_it_is_a_word(text: str) -> None:
    assert "Sommerregen" not in Redactor().redact_message(text.replace("@@", "Sommerregen"))
