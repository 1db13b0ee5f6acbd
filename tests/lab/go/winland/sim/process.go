package sim

import (
	"context"
	"fmt"
	"slices"

	"kubewin.invalid/lab/winland/host"
)

func (m *model) launch(path string, image *node, prog program) *process {
	m.nextPID += 4
	p := &process{
		Process: host.Process{PID: m.nextPID, PPID: 600, Image: host.Base(path), Memory: 14692352}, path: path, image: image, program: prog,
	}
	if image != nil {
		image.images++
	}
	m.procs[p.PID] = p
	return p
}

func (h *Host) Processes() []host.Process {
	m := h.lock()
	defer h.mu.Unlock()
	var out []host.Process
	for _, pid := range sortedKeys(m.procs) {
		out = append(out, m.procs[pid].Process)
	}
	return out
}

// KillProcess ends a process at once; the system's own refuse.
func (h *Host) KillProcess(pid uint32) error {
	m := h.lock()
	defer h.mu.Unlock()
	p := m.procs[pid]
	switch {
	case p == nil:
		return host.FileNotFound
	case p.image == nil && p.service == "":
		return host.AccessDenied
	}
	m.end(p)
	return nil
}

func (h *Host) Pipes() []string {
	m := h.lock()
	defer h.mu.Unlock()
	var out []string
	for _, pid := range sortedKeys(m.procs) {
		for _, n := range m.procs[pid].pipes {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// Spawn runs nothing: a simulated machine has the userland's tools and services only.
func (h *Host) Spawn(context.Context, host.Program) (int, error) { return 0, host.NotSupported }

// openLog opens klog's file for appending. It stays open while the process lives, so it can be read and truncated, not
// renamed or deleted. Without its directory klog ends the process.
func (m *model) openLog(p *process, file string) {
	path := host.Abs(`C:\Windows\System32`, file)
	n, err := m.find(path)
	if err == host.FileNotFound {
		n = m.put(path, false, nil)
	} else if err != nil || n.dir {
		p.program.Start = "crash:2"
		return
	}
	n.held++
	p.log = n
	now := m.now().UTC()
	n.data = append(slices.Clip(n.data), fmt.Sprintf("Log file created at: %s\nRunning on machine: %s\nBinary: Built with gc go1.23.4 for windows/amd64\n"+
		"Log line format: [IWEF]mmdd hh:mm:ss.uuuuuu threadid file:line] msg\n", now.Format("2006/01/02 15:04:05"), m.set.Name)...)
}

// writeLog is the first flush of klog's buffer: the start-up lines.
func (m *model) writeLog(p *process) {
	head := fmt.Sprintf("I%s %7d main.go:", m.now().UTC().Format("0102 15:04:05.000000"), p.PID)
	text := head + "54] Starting CSI-Proxy Server ...\n" + head + "55] Version: v" + p.program.Release + "\n"
	if len(p.pipes) > 0 {
		text += head + "62] Working directories: [C:\\var\\lib\\kubelet]\n"
	}
	p.log.data = append(slices.Clip(p.log.data), text...)
	p.log.mod = m.now()
}
