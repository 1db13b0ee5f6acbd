package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"kubewin.invalid/lab/winland/agent"
	"kubewin.invalid/lab/winland/host"
)

// Fleet is all simulated machines of one process.
type Fleet struct {
	mu    sync.Mutex
	hosts map[string]*Host
}

// NewFleet starts without machines.
func NewFleet() *Fleet { return &Fleet{hosts: map[string]*Host{}} }

// Adopt adds a machine that was made elsewhere.
func (f *Fleet) Adopt(h *Host) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hosts[h.Name()] = h
}

func (f *Fleet) get(name string) (*Host, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if h := f.hosts[name]; h != nil {
		return h, nil
	}
	return nil, fmt.Errorf("no host %q: make it with create_host", name)
}

// Find implements agent.Provider.
func (f *Fleet) Find(name string) (host.Host, context.Context, error) {
	h, err := f.get(name)
	if err != nil {
		return nil, nil, err
	}
	return h, h.Life(), nil
}

// Desk implements agent.Provider.
func (f *Fleet) Desk(name string) string { return name }

// Latency implements agent.Provider.
func (f *Fleet) Latency(name string) (latency, orphan time.Duration) {
	h, err := f.get(name)
	if err != nil {
		return 0, 0
	}
	s := h.Settings()
	return time.Duration(s.LatencyMS) * time.Millisecond, time.Duration(s.OrphanStdinMS) * time.Millisecond
}

// Control implements agent.Provider.
func (f *Fleet) Control(name, verb string, args json.RawMessage) (map[string]any, error) {
	switch verb {
	case "create_host":
		return nil, f.create(name, args)
	case "hosts":
		f.mu.Lock()
		defer f.mu.Unlock()
		return map[string]any{"hosts": sortedKeys(f.hosts)}, nil
	}
	h, err := f.get(name)
	if err != nil {
		return nil, err
	}
	switch verb {
	case "delete_host":
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.hosts, name)
		h.die()
		return nil, nil
	case "set":
		return nil, h.change(args)
	case "snapshot", "restore":
		return nil, h.keep(verb, args)
	case "reboot":
		return nil, h.reboot(args)
	case "clock":
		return h.clock(args)
	case "plant":
		return nil, h.plant(args)
	case "state":
		return map[string]any{"state": h.state()}, nil
	}
	return nil, agent.ErrVerb
}

// create makes a machine; args are Settings, what is left out has its default, the name is the host's.
func (f *Fleet) create(name string, args json.RawMessage) error {
	set := Defaults()
	set.Name = name
	if len(args) > 0 {
		if err := agent.Strict(args, &set); err != nil {
			return err
		}
	}
	if name == "" {
		return fmt.Errorf("create_host needs a host name")
	}
	if set.Lang != "en" && set.Lang != "de" {
		return fmt.Errorf("lang %q: expected en or de", set.Lang)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.hosts[name] != nil {
		return fmt.Errorf("host %q exists", name)
	}
	f.hosts[name] = New(set)
	return nil
}
