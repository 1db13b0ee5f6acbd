# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What lines of logs are made of, as patterns. Each repetition is bounded or ends at the first mismatch, so that no text takes long."""

from __future__ import annotations

import re

from .harmless_words import PLACEHOLDERS

_QUOTE = r"""\\{0,40}["'`]"""
_UUID = r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

# UTF-16 that was read as bytes.
WIDE = re.compile(r"(?:[\t\r\n\x20-\x7e]\x00){3,}[\t\r\n\x20-\x7e]?|(?:\x00[\t\r\n\x20-\x7e]){3,}")
# A private key, also one of which the begin or the end is missing.
PEM = re.compile(
    r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)"
    r"|\A(?:(?!-----BEGIN).)*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----",
    re.DOTALL,
)
# The end of a line; in a quoted text, where what follows can be a line of its own.
LINE_END = re.compile(
    r"""(\n|\\{1,40}r\\{1,40}n|\\{1,40}n(?:\\{1,40}t)*(?=\\{1,40}n|[ ]|[\[<#]|[\w.$-]{1,80}(?:\\{0,40}["'])?[ ]?[:=][ ]))"""
)
# The begin of a line of a log: klog, CRI's prefix, zap, logfmt of containerd, csv of others. It begins a new entry.
HEADER = re.compile(
    r"(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,\d]*(?:Z|[+-]\d\d:?\d\d)?\s+(?:std(?:out|err) [FP] )?)?"
    r"(?:[IWEF]\d{4} \d\d:\d\d:\d\d(?:\.\d+)?\s+(?:\d+\s+)?[\w.-]+:\d+\] ?)?"
)

# A name, and whether it is a flag or an element of XML.
NAME = re.compile(
    r"(?P<lead></?(?:[\w.-]+:)?|(?<=\\[nrt])-+|(?<![\w$./@-])[-/]*)(?!(?<=\\)[nrt]-)(?P<name>[\w$@.][\w$./@-]*)"
)
# What stands between a name and its value.
SIGN = re.compile(
    rf"""(?:\[\w{{0,20}}\])?(?:{_QUOTE})?[ \t]*(?::=|[=-]>|==?|:)[ \t]*   # password: x, "password": "x", password => x
    |{_QUOTE}[ \t]*(?:[,>]|\r?$)                       # ["--password", "x"], <Data Name="Password">x
    |(?:{_QUOTE})?[ \t]+[Vv]alue(?=[:=])               # {{Name:DB_PASSWORD Value:x}}
    |[ \t]*>                                           # <password>x
    """,
    re.VERBOSE,
)
# A value that is none: empty, a placeholder before the end of the line or the next field, or hidden already.
NO_SECRET = re.compile(
    rf"""(?i)[ \t]*(?P<quote>{_QUOTE})?(?:<\w{{1,10}},[ ]\d+>|\(redacted\)
    |(?:{"|".join(map(re.escape, PLACEHOLDERS))})(?=["'`\\]|,?\s*$|,?[\s"'\\]+[\w$./@-]{{1,80}}{_QUOTE}?[ \t]*(?::|=(?![=\s]|$)))
    |(?(quote)(?P=quote)|(?!)))""",
    re.VERBOSE,
)
# Commands whose arguments are secrets, and other words behind which secrets stand.
COMMAND = re.compile(
    rf"""(?ix)\b(?:net1?(?:\.exe)?\s+use\s+(?=[*"'\\/]|[a-z]:)|net1?(?:\.exe)?\s+user\s+(?=\S+\s+[^\s])|reg(?:\.exe)?\s+add\s
    |cmdkey(?:\.exe)?\s|setx(?:\.exe)?\s+(?=\S+\s+\S)|sshpass\s|htpasswd\s|smbclient\s|redis-cli(?:\.exe)?\s
    |plink(?:\.exe)?\s|psexec(?:64)?(?:\.exe)?\s|sqlcmd\s|runas\s|echo\s+(?=\S+\s*\|)
    |nssm(?:\.exe)?\s+set\s+\S+\s+(?:AppEnvironment(?:Extra)?|ObjectName)\s|docker\s+login\s|az\s+login\s|vault\s+login\s
    |(?:network|ps)credential\s*\(?|convertto-securestring\s|kubectl\s+create\s+secret\s|add-computer\s|autologon\s
    |mysql\w{{0,9}}\s(?=(?:[^\n]{{0,200}}\s)?-p\S)|bitsadmin\s+/set\w+\s|\blogin\s+\S+\s+password\s|\bpassword\s+51:b:)
    |\b(?P<type>(?-i:REG_[A-Z_]*))\s*                                                     # a value of the registry
    |(?<![\w./\\-])(?:(?:-[fiklsv]{{0,4}}u|-p|-pw|-w|-k|/p|/rp|/u|/w|--?pass)(?:[:=\s"'`]|$)|--(?:proxy-)?user(?:\s|$))   # a flag
    |(?<![\w./\\-])(?:-[a-z]{{0,4}}u|--(?:proxy-)?user=)(?:{_QUOTE})?(?=(?![^\s:]{{0,99}}system:)[^\s:]{{1,99}}:(?!//)\S)  # -uNAME:SECRET
    |(?<![\w.-])(?:bearer|basic|negotiate|ntlm|digest|sharedkey(?:lite)?):?[ \t]+             # a scheme of HTTP authentication
    (?=\S)(?!(?:auth\w*|tokens?|realm|credentials?|access|is|was|not|scheme|type|error|failed|and|or|for|in|to|from|of)[.,:]?(?:\s|$))
    |\b(?:pass(?:word|wd|phrase|code)|token|api[ _-]?key|pin)(?:\s+(?:is|was|of|=))*[ \t]*   # the password is "x", Password [x]
    (?:(?=[\[({{])|(?<=[ \t])(?={_QUOTE}))
    |(?:\b|(?<=\\[nrt]))pass(?:word|phrase|code)[ ](?:for|of)[ ][^\s:]+:[ \t]*(?=\S)
    |(?<![\w\\/:.$-])[\w-]{{0,40}}(?:passw|secret|token|credential|[_-]key)[\w-]{{0,40}}\\{{1,8}}(?=\w)        # ProxyPassword\SECRET"""
)
# A secret that is piped into a command.
PIPED = re.compile(r"(?i)[^|]*\|(?:.*-stdin\b|(?:.*\|)?\s*convertto-securestring)")
# Behind "failed to get token: " stands why, not the token.
PROSE = re.compile(
    r"(?i)\s*(?:rpc error|error|failed|failure|could ?n[o']t|cannot|unable|not\b|no\b|invalid|the\b|connection|dial\b|context"
    r"|unauthori[sz]ed|forbidden|timeout|timed out|EOF|x509:|missing|access\b|permission|get \"?https?:|post \"?https?:|unexpected"
    r"|(?:pods?|secrets?|serviceaccounts?|nodes?|configmaps?) \\*\"|an? \b|is\b|was\b|has\b|operation\b|status\b|system error|access is denied"
    r"|the system|generic|request\b|expired\b|it\b|you\b)"
)
# Fields in which anything may stand.
OPAQUE_TEXT = """
value values data default stringdata binarydata content contents body payload env environment rawdata
"""
OPAQUE = frozenset(OPAQUE_TEXT.split())
BLOCK_MARK = re.compile(r"[|>][+-]?\d?")
STRUCTURE = re.compile(rf"[\[{{(<]|{_QUOTE}|$")

URL = re.compile(r"""\b[a-zA-Z][\w+.-]{1,20}://(?:(?!\\{1,40}["'`rn])[^\s"'`<>])+""")
# An id under the name of one.
_ID = rf"""(?<![\w$./@-])(?:{_QUOTE})?(?i:uid|guid|id|uniquename|(?:volume|vol)[_-]?(?:name|handle)
    |[\w-]*?(?:pod|trace|volume|vol|container|sandbox|disk|node|activity|request|image|device|object|op)[_-]?u?u?id)
    (?:{_QUOTE})?[ \t]*[:=](?:[ \t]|\\{{0,40}}["'`{{])*\{{?(?:kubernetes\.io/csi/[\w.-]+\^|[a-z]+://)?(?:{_UUID}|[0-9a-f]{{64}})(?![\w.-])"""
# The name of a field, with the sign behind it.
_FIELD = rf"""(?:(?P<name_quote>{_QUOTE})(?P<quoted>[\w$@][\w $./@\[\]:-]*?)(?P=name_quote)[ \t]*(?::=|[=-]>|==?|:)
    |(?:-{{0,2}}|/)(?:\$?[Ee]nv:)?\.?(?P<name>[\w$@][\w$./@-]*)[ \t]*(?::=|==?(?!>)|(?:[=-]>|:)(?=[ \t]*{_QUOTE})))"""
TOKEN = re.compile(
    rf"""(?P<kept><\w{{1,10}},[ ]\d+>|\(redacted\)
        |\\{{2,8}}\?\\{{1,8}}Volume\{{[0-9a-fA-F-]{{36}}\}}\\*
        |\\{{1,40}}r\\{{1,40}}n|\\{{1,40}}[nt](?![a-z])
        |{_ID})
    |(?P<url>{URL.pattern})
    |(?P<field>{_FIELD})
    |(?P<glued>-(?!(?:path|plugin|pod|port|probe|provisioner)(?![A-Za-z0-9]))p\S{{3,}})   # -pSECRET
    |(?P<mark>{_QUOTE})
    |(?P<word>(?:(?!\\{{1,40}}["'`]|\\{{1,40}}r\\{{1,40}}n|\\{{1,40}}n(?![a-z])|["`]|'(?!\w))[^\s,;=()\[\]{{}}<>|&])+)""",
    re.VERBOSE,
)
# A value: in quotes, or to the next pair.
IN_QUOTES = re.compile(rf"""[ \t]*(?P<quote>{_QUOTE})(?P<value>(?:(?!(?P=quote))[^\n])+)""")
BARE = re.compile(
    rf"""(?P<quote>)[ \t]*(?P<value>(?![\[{{(<])(?:(?![;&,|]\s*(?:{_QUOTE})?[\w.-]+(?:{_QUOTE})?\s*[=:])"""
    rf"""(?!{_QUOTE}(?:[\s,;:}}\])>]|$))(?!</)[^\s])+)"""
)
# A line of YAML, or of an ini file.
LINE = re.compile(
    rf"""(?P<quote>)[ \t]*(?:-[ \t]+)*(?:export\s+|set\s+|\$env:)?(?:{_QUOTE})?(?P<name>[\w$@.][\w$./@-]*)(?:{_QUOTE})?[ \t]*"""
    r"""(?P<sign>:=|[=-]>|==?|:)[ \t]+(?P<value>[^\s\[{("'&<`].*)"""
)
PLACE = re.compile(r"[A-Za-z]:\\|[\\/]|[a-z]{2,8}://")
