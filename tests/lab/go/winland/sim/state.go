package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"kubewin.invalid/lab/winland/host"
)

// state gives the whole machine as plain values, for assertions: files with size and SHA-256 (below the system's own
// directories left out), registry values as text, services, processes, pipes.
func (h *Host) state() map[string]any {
	m := h.lock()
	defer h.mu.Unlock()
	files := map[string]any{}
	for _, p := range sortedKeys(m.files) {
		if strings.HasPrefix(p, `c:\windows`) {
			continue
		}
		n := m.files[p]
		f := map[string]any{"name": n.name, "dir": n.dir}
		if !n.dir {
			sum := sha256.Sum256(n.data)
			f["size"], f["sha256"] = len(n.data), hex.EncodeToString(sum[:])
			f["locked"] = n.images > 0 || n.writers > 0 || n.held > 0
		}
		if n.acl != nil {
			f["acl"] = n.acl
		}
		files[p] = f
	}
	registry := map[string]any{}
	for _, p := range sortedKeys(m.registry) {
		values := map[string]string{}
		for _, v := range m.registry[p].values {
			values[v.Name] = plain(v)
		}
		registry[p] = values
	}
	services := map[string]any{}
	for _, n := range sortedKeys(m.services) {
		s := m.services[n]
		services[n] = map[string]any{
			"name": s.cfg.Name, "state": s.status.State, "pid": s.status.PID, "win32_exit": s.status.Win32Exit, "command": s.cfg.Command,
			"start": s.cfg.Start, "delayed": s.cfg.Delayed, "marked": s.marked, "failure": s.cfg.Failure, "dependencies": s.cfg.Dependencies,
		}
	}
	processes := []any{}
	for _, pid := range sortedKeys(m.procs) {
		p := m.procs[pid]
		processes = append(processes, map[string]any{
			"pid": pid, "image": p.Image, "path": p.path, "service": p.service, "pipes": p.pipes, "release": p.program.Release,
		})
	}
	return map[string]any{
		"settings": m.set, "now": m.now().UTC().Format(time.RFC3339Nano), "boot": m.boot.UTC().Format(time.RFC3339Nano), "boot_id": m.bootID,
		"files": files, "registry": registry, "services": services, "processes": processes,
	}
}

func plain(v host.RegValue) string {
	switch v.Type {
	case host.RegSz, host.RegExpandSz:
		return v.Text()
	case host.RegMultiSz:
		return strings.Join(v.List(), `\0`)
	case host.RegDword, host.RegQword:
		return fmt.Sprint(v.Number())
	}
	return strings.ToUpper(hex.EncodeToString(v.Data))
}
