//go:build !windows

// Copyright (c) 2026, kubewin.csi contributors
// SPDX-License-Identifier: GPL-3.0-or-later

package main

import "errors"

func openPipes() (proxy, error) {
	return proxy{}, errors.New("csi-proxy serves pipes of Windows")
}
