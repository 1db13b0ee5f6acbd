package agent

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/shell"
	"kubewin.invalid/lab/winland/text"
	"kubewin.invalid/lab/winland/tools"
)

// Provider gives the machines behind an agent.
type Provider interface {
	// Find gives a machine by name and the context that ends when it reboots.
	Find(name string) (host.Host, context.Context, error)
	// Desk is the name under which journal and faults of a machine are kept.
	Desk(name string) string
	// Latency is waited before each line; Orphan is how long stdin of a lost client stays open.
	Latency(name string) (latency, orphan time.Duration)
	// Control answers the verbs that only this kind of machine knows; errVerb for any other.
	Control(name, verb string, args json.RawMessage) (map[string]any, error)
}

// ErrVerb means that a provider does not know a verb.
var ErrVerb = errors.New("unknown control verb")

// Server is one agent.
type Server struct {
	provider Provider
	mu       sync.Mutex
	desks    map[string]*desk
}

// desk is what the agent itself keeps for a machine.
type desk struct {
	faults  faults
	journal journal
}

// New makes an agent for machines.
func New(p Provider) *Server { return &Server{provider: p, desks: map[string]*desk{}} }

func (s *Server) desk(name string) *desk {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.desks[name]
	if d == nil {
		d = &desk{}
		s.desks[name] = d
	}
	return d
}

// Serve prints the address and answers until the listener fails.
func (s *Server) Serve(address string, out io.Writer) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "LISTEN %s\n", l.Addr())
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		go s.serve(c)
	}
}

// request is the first line of a connection.
type request struct {
	Host      string            `json:"host"`
	Line      string            `json:"line"`
	Shell     bool              `json:"shell"`
	Dir       string            `json:"dir"`
	Env       map[string]string `json:"env"`
	CodePage  int               `json:"codepage"`
	StopAfter *int              `json:"stop_after"`
	HangUp    *int              `json:"hang_up_after"`
	User      bool              `json:"user"` // as a user without administrator rights
	Control   string            `json:"control"`
	Args      json.RawMessage   `json:"args"`
}

func (s *Server) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 1<<16)
	first, err := r.ReadBytes('\n')
	if err != nil {
		return
	}
	var req request
	if err := json.Unmarshal(first, &req); err != nil {
		answer(c, nil, fmt.Errorf("first line is no JSON request: %w", err))
		return
	}
	if req.Control != "" {
		out, err := s.control(req)
		answer(c, out, err)
		return
	}
	s.command(c, r, req)
}

func answer(w io.Writer, out map[string]any, err error) {
	if out == nil {
		out = map[string]any{}
	}
	out["ok"] = err == nil
	if err != nil {
		out["error"] = err.Error()
	}
	b, _ := json.Marshal(out) // maps of plain values
	_, _ = w.Write(append(b, '\n'))
}

func (s *Server) command(c net.Conn, r io.Reader, req request) {
	sink := &frameSink{w: c}
	exit := func(rc uint32) {
		var b [4]byte
		binary.BigEndian.PutUint32(b[:], rc)
		sink.send(frameExit, b[:])
	}
	h, life, err := s.provider.Find(req.Host)
	if err == nil && !text.KnownPage(cmpOr(req.CodePage, 65001)) {
		err = fmt.Errorf("code page %d: known are 65001, 437, 850", req.CodePage)
	}
	if err != nil {
		sink.send(frameStderr, []byte("winland: "+err.Error()+"\r\n"))
		exit(1)
		return
	}
	ctx, cancel := context.WithCancel(life)
	defer cancel()
	in := newStdin()
	latency, orphan := s.provider.Latency(req.Host)
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		receive(r, in, orphan, cancel, sink.hangUp)
	}()
	context.AfterFunc(ctx, func() { in.end(errTerminated) })
	time.Sleep(latency)
	exit(s.run(ctx, cancel, h, req, in, sink))
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite() // and read on: unread stdin would turn the close into a reset that eats the output
	}
	select {
	case <-gone:
	case <-time.After(30 * time.Second):
	}
}

func cmpOr(n, otherwise int) int {
	if n == 0 {
		return otherwise
	}
	return n
}

// run executes a line and gives its exit code.
func (s *Server) run(ctx context.Context, cancel func(), h host.Host, req request, in io.Reader, sink *frameSink) uint32 {
	d := s.desk(s.provider.Desk(req.Host))
	entry := d.journal.begin(req.Line)
	if req.User {
		h = tools.Restrict(h)
	}
	g := &guard{Host: h, faults: &d.faults}
	dead := func() bool { return ctx.Err() != nil }
	page := &atomic.Int32{}
	page.Store(int32(cmpOr(req.CodePage, 65001)))
	var done atomic.Int32
	session := &console.Session{
		Host: g, Ctx: ctx, In: in, Out: stream{sink, frameStdout, dead}, Err: stream{sink, frameStderr, dead},
		Dir: `C:\`, Env: console.NewEnv(h.Environment()), CodePage: page,
		Unknown: func(what string) { d.journal.unknown(entry, what) },
	}
	session.Step = func(sub *console.Session, command string, run func() int) int {
		d.journal.step(entry, command)
		var rc int
		if rule := d.faults.hit(command); rule != nil {
			rc = rule.apply(sub, g, run)
		} else {
			rc = run()
		}
		n := int(done.Add(1))
		if req.StopAfter != nil && n >= *req.StopAfter {
			cancel()
		}
		if req.HangUp != nil && n >= *req.HangUp {
			sink.hangUp()
		}
		return rc
	}
	if home, ok := session.Env.Get("USERPROFILE"); ok {
		session.Dir = home
	}
	if req.Dir != "" {
		session.Dir = host.Abs(session.Dir, req.Dir)
	}
	for k, v := range req.Env {
		session.Env.Set(k, v)
	}
	rc := host.Killed
	switch {
	case req.StopAfter != nil && *req.StopAfter <= 0: // killed before the first command
		cancel()
	case req.Shell:
		rc = shell.Run(session, "/C "+req.Line)
	default:
		rc = shell.Exec(session, req.Line)
	}
	if ctx.Err() != nil {
		rc = host.Killed
	}
	code := uint32(int32(rc))
	d.journal.finish(entry, code)
	return code
}
