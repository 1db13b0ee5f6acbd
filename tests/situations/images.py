# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Images of the next pods, and the Windows build of the nodes."""

from __future__ import annotations

from situations.base import situation
from situations.cluster import SHOP
from situations.world import Object, World

WEB = "Deployment shop/web"


def _spec(world: World) -> Object:
    found: Object = world.get("Deployment", "web", SHOP)["spec"]["template"]["spec"]
    return found


@situation("CSI-W09", starts_again={WEB: "unknown", "StatefulSet shop/db": "yes"})
def pods_with_an_image_of_an_older_windows(world: World) -> None:
    _spec(world)["containers"][0]["image"] = "mcr.microsoft.com/windows/servercore/iis:windowsservercore-ltsc2019"


@situation("CSI-W09", starts_again={WEB: "unknown"})
def pods_with_an_image_that_is_too_new_for_one_node(world: World) -> None:
    node = world.get("Node", "win-2")
    node["metadata"]["labels"]["node.kubernetes.io/windows-build"] = "10.0.17763"
    for one in world.of("Deployment"):
        if one["metadata"]["name"] != "web":
            one["spec"]["template"]["spec"]["nodeSelector"]["kubernetes.io/hostname"] = "win-1"


@situation(starts_again={WEB: "yes"})
def host_process_pods_with_an_image_of_an_older_windows(world: World) -> None:
    pods_with_an_image_of_an_older_windows(world)
    options = {"hostProcess": True, "runAsUserName": "NT AUTHORITY\\SYSTEM"}
    _spec(world).update(hostNetwork=True, securityContext={"windowsOptions": options})


@situation(starts_again={WEB: "yes"})
def pods_with_a_release_that_looks_like_a_windows_build(world: World) -> None:
    _spec(world)["containers"][0]["image"] = "registry.example.com/shop:1809"
