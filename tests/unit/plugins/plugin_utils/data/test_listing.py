# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Parse dir's lines in any language and clock format."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.listing import build_command, parse_listing
from ansible_collections.kubewin.csi.plugins.plugin_utils.data.manifest import FileEntry

# The first after https://devblogs.microsoft.com/oldnewthing/20041227-00/?p=36883.
ENGLISH = r"""
 Volume in drive C has no label.
 Volume Serial Number is A035-E01D

 Directory of C:\data

12/23/2026  09:43 PM    <DIR>          .
12/23/2026  09:43 PM    <DIR>          ..
12/23/2026  09:43 PM    <JUNCTION>     away [C:\elsewhere]
08/19/2026  08:43 PM                 0 AUTOEXEC.BAT
12/16/2026  04:34 PM    <DIR>          Documents and Settings
08/19/2026  08:43 PM       12602899968 9 lives [1].txt
08/19/2026  08:43 PM    <SYMLINK>      link.txt [Documents and Settings\real.txt]
12/16/2026  04:34 PM    <DIR>          locked away
               2 File(s)              0 bytes

 Directory of C:\data\away

08/19/2026  08:43 PM                 5 not ours.txt

 Directory of C:\data\Documents and Settings

08/19/2026  08:43 PM                 7 real.txt

     Total Files Listed:
               4 File(s)     12602899980 bytes
               5 Dir(s)   2,602,899,968 bytes free
"""
GERMAN = r"""
 Volume in Laufwerk C: hat keine Bezeichnung.
 Volumeseriennummer: A035-E01D

 Verzeichnis von c:\DATA

31.01.2026  12:00    <DIR>          .
31.01.2026  12:00    <DIR>          ..
31.01.2026  12:00    <DIR>          Ordner
31.01.2026  12:00    <VERBINDUNG>   fort [C:\anderswo]
31.01.2026  12:00                42 Grüße.txt

 Verzeichnis von c:\DATA\Ordner

31.01.2026  12:00    <DIR>          .

     Anzahl der angezeigten Dateien:
               1 Datei(en),             42 Bytes
"""


def test_files_directories_and_links_are_distinguished_and_links_are_not_followed() -> None:
    found = parse_listing(ENGLISH, "C:\\data")
    assert found is not None
    assert found.entries == (
        FileEntry("away", "link", target="C:\\elsewhere"),
        FileEntry("AUTOEXEC.BAT", "file", written="08/19/2026  08:43 PM"),
        FileEntry("Documents and Settings", "directory"),
        FileEntry("9 lives [1].txt", "file", size=12602899968, written="08/19/2026  08:43 PM"),
        FileEntry("link.txt", "link", target="Documents and Settings\\real.txt"),
        FileEntry("locked away", "directory"),
        FileEntry("Documents and Settings/real.txt", "file", size=7, written="08/19/2026  08:43 PM"),
    )
    assert [gap.path for gap in found.gaps] == ["locked away"]


def test_another_language_and_other_letters_of_a_path_parse_the_same() -> None:
    found = parse_listing(GERMAN, "C:\\data")
    assert found is not None
    assert found.entries == (
        FileEntry("Ordner", "directory"),
        FileEntry("fort", "link", target="C:\\anderswo"),
        FileEntry("Gr\u00fc\u00dfe.txt", "file", size=42, written="31.01.2026  12:00"),
    )
    assert not found.gaps


@pytest.mark.parametrize("text", ["", "File Not Found\r\n", " Directory of C:\\database\r\n"])
def test_no_output_for_a_directory_is_not_an_empty_directory(text: str) -> None:
    assert parse_listing(text, "C:\\data") is None


def test_folders_of_windows_itself_are_not_data() -> None:
    text = (
        " Directory of D:\\\r\n\r\n12/23/2026  09:43 PM    <DIR>          System Volume Information\r\n"
        " Directory of D:\\System Volume Information\r\n12/23/2026  09:43 PM                 7 tracking.log\r\n"
    )
    found = parse_listing(text, "D:\\")
    assert found is not None
    assert (found.entries, found.gaps) == ((), ())


def test_dir_lists_everything_in_one_form() -> None:
    assert build_command("C:\\my data") == ("cmd", "/u", "/d", "/c", "dir", "/a", "/s", "/-c", "C:\\my data")
