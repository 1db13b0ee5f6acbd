# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few SOAP messages of WS-Management that remote command shells use: reading requests, writing answers and faults.

Shapes follow [MS-WSMV] and were compared with the conversations recorded by the pypsrp and pywinrm projects.
"""

from __future__ import annotations

import re
import uuid
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import escape, quoteattr

SHELL = "http://schemas.microsoft.com/wbem/wsman/1/windows/shell"
CMD_RESOURCE = f"{SHELL}/cmd"
NAMESPACES = {
    "s": "http://www.w3.org/2003/05/soap-envelope",
    "a": "http://schemas.xmlsoap.org/ws/2004/08/addressing",
    "x": "http://schemas.xmlsoap.org/ws/2004/09/transfer",
    "w": "http://schemas.dmtf.org/wbem/wsman/1/wsman.xsd",
    "rsp": SHELL,
    "p": "http://schemas.microsoft.com/wbem/wsman/1/wsman.xsd",
}
ANONYMOUS = "http://schemas.xmlsoap.org/ws/2004/08/addressing/role/anonymous"
FAULT_ACTION = "http://schemas.dmtf.org/wbem/wsman/1/wsman/fault"

# MaxEnvelopeSizekb of a default host.
MAX_ENVELOPE = 512000

TIMED_OUT = 2150858793
NOT_FOUND = 2150858843
TOO_MANY_OPERATIONS = 2150859174
TOO_MANY_SHELLS = 2150859173
SHELLS_REFUSED = 2150859180
INVALID_RESOURCE_URI = 2150858811
ACTION_NOT_SUPPORTED = 2150858754
BROKEN_PIPE = 232
BUSY = 170
INVALID_PARAMETER = 87
PROGRAM_NOT_FOUND = 2147942402

_INVALID_SELECTORS = (
    "The WS-Management service cannot process the request because the request contained invalid selectors for the"
    " resource. "
)
_FAULT_DETAILS = {"w:InvalidSelectors": "UnexpectedSelectors", "w:InvalidParameter": "InvalidValue"}
_DECLARATIONS = "".join(f' xmlns:{prefix}="{uri}"' for prefix, uri in NAMESPACES.items())
_DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$")


class Fault(Exception):
    """A WS-Management fault: the number clients act on, the SOAP subcode, and the text.

    ``reason`` is SOAP's own sentence where it differs; ``provider`` marks text of the shell's plugin.
    """

    def __init__(
        self,
        code: int,
        text: str,
        subcode: str = "w:InternalError",
        *,
        reason: str = "",
        sender: bool = False,
        provider: bool = False,
    ) -> None:
        super().__init__(text)
        self.reason = reason or text
        self.code = code
        self.text = text
        self.subcode = subcode
        self.sender = sender
        self.provider = provider


def timed_out() -> Fault:
    text = "The WS-Management service cannot complete the operation within the time specified in OperationTimeout.  "
    return Fault(TIMED_OUT, text, "w:TimedOut")


def shell_gone(shell_id: str) -> Fault:
    text = (
        f"The request for the Windows Remote Shell with ShellId {shell_id} failed because the shell was not found"
        " on the server. Possible causes are: the specified ShellId is incorrect or the shell no longer exists on the"
        " server. Provide the correct ShellId or create a new shell and retry the operation. "
    )
    return Fault(NOT_FOUND, text, "w:InvalidSelectors", reason=_INVALID_SELECTORS, sender=True)


def command_gone() -> Fault:
    text = (
        "The Windows Remote Shell received a request to perform an operation on a command identifier that does not"
        " exist. Either the command has completed execution or the client specified an invalid command identifier. "
    )
    return Fault(NOT_FOUND, text, "w:InvalidSelectors", reason=_INVALID_SELECTORS, sender=True)


def invalid_parameter() -> Fault:
    return Fault(INVALID_PARAMETER, "The parameter is incorrect. ", "w:InvalidParameter", sender=True, provider=True)


def program_not_found() -> Fault:
    return Fault(PROGRAM_NOT_FOUND, "The system cannot find the file specified. ", provider=True)


def too_many_operations(limit: int) -> Fault:
    text = (
        "The WS-Management service cannot process the request. This user is allowed a maximum number of"
        f" {limit} concurrent operations, which has been exceeded. Close existing operations for this user, or raise"
        " the quota for this user. "
    )
    return Fault(TOO_MANY_OPERATIONS, text, "w:QuotaLimit", sender=True)


def too_many_shells(limit: int) -> Fault:
    text = (
        "The WS-Management service cannot process the request. The maximum number of concurrent shells for this user"
        f" ({limit}) has been exceeded. Close existing shells or raise the quota for this user. "
    )
    return Fault(TOO_MANY_SHELLS, text, "w:QuotaLimit", sender=True)


def shells_refused() -> Fault:
    """ERROR_WSMAN_REMOTESHELLS_NOT_ALLOWED (wsmerror.h). The words are ours: nothing may depend on them, they are translated."""
    return Fault(
        SHELLS_REFUSED, "The WS-Management service does not allow remote shells. ", "w:AccessDenied", sender=True
    )


def parse_duration(text: str | None, default: float) -> float:
    """Seconds of an XML duration such as ``PT20S`` or ``P0DT0H0M7200S``."""
    match = _DURATION.match(text or "")
    if match is None or match.group(0) in ("P", "PT"):
        return default
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds


@dataclass(frozen=True, slots=True)
class Message:
    """One request. ``operation`` is the last part of the action: Create, Command, Send, Receive, Signal, Delete.

    ``timeout`` is OperationTimeout in seconds, ``max_envelope`` the largest answer the client takes, in bytes.
    """

    action: str
    operation: str
    message_id: str
    to: str
    resource_uri: str
    shell_id: str
    options: Mapping[str, str]
    must_comply: frozenset[str]
    timeout: float
    max_envelope: int
    body: ET.Element


def _text(parent: ET.Element, path: str, default: str = "") -> str:
    found = parent.find(path, NAMESPACES)
    return default if found is None else found.text or default


def parse(data: bytes) -> Message:
    """Read an envelope; ValueError when it is not one."""
    try:
        root = ET.fromstring(data)
    except ET.ParseError as error:
        raise ValueError(f"the request is not XML: {error}") from None
    header, body = root.find("s:Header", NAMESPACES), root.find("s:Body", NAMESPACES)
    if header is None or body is None:
        raise ValueError(f"the request is no SOAP 1.2 envelope, its root is {root.tag}")
    action = _text(header, "a:Action")
    options = header.findall("w:OptionSet/w:Option", NAMESPACES)
    selectors = {o.get("Name"): o.text or "" for o in header.findall("w:SelectorSet/w:Selector", NAMESPACES)}
    size = _text(header, "w:MaxEnvelopeSize")
    return Message(
        action=action,
        operation=action.rpartition("/")[2],
        message_id=_text(header, "a:MessageID"),
        to=_text(header, "a:To"),
        resource_uri=_text(header, "w:ResourceURI"),
        shell_id=selectors.get("ShellId", ""),
        options={o.get("Name", ""): o.text or "" for o in options},
        must_comply=frozenset(o.get("Name", "") for o in options if o.get("MustComply", "").lower() == "true"),
        timeout=parse_duration(_text(header, "w:OperationTimeout"), 60.0),
        max_envelope=min(int(size), MAX_ENVELOPE) if size.isdigit() else MAX_ENVELOPE,
        body=body,
    )


def envelope(action: str, relates_to: str, body: str) -> bytes:
    return (
        f'<s:Envelope xml:lang="en-US"{_DECLARATIONS}><s:Header><a:Action>{action}</a:Action>'
        f"<a:MessageID>uuid:{str(uuid.uuid4()).upper()}</a:MessageID><a:To>{ANONYMOUS}</a:To>"
        f"<a:RelatesTo>{escape(relates_to)}</a:RelatesTo></s:Header><s:Body>{body}</s:Body></s:Envelope>"
    ).encode()


def answer(message: Message, body: str = "") -> bytes:
    return envelope(f"{message.action}Response", message.message_id, body)


def fault(error: Fault, machine: str, relates_to: str) -> bytes:
    text = escape(error.text)
    inner = text
    if error.provider:
        path = "%systemroot%\\system32\\winrscmd.dll"
        inner = f'<f:ProviderFault provider="Shell cmd plugin" path="{path}">{text}</f:ProviderFault>'
    detail = ""
    if error.subcode in _FAULT_DETAILS:
        kind = _FAULT_DETAILS[error.subcode]
        detail = f"<w:FaultDetail>http://schemas.dmtf.org/wbem/wsman/1/wsman/faultDetail/{kind}</w:FaultDetail>"
    body = (
        f"<s:Fault><s:Code><s:Value>s:{'Sender' if error.sender else 'Receiver'}</s:Value>"
        f"<s:Subcode><s:Value>{error.subcode}</s:Value></s:Subcode></s:Code>"
        f'<s:Reason><s:Text xml:lang="en-US">{escape(error.reason)}</s:Text></s:Reason><s:Detail>{detail}'
        f'<f:WSManFault xmlns:f="http://schemas.microsoft.com/wbem/wsman/1/wsmanfault" Code="{error.code}"'
        f" Machine={quoteattr(machine)}><f:Message>{inner}</f:Message></f:WSManFault></s:Detail></s:Fault>"
    )
    return envelope(FAULT_ACTION, relates_to, body)


def created(
    message: Message,
    shell_id: str,
    owner: str,
    client: str,
    idle: float,
    environment: Mapping[str, str],
    directory: str,
) -> bytes:
    """Answer to Create: the shell as it was made, with what the client asked for."""
    asked = ""
    if environment:
        variables = (f"<rsp:Variable Name={quoteattr(n)}>{escape(v)}</rsp:Variable>" for n, v in environment.items())
        asked = f"<rsp:Environment>{''.join(variables)}</rsp:Environment>"
    if directory:
        asked += f"<rsp:WorkingDirectory>{escape(directory)}</rsp:WorkingDirectory>"
    streams = "<rsp:InputStreams>stdin</rsp:InputStreams><rsp:OutputStreams>stdout stderr</rsp:OutputStreams>"
    return answer(
        message,
        f"<x:ResourceCreated><a:Address>{escape(message.to)}</a:Address><a:ReferenceParameters>"
        f"<w:ResourceURI>{CMD_RESOURCE}</w:ResourceURI><w:SelectorSet>"
        f'<w:Selector Name="ShellId">{shell_id}</w:Selector></w:SelectorSet></a:ReferenceParameters>'
        "</x:ResourceCreated>"
        f'<rsp:Shell xmlns:rsp="{SHELL}"><rsp:ShellId>{shell_id}</rsp:ShellId>'
        f"<rsp:ResourceUri>{CMD_RESOURCE}</rsp:ResourceUri><rsp:Owner>{escape(owner)}</rsp:Owner>"
        f"<rsp:ClientIP>{client}</rsp:ClientIP>{asked}<rsp:IdleTimeOut>PT{idle:.3f}S</rsp:IdleTimeOut>{streams}"
        "<rsp:ShellRunTime>P0DT0H0M0S</rsp:ShellRunTime><rsp:ShellInactivity>P0DT0H0M0S</rsp:ShellInactivity>"
        "</rsp:Shell>",
    )
