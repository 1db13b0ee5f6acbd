// Copyright (c) 2026, kubewin.csi contributors
// SPDX-License-Identifier: GPL-3.0-or-later

// Command storage does with a disk and a share of this machine what drivers do on a node, through csi-proxy's pipes: one step a
// call. The Windows workflow runs it, on a machine that is thrown away afterwards (tests/real_windows/storage.yml).
//
// It prints what it did and exits with 0, 1 (the step failed) or 2 (no such step).
package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

const timeout = 3 * time.Minute

func main() {
	if len(os.Args) != 2 || steps[os.Args[1]] == nil {
		fmt.Fprintf(os.Stderr, "usage: storage %s\n", strings.Join(slices.Sorted(maps.Keys(steps)), "|"))
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if err := perform(ctx, steps[os.Args[1]]); err != nil {
		fmt.Fprintf(os.Stderr, "storage %s: %v\n", os.Args[1], err)
		os.Exit(1)
	}
}

func perform(ctx context.Context, step func(*node, context.Context) error) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	proxy, err := openPipes()
	if err != nil {
		return err
	}
	return step(&node{proxy: proxy, machine: windows{}, host: host}, ctx)
}

type windows struct{}

// run starts a program. Its output is shown when it fails, its arguments never: they may hold a password.
func (windows) run(ctx context.Context, program string, arguments ...string) error {
	output, err := exec.CommandContext(ctx, program, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %s: %w: %s", program, arguments[0], err, strings.Join(strings.Fields(string(output)), " "))
	}
	return nil
}

func (windows) writeFile(path, text string) error {
	return os.WriteFile(path, []byte(text), 0o600)
}

func (windows) readFile(path string) (string, error) {
	text, err := os.ReadFile(path)
	return string(text), err
}

func (windows) makeDirectory(path string) error {
	return os.Mkdir(path, 0o700)
}

func (windows) removeFile(path string) error {
	return os.Remove(path)
}
