# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small blocking client of the lab's API server, for set-up and tests."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import urllib3

Object = dict[str, Any]
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"


class ApiError(RuntimeError):
    """An answer other than success: `status` is HTTP's, `reason` Kubernetes' word for it."""

    def __init__(self, method: str, path: str, status: int, body: bytes) -> None:
        try:
            answer: Object = json.loads(body)
        except ValueError:
            answer = {}
        self.status = status
        self.reason = str(answer.get("reason", ""))
        self.message = str(answer.get("message") or body[:300].decode(errors="replace"))
        super().__init__(f"{method} {path}: {status} {self.reason}: {self.message}")


class Api:
    """`https://` API server with the lab's CA, as the holder of a client certificate or a token."""

    def __init__(self, server: str, ca: Path, certificate: Path | None = None, token: str = "") -> None:
        self.server = server
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._pool = urllib3.PoolManager(
            ca_certs=str(ca),
            cert_reqs="CERT_REQUIRED",
            cert_file=str(certificate) if certificate else None,
            key_file=str(certificate.with_suffix(".key")) if certificate else None,
            maxsize=16,
            retries=False,
        )

    def request(
        self,
        method: str,
        path: str,
        body: Object | None = None,
        content_type: str = "application/json",
        timeout: float = 30,
    ) -> bytes:
        headers = {**self._headers, "Accept": "application/json"}
        content = None
        if body is not None:
            headers["Content-Type"] = content_type
            content = json.dumps(body).encode()
        answer = self._pool.request(method, self.server + path, body=content, headers=headers, timeout=timeout)
        if answer.status >= 300:
            raise ApiError(method, path, answer.status, answer.data)
        return answer.data

    def get(self, path: str) -> Object:
        found: Object = json.loads(self.request("GET", path))
        return found

    def find(self, path: str) -> Object | None:
        """The object if it exists."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return None

    def items(self, path: str) -> list[Object]:
        found: list[Object] = self.get(path)["items"]
        return found

    def watch(self, path: str, seconds: int) -> Iterator[tuple[str, Object]]:
        """RESET with a fresh list of a collection, then its events for so many seconds after the last one began."""
        listed = self.get(path)
        yield "RESET", listed
        query = f"watch=1&timeoutSeconds={seconds}&resourceVersion={listed['metadata']['resourceVersion']}"
        with self._pool.request(
            "GET", f"{self.server}{path}?{query}", headers=self._headers, timeout=seconds + 30, preload_content=False
        ) as answer:
            if answer.status >= 300:
                raise ApiError("GET", path, answer.status, answer.data)
            buffer = b""
            for chunk in answer.stream(65536):
                *lines, buffer = (buffer + chunk).split(b"\n")
                for event in map(json.loads, lines):
                    if event["type"] == "ERROR":
                        return
                    yield event["type"], event["object"]

    def post(self, path: str, body: Object) -> Object:
        made: Object = json.loads(self.request("POST", path, body))
        return made

    def patch(self, path: str, body: Object, content_type: str = MERGE) -> Object:
        made: Object = json.loads(self.request("PATCH", path, body, content_type))
        return made

    def delete(self, path: str, body: Object | None = None) -> None:
        self.request("DELETE", path, body)

    def ensure(self, path: str, body: Object) -> Object:
        """Create the object unless one of that name exists; answers what is there."""
        try:
            return self.post(path, body)
        except ApiError as error:
            if error.status != 409:
                raise
            return self.get(f"{path}/{body['metadata']['name']}")

    def gone(self, path: str) -> None:
        """Delete the object if it exists."""
        try:
            self.delete(path)
        except ApiError as error:
            if error.status != 404:
                raise

    def ok(self, path: str) -> bool:
        """Does a GET succeed? Connection trouble and refusals are both no."""
        try:
            self.request("GET", path)
        except (ApiError, urllib3.exceptions.HTTPError):
            return False
        return True


def kubeconfig(server: str, ca: Path, user: str, credentials: Mapping[str, str], namespace: str = "default") -> Object:
    """A kubeconfig whose user is `credentials` (token, or client-certificate and client-key as paths)."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "lab", "cluster": {"server": server, "certificate-authority": str(ca)}}],
        "users": [{"name": user, "user": dict(credentials)}],
        "contexts": [{"name": "lab", "context": {"cluster": "lab", "user": user, "namespace": namespace}}],
        "current-context": "lab",
    }
