//go:build windows

package wine

import (
	"context"
	"strings"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"kubewin.invalid/lab/winland/host"
)

const keep = 0xffffffff // SERVICE_NO_CHANGE

// again repeats what Wine's RPC did not do: on a busy machine it loses a handle now and then, or does not reach the SCM.
func again(ask func() error) error {
	for try := 1; ; try++ {
		err := ask()
		lost := err == host.Errno(windows.ERROR_INVALID_HANDLE) || err == host.Errno(windows.RPC_S_SERVER_UNAVAILABLE)
		if !lost || try == 10 {
			return err
		}
		time.Sleep(time.Duration(try) * 20 * time.Millisecond) // nothing tells when the SCM listens again
	}
}

// with opens a service for a while.
func with(name string, do func(windows.Handle) error) error {
	return again(func() error { return once(name, do) })
}

func once(name string, do func(windows.Handle) error) error {
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_ALL_ACCESS)
	if err != nil {
		return win(err)
	}
	defer windows.CloseServiceHandle(scm)
	s, err := windows.OpenService(scm, wide(name), windows.SERVICE_ALL_ACCESS)
	if err != nil {
		return win(err)
	}
	defer windows.CloseServiceHandle(s)
	return win(do(s))
}

// list enumerates Win32 services; state is 1 active, 3 all.
func list(state uint32, each func(name string, s host.Status)) {
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_ENUMERATE_SERVICE)
	if err != nil {
		return
	}
	defer windows.CloseServiceHandle(scm)
	b := make([]byte, 1<<18)
	var need, count uint32
	if windows.EnumServicesStatusEx(scm, 0, 0x30, state, &b[0], uint32(len(b)), &need, &count, nil, nil) != nil || count == 0 {
		return
	}
	for _, e := range unsafe.Slice((*windows.ENUM_SERVICE_STATUS_PROCESS)(unsafe.Pointer(&b[0])), count) {
		each(windows.UTF16PtrToString(e.ServiceName), statusOf(e.ServiceStatusProcess))
	}
}

func (h *Host) Services() []string {
	var out []string
	list(3, func(name string, _ host.Status) { out = append(out, name) })
	return out
}

func statusOf(s windows.SERVICE_STATUS_PROCESS) host.Status {
	return host.Status{
		Type: s.ServiceType, State: s.CurrentState, Accepted: s.ControlsAccepted, Win32Exit: s.Win32ExitCode,
		ServiceExit: s.ServiceSpecificExitCode, CheckPoint: s.CheckPoint, WaitHint: s.WaitHint, PID: s.ProcessId,
	}
}

// noticed tells what Windows' SCM would say: Wine's does not notice that a service's process has died, and gives the
// process of a stopped service.
func noticed(s host.Status) host.Status {
	switch {
	case s.State == host.Stopped:
		s.PID = 0
	case s.PID != 0 && !alive(s.PID):
		s = host.Status{Type: s.Type, State: host.Stopped, Win32Exit: uint32(host.ProcessAborted)}
	}
	return s
}

func query(s windows.Handle) (host.Status, error) {
	var st windows.SERVICE_STATUS_PROCESS
	var n uint32
	err := windows.QueryServiceStatusEx(s, windows.SC_STATUS_PROCESS_INFO, (*byte)(unsafe.Pointer(&st)), uint32(unsafe.Sizeof(st)), &n)
	return noticed(statusOf(st)), err
}

func (h *Host) ServiceStatus(name string) (st host.Status, err error) {
	err = with(name, func(s windows.Handle) (err error) {
		st, err = query(s)
		return err
	})
	return st, err
}

func text(p *uint16) string {
	if p == nil {
		return ""
	}
	return windows.UTF16PtrToString(p)
}

// ServiceConfig joins what Wine's SCM knows with what lies in the registry.
func (h *Host) ServiceConfig(name string) (c host.Service, err error) {
	err = with(name, func(s windows.Handle) error {
		b := make([]byte, 32768)
		var n uint32
		q := (*windows.QUERY_SERVICE_CONFIG)(unsafe.Pointer(&b[0]))
		if err := windows.QueryServiceConfig(s, q, uint32(len(b)), &n); err != nil {
			return err
		}
		c = host.Service{
			Name: name, DisplayName: text(q.DisplayName), Command: text(q.BinaryPathName), Account: text(q.ServiceStartName),
			Group: text(q.LoadOrderGroup), Type: q.ServiceType, Start: q.StartType, ErrorControl: q.ErrorControl, Tag: q.TagId,
		}
		return nil
	})
	if err != nil {
		return c, err
	}
	values, err := h.RegValues(host.ServiceKey(name))
	if err != nil {
		return c, nil // a service that never needed more than the SCM
	}
	var blob host.Failure
	for _, v := range values {
		switch strings.ToLower(v.Name) {
		case "description":
			c.Description = v.Text()
		case "delayedautostart":
			c.Delayed = v.Number() == 1
		case "dependonservice":
			c.Dependencies = v.List()
		case "failureactions":
			if f := host.ParseFailure(v.Data); f != nil {
				blob.Reset, blob.Actions = f.Reset, f.Actions
				c.Failure = &blob
			}
		case "failurecommand":
			blob.Command = v.Text()
		case "rebootmessage":
			blob.RebootMessage = v.Text()
		case "failureactionsonnoncrashfailures":
			c.FailureFlag = v.Number() != 0
		case "servicesidtype":
			c.SidType = uint32(v.Number())
		}
	}
	return c, nil
}

func multi(list []string) *uint16 {
	var u []uint16
	for _, d := range list {
		w, err := windows.UTF16FromString(d)
		if err == nil {
			u = append(u, w...)
		}
	}
	u = append(u, 0, 0)
	return &u[0]
}

func (h *Host) CreateService(c host.Service) error {
	return again(func() error { return h.create(c) })
}

func (h *Host) create(c host.Service) error {
	scm, err := windows.OpenSCManager(nil, nil, windows.SC_MANAGER_ALL_ACCESS)
	if err != nil {
		return win(err)
	}
	defer windows.CloseServiceHandle(scm)
	s, err := windows.CreateService(scm, wide(c.Name), wide(c.DisplayName), windows.SERVICE_ALL_ACCESS, c.Type, c.Start, c.ErrorControl,
		wide(c.Command), nil, nil, multi(c.Dependencies), wide(c.Account), nil)
	if err != nil {
		return win(err)
	}
	defer windows.CloseServiceHandle(s)
	key := host.ServiceKey(c.Name)
	values, _ := h.RegValues(key)
	for _, v := range values { // what an earlier service of that name left
		switch v.Name {
		case "FailureActions", "FailureCommand", "RebootMessage", "FailureActionsOnNonCrashFailures", "ServiceSidType", "DelayedAutostart", "DeleteFlag", "Description":
			_ = h.RegDeleteValue(key, v.Name)
		}
	}
	_ = h.RegDeleteKey(key + `\Parameters`) // absent as a rule
	if c.Delayed {
		return h.RegSet(key, host.Dword("DelayedAutostart", 1))
	}
	return nil
}

// ChangeService gives the SCM what Wine's takes; levels 2 to 5 of ChangeServiceConfig2 it does not, so these go into the
// registry in the form that Windows keeps them.
func (h *Host) ChangeService(name string, c host.Change) error {
	number := func(p *uint32) uint32 {
		if p == nil {
			return keep
		}
		return *p
	}
	str := func(p *string) *uint16 {
		if p == nil {
			return nil
		}
		return wide(*p)
	}
	err := with(name, func(s windows.Handle) error {
		var deps *uint16
		if c.Dependencies != nil {
			deps = multi(*c.Dependencies)
		}
		err := windows.ChangeServiceConfig(s, number(c.Type), number(c.Start), number(c.ErrorControl), str(c.Command), str(c.Group), nil, deps,
			str(c.Account), nil, str(c.DisplayName))
		if err == nil && c.Description != nil {
			d := windows.SERVICE_DESCRIPTION{Description: wide(*c.Description)}
			err = windows.ChangeServiceConfig2(s, windows.SERVICE_CONFIG_DESCRIPTION, (*byte)(unsafe.Pointer(&d)))
		}
		return err
	})
	if err != nil {
		return err
	}
	return h.changeRegistry(host.ServiceKey(name), c)
}

func (h *Host) changeRegistry(key string, c host.Change) error {
	var first error
	put := func(on bool, v host.RegValue) {
		err := error(nil)
		if on {
			err = h.RegSet(key, v)
		} else if _, gone := host.RegValueOf(h, key, v.Name); gone == nil {
			err = h.RegDeleteValue(key, v.Name)
		}
		if first == nil {
			first = err
		}
	}
	if c.Dependencies != nil {
		put(len(*c.Dependencies) > 0, host.MultiSz("DependOnService", *c.Dependencies))
	}
	if c.Delayed != nil {
		put(*c.Delayed, host.Dword("DelayedAutostart", 1))
	}
	if c.SidType != nil {
		put(*c.SidType != 0, host.Dword("ServiceSidType", *c.SidType))
	}
	if c.FailureFlag != nil {
		put(*c.FailureFlag, host.Dword("FailureActionsOnNonCrashFailures", 1))
	}
	if f := c.Failure; f != nil {
		put(len(f.Actions) > 0 || f.Reset > 0, host.Binary("FailureActions", f.Blob()))
		put(f.Command != "", host.Sz("FailureCommand", f.Command))
		put(f.RebootMessage != "", host.Sz("RebootMessage", f.RebootMessage))
	}
	return first
}

func (h *Host) DeleteService(name string) error {
	return with(name, func(s windows.Handle) error {
		err := windows.DeleteService(s)
		if st, e := query(s); err == nil && e == nil && st.State != host.Stopped {
			_ = h.RegSet(host.ServiceKey(name), host.Dword("DeleteFlag", 1))
		}
		return err
	})
}

// StartService adds what Wine's SCM does not do: refuse a service that is marked for deletion, start dependencies, and
// let a second csi-proxy die as Windows does, where the first owner of a pipe keeps it.
func (h *Host) StartService(ctx context.Context, name string, args []string) error {
	c, err := h.ServiceConfig(name)
	if err != nil {
		return err
	}
	if st, err := h.ServiceStatus(name); err == nil && st.State != host.Stopped {
		return host.AlreadyRunning
	}
	if err := h.startDependencies(ctx, c); err != nil {
		return err
	}
	clash := strings.Contains(strings.ToLower(c.Command), "csi-proxy") && pipeExists("csi-proxy-filesystem-v1")
	return with(name, func(s windows.Handle) error {
		if err := windows.ChangeServiceConfig(s, keep, keep, keep, nil, nil, nil, nil, nil, nil, nil); err != nil {
			return err // 1072
		}
		argv := make([]*uint16, len(args)+1)
		for i, a := range args {
			argv[i] = wide(a)
		}
		if err := windows.StartService(s, uint32(len(args)), &argv[0]); err != nil {
			return err
		}
		if st, err := query(s); err == nil && clash && st.PID != 0 {
			return h.terminate(st.PID, 2)
		}
		return nil
	})
}

func (h *Host) startDependencies(ctx context.Context, c host.Service) error {
	for _, d := range c.Dependencies {
		if strings.HasPrefix(d, "+") {
			continue
		}
		st, err := h.ServiceStatus(d)
		if err != nil {
			return host.Errno(1075) // ERROR_SERVICE_DEPENDENCY_DELETED
		}
		if st.State == host.Stopped && h.StartService(ctx, d, nil) != nil {
			return host.DependencyFailed
		}
	}
	return nil
}

// StopService refuses while dependents run, which Wine's SCM does not, and reports STOP_PENDING, where Wine's hands back
// the status of before.
func (h *Host) StopService(name string) (st host.Status, err error) {
	if st, err = h.ServiceStatus(name); err != nil {
		return st, err
	}
	if st.State == host.Stopped {
		return st, host.ServiceNotActive
	}
	dependents := false
	list(1, func(other string, s host.Status) {
		c := host.Service{}
		if v, err := host.RegValueOf(h, host.ServiceKey(other), "DependOnService"); err == nil {
			c.Dependencies = v.List()
		}
		dependents = dependents || c.DependsOn(name) && noticed(s).State != host.Stopped
	})
	if dependents {
		return st, host.DependentsRunning
	}
	err = with(name, func(s windows.Handle) error {
		var got windows.SERVICE_STATUS
		return windows.ControlService(s, windows.SERVICE_CONTROL_STOP, &got)
	})
	st.State, st.Accepted, st.PID = host.StopPending, 0, 0
	return st, err
}
