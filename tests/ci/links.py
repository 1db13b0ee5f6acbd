"""Links in the files of the checkout, compared with the built documentation and with the files that GitHub shows."""

from __future__ import annotations

import re
from pathlib import Path

SITE = "https://kubewin.github.io/csi/"
GITHUB = ("https://github.com/kubewin/csi/blob/main/", "https://raw.githubusercontent.com/kubewin/csi/main/")
# GitHub shows the roles of these pages as text, so a link leads to the site.
PAGES = "docs/docsite/rst"

_URL = re.compile(r"https://[^\s\"'`<>()\[\]{}|]+")
_RELATIVE = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)[^)]*\)")


def find_broken_links(checkout: Path, names: list[str], html: Path) -> list[str]:
    """Each link to a page or anchor that `html`, the built site, does not have, or to a file that GitHub does not show."""
    broken = []
    for name in names:
        file = checkout / name
        try:
            text = file.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        links = [url.rstrip(".,;:*_") for url in _URL.findall(text)]
        broken += [f"{name}: {url}" for url in links if not _exists(url, checkout, html)]
        if file.suffix == ".md":
            broken += [f"{name}: {path}" for path in _RELATIVE.findall(text) if not _shows(file.parent / path)]
    return broken


def _shows(file: Path) -> bool:
    return file.exists() and f"/{PAGES}/" not in str(file.resolve())


def _exists(url: str, checkout: Path, html: Path) -> bool:
    for prefix in GITHUB:
        if url.startswith(prefix):
            return _shows(checkout / url[len(prefix) :].partition("#")[0])
    if not url.startswith(SITE):
        return True
    path, _hash, anchor = url[len(SITE) :].partition("#")
    page = html / (path or "index.html")
    return page.is_file() and (not anchor or f'id="{anchor}"' in page.read_text(encoding="utf-8"))
