//go:build windows

package wine

import (
	"context"
	"time"

	"kubewin.invalid/lab/winland/host"
)

// WatchFailures does what Wine's SCM does not: a service whose process died without reporting STOPPED gets its recovery
// action. It looks twice a second and never returns.
func (h *Host) WatchFailures() {
	w := watch{h: h, seen: map[string]uint32{}, failures: map[string]int{}, last: map[string]time.Time{}}
	for range time.Tick(500 * time.Millisecond) {
		list(1, w.look)
	}
}

type watch struct {
	h        *Host
	seen     map[string]uint32 // the dead process that was handled
	failures map[string]int
	last     map[string]time.Time
}

func (w *watch) look(name string, s host.Status) {
	if s.PID == 0 || alive(s.PID) || w.seen[name] == s.PID {
		return
	}
	w.seen[name] = s.PID
	c, err := w.h.ServiceConfig(name)
	if err != nil || c.Failure == nil || len(c.Failure.Actions) == 0 {
		return
	}
	f := c.Failure
	if f.Reset != host.Infinite && time.Since(w.last[name]) > time.Duration(f.Reset)*time.Second {
		w.failures[name] = 0
	}
	a := f.Actions[min(w.failures[name], len(f.Actions)-1)]
	w.failures[name]++
	w.last[name] = time.Now()
	if a.Type != host.ActionRestart {
		return
	}
	time.AfterFunc(time.Duration(a.Delay)*time.Millisecond, func() {
		if st, err := w.h.ServiceStatus(name); err == nil && st.State == host.Stopped {
			_ = w.h.StartService(context.Background(), name, nil) // what it comes to shows in the status
		}
	})
}
