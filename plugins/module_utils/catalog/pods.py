# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pod that drivers of the Kubernetes organisations share: csi-driver-smb, azuredisk and azurefile differ in words only.

Source: deploy/csi-*-node-windows.yaml and deploy/csi-*-node-windows-hostprocess.yaml of
https://github.com/kubernetes-csi/csi-driver-smb, kubernetes-sigs/azuredisk-csi-driver and kubernetes-sigs/azurefile-csi-driver.
"""

from __future__ import annotations

from collections.abc import Mapping

from ansible_collections.kubewin.csi.plugins.module_utils.catalog.base import Container, Env, Volume

NODE_NAME = Env("KUBE_NODE_NAME", field_path="spec.nodeName")

_PROXY_SOCKET = "unix://C:\\\\csi\\\\csi.sock"


def limits(cpu: str, memory: str, most: str) -> Mapping[str, Mapping[str, str]]:
    """Requests and the memory limit of a container."""
    return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most}}


def directories(driver: str) -> tuple[Volume, ...]:
    """The host's directories that a node plugin mounts through csi-proxy."""
    return (
        Volume("registration-dir", "{kubelet}\\plugins_registry\\", "Directory"),
        Volume("kubelet-dir", "{kubelet}\\", "Directory"),
        Volume("plugin-dir", f"{{kubelet}}\\plugins\\{driver}\\", "DirectoryOrCreate"),
    )


def proxy_containers(
    driver: str, plugin: Container, port: int, probe_timeout: str, sidecar: Mapping[str, Mapping[str, Mapping[str, str]]],
) -> dict[str, Container]:  # fmt: skip
    """Registrar, driver and liveness probe in csi_proxy form; sidecar: resources of the other two by role."""
    registration = Env("DRIVER_REG_SOCK_PATH", f"{{kubelet2}}\\\\plugins\\\\{driver}\\\\csi.sock")
    endpoint = Env("CSI_ENDPOINT", _PROXY_SOCKET)
    return {
        "registrar": Container(
            args=("--v=2", "--csi-address=$(CSI_ENDPOINT)", "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)"),
            env=(endpoint, registration, NODE_NAME),
            mounts={"kubelet-dir": "{kubelet}", "plugin-dir": "C:\\csi", "registration-dir": "C:\\registration"},
            resources=sidecar["registrar"],
        ),
        "driver": Container(
            args=plugin.args,
            env=(*plugin.env, endpoint, NODE_NAME),
            mounts={"kubelet-dir": "{kubelet}", "plugin-dir": "C:\\csi", **plugin.mounts},
            resources=plugin.resources,
        ),
        "liveness_probe": Container(
            args=(
                "--csi-address=$(CSI_ENDPOINT)",
                f"--probe-timeout={probe_timeout}",
                f"--health-port={port}",
                "--v=2",
            ),
            env=(endpoint,),
            mounts={"plugin-dir": "C:\\csi"},
            resources=sidecar["liveness_probe"],
        ),
    }


def host_containers(driver: str, plugin: Container) -> dict[str, Container]:
    """Registrar and driver in host_process form, which mounts nothing and has no liveness probe."""
    socket = f"{{kubelet2}}\\\\plugins\\\\{driver}\\\\csi.sock"
    endpoint = Env("CSI_ENDPOINT", f"unix://{socket}")
    return {
        "registrar": Container(
            command=("csi-node-driver-registrar.exe",),
            args=(
                "--v=2",
                "--csi-address=$(CSI_ENDPOINT)",
                "--kubelet-registration-path=$(DRIVER_REG_SOCK_PATH)",
                "--plugin-registration-path=$(PLUGIN_REG_DIR)",
            ),
            env=(
                endpoint,
                Env("DRIVER_REG_SOCK_PATH", socket),
                Env("PLUGIN_REG_DIR", "{kubelet2}\\\\plugins_registry\\\\"),
                NODE_NAME,
            ),
            resources=limits("30m", "40Mi", "150Mi"),
        ),
        "driver": Container(
            command=plugin.command,
            args=plugin.args,
            env=(*plugin.env, endpoint, NODE_NAME),
            resources=plugin.resources,
            pre_stop=plugin.pre_stop,
        ),
    }


def make_plugin_directory(driver: str) -> tuple[str, ...]:
    """What the init container of the host_process form runs, since no volume makes the directory there."""
    path = f"{{kubelet}}\\plugins\\{driver}\\"
    return ("powershell.exe", "-c", f"New-Item -ItemType Directory -Path {path} -Force")
