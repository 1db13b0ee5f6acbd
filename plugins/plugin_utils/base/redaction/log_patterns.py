# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lines of logs are made of, as patterns. Each repetition is bounded or ends at the first mismatch, so that no text takes long."""

from __future__ import annotations

import re

# What has to be in a line, in lower case, for a command with secrets to be in it.
COMMAND_WORDS = (
    "use", "reg ", "reg\t", "reg.exe", "cmdkey", "setx", "sshpass", "htpasswd", "smbclient", "plink", "psexec", "sqlcmd",
    "runas", "echo", "nssm", "login", "credential", "securestring", "secret", "add-computer", "autologon", "bitsadmin", "curl", "mysql", "51:b:", "-stdin",
    "value:",
)  # fmt: skip
# The begin of a line of a log: klog, CRI's prefix, zap, logfmt of containerd, csv of others. It begins a new entry.
HEADER = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\s+(?:std(?:out|err) [FP] )?)?"
    r"(?:[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?\s+(?:\d+\s+)?[\w.-]+:\d+\] ?)?"
)
GUID_PATH = r"\\{2,8}\?\\{1,8}Volume\{[0-9a-fA-F-]{36}\}\\*"
TOKEN = re.compile(
    rf"""(?P<mark><\w{{1,10}},[ ]\d+>|\(redacted\))
    |(?P<tag><[A-Za-z][\w.:-]*(?:\s+[\w.:-]+\s*=\s*\\{{0,40}}(?:"[^"]*"|'[^']*'))*\s*(?<!/)>)
    |(?P<url>\b[a-zA-Z][\w+.-]{{1,20}}://(?:(?!\\{{1,40}}["'`rn])[^\s"'`<>])+)
    |(?P<key>(?:(?P<kq>\\{{0,40}}["'`])(?P<quoted>[\w$@][\w $./@\[\]:-]*?)(?P=kq)
        |(?:-{{0,2}}|/)(?:\$?[Ee]nv:)?\.?(?P<name>[\w$@][\w$./@-]*))[ \t]*(?::=|[=-]>|==?|:)(?!//|\\{{1,40}}[^"'rn\\]))
    |(?P<volume>{GUID_PATH})
    |(?P<space>(?:\s|\\{{1,40}}r\\{{1,40}}n|\\{{1,40}}[nt](?![a-z]))+)
    |(?P<quote>\\{{0,40}}["'`])
    |(?P<colon>:(?=\w))
    |(?P<chunk>(?:(?!\\{{1,40}}["'`]|\\{{1,40}}r\\{{1,40}}n|\\{{1,40}}n(?![a-z])|["`]|'(?!\w))[^\s,;=()\[\]{{}}<>|&])+)
    |(?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
CHUNK = re.compile(r"""(?:(?!\\{1,40}["'`])[^\s"`',;=()\[\]{}<>|&])+""")
BLOCK = re.compile(r"""[&*\w.]*(?:\[[\w.*]*\][\w.*]*)?(?=[\[({<])""")
# A value ends before the next pair, and before the quote that closes the text around it.
BARE = re.compile(r"""(?:(?![;&,|]\s*[\w.-]+\s*[=:])(?!\\{0,40}["'`](?:[\s,;:}\])>]|$))(?!</)[^\s<>]|<(?!/))+""")
# Behind "failed to get token: " stands why, not the token.
PROSE = re.compile(
    r"(?i)\s*(?:rpc error|error|failed|failure|could ?n[o']t|cannot|unable|not\b|no\b|invalid|the\b|connection|dial\b|context"
    r"|unauthori[sz]ed|forbidden|timeout|timed out|EOF|x509:|missing|access\b|permission|get \"?https?:|post \"?https?:|unexpected"
    r"|(?:pods?|secrets?|serviceaccounts?|nodes?|configmaps?) \\*\"|an? \b|is\b|was\b|has\b|operation\b|status\b|system error|access is denied"
    r"|the system|generic|request\b|expired\b|it\b|you\b)"
)
# An id under the name of one.
ID = re.compile(
    r"""(?:[ \t]|\\{0,40}["'`{])*\{?(?:kubernetes\.io/csi/[\w.-]+\^|[a-z]+://)?"""
    r"""(?:[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}|[0-9a-f]{64})(?![\w.-])(?:\\{0,40}["'`])?"""
)
IDENTIFIED = re.compile(
    r"(?i)^(?:uid|.*(?:pod|trace|volume|container|sandbox|disk|node|activity|request|image|device|object|op)"
    r"[_-]?u?u?id|guid|uniquename|(?:volume|vol)[_-]?(?:name|handle|id)|diskuuid|id)$"
)
# Words behind which a secret stands: schemes of HTTP authentication, flags.
SCHEMES = frozenset(["bearer", "basic", "negotiate", "ntlm", "digest", "sharedkey", "sharedkeylite"])
NOT_A_TOKEN = re.compile(
    r"(?i)(?:auth\w*|tokens?|realm|credentials?|access|is|was|not|scheme|type|error|failed|and|or|for|in|to|from|of)[.,:]?$"
)
AFTER_SCHEME = re.compile(r"[ \t]+(\S+)")
SHORT_FLAGS_TEXT = """
-u -p -P -U -pw -w -k --user --proxy-user /p /rp /u /w -pass --pass -password
"""
SHORT_FLAGS = frozenset(SHORT_FLAGS_TEXT.split())
# A password glued to its flag, as in -pSECRET and -uNAME:SECRET. The flags of Go's and other programs that begin so are none.
_GO_FLAGS_TEXT = """
page parallel param parent partition password path pattern pause peer period persist pid pidfile ping pipe platform plugin pod policy poll pool
port prefix preserve pretty print priority privileged probe process profile profiling project prometheus proto protocol provider provision
provisioner proxy prune public publish pull push
"""
GLUED_FLAG = re.compile(
    rf"(?P<flag>-p)(?!(?:{'|'.join(flag[1:] for flag in _GO_FLAGS_TEXT.split())})s?(?![A-Za-z0-9]))\S{{3,}}|(?P<user>-[uU])[^\s:]+:\S+"
)
# The account of a flag such as curl's --user=NAME:SECRET; accounts of Kubernetes have colons too.
ACCOUNT = re.compile(r"(?!system:)[^\s:]+:\S")
# Commands whose arguments are secrets.
COMMAND = re.compile(
    r"""(?ix)\b(?:net1?(?:\.exe)?\s+use\s+(?=[*"'\\/]|[a-z]:)|net1?(?:\.exe)?\s+user\s+(?=\S+\s+[^\s])|reg(?:\.exe)?\s+add\s
    |cmdkey(?:\.exe)?\s|setx(?:\.exe)?\s+(?=\S+\s+\S)|sshpass\s|htpasswd\s|smbclient\s
    |plink(?:\.exe)?\s|psexec(?:64)?(?:\.exe)?\s|sqlcmd\s|runas\s|echo\s+(?=\S+\s*\|)
    |nssm(?:\.exe)?\s+set\s+\S+\s+(?:AppEnvironment(?:Extra)?|ObjectName)\s|docker\s+login\s|az\s+login\s|vault\s+login\s
    |(?:network|ps)credential\s*\(?|convertto-securestring\s|kubectl\s+create\s+secret\s|add-computer\s|autologon\s
    |curl(?:\.exe)?\s(?=(?:[^\n]{0,200}\s)?-[a-z]?[uU]\S)|mysql\w{0,9}\s(?=(?:[^\n]{0,200}\s)?-p\S)
    |bitsadmin\s+/set\w+\s|\blogin\s+\S+\s+password\s|\bpassword\s+51:b:
    |\bname:[\w.-]*(?:passw|secret|token|credential|api_?key)[\w.-]*\s+value:)"""
)
# A secret that is piped into a command.
PIPED = re.compile(r"(?i)\|\s*(?:convertto-securestring|\S.*-stdin\b)")
# the password "x", the token is "x", Password [x], Password for joe: x
SPOKEN = re.compile(
    r"""(?i)(?:pass(?:word|wd|phrase|code)|token|api[ _-]?key|pin)(?:\s+(?:is|was|of|=))*[ \t]*(?=[\[({]|(?<=[ \t])\\{0,40}["'`])"""
    r"""|pass(?:word|phrase|code)[ ](?:for|of)[ ][^\s:]+:[ \t]*(?=\S)"""
)
BLOCK_MARK = re.compile(r"[|>][+-]?\d?")
PLACE = re.compile(r"[A-Za-z]:\\|[\\/]|[a-z]{2,8}://")
REGISTRY = re.compile(r"(?P<lead>\s+)(?P<name>\S[^\r\n]*?)(?P<between>\s+REG_[A-Z_]+(?:\s+|$))(?P<value>.*)", re.DOTALL)
PEM_KEY_END = re.compile(r"\A(?:(?!-----BEGIN).)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----", re.DOTALL)
PEM_WHOLE = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    re.DOTALL,
)
# Fields in which anything may stand, whatever their neighbours say.
OPAQUE_TEXT = """
value values data default stringdata binarydata content contents body payload env environment rawdata
"""
OPAQUE = frozenset(OPAQUE_TEXT.split())
# The element of a tag; a value of an attribute that names what stands behind the tag.
ELEMENT = re.compile(r"""(?:</?(?:[\w.-]+:)?|(?i:name|key|id)\s*=\s*\\{0,40}["'])([\w.-]+)""")
WIDE = re.compile(r"(?:[\t\r\n\x20-\x7e]\x00){3,}[\t\r\n\x20-\x7e]?|(?:\x00[\t\r\n\x20-\x7e]){3,}")
MARKED = re.compile(rf"(?:{BLOCK.pattern})?(?:<\w{{1,10}}, \d+>|\(redacted\))")
SPACES = re.compile(r"(?:[ \t]|\\{1,40}[rnt])*")
# The name of a secret in a list, with the secret behind it.
PAIR = re.compile(r"""(-{0,2}/?[\w.-]+)\\{0,40}["'`]\s*(?:,|$)""")
# A value behind its name: in quotes, to the end of the line, or to the next pair.
IN_QUOTES = re.compile(r"""(?P<begin>[ \t]*(?P<quote>\\{0,40}["'`]))(?P<value>(?:(?!(?P=quote))[^\n])+)""")
VALUE = re.compile(
    r"""(?P<begin>[ \t]*)(?P<value>(?![\[{(<])(?:(?![;&,|]\s*\\{0,40}["'`]?[\w.-]+\\{0,40}["'`]?\s*[=:])(?!\\{0,40}["'`](?:[\s,;:}\])>]|$))(?!</)[^\s])+)"""
)
QUOTED = re.compile(r"""(?P<quote>\\{0,40}["'`])(?P<value>[^"'`\\]*)(?P=quote)""")
# The end of a line; in a quoted text, where what follows can be a line of its own.
LINE_END = re.compile(
    r"""(\n|\\{1,40}r\\{1,40}n|\\{1,40}n(?:\\{1,40}t)*(?=\\{1,40}n|[ ]|[\[<#]|[\w.$-]{1,80}(?:\\{0,40}["'])?[ ]?[:=][ ]))"""
)
LINE_BEGIN = re.compile(r"[ \t]*(?:-[ \t]+)*(?:export\s+|set\s+|\$env:)?")
REST_OF_LINE = re.compile(r"""(?P<begin>[ \t]+)(?P<value>[^\s\[{("'&<`].*?)\s*$""")
