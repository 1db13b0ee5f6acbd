# Copyright (c) 2026, kubewin.csi contributors
# GNU General Public License v3.0+ (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of everything that talks to Kubernetes. The ones for access are kubernetes.core's, under the same names."""

from __future__ import annotations


class ModuleDocFragment:
    """Documentation fragment kubewin.csi.cluster."""

    DOCUMENTATION = r"""
options:
  host:
    description: URL of the API server. Also C(K8S_AUTH_HOST).
    type: str
  api_key:
    description: Token for the API server. Also C(K8S_AUTH_API_KEY).
    type: str
  kubeconfig:
    description:
      - Path of a kubeconfig file, or its content as a dictionary. Also C(K8S_AUTH_KUBECONFIG).
      - Without options for access, defaults to the in-cluster configuration, then to C(~/.kube/config).
    type: raw
  context:
    description: Context of the kubeconfig file. Also C(K8S_AUTH_CONTEXT).
    type: str
  username:
    description: User name for clusters with basic authentication. Also C(K8S_AUTH_USERNAME).
    type: str
  password:
    description: Password for clusters with basic authentication. Also C(K8S_AUTH_PASSWORD).
    type: str
  client_cert:
    description: Path of a client certificate. Also C(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description: Path of the client certificate's key. Also C(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  ca_cert:
    description: Path of the CA certificate of the API server. Also C(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  validate_certs:
    description: Whether to verify the API server's certificate. Also C(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description: URL of an HTTP proxy for the API server. Also C(K8S_AUTH_PROXY).
    type: str
  no_proxy:
    description: Hosts that need no proxy, separated by commas. Also C(K8S_AUTH_NO_PROXY).
    type: str
  proxy_headers:
    description: Headers for the proxy.
    type: dict
    suboptions:
      proxy_basic_auth:
        description:
          - User and password for the proxy, separated by a colon. Also C(K8S_AUTH_PROXY_HEADERS_PROXY_BASIC_AUTH).
        type: str
      basic_auth:
        description:
          - User and password for basic authentication, separated by a colon. Also
            C(K8S_AUTH_PROXY_HEADERS_BASIC_AUTH).
        type: str
      user_agent:
        description: User agent to send. Also C(K8S_AUTH_PROXY_HEADERS_USER_AGENT).
        type: str
  persist_config:
    description: Whether to save refreshed tokens to the kubeconfig file. Also C(K8S_AUTH_PERSIST_CONFIG).
    type: bool
  impersonate_user:
    description: User to act as. Also C(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description: Groups to act as. Also C(K8S_AUTH_IMPERSONATE_GROUPS), separated by commas.
    type: list
    elements: str
  api_timeout:
    description:
      - Seconds to repeat requests if the API server does not answer, answers with a server error, or asks to slow down (429 with
        C(Retry-After)).
    type: int
    default: 60
requirements:
  - kubernetes.core >= 5.0.0, < 8.0.0
  - kubernetes (Python library) >= 28.1.0
  - PyYAML
notes:
  - Requests are safe to repeat and are repeated until O(api_timeout) has passed.
"""
