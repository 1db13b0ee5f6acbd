# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Those commands of kubectl that the README shows, for machines without one; what they do is done by a real API server.

As kubectl: KUBECONFIG names the file, whose context has files for its credentials. Any other option is an error.
"""

from __future__ import annotations

import argparse
import base64
import os
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from lab.cluster.api import APPLY, Api

RBAC = "/apis/rbac.authorization.k8s.io/v1"


def options() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="kubectl", allow_abbrev=False)
    parser.add_argument("-n", dest="namespace", default="default")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("apply").add_argument("-f", dest="files", action="append", type=Path, required=True)
    create = commands.add_parser("create").add_subparsers(dest="what", required=True)
    for what in ("namespace", "serviceaccount", "token", "clusterrolebinding", "rolebinding"):
        create.add_parser(what).add_argument("name")
    create.choices["token"].add_argument("--duration", required=True)
    for what in ("clusterrolebinding", "rolebinding"):
        create.choices[what].add_argument("--clusterrole", required=True)
        create.choices[what].add_argument("--serviceaccount", required=True)
    view = commands.add_parser("config").add_subparsers(dest="what", required=True).add_parser("view")
    for needed in ("--raw", "--minify", "--flatten"):
        view.add_argument(needed, action="store_true", required=True)
    view.add_argument("-o", dest="output", required=True)
    return parser.parse_args()


def binding(asked: argparse.Namespace) -> dict[str, Any]:
    """A binding of the command line, without its kind."""
    namespace, name = asked.serviceaccount.split(":")
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "metadata": {"name": asked.name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": asked.clusterrole},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": name}],
    }


def create(api: Api, asked: argparse.Namespace) -> str:
    """Create one object, or ask for a token."""
    metadata, inside = {"name": asked.name}, f"/api/v1/namespaces/{asked.namespace}"
    if asked.what == "namespace":
        api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    elif asked.what == "serviceaccount":
        body = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        api.post(f"{inside}/serviceaccounts", body)
    elif asked.what == "token":
        seconds = int(asked.duration.removesuffix("h")) * 3600
        body = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        }
        made = api.post(f"{inside}/serviceaccounts/{asked.name}/token", body)
        return str(made["status"]["token"])
    elif asked.what == "clusterrolebinding":
        api.post(f"{RBAC}/clusterrolebindings", {**binding(asked), "kind": "ClusterRoleBinding"})
    else:
        api.post(f"{RBAC}/namespaces/{asked.namespace}/rolebindings", {**binding(asked), "kind": "RoleBinding"})
    return f"{asked.what}/{asked.name} created"


def apply(api: Api, files: list[Path]) -> str:
    """Apply the ClusterRoles of these files."""
    text = []
    for path in files:
        for found in yaml.safe_load_all(path.read_text(encoding="utf-8")):
            for item in found["items"] if found["kind"] == "List" else [found]:
                assert item["kind"] == "ClusterRole", item["kind"]
                name = item["metadata"]["name"]
                api.patch(f"{RBAC}/clusterroles/{name}?fieldManager=kubectl&force=true", item, APPLY)
                text.append(f"clusterrole/{name} applied")
    return "\n".join(text)


def main() -> None:
    """Run it, and print that."""
    asked = options()
    config = yaml.safe_load(Path(os.environ["KUBECONFIG"]).read_text(encoding="utf-8"))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    ca = Path(cluster["certificate-authority"])
    if asked.command == "config":
        shown = {"server": cluster["server"], "certificate-authority-data": base64.b64encode(ca.read_bytes()).decode()}
        found = re.fullmatch(r"\{\.clusters\[0\]\.cluster\.([a-z-]+)\}", asked.output.removeprefix("jsonpath="))
        assert found, asked.output
        sys.stdout.write(shown[found[1]])
        return
    api = Api(cluster["server"], ca, Path(user["client-certificate"]))
    print(apply(api, asked.files) if asked.command == "apply" else create(api, asked))


if __name__ == "__main__":
    main()
