// Package testkit runs command lines on a simulated machine for the tests of the other packages.
package testkit

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/shell"
	"kubewin.invalid/lab/winland/sim"
	"kubewin.invalid/lab/winland/text"
)

// Result is what a line left.
type Result struct {
	RC       int
	Out, Err string
	Unknown  []string
	Raw      []byte // stdout as sent
}

// Machine is a simulated machine with a console.
type Machine struct {
	*sim.Host
	T    *testing.T
	Page int
}

// New furnishes a machine called win-1; change may alter its settings first.
func New(t *testing.T, change func(*sim.Settings)) *Machine {
	t.Helper()
	set := sim.Defaults()
	set.Name, set.Addresses = "win-1", []string{"127.0.11.1"}
	if change != nil {
		change(&set)
	}
	return &Machine{Host: sim.New(set), T: t, Page: 65001}
}

// Session makes the surroundings of one command.
func (m *Machine) Session(in io.Reader, out, err io.Writer) *console.Session {
	page := &atomic.Int32{}
	page.Store(int32(m.Page))
	return &console.Session{
		Host: m, Ctx: context.Background(), In: in, Out: out, Err: err, Dir: `C:\`, Env: console.NewEnv(m.Environment()), CodePage: page,
		Step: func(_ *console.Session, _ string, run func() int) int { return run() },
	}
}

// Run executes a line as `cmd.exe /C line`.
func (m *Machine) Run(line string) Result { return m.Feed(line, nil) }

// Feed is Run with standard input.
func (m *Machine) Feed(line string, in []byte) Result {
	var out, errs bytes.Buffer
	var r Result
	s := m.Session(bytes.NewReader(in), &out, &errs)
	s.Unknown = func(what string) { r.Unknown = append(r.Unknown, what) }
	r.RC = shell.Run(s, "/C "+line)
	r.Raw = out.Bytes()
	r.Out, r.Err = text.Decode(m.Page, out.Bytes()), text.Decode(m.Page, errs.Bytes())
	return r
}

// Must runs a line that has to end with 0.
func (m *Machine) Must(line string) Result {
	m.T.Helper()
	r := m.Run(line)
	if r.RC != 0 {
		m.T.Fatalf("%s: rc %d\n%s%s", line, r.RC, r.Out, r.Err)
	}
	return r
}

// Plant puts a simulated executable on the disk.
func (m *Machine) Plant(path, program string) {
	m.T.Helper()
	w, err := m.CreateFile(path, false)
	if err == nil {
		_, err = w.Write([]byte("WINLAND-EXE " + program + "\n"))
		_ = w.Close()
	}
	if err != nil {
		m.T.Fatalf("planting %s: %v", path, err)
	}
}

// Eventually polls until a line's output holds a text.
func (m *Machine) Eventually(line, want string) {
	m.T.Helper()
	var r Result
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if r = m.Run(line); strings.Contains(r.Out+r.Err, want) {
			return
		}
	}
	m.T.Fatalf("%s never showed %q; last rc %d\n%s%s", line, want, r.RC, r.Out, r.Err)
}
