// Package console holds what one command sees of its surroundings: streams, directory, environment, code page, host.
package console

import (
	"context"
	"fmt"
	"io"
	"maps"
	"sort"
	"strings"
	"sync/atomic"

	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/text"
)

// Session is one command's surroundings; a pipe's side or a nested cmd.exe works on a copy.
type Session struct {
	host.Host
	Ctx      context.Context // done = the process is being terminated
	In       io.Reader
	Out, Err io.Writer
	Dir      string
	Env      Env
	CodePage *atomic.Int32 // belongs to the console, so chcp is seen by everybody
	// Step runs one simple command; the agent puts journal, faults and stop_after here.
	Step func(s *Session, command string, run func() int) int
	// Unread is set when a write failed because nobody reads the output any more.
	Unread bool
	// Unknown records a form that the userland does not know.
	Unknown func(what string)
}

// Copy gives a child that shares the console and owns its environment.
func (s *Session) Copy() *Session {
	c := *s
	c.Env = Env{maps.Clone(s.Env.vars)}
	return &c
}

// Printf writes text to stdout in the console's code page, Errorf to stderr.
func (s *Session) Printf(format string, a ...any) { s.print(s.Out, format, a) }

// Errorf is Printf to stderr.
func (s *Session) Errorf(format string, a ...any) { s.print(s.Err, format, a) }

func (s *Session) print(w io.Writer, format string, a []any) {
	// A reader that went away is not a tool's concern, as with a console program; cmd.exe itself looks.
	_, err := w.Write(text.Encode(int(s.CodePage.Load()), fmt.Sprintf(format, a...)))
	s.Unread = s.Unread || err != nil
}

// Pick gives the English or the German form.
func (s *Session) Pick(en, de string) string {
	if s.Lang() == "de" {
		return de
	}
	return en
}

// Message is the sentence of a Win32 code in the host's language.
func (s *Session) Message(code int) string { return text.Message(s.Lang(), code) }

// Abs makes a path absolute against the current directory.
func (s *Session) Abs(p string) string { return host.Abs(s.Dir, p) }

// Reject answers a form that the userland does not know: loudly, never by a guess. It gives the exit code 87.
func (s *Session) Reject(format string, a ...any) int {
	what := fmt.Sprintf(format, a...)
	if s.Unknown != nil {
		s.Unknown(what)
	}
	s.Errorf("winland: unknown form: %s\r\n", what)
	return int(host.InvalidParameter)
}

// Killed tells whether the process is being terminated.
func (s *Session) Killed() bool { return s.Ctx.Err() != nil }

// Env is a set of environment variables, case-insensitive and keeping the spelling.
type Env struct{ vars map[string][2]string }

// NewEnv copies a map.
func NewEnv(m map[string]string) Env {
	e := Env{map[string][2]string{}}
	for k, v := range m {
		e.Set(k, v)
	}
	return e
}

// Get reads a variable.
func (e Env) Get(k string) (string, bool) {
	v, ok := e.vars[strings.ToUpper(k)]
	return v[1], ok
}

// Set writes a variable; an empty value removes it, as cmd does.
func (e Env) Set(k, v string) {
	up := strings.ToUpper(k)
	if v == "" {
		delete(e.vars, up)
		return
	}
	if old, ok := e.vars[up]; ok {
		k = old[0]
	}
	e.vars[up] = [2]string{k, v}
}

// List gives NAME=value of the variables that begin with a prefix, sorted.
func (e Env) List(prefix string) []string {
	var keys []string
	for k := range e.vars {
		if strings.HasPrefix(k, strings.ToUpper(prefix)) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for i, k := range keys {
		keys[i] = e.vars[k][0] + "=" + e.vars[k][1]
	}
	return keys
}

// Map gives a plain copy.
func (e Env) Map() map[string]string {
	m := map[string]string{}
	for _, v := range e.vars {
		m[v[0]] = v[1]
	}
	return m
}
