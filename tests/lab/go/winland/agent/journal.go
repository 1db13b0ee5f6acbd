package agent

import (
	"slices"
	"sync"
)

// Entry is one command line and what of it ran.
type Entry struct {
	Line    string   `json:"line"`
	Steps   []string `json:"steps"`
	RC      *uint32  `json:"rc"`                // absent while it runs
	Unknown []string `json:"unknown,omitempty"` // forms that the userland refused
}

type journal struct {
	mu      sync.Mutex
	entries []*Entry
}

func (j *journal) begin(line string) *Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	e := &Entry{Line: line, Steps: []string{}}
	j.entries = append(j.entries, e)
	return e
}

func (j *journal) step(e *Entry, command string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Steps = append(e.Steps, command)
}

func (j *journal) unknown(e *Entry, what string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.Unknown = append(e.Unknown, what)
}

func (j *journal) finish(e *Entry, rc uint32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.RC = &rc
}

// list gives a copy; clear forgets afterwards what has ended.
func (j *journal) list(clear bool) []Entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	out := make([]Entry, 0, len(j.entries))
	for _, e := range j.entries {
		c := *e
		c.Steps = slices.Clone(e.Steps)
		out = append(out, c)
	}
	if clear {
		j.entries = slices.DeleteFunc(j.entries, func(e *Entry) bool { return e.RC != nil })
	}
	return out
}

// ran gives how many steps a line had when it ran last, -1 if it never did.
func (j *journal) ran(line string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := len(j.entries) - 1; i >= 0; i-- {
		if j.entries[i].Line == line {
			return len(j.entries[i].Steps)
		}
	}
	return -1
}
