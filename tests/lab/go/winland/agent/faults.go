package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"time"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

// Rule is one fault. With match it answers a simple command; the other forms are faults of the machine.
type Rule struct {
	Match  string  `json:"match"`
	After  int     `json:"after"`  // matches let through first
	Times  int     `json:"times"`  // 1 when absent, negative for ever
	RC     *uint32 `json:"rc"`     // absent: the command runs as usual, after the delay
	Stdout string  `json:"stdout"` // printed instead of the command's own
	Stderr string  `json:"stderr"`
	Effect string  `json:"effect"` // none, half (what it wrote is cut to half), done
	Delay  int     `json:"delay_ms"`

	DiskFree   *uint64 `json:"disk_free"`  // bytes
	Quarantine string  `json:"quarantine"` // path: a file vanishes once it is written, its start fails with 225
	Block      string  `json:"block"`      // path: start fails with code
	Scan       string  `json:"scan"`       // path: a file is held open for delay_ms once it is written
	Code       uint32  `json:"code"`

	re *regexp.Regexp
}

type faults struct {
	mu    sync.Mutex
	rules []*Rule
	free  *uint64
	held  map[string]time.Time // by lower-case path: until when a scanner holds it
}

func (f *faults) add(r Rule) error {
	pattern, forms := "", 0
	for _, p := range []string{r.Match, r.Quarantine, r.Block, r.Scan} {
		if p != "" {
			pattern = p
			forms++
		}
	}
	if r.DiskFree != nil {
		forms++
	}
	if forms != 1 {
		return errors.New("a rule has exactly one of match, disk_free, quarantine, block, scan")
	}
	switch r.Effect {
	case "", "none", "half", "done":
	default:
		return fmt.Errorf("effect %q: expected none, half or done", r.Effect)
	}
	if r.Block != "" && r.Code == 0 {
		return errors.New("block needs a code such as 1260 or 577")
	}
	if r.Times == 0 {
		r.Times = 1
	}
	var err error
	if r.re, err = regexp.Compile("(?i)" + pattern); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if r.DiskFree != nil {
		f.free = r.DiskFree
		return nil
	}
	f.rules = append(f.rules, &r)
	return nil
}

func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules, f.free, f.held = nil, nil, nil
}

// hit finds the rule that answers a command and counts it.
func (f *faults) hit(command string) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Match == "" || r.Times == 0 || !r.re.MatchString(command) {
			continue
		}
		if r.After > 0 {
			r.After--
			continue
		}
		if r.Times > 0 {
			r.Times--
		}
		return r
	}
	return nil
}

// path finds the code with which a start of a path fails, and whether files there are quarantined.
func (f *faults) path(p string) (code host.Errno, quarantined bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Match != "" || r.Scan != "" || !r.re.MatchString(p) {
			continue
		}
		if r.Quarantine != "" {
			return host.VirusInfected, true
		}
		return host.Errno(r.Code), false
	}
	return 0, false
}

// apply answers a command by a rule.
func (r *Rule) apply(s *console.Session, g *guard, run func() int) int {
	if r.Delay > 0 {
		select {
		case <-time.After(time.Duration(r.Delay) * time.Millisecond):
		case <-s.Ctx.Done():
			return host.Killed
		}
	}
	if r.RC == nil {
		return run()
	}
	if r.Effect == "half" || r.Effect == "done" {
		out, err := s.Out, s.Err
		s.Out, s.Err = io.Discard, io.Discard
		before := g.mark()
		run()
		s.Out, s.Err = out, err
		if r.Effect == "half" {
			g.halve(before)
		}
	}
	if r.Stdout != "" {
		s.Printf("%s", r.Stdout)
	}
	if r.Stderr != "" {
		s.Errorf("%s", r.Stderr)
	}
	return int(int32(*r.RC))
}

// guard is a host seen through its faults.
type guard struct {
	host.Host
	faults  *faults
	mu      sync.Mutex
	written []string
}

func (g *guard) mark() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.written)
}

// halve cuts the files written since a mark to half of what they are.
func (g *guard) halve(from int) {
	g.mu.Lock()
	paths := g.written[from:]
	g.mu.Unlock()
	for _, p := range paths {
		r, err := g.Host.OpenFile(p)
		if err != nil {
			continue
		}
		b, err := io.ReadAll(r)
		_ = r.Close()
		if err != nil {
			continue
		}
		if w, err := g.Host.CreateFile(p, false); err == nil {
			_, _ = w.Write(b[:len(b)/2]) // shorter than what was there
			_ = w.Close()
		}
	}
}

func (g *guard) CreateFile(path string, appendTo bool) (io.WriteCloser, error) {
	w, err := g.Host.CreateFile(path, appendTo)
	if err != nil {
		return nil, err
	}
	g.mu.Lock()
	g.written = append(g.written, path)
	g.mu.Unlock()
	return &guardedFile{w, g, path}, nil
}

type guardedFile struct {
	io.WriteCloser
	g    *guard
	path string
}

func (f *guardedFile) Write(b []byte) (int, error) {
	if !f.g.faults.take(uint64(len(b))) {
		return 0, host.DiskFull
	}
	return f.WriteCloser.Write(b)
}

func (f *guardedFile) Close() error {
	err := f.WriteCloser.Close()
	f.g.vanish(f.path)
	f.g.faults.scan(f.path, f.g.Now())
	return err
}

// scan lets a scanner open a file that was written.
func (f *faults) scan(path string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Scan == "" || r.Times == 0 || !r.re.MatchString(path) {
			continue
		}
		if r.Times > 0 {
			r.Times--
		}
		if f.held == nil {
			f.held = map[string]time.Time{}
		}
		f.held[strings.ToLower(path)] = now.Add(time.Duration(r.Delay) * time.Millisecond)
	}
}

// scanned is why a path cannot be moved or deleted while a scanner holds it, or something below it.
func (f *faults) scanned(path string, now time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	path = strings.ToLower(path)
	for held, until := range f.held {
		switch {
		case !now.Before(until):
		case held == path:
			return host.SharingViolation
		case strings.HasPrefix(held, path+`\\`):
			return host.AccessDenied
		}
	}
	return nil
}

func (g *guard) vanish(path string) {
	if _, gone := g.faults.path(path); gone {
		_ = g.Host.DeleteFile(path) // one that cannot be deleted stays, as with a real scanner
	}
}

func (f *faults) take(n uint64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.free == nil {
		return true
	}
	if *f.free < n {
		return false
	}
	left := *f.free - n
	f.free = &left
	return true
}

func (g *guard) DeleteFile(path string) error {
	if err := g.faults.scanned(path, g.Now()); err != nil {
		return err
	}
	st, _ := g.Host.Stat(path)
	err := g.Host.DeleteFile(path)
	if err == nil {
		g.faults.mu.Lock()
		defer g.faults.mu.Unlock()
		if g.faults.free != nil {
			more := *g.faults.free + uint64(st.Size)
			g.faults.free = &more
		}
	}
	return err
}

func (g *guard) MoveFile(from, to string, replace bool) error {
	if err := g.faults.scanned(from, g.Now()); err != nil {
		return err
	}
	err := g.Host.MoveFile(from, to, replace)
	if err == nil {
		g.vanish(to)
	}
	return err
}

func (g *guard) DiskFree(path string) (free, total uint64, err error) {
	free, total, err = g.Host.DiskFree(path)
	g.faults.mu.Lock()
	defer g.faults.mu.Unlock()
	if g.faults.free != nil {
		free = *g.faults.free
	}
	return free, total, err
}

func (g *guard) StartService(ctx context.Context, name string, args []string) error {
	if c, err := g.Host.ServiceConfig(name); err == nil {
		path, _, err := host.ResolveImage(g.Host, c.Command)
		if err != nil {
			path = c.Command
		}
		if code, _ := g.faults.path(path); code != 0 {
			return code
		}
	}
	return g.Host.StartService(ctx, name, args)
}
