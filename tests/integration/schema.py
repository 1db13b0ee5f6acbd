# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random objects drawn from the API server's own OpenAPI schema, so that fields occur that nobody thought of."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

from lab.cluster.api import Api

Object = dict[str, Any]
# Values of enumerations stand in the descriptions alone.
_ENUMERATION = re.compile(r'`"([A-Za-z][A-Za-z0-9]*)"`')
_WORDS = ("a", "app", "web", "data", "gone", "10.0.0.1", "windows", "linux", "1", "100m")


class ApiSchema:
    """The schemas of one server. pools: values of fields by name, tried beside those that the schema suggests."""

    def __init__(self, api: Api, pools: Mapping[str, Sequence[Any]], path: str = "/openapi/v3/api/v1") -> None:
        self._schemas: Mapping[str, Any] = json.loads(api.request("GET", path))["components"]["schemas"]
        self._pools = pools

    def draw(self, luck: random.Random, name: str, share: float = 0.3, without: frozenset[str] = frozenset()) -> Object:
        """A random object of a schema. share: of the optional fields that are set."""
        drawn = self._draw(luck, {"$ref": f"#/{name}"}, "", share, without)
        assert isinstance(drawn, dict)
        return drawn

    def list_fields(self, name: str) -> tuple[str, ...]:
        """The fields of a schema."""
        return tuple(sorted(self._schemas[name]["properties"]))

    def draw_field(self, luck: random.Random, name: str, field: str, share: float = 0.3) -> Any:
        """A random value of one field."""
        return self._draw(luck, self._schemas[name]["properties"][field], field, share, frozenset())

    def _draw(self, luck: random.Random, schema: Any, field: str, share: float, without: frozenset[str]) -> Any:
        if field in self._pools and luck.random() < 0.9:
            return luck.choice(self._pools[field])
        references = [schema, *(schema.get("allOf") or ())]
        if reference := next((part["$ref"] for part in references if "$ref" in part), ""):
            schema = {**self._schemas[reference.rpartition("/")[2]], "about": schema.get("description", "")}
        if properties := schema.get("properties"):
            required = schema.get("required") or ()
            # The deeper, the fewer, or objects never end.
            return {
                key: self._draw(luck, part, key, share / 2, without)
                for key, part in sorted(properties.items())
                if key not in without and (key in required or luck.random() < share)
            }
        return self._draw_value(luck, schema, field, share, without)

    def _draw_value(self, luck: random.Random, schema: Any, field: str, share: float, without: frozenset[str]) -> Any:
        kind = schema.get("type")
        if kind == "array":
            return [self._draw(luck, schema["items"], f"{field}[]", share, without)]
        if kind == "object":
            values = schema.get("additionalProperties") or {"type": "string"}
            return {luck.choice(("app", "tier")): self._draw(luck, values, f"{field}{{}}", share, without)}
        if kind == "boolean":
            return luck.random() < 0.5
        if kind in ("integer", "number"):
            return luck.choice((0, 1, 5, 80, 1000))
        if "oneOf" in schema or schema.get("format") == "int-or-string":
            return luck.choice((1, 80))
        words = _ENUMERATION.findall(f"{schema.get('description', '')} {schema.get('about', '')}")
        return luck.choice(words or _WORDS)
