package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/windows"

	"kubewin.invalid/lab/winland/agent"
	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/shell"
	"kubewin.invalid/lab/winland/tools"
	"kubewin.invalid/lab/winland/wine"
)

func run(args []string) error {
	base := strings.ToLower(host.Base(args[0]))
	name, _, _ := strings.Cut(base, ".")
	if name != "winland" {
		os.Exit(program(name))
	}
	if len(args) != 3 || args[1] != "agent" {
		return errors.New("usage: winland.exe agent 127.0.0.1:0, or a copy named as one of the in-box programs")
	}
	h := wine.New()
	go h.WatchFailures()
	return agent.New(h).Serve(args[2], os.Stdout)
}

// program is the multi-call side: this executable under the name of an in-box program.
func program(name string) int {
	dir, err := os.Getwd()
	if err != nil {
		dir = `C:\`
	}
	h := wine.New()
	page := &atomic.Int32{}
	page.Store(int32(h.OEMCodePage()))
	s := &console.Session{
		Host: h, Ctx: context.Background(), In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Dir: dir,
		Env: console.NewEnv(h.Environment()), CodePage: page,
		Step: func(_ *console.Session, _ string, run func() int) int { return run() },
	}
	_, rest := console.SplitProgram(windows.UTF16PtrToString(syscall.GetCommandLine()))
	if name == "cmd" {
		return shell.Run(s, rest)
	}
	tool := tools.ByName(name)
	if tool == nil {
		return s.Reject("program %s", name)
	}
	return tool(s, console.Argv(rest))
}
