//go:build windows

// Copyright (c) 2026, kubewin.csi contributors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command mute is a Windows service that starts, says so in its log and serves nothing: a csi-proxy.exe that runs and does not
// work. It takes csi-proxy's flags and ends with its last log line when it is stopped.
package main

import (
	"os"
	"strings"

	"golang.org/x/sys/windows/svc"
)

type handler struct{}

// Execute reports RUNNING and waits to be stopped.
func (handler) Execute(_ []string, requests <-chan svc.ChangeRequest, status chan<- svc.Status) (bool, uint32) {
	running := svc.Status{State: svc.Running, Accepts: svc.AcceptStop | svc.AcceptShutdown}
	status <- running
	for request := range requests {
		switch request.Cmd {
		case svc.Interrogate:
			status <- running
		case svc.Stop, svc.Shutdown:
			return false, 0
		}
	}
	return false, 0
}

// say appends a line to the file of -log_file, if there is one.
func say(line string) {
	for _, argument := range os.Args {
		path, found := strings.CutPrefix(strings.TrimLeft(argument, "-"), "log_file=")
		if !found {
			continue
		}
		if file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644); err == nil {
			_, _ = file.WriteString(line + "\r\n")
			_ = file.Close()
		}
	}
}

func main() {
	say("mute: no pipes will be served")
	if err := svc.Run("csi-proxy", handler{}); err != nil {
		say("mute: " + err.Error())
		os.Exit(1)
	}
}
