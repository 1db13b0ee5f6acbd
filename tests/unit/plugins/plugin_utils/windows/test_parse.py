# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parsers on what real tools printed, in several languages (public captures), and on the shapes that tools document."""

from __future__ import annotations

import pytest
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows import parse
from ansible_collections.kubewin.csi.plugins.plugin_utils.windows.commands import join_text

SC_MISSING_DE = "[SC] OpenService FEHLER 1060:\r\n\r\nDer angegebene Dienst ist kein installierter Dienst.\r\n\r\n"
SC_QUERY_DE = """
SERVICE_NAME: AppIDSvc
DISPLAY_NAME: Anwendungsidentität
        TYPE               : 20  WIN32_SHARE_PROCESS
        STATE              : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, ACCEPTS_SHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x0
"""
SC_STOPPED_DE = SC_QUERY_DE.replace("4  RUNNING", "1  STOPPED ").replace(
    "WIN32_EXIT_CODE    : 0  (0x0)", "WIN32_EXIT_CODE    : 1077  (0x435)", 1
)
SC_START = """
SERVICE_NAME: w32time
        TYPE               : 20  WIN32_SHARE_PROCESS
        STATE              : 2  START_PENDING
                                (NOT_STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x7d0
        PID                : 19212
        FLAGS              :
"""
SC_RU = """
Имя_службы: grdsrv
        Тип                : 10  WIN32_OWN_PROCESS
        Состояние          : 2  START_PENDING
                                (NOT_STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        Код_выхода_Win32   : 0  (0x0)
        Код_выхода_службы  : 0  (0x0)
        Контрольная_точка  : 0x0
        Ожидание           : 0x7d0
        ID_процесса        : 19504
        Флаги              :
"""
"""``sc.exe queryex`` as a Russian developer pasted it into a public source file."""
SC_IT = """
NOME_SERVIZIO: com.docker.service
        TIPO                    : 10  WIN32_OWN_PROCESS
        STATO                   : 1  STOPPED
        CODICE_USCITA_WIN32     : 1077  (0x435)
        CODICE_USCITA_SERVIZIO  : 0  (0x0)
        PUNTO_CONTROLLO         : 0x0
        SUGGERIMENTO_ATTESA     : 0x0
        ID_PROCESSO             : 4242
        FLAG                    :
"""
"""A public report about Docker Desktop; its last two rows are made up, as ``sc query`` does not print them."""
SC_PT = """
NOME_DO_SERVIÇO: sysmon
        TIPO                       : 10  WIN32_OWN_PROCESS
        ESTADO                     : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        CÓDIGO_DE_SAÍDA_DO_WIN32   : 0  (0x0)
        CÓDIGO_DE_SAÍDA_DO_SERVIÇO : 0  (0x0)
        PONTO_DE_VERIFICAÇÃO       : 0x0
        AGUARDAR_DICA              : 0x0
        ID_DO_PROCESSO             : 4242
        SINALIZADORES              :
"""
"""A public walk-through of Sysmon; its last two rows are made up."""
SC_FR = """
NOM_SERVICE : csi-proxy
        TYPE               : 110  WIN32_OWN_PROCESS
        ÉTAT               : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, ACCEPTS_SHUTDOWN)
        CODE_SORTIE_WIN32  : 0  (0x0)
        CODE_SORTIE_SERVICE: 0  (0x0)
        POINT_CONTRÔLE     : 0x0
        INDICE_ATTENTE     : 0x0
        ID_PROCESSUS       : 4242
        INDICATEURS        :
"""
"""Made up, with the labels that a public imitation of sc.exe prints."""
SC_JA = """
サービス名: csi-proxy
        種類               : 10  WIN32_OWN_PROCESS
        状態               : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, ACCEPTS_SHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        チェックポイント   : 0x0
        待機のヒント       : 0x0
        プロセス ID        : 4242
        フラグ             :
"""
"""Made up: Japanese captures (public) keep the English labels; this one is worse than any seen."""
SC_ZH = """
SERVICE_NAME: nginx
        TYPE               : 10  WIN32_OWN_PROCESS
        STATE              : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x0
        进程 ID            : 4242
        FLAGS              :
"""
"""A public read-me about nginx on Chinese Windows; its last two rows are made up."""
SC_QUERYEX_ES = """
NOMBRE_SERVICIO: csi-proxy
        TIPO               : 10  WIN32_OWN_PROCESS
        ESTADO             : 4  RUNNING
                                (STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        CÓD_SALIDA_WIN32   : 0  (0x0)
        CÓD_SALIDA_SERVICIO: 0  (0x0)
        PUNTO_COMPROB.     : 0x0
        INDICACIÓN_INICIO  : 0x0
        PID                : 4242
        MARCAS             :
"""


@pytest.mark.parametrize(
    ("text", "state", "pid", "win32_exit"),
    [
        (SC_QUERY_DE, 4, 0, 0),
        (SC_STOPPED_DE, 1, 0, 1077),
        (SC_START, 2, 19212, 0),
        (SC_QUERYEX_ES, 4, 4242, 0),
        (SC_RU, 2, 19504, 0),
        (SC_IT, 1, 4242, 1077),
        (SC_PT, 4, 4242, 0),
        (SC_FR, 4, 4242, 0),
        (SC_JA, 4, 4242, 0),
        (SC_ZH, 4, 4242, 0),
        (SC_START.replace("START_PENDING", "wird gestartet"), 2, 19212, 0),
    ],
)
def test_service_status_in_any_language(text: str, state: int, pid: int, win32_exit: int) -> None:
    status = parse.read_service_status(text.replace("\n", "\r\n"))
    assert status is not None
    assert (status.state, status.pid, status.win32_exit) == (state, pid, win32_exit)


def test_no_status_where_the_service_is_missing() -> None:
    assert parse.read_service_status(SC_MISSING_DE) is None


def test_registry_value() -> None:
    text = (
        "\r\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\r\n"
        "    CurrentBuild    REG_SZ    26200\r\n\r\n"
    )
    tree = parse.read_registry(text)
    key = parse.spell_key(r"HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion")
    assert tree == {key: {"currentbuild": ("REG_SZ", "26200")}}


def test_registry_of_several_queries_names_with_blanks_and_a_translated_footer() -> None:
    text = "\r\n".join(
        [
            "",
            r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\kubelet",
            r"    DependOnService    REG_MULTI_SZ    RpcSs\0csi-proxy\0vfpext",
            "    A name    REG_SZ    data    with    gaps",
            "    Start    REG_DWORD    0x2",
            "    Empty    REG_SZ    ",
            "",
            r"HKEY_LOCAL_MACHINE\SYSTEM\CurrentControlSet\Services\kubelet\Enum",
            "",
            "Suche beendet: 3 Übereinstimmung(en) gefunden.",
            "    NotAValue    REG_SZ    of no key",
        ]
    )
    tree = parse.read_registry(text)
    kubelet = tree[parse.spell_key(r"HKLM\SYSTEM\CurrentControlSet\Services\kubelet")]
    assert parse.split_strings(kubelet["dependonservice"]) == ("RpcSs", "csi-proxy", "vfpext")
    assert kubelet["a name"] == ("REG_SZ", "data    with    gaps")
    assert parse.read_dword(kubelet["start"]) == 2
    assert kubelet["empty"] == ("REG_SZ", "")
    assert tree[parse.spell_key(r"HKLM\SYSTEM\CurrentControlSet\Services\kubelet\Enum")] == {}
    assert not any("notavalue" in values for values in tree.values())


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        # HKLM\SYSTEM\CurrentControlSet\Services\EventLog of a real host
        (
            "80510100000000000000000003000000140000000100000060EA000001000000C0D401000000000000000000",
            (86400, ((1, 60000), (1, 120000), (0, 0))),
        ),
        # with stale pointers in words 1, 2 and 4
        ("0000000001000000020000000100000054000B000100000010270000", (0, ((1, 10000),))),
        ("FFFFFFFF000000000000000001000000140000000100000000000000", (0xFFFFFFFF, ((1, 0),))),
        ("0000000000000000000000000000000014000000", (0, ())),
        ("00000000000000000000000003000000140000000100000060EA0000", None),
        ("zz", None),
        ("", None),
    ],
)
def test_failure_actions(data: str, expected: object) -> None:
    assert parse.read_failure_actions(data) == expected


DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"


@pytest.mark.parametrize(
    "text",
    [
        f"SHA256 hash of C:\\x.exe:\r\n{DIGEST}\r\nCertUtil: -hashfile command completed successfully.\r\n",
        f"SHA256-Hash von C:\\x.exe:\r\n{DIGEST}\r\nCertUtil: -hashfile-Befehl wurde erfolgreich ausgeführt.\r\n",
        "SHA256 hash of file C:\\x.exe:\r\n"
        + " ".join(DIGEST[i : i + 2] for i in range(0, 64, 2))
        + "\r\nCertUtil: -hashfile command completed successfully.\r\n",
        f"SHA256 ハッシュ (対象 C:\\x.exe):\r\n{DIGEST.upper()}\r\n",
    ],
)
def test_digest(text: str) -> None:
    assert parse.find_sha256(text) == DIGEST


def test_no_digest_in_a_failure() -> None:
    failed = "CertUtil: -hashfile command FAILED: 0x80070002 (WIN32: 2 ERROR_FILE_NOT_FOUND)\r\n"
    assert parse.find_sha256(failed) is None


def test_processes() -> None:
    assert parse.read_processes('"System","4","Services","0","5,844 K"\r\n') == (("System", 4),)
    assert parse.read_processes('"csi-proxy.exe","77","Services","0","14.348 K"\r\n') == (("csi-proxy.exe", 77),)
    for none in (
        "INFO: No tasks are running which match the specified criteria.\r\n",
        "INFORMATION: Es werden keine Aufgaben mit den angegebenen Kriterien ausgeführt.\r\n",
    ):
        assert parse.read_processes(none) == ()


def test_pipes_are_bare_names_of_ours_alone() -> None:
    listing = (
        "InitShutdown\r\nlsass\r\nWinsock2\\CatalogChangeListener-230-0\r\n\\csi-proxy-disk-v1\r\ncsi-proxy-smb-v1\r\n"
    )
    assert parse.read_pipes(listing, "csi-proxy-") == ("csi-proxy-disk-v1", "csi-proxy-smb-v1")
    assert parse.read_pipes("Datei nicht gefunden\r\n", "csi-proxy-") == ()


@pytest.mark.parametrize(
    "last",
    [
        "End of search: 1 match(es) found.",
        "Suche beendet: 1 Übereinstimmung(en) gefunden.",
        # Made up, as are those that follow.
        "Fin de la recherche : 1 correspondance(s) trouvée(s).",
        "Конец поиска: найдено совпадений: 1.",
        "搜索结束: 找到 1 匹配。",
    ],
)
def test_a_search_that_finished(last: str) -> None:
    hit = (
        "\r\nHKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\csi-proxy\r\n"
        "    ImagePath    REG_EXPAND_SZ    C:\\csi-proxy.exe\r\n\r\n"
    )
    assert parse.is_search_complete(f"{hit}{last}\r\n")
    assert parse.is_search_complete(f"{last}\r\n")
    # A key without read permission ends it before; the sentence about that is on the other stream.
    assert not parse.is_search_complete(hit)
    assert not parse.is_search_complete("")


@pytest.mark.parametrize("kind", ["<JUNCTION>", "<VERBINDUNG>", "<СОЕДИНЕНИЕ>"])
def test_links_whatever_their_kind_is_called(kind: str) -> None:
    """The shape of Microsoft's own page about junctions; the translated words are made up."""
    listing = (
        "*C:\\csi\\driver\\1\r\n Volume in drive C is MainOS\r\n\r\n Directory of C:\\csi\\driver\\1\r\n\r\n"
        f"10/26/2018  11:35 PM    {kind}     globalmount [\\??\\Volume{{AC55F613-7018-45c7-b1e9-7ddda60262fd}}\\]\r\n"
        "               0 File(s)              0 bytes\r\n*C:\\csi\\driver\\2\r\n"
    )
    (found,) = parse.read_links(listing)
    assert found[0] == "C:\\csi\\driver\\1\\globalmount"
    assert parse.find_volumes(found[1]) == {"volume{ac55f613-7018-45c7-b1e9-7ddda60262fd}"}


def test_the_link_of_a_share_leads_to_no_volume() -> None:
    """As dir printed it on a node with Azure File and csi-proxy (kubernetes/kubernetes#94213, comment of 2020-10-19)."""
    remote = "\\\\faf486191df3c4f0fad548f.file.core.windows.net\\pvc-ee3f6a92-f195-4d9e-841b-6966e6839829\\"
    listing = (
        "*C:\\csi\\pv\\1\r\n Volume in drive C is Windows\r\n\r\n"
        "10/19/2020  11:11 PM    <DIR>          ..\r\n"
        f"10/19/2020  11:11 PM    <SYMLINKD>     globalmount [{remote}]\r\n"
    )
    assert parse.read_links(listing) == (("C:\\csi\\pv\\1\\globalmount", remote),)
    assert parse.find_volumes(remote) == frozenset()


BOOT = "<Provider Name='Microsoft-Windows-Kernel-General'/><EventID>12</EventID>"
STEP = "<Provider Name='Microsoft-Windows-Kernel-General'/><EventID>1</EventID>"
UPTIME = "<Provider Name='EventLog'/><EventID Qualifiers='32768'>6013</EventID>"


def event(record: int, head: str, at: str, data: str = "") -> str:
    """As wevtutil prints one. Those of 6013 and 1 are shaped as in public captures (openwec's tests; a parser's of events)."""
    return (
        f"<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>{head}<Version>0</Version>"
        f"<TimeCreated SystemTime='{at}.7965565Z'/><EventRecordID>{record}</EventRecordID><Channel>System</Channel></System>"
        f"<EventData>{data}</EventData></Event>\r\n"
    )


def step(record: int, old: str, new: str) -> str:
    data = f"<Data Name='NewTime'>{new}.500000000Z</Data><Data Name='OldTime'>{old}.390589600Z</Data><Data Name='Reason'>1</Data>"
    return event(record, STEP, new, data)


def uptime(record: int, at: str, seconds: int) -> str:
    empty = "<Data></Data>" * 4
    data = f"{empty}<Data>{seconds}</Data><Data>60</Data><Data>0 Coordinated Universal Time</Data><Binary>3100</Binary>"
    return event(record, UPTIME, at, data)


@pytest.mark.parametrize(
    ("text", "boot"),
    [
        ("", None),
        (event(5, BOOT, "2026-11-20T06:07:08"), "2026-11-20T06:07:08Z"),
        # The hardware's clock was two hours behind and five ahead, as on KVM with a clock in UTC; a time service set it.
        (
            step(7, "2026-11-20T04:07:30", "2026-11-20T06:07:30") + event(5, BOOT, "2026-11-20T04:07:08"),
            "2026-11-20T06:07:08Z",
        ),
        (
            step(7, "2026-11-20T11:07:30", "2026-11-20T06:07:30") + event(5, BOOT, "2026-11-20T11:07:08"),
            "2026-11-20T06:07:08Z",
        ),
        # The events are in the order of their records, whatever the clock said.
        (
            event(5, BOOT, "2026-11-20T11:07:08") + step(7, "2026-11-20T11:07:30", "2026-11-20T06:07:30"),
            "2026-11-20T06:07:08Z",
        ),
        # More steps than were read: the uptime that was written once a day.
        (
            step(9, "2026-11-22T06:07:30", "2026-11-22T06:07:30") + uptime(8, "2026-11-21T06:07:08", 86400),
            "2026-11-20T06:07:08Z",
        ),
        # The uptime that was written at the boot carries the wrong clock.
        (step(9, "2026-11-22T06:07:30", "2026-11-22T06:07:30") + uptime(8, "2026-11-20T04:07:14", 6), None),
        (step(9, "2026-11-22T04:07:30", "2026-11-22T06:07:30"), None),
        # Two sources that disagree by more than two minutes.
        (uptime(8, "2026-11-21T06:07:08", 86400) + event(5, BOOT, "2026-11-20T06:08:08"), "2026-11-20T06:07:08Z"),
        (uptime(8, "2026-11-21T06:07:08", 86400) + event(5, BOOT, "2026-11-20T08:07:08"), None),
    ],
)
def test_boot_time(text: str, boot: str | None) -> None:
    assert parse.determine_boot_time(parse.read_clock_events(text)) == boot


@pytest.mark.parametrize(
    ("command_line", "executable"),
    [
        (r"C:\k\csi-proxy.exe -windows-service", r"C:\k\csi-proxy.exe"),
        (r'"C:\Program Files\x y\csi-proxy.exe" -v=2', r"C:\Program Files\x y\csi-proxy.exe"),
        (r"C:\Program Files\x y\csi-proxy.exe -v=2", r"C:\Program Files\x y\csi-proxy.exe"),
        (r"C:\k\proxy", r"C:\k\proxy"),
        ("", ""),
    ],
)
def test_executable_of(command_line: str, executable: str) -> None:
    assert parse.find_executable(command_line) == executable


@pytest.mark.parametrize(
    ("line", "free"),
    [
        ("Total # of free bytes        : 877510377472", 877510377472),
        ("Total free bytes        : 164,371,357,696 (153.1 GB)", 164371357696),
        ("Total free bytes : 890.5 GB (956,301,750,272 bytes)", 956301750272),
        ("Gesamtzahl der freien Bytes : 26\xa0914\xa0537\xa0472 ( 25,1 GB)", 26914537472),
        ("Total free bytes                :               0 ( 0.0 GB)", 0),
        ("Error:  Access is denied.", None),
        ("", None),
    ],
)
def test_free_bytes_of_each_build_and_language(line: str, free: int | None) -> None:
    assert parse.read_free_bytes(f"{line}\r\nTotal bytes : 999,999,999,999,999\r\n") == free


def test_mappings_of_smb_shares_are_read_as_wmic_prints_them() -> None:
    raw = b"\r\r\n\r\r\nLocalPath=\r\r\nRemotePath=\\\\nas\\share\r\r\nStatus=2\r\r\n\r\r\n\r\r\nLocalPath=Z:\r\r\nRemotePath=\\\\a\\b\r\r\nStatus=\r\r\n"
    found = parse.read_smb_mappings(join_text([raw]))
    assert found == (("", r"\\nas\share", 2), ("Z:", r"\\a\b", -1))
    assert parse.read_smb_mappings("No Instance(s) Available.") == ()
