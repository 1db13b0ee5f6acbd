package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"kubewin.invalid/lab/winland/host"
)

func (m *model) service(name string) (*service, error) {
	if s := m.services[key(name)]; s != nil {
		return s, nil
	}
	return nil, host.ServiceUnknown
}

func (h *Host) Services() []string {
	m := h.lock()
	defer h.mu.Unlock()
	var out []string
	for _, n := range sortedKeys(m.services) {
		out = append(out, m.services[n].cfg.Name)
	}
	return out
}

func (h *Host) ServiceConfig(name string) (host.Service, error) {
	m := h.lock()
	defer h.mu.Unlock()
	s, err := m.service(name)
	if err != nil {
		return host.Service{}, err
	}
	return s.cfg, nil
}

func (h *Host) ServiceStatus(name string) (host.Status, error) {
	m := h.lock()
	defer h.mu.Unlock()
	s, err := m.service(name)
	if err != nil {
		return host.Status{}, err
	}
	return s.status, nil
}

func (h *Host) CreateService(c host.Service) error {
	m := h.lock()
	defer h.mu.Unlock()
	if s, err := m.service(c.Name); err == nil {
		if s.marked {
			return host.MarkedForDelete
		}
		return host.ServiceExists
	}
	if m.displayTaken(c.DisplayName, c.Name) {
		return host.DuplicateName
	}
	m.addService(c)
	return nil
}

func (m *model) displayTaken(display, name string) bool {
	for n, s := range m.services {
		if n != key(name) && (strings.EqualFold(s.cfg.DisplayName, display) || n == key(display)) {
			return true
		}
	}
	return false
}

// addService makes a service that is stopped and was never started.
func (m *model) addService(c host.Service) *service {
	s := &service{cfg: c, status: host.Status{Type: c.Type, State: host.Stopped, Win32Exit: uint32(host.NeverStarted)}}
	m.services[key(c.Name)] = s
	m.regDelete(host.ServiceKey(c.Name)) // a new service starts without what an earlier one of that name left
	m.saveService(s)
	return s
}

// saveService writes the configuration where the real SCM keeps it.
func (m *model) saveService(s *service) {
	c := s.cfg
	k := m.regMake(host.ServiceKey(c.Name))
	put := func(on bool, v host.RegValue) {
		if on {
			k.set(v)
		} else {
			k.unset(v.Name)
		}
	}
	k.set(host.Dword("Type", c.Type))
	k.set(host.Dword("Start", c.Start))
	k.set(host.Dword("ErrorControl", c.ErrorControl))
	k.set(host.ExpandSz("ImagePath", c.Command))
	k.set(host.Sz("DisplayName", c.DisplayName))
	put(len(c.Dependencies) > 0, host.MultiSz("DependOnService", c.Dependencies))
	put(c.Type&0x30 != 0, host.Sz("ObjectName", c.Account))
	put(c.Description != "", host.Sz("Description", c.Description))
	put(c.Delayed, host.Dword("DelayedAutostart", 1))
	put(c.Group != "", host.Sz("Group", c.Group))
	put(c.SidType != 0, host.Dword("ServiceSidType", c.SidType))
	put(c.FailureFlag, host.Dword("FailureActionsOnNonCrashFailures", 1))
	if f := c.Failure; f != nil {
		put(len(f.Actions) > 0 || f.Reset > 0, host.Binary("FailureActions", f.Blob()))
		put(f.Command != "", host.Sz("FailureCommand", f.Command))
		put(f.RebootMessage != "", host.Sz("RebootMessage", f.RebootMessage))
	}
	put(s.marked, host.Dword("DeleteFlag", 1))
}

func (h *Host) ChangeService(name string, c host.Change) error {
	m := h.lock()
	defer h.mu.Unlock()
	s, err := m.service(name)
	switch {
	case err != nil:
		return err
	case s.marked:
		return host.MarkedForDelete
	case c.DisplayName != nil && m.displayTaken(*c.DisplayName, name):
		return host.DuplicateName
	}
	s.cfg.Apply(c)
	s.status.Type = s.cfg.Type
	m.saveService(s)
	return nil
}

// DeleteService only marks a service that runs or that somebody holds open.
func (h *Host) DeleteService(name string) error {
	m := h.lock()
	defer h.mu.Unlock()
	s, err := m.service(name)
	if err != nil {
		return err
	}
	if s.marked {
		return host.MarkedForDelete
	}
	s.marked = true
	m.saveService(s)
	m.reap(s)
	return nil
}

// reap removes a marked service once it is stopped and nobody holds it.
func (m *model) reap(s *service) {
	if s.marked && s.status.State == host.Stopped && s.handles == 0 {
		delete(m.services, key(s.cfg.Name))
		m.regDelete(host.ServiceKey(s.cfg.Name))
	}
}

func (h *Host) StopService(name string) (host.Status, error) {
	m := h.lock()
	defer h.mu.Unlock()
	s, err := m.service(name)
	switch {
	case err != nil:
		return host.Status{}, err
	case s.status.State == host.Stopped:
		return host.Status{}, host.ServiceNotActive
	case s.status.State != host.Running || m.procs[s.status.PID].program.Stop == "refuse":
		return host.Status{}, host.CannotAcceptCtrl
	}
	for _, o := range m.services {
		if o.status.State != host.Stopped && o.cfg.DependsOn(name) {
			return host.Status{}, host.DependentsRunning
		}
	}
	s.status.State, s.status.Accepted, s.status.CheckPoint, s.status.WaitHint = host.StopPending, 0, 0, 0
	m.at(10, event{what: "stopped", pid: s.status.PID, service: key(name)})
	return s.status, nil
}

// StartService waits, in real time, until the process has connected or failed to.
func (h *Host) StartService(ctx context.Context, name string, _ []string) error {
	m := h.lock()
	err := m.start(name)
	h.mu.Unlock()
	for err == nil {
		m := h.lock()
		s, gone := m.service(name)
		starting, result := gone == nil && s.starting, host.Errno(0)
		if gone == nil {
			result = s.startErr
		}
		h.mu.Unlock()
		switch {
		case gone != nil:
			return gone
		case !starting && result != 0:
			return result
		case !starting:
			return nil
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return host.Errno(1223)
		}
	}
	return err
}

// start launches a service; the outcome comes by events.
func (m *model) start(name string) error {
	s, err := m.service(name)
	switch {
	case err != nil:
		return err
	case s.marked:
		return host.MarkedForDelete
	case s.starting || s.status.State != host.Stopped:
		return host.AlreadyRunning
	case s.cfg.Start == host.StartDisabled:
		return host.ServiceDisabled
	}
	for _, d := range s.cfg.Dependencies {
		if strings.HasPrefix(d, "+") {
			continue
		}
		dep, err := m.service(d)
		if err != nil {
			return host.Errno(1075) // ERROR_SERVICE_DEPENDENCY_DELETED
		}
		if dep.status.State == host.Stopped && m.start(d) != nil {
			return host.DependencyFailed
		}
	}
	if s.cfg.Type == host.KernelDriver {
		s.status = host.Status{Type: s.cfg.Type, State: host.Running, Accepted: host.AcceptStop}
		return nil
	}
	path, rest, err := host.ResolveImage(lockedFiles{m}, s.cfg.Command)
	if err != nil {
		return err
	}
	image := m.files[key(path)]
	prog, runnable := readProgram(image.data)
	if !runnable {
		return host.BadExeFormat
	}
	p := m.launch(path, image, prog)
	p.service = key(s.cfg.Name)
	s.starting, s.startErr = true, 0
	s.status = host.Status{Type: s.cfg.Type, State: host.StartPending, WaitHint: 0x7d0, PID: p.PID}
	m.firstMoments(p, rest)
	return nil
}

// firstMoments decides how a start ends.
func (m *model) firstMoments(p *process, rest string) {
	connects := p.program.Kind == "service"
	if p.program.Kind == "csi-proxy" {
		flags, ok := parseFlags(p.program.Release, rest)
		if !ok {
			m.at(m.set.ConnectMS, event{what: "exit", pid: p.PID})
			return
		}
		connects = isTrue(flags, "windows-service", false)
		if file := flags["log_file"]; file != "" && !isTrue(flags, "logtostderr", true) && connects {
			m.openLog(p, file)
		}
	}
	_, exits := option(p.program.Start, "exit")
	switch {
	case exits:
		m.at(m.set.ConnectMS, event{what: "exit", pid: p.PID})
	case !connects || p.program.Start == "hang" || p.program.Start == "not-a-service":
		m.at(m.set.SCMTimeoutMS, event{what: "abort", pid: p.PID})
	default:
		m.at(m.set.ConnectMS, event{what: "connected", pid: p.PID})
	}
}

// happen carries out one event.
func (m *model) happen(e event) {
	p := m.procs[e.pid]
	if e.what == "restart" {
		if s, err := m.service(e.service); err == nil && s.status.State == host.Stopped {
			_ = m.start(e.service) // what it comes to shows in the status
		}
		return
	}
	if p == nil {
		return
	}
	s := m.services[p.service]
	switch e.what {
	case "connected":
		s.starting = false
		m.at(m.set.RunningMS, event{what: "running", pid: p.PID})
	case "running":
		s.status = host.Status{Type: s.cfg.Type, State: host.Running, Accepted: host.AcceptStop | host.AcceptShutdown, PID: p.PID}
		if p.program.Kind == "csi-proxy" && p.program.Pipes != "none" {
			m.at(m.set.PipesMS, event{what: "pipes", pid: p.PID})
		}
		if p.log != nil {
			m.at(m.set.LogFlushMS, event{what: "flush", pid: p.PID})
		}
		if _, crash := option(p.program.Start, "crash"); crash {
			m.at(m.set.PipesMS, event{what: "exit", pid: p.PID})
		}
	case "pipes":
		m.listen(p)
	case "flush":
		m.writeLog(p)
	case "abort", "exit":
		m.end(p)
	case "stopped":
		m.serviceStopped(s, p)
	}
}

// serviceStopped is the service's own report; a csi-proxy process lives on with its pipes until it is killed or the SCM
// has had enough.
func (m *model) serviceStopped(s *service, p *process) {
	s.status = host.Status{Type: s.cfg.Type, State: host.Stopped}
	p.service = ""
	linger, given := option(p.program.Stop, "linger")
	if !given && p.program.Kind == "csi-proxy" {
		linger = m.set.LingerMS
	}
	m.at(linger, event{what: "exit", pid: p.PID})
	m.reap(s)
}

// end is the end of a process: if its service did not stop before, that is a failure with recovery.
func (m *model) end(p *process) {
	delete(m.procs, p.PID)
	m.drop(p.PID)
	if p.image != nil {
		p.image.images--
	}
	if p.log != nil {
		p.log.held--
	}
	s := m.services[p.service]
	if s == nil {
		return
	}
	if s.starting {
		s.starting, s.startErr = false, host.ServiceTimeout
		s.status = host.Status{Type: s.cfg.Type, State: host.Stopped, Win32Exit: uint32(host.ServiceTimeout)}
		m.reap(s)
		return
	}
	s.status = host.Status{Type: s.cfg.Type, State: host.Stopped, Win32Exit: uint32(host.ProcessAborted)}
	m.recover(s)
	m.reap(s)
}

func (m *model) recover(s *service) {
	f := s.cfg.Failure
	if f == nil || len(f.Actions) == 0 || s.marked {
		return
	}
	now := m.now()
	if f.Reset != host.Infinite && now.Sub(s.lastFail) > time.Duration(f.Reset)*time.Second {
		s.failures = 0
	}
	a := f.Actions[min(s.failures, len(f.Actions)-1)]
	s.failures++
	s.lastFail = now
	if a.Type == host.ActionRestart {
		m.at(int(a.Delay), event{what: "restart", service: key(s.cfg.Name)})
	}
}

// listen makes the pipes appear; if another process has one of them, csi-proxy panics with exit code 2.
func (m *model) listen(p *process) {
	names := pipeNames(p.program.Release)
	for _, o := range m.procs {
		if o != p && slices.ContainsFunc(o.pipes, func(n string) bool { return slices.Contains(names, n) }) {
			m.end(p)
			return
		}
	}
	p.pipes = names
}
