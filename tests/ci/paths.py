"""Where the tooling reads and writes. Everything is under the checkout's ignored folders or the user's cache folder."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".work"
LOGS = WORK / "logs"
LINKS = ROOT / ".collections"
REQUIREMENTS = ROOT / "tests" / "requirements"


def cache() -> Path:
    """The folder that outlives a checkout: `$XDG_CACHE_HOME/kubewin-csi`, by default under `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "kubewin-csi"


def go_settings() -> dict[str, str]:
    """What keeps the `go` command's counters out of the home folder while the user's own Go settings stay in force."""
    home = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return {
        "GOENV": os.environ.get("GOENV") or os.path.join(home, "go", "env"),
        "XDG_CONFIG_HOME": str(cache() / "config"),
    }


def short(path: Path) -> str:
    """A path as a reader types it: relative to the checkout or to the home folder where it is under one."""
    for base, prefix in ((ROOT, ""), (Path.home(), "~/")):
        try:
            return prefix + str(path.relative_to(base))
        except ValueError:
            continue
    return str(path)
