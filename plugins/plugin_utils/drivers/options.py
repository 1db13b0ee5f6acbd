# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options that no cluster would take, found before anything is changed anywhere. Pure.

The API server refuses them too, but only when the node plugin is applied, and then hosts may have been changed already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from ..base.findings import Finding, blocker
from ..base.text import join_lines
from .plan_inputs import DriverRequest

# https://kubernetes.io/docs/concepts/overview/working-with-objects/names/
NAMESPACE_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
OBJECT_NAME = re.compile(r"(?=.{1,253}\Z)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_IMAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128}")
_KEY = re.compile(r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?")
_VALUE = re.compile(r"([A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")
_SHARE = re.compile(r"[0-9]+%?")
_QUANTITY = re.compile(r"[0-9]+([.][0-9]+)?(m|[KMGTPE]i|[kMGTPE])?")
_WINDOWS_PATH = re.compile(r'[A-Za-z]:\\[^"*?<>|/]*')

_NAMESPACE = "expected a namespace name: at most 63 lower-case letters, digits and '-'"
_OBJECT = "expected an object name: at most 253 lower-case letters, digits, '-' and '.'"
TOLERATION = (
    "expected key, operator (Exists without value; Equal), value, effect (NoSchedule, PreferNoSchedule, NoExecute) and, with NoExecute, "
    "tolerationSeconds"
)
_TOLERATION: dict[str, Callable[[Any], bool]] = {
    "key": lambda value: isinstance(value, str),
    "operator": lambda value: value in ("Exists", "Equal"),
    "value": lambda value: isinstance(value, str),
    "effect": lambda value: value in ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "tolerationSeconds": lambda value: isinstance(value, int) and not isinstance(value, bool),
}


def check_options(desired: DriverRequest) -> Iterator[Finding]:
    """A blocker for each option that cannot be."""
    for option, value, why in _list_wrong_values(desired):
        yield blocker("CSI-D08", f"{option} {_show_value(value)}", why, f"correct {option}")


def is_toleration(toleration: Mapping[str, Any]) -> bool:
    """Whether the API server takes it as a toleration of a pod (ValidateTolerations in pkg/apis/core/validation)."""
    if not all(field in _TOLERATION and _TOLERATION[field](value) for field, value in toleration.items()):
        return False
    if "tolerationSeconds" in toleration and toleration.get("effect") != "NoExecute":
        return False
    key, value = toleration.get("key", ""), toleration.get("value", "")
    if key and not _KEY.fullmatch(key):
        return False
    return not value if toleration.get("operator") == "Exists" else bool(key and _VALUE.fullmatch(value))


def _list_wrong_values(desired: DriverRequest) -> Iterator[tuple[str, Any, str]]:
    """Option, value and what is expected."""
    checks: list[tuple[re.Pattern[str], str, Iterable[tuple[str, Any]]]] = [
        (NAMESPACE_NAME, _NAMESPACE, [("namespace", desired.namespace)]),
        (OBJECT_NAME, _OBJECT, [("priority_class", desired.priority_class), ("storage_class.name", desired.storage_class.get("name"))]),
        (OBJECT_NAME, _OBJECT, [("image_pull_secrets", name) for name in desired.image_pull_secrets]),
        (_IMAGE, "expected an image reference", [("image_mirror", desired.image_mirror), *_list_role_values("images", desired.images)]),
        (_DIGEST, "expected sha256: and 64 hexadecimal digits", _list_role_values("image_digests", desired.image_digests)),
        (_SHARE, "expected a number of nodes or a percentage", [("max_unavailable", desired.max_unavailable)]),
        (_WINDOWS_PATH, "expected a path on Windows, such as C:\\var\\lib\\kubelet", [("kubelet_dir", desired.kubelet_dir)]),
    ]  # fmt: skip
    for pattern, why, values in checks:
        for option, value in values:
            if value and not pattern.fullmatch(str(value)):
                yield option, value, why
    for key, value in desired.node_selector.items():
        if not (_KEY.fullmatch(str(key)) and isinstance(value, str) and _VALUE.fullmatch(value)):
            text = "expected a label and its value as text; quote what YAML reads as a number or boolean"
            yield "node_selector", f"{key}={value}", text
    for role, kinds in desired.resources.items():
        for kind, amounts in kinds.items():
            if kind not in ("requests", "limits") or not isinstance(amounts, Mapping):
                yield f"resources.{role}", kind, "expected requests and limits, each with quantities by resource"
                continue
            for name, amount in amounts.items():
                if not _QUANTITY.fullmatch(str(amount)):
                    yield f"resources.{role}.{kind}.{name}", amount, "expected a quantity such as 100m or 200Mi"
    for toleration in desired.tolerations or ():
        if not is_toleration(toleration):
            yield "tolerations", dict(toleration), TOLERATION


def _show_value(value: Any) -> Any:
    """What a line cannot show, as Python writes it: a line end, blanks at an end."""
    return repr(value) if isinstance(value, str) and value != join_lines(value) else value


def _list_role_values(option: str, by_role: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return [(f"{option}.{role}", value) for role, value in by_role.items()]
