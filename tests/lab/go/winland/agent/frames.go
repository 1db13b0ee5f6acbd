// Package agent serves command lines over TCP; README.md describes the protocol.
package agent

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"
)

// Frame types: to the agent, and from it.
const (
	frameStdin, frameStdinEnd, frameTerminate, frameHangUp = 0, 1, 2, 3
	frameStdout, frameStderr, frameExit                    = 1, 2, 3
)

// frameSink writes frames; once the client is gone it swallows everything, because the command runs on.
type frameSink struct {
	mu   sync.Mutex
	w    io.Writer
	gone bool
	hung bool // nobody reads the pipe any more: a write fails, other than to a client that is merely gone
}

var errNoPipe = errors.New("the process tried to write to a nonexistent pipe")

func (f *frameSink) hangUp() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hung = true
}

func (f *frameSink) hungUp() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hung
}

func (f *frameSink) send(kind byte, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.gone {
		return
	}
	head := [5]byte{kind}
	binary.BigEndian.PutUint32(head[1:], uint32(len(b)))
	if _, err := f.w.Write(append(head[:], b...)); err != nil {
		f.gone = true
	}
}

// stream is one of the two outputs.
type stream struct {
	sink *frameSink
	kind byte
	dead func() bool // a terminated process prints no more
}

func (s stream) Write(b []byte) (int, error) {
	if s.sink.hungUp() {
		return 0, errNoPipe
	}
	if !s.dead() {
		s.sink.send(s.kind, b)
	}
	return len(b), nil
}

// stdin is an unbounded buffer, so that a terminate frame is seen although nobody reads.
type stdin struct {
	mu    sync.Mutex
	ready *sync.Cond
	buf   bytes.Buffer
	err   error
}

func newStdin() *stdin {
	s := &stdin{}
	s.ready = sync.NewCond(&s.mu)
	return s
}

func (s *stdin) Read(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.buf.Len() == 0 && s.err == nil {
		s.ready.Wait()
	}
	if s.buf.Len() == 0 {
		return 0, s.err
	}
	return s.buf.Read(b)
}

func (s *stdin) add(b []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.buf.Write(b)
		s.ready.Broadcast()
	}
}

// end closes the stream: io.EOF at its proper end, anything else when the process is terminated.
func (s *stdin) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = err
		s.ready.Broadcast()
	}
}

var errTerminated = errors.New("terminated")

// receive takes the client's frames until it is done or gone. A client that goes away without a terminate frame leaves
// its command running, with stdin open for the time that a lost client's shell lives.
func receive(r io.Reader, in *stdin, orphan time.Duration, terminate, hangUp func()) {
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			break
		}
		data := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(r, data); err != nil {
			break
		}
		switch head[0] {
		case frameStdin:
			in.add(data)
		case frameStdinEnd:
			in.end(io.EOF)
		case frameTerminate:
			terminate()
			return
		case frameHangUp:
			hangUp()
		}
	}
	time.AfterFunc(orphan, func() { in.end(io.EOF) })
}
