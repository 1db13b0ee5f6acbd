//go:build windows

// Copyright (c) 2026, kubewin.csi contributors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command csiclient proves that a csi-proxy works by using it as a driver does: through its named pipes, with csi-proxy's own
// client module. A listed pipe says that somebody listens; an answered call says that csi-proxy serves.
//
// It prints one JSON object and exits with 0 (every check passed), 1 (a check failed), 2 (bad flags) or 3 (the filesystem pipe
// could not be opened).
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"

	winio "github.com/Microsoft/go-winio"
	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	disk "github.com/kubernetes-csi/csi-proxy/client/groups/disk/v1"
	fs "github.com/kubernetes-csi/csi-proxy/client/groups/filesystem/v1"
)

const (
	exitPassed      = 0
	exitFailed      = 1
	exitUsage       = 2
	exitUnreachable = 3
)

// check is one call and what came of it. Detail holds the answer, or the error's text when the call failed.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Millis int64  `json:"ms"`
	Detail string `json:"detail"`
}

type report struct {
	OK     bool    `json:"ok"`
	Checks []check `json:"checks"`
	Error  string  `json:"error,omitempty"`
}

type prover struct {
	timeout time.Duration
	report  report
}

// run calls f and records the check. f returns what to show and an error when the check failed.
func (p *prover) run(name string, f func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	begin := time.Now()
	detail, err := f(ctx)
	if err != nil {
		detail = strings.Join(strings.Fields(err.Error()), " ")
	}
	p.report.Checks = append(p.report.Checks, check{
		Name: name, OK: err == nil, Millis: time.Since(begin).Milliseconds(), Detail: detail,
	})
}

// dial opens a pipe by its bare name and closes it again.
func (p *prover) dial(pipe string) {
	p.run("dial "+pipe, func(ctx context.Context) (string, error) {
		connection, err := winio.DialPipeContext(ctx, `\\.\pipe\`+pipe)
		if err != nil {
			return "", err
		}
		return "open", connection.Close()
	})
}

// filesystem makes a directory under the kubelet path, sees it, is refused outside that path, and removes it.
func (p *prover) filesystem(client *fs.Client, inside, outside string) {
	exists := func(ctx context.Context) (bool, error) {
		answer, err := client.PathExists(ctx, &fsapi.PathExistsRequest{Path: inside})
		return answer.GetExists(), err
	}
	p.run("filesystem.v1 Mkdir", func(ctx context.Context) (string, error) {
		_, err := client.Mkdir(ctx, &fsapi.MkdirRequest{Path: inside})
		return inside, err
	})
	p.run("filesystem.v1 PathExists", func(ctx context.Context) (string, error) {
		there, err := exists(ctx)
		if err != nil {
			return "", err
		}
		if !there {
			return "", fmt.Errorf("%s was just made and csi-proxy does not see it", inside)
		}
		return "exists", nil
	})
	p.run("filesystem.v1 Mkdir outside is refused", func(ctx context.Context) (string, error) {
		_, err := client.Mkdir(ctx, &fsapi.MkdirRequest{Path: outside})
		if err == nil {
			return "", fmt.Errorf("csi-proxy made %s, which lies outside its kubelet path and working directories", outside)
		}
		if !strings.Contains(err.Error(), "not within") {
			return "", fmt.Errorf("refused, but not because of the path: %w", err)
		}
		return err.Error(), nil
	})
	p.run("filesystem.v1 Rmdir", func(ctx context.Context) (string, error) {
		if _, err := client.Rmdir(ctx, &fsapi.RmdirRequest{Path: inside}); err != nil {
			return "", err
		}
		there, err := exists(ctx)
		if err == nil && there {
			err = fmt.Errorf("%s is still there after it was removed", inside)
		}
		return "removed", err
	})
}

// disks lists the disks. From 1.3.0 on csi-proxy asks WMI; before, it starts a PowerShell, which a host without one cannot do.
func (p *prover) disks() {
	p.run("disk.v1 ListDiskLocations", func(ctx context.Context) (string, error) {
		client, err := disk.NewClient()
		if err != nil {
			return "", err
		}
		defer client.Close()
		answer, err := client.ListDiskLocations(ctx, &diskapi.ListDiskLocationsRequest{})
		return fmt.Sprintf("%d disks", len(answer.GetDiskLocations())), err
	})
}

func main() {
	inside := flag.String("inside", `C:\var\lib\kubelet\plugins\kubewin-proof`, "directory to make under the kubelet path")
	outside := flag.String("outside", `C:\kubewin-proof-outside`, "directory that csi-proxy must refuse to make")
	dial := flag.String("dial", "", "comma separated bare names of further pipes that must accept a connection")
	disks := flag.Bool("disks", false, "also list disks, which works without PowerShell from csi-proxy 1.3.0 on")
	timeout := flag.Duration("timeout", 15*time.Second, "longest time for one call")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "csiclient: unexpected argument %q\n", flag.Arg(0))
		os.Exit(exitUsage)
	}
	os.Exit(prove(&prover{timeout: *timeout, report: report{Checks: []check{}}}, *inside, *outside, *dial, *disks))
}

func prove(p *prover, inside, outside, dial string, disks bool) int {
	client, err := fs.NewClient()
	if err != nil {
		p.report.Error = fmt.Sprintf("pipe csi-proxy-filesystem-v1 cannot be opened: %v", err)
		return p.finish(exitUnreachable)
	}
	defer client.Close()
	for _, pipe := range strings.FieldsFunc(dial, func(r rune) bool { return r == ',' }) {
		p.dial(pipe)
	}
	p.filesystem(client, inside, outside)
	if disks {
		p.disks()
	}
	for _, one := range p.report.Checks {
		if !one.OK {
			return p.finish(exitFailed)
		}
	}
	return p.finish(exitPassed)
}

func (p *prover) finish(code int) int {
	p.report.OK = code == exitPassed
	if err := json.NewEncoder(os.Stdout).Encode(p.report); err != nil {
		fmt.Fprintf(os.Stderr, "csiclient: %v\n", err)
		return exitFailed
	}
	return code
}
