// Package sim is a Windows machine in memory: files, registry, services, processes, pipes and a clock of its own. Things
// that take time are events that are carried out when somebody looks, so hundreds of machines cost nothing at rest.
package sim

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"kubewin.invalid/lab/winland/acl"
	"kubewin.invalid/lab/winland/host"
)

// Settings are the knobs of one machine; the control verb `set` changes them.
type Settings struct {
	Name             string   `json:"name"`
	Addresses        []string `json:"addresses"`
	OSBuild          string   `json:"os_build"` // "20348.2700"
	InstallationType string   `json:"installation_type"`
	Domain           string   `json:"domain"`
	Lang             string   `json:"lang"`
	LatencyMS        int      `json:"latency_ms"`      // before each command line
	ConnectMS        int      `json:"connect_ms"`      // process start to the SCM's knowing it
	RunningMS        int      `json:"running_ms"`      // connected to RUNNING
	PipesMS          int      `json:"pipes_ms"`        // RUNNING to the pipes
	LingerMS         int      `json:"linger_ms"`       // STOPPED to the end of a csi-proxy process
	LogFlushMS       int      `json:"log_flush_ms"`    // klog's flush
	SCMTimeoutMS     int      `json:"scm_timeout_ms"`  // 1053
	OrphanStdinMS    int      `json:"orphan_stdin_ms"` // how long stdin stays open after the client is lost
	DiskBytes        uint64   `json:"disk_bytes"`
	SkipPauses       bool     `json:"skip_pauses"` // a pause moves the machine's clock and takes no time
}

// Defaults for what create_host leaves out.
func Defaults() Settings {
	return Settings{
		OSBuild: "20348.2700", InstallationType: "Server Core", Lang: "en", ConnectMS: 20, RunningMS: 20, PipesMS: 100,
		LingerMS: 60000, LogFlushMS: 5000, SCMTimeoutMS: 3000, OrphanStdinMS: 7200000, DiskBytes: 64 << 30,
	}
}

type node struct {
	name    string
	dir     bool
	data    []byte
	mod     time.Time
	acl     *acl.ACL
	link    string // a directory that leads elsewhere
	writers int    // open by a tool: nobody else may write, rename or delete
	held    int    // open by a running program (its log): no rename, no delete
	images  int    // processes that run from it: no overwrite, no delete
}

type regKey struct {
	name   string
	values []host.RegValue
	denied bool
}

type service struct {
	cfg      host.Service
	status   host.Status
	marked   bool // for deletion
	handles  int  // open handles of others
	failures int
	lastFail time.Time
	starting bool
	startErr host.Errno
}

type process struct {
	host.Process
	path    string // where its image was started from
	image   *node
	program program
	service string // lower case
	pipes   []string
	log     *node
}

// event is something that happens at a time; plain data, so that a snapshot can hold it.
type event struct {
	due     time.Time
	what    string // connected running pipes stopped exit flush abort restart
	pid     uint32
	service string
}

type model struct {
	set      Settings
	offset   time.Duration // of the machine's clock against the real one
	moment   time.Time     // set while an event is carried out
	boot     time.Time
	bootID   uint32
	files    map[string]*node // by lower-case path
	registry map[string]*regKey
	services map[string]*service
	procs    map[uint32]*process
	events   []event
	nextPID  uint32
	roots    [][]byte
}

// now is the machine's clock; while an event is carried out it is that event's time, however late somebody looks.
func (m *model) now() time.Time {
	if !m.moment.IsZero() {
		return m.moment
	}
	return time.Now().Add(m.offset)
}

// clone copies everything; the pointers between files and processes are kept.
func (m *model) clone() *model {
	c := *m
	nodes := map[*node]*node{}
	c.files = map[string]*node{}
	for p, n := range m.files {
		d := *n
		d.data = slices.Clip(n.data) // contents are replaced or appended to, never written in place
		nodes[n] = &d
		c.files[p] = &d
	}
	c.registry = map[string]*regKey{}
	for p, k := range m.registry {
		c.registry[p] = &regKey{k.name, slices.Clone(k.values), k.denied}
	}
	c.services = map[string]*service{}
	for n, s := range m.services {
		d := *s
		d.cfg.Dependencies = slices.Clone(s.cfg.Dependencies)
		c.services[n] = &d
	}
	c.procs = map[uint32]*process{}
	for pid, p := range m.procs {
		d := *p
		d.image, d.log = nodes[p.image], nodes[p.log]
		c.procs[pid] = &d
	}
	c.events = slices.Clone(m.events)
	c.roots = slices.Clone(m.roots)
	c.set.Addresses = slices.Clone(m.set.Addresses)
	return &c
}

// at plans an event.
func (m *model) at(ms int, e event) {
	e.due = m.now().Add(time.Duration(ms) * time.Millisecond)
	m.events = append(m.events, e)
}

// settle carries out what is due, in order of time.
func (m *model) settle() {
	for {
		next := -1
		now := m.now()
		for i, e := range m.events {
			if !e.due.After(now) && (next < 0 || e.due.Before(m.events[next].due)) {
				next = i
			}
		}
		if next < 0 {
			return
		}
		e := m.events[next]
		m.events = slices.Delete(m.events, next, next+1)
		m.moment = e.due
		m.happen(e)
		m.moment = time.Time{}
	}
}

// advance moves the clock from event to event, so that what one plans for later is carried out at its own time.
func (m *model) advance(by time.Duration) {
	end := m.now().Add(by)
	for {
		next := end
		for _, e := range m.events {
			if e.due.Before(next) {
				next = e.due
			}
		}
		if d := next.Sub(m.now()); d > 0 {
			m.offset += d
		}
		m.settle()
		if next.Equal(end) {
			return
		}
	}
}

// drop forgets the events of a process.
func (m *model) drop(pid uint32) {
	m.events = slices.DeleteFunc(m.events, func(e event) bool { return e.pid == pid })
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
