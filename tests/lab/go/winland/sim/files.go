package sim

import (
	"bytes"
	"crypto/sha256"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"kubewin.invalid/lab/winland/acl"
	"kubewin.invalid/lab/winland/host"
)

// contents keeps one copy of equal large files among all machines.
var contents sync.Map // sha256 -> []byte

func shared(b []byte) []byte {
	if len(b) < 1<<16 {
		return b
	}
	have, _ := contents.LoadOrStore(sha256.Sum256(b), slices.Clip(b))
	return have.([]byte)
}

func key(path string) string { return strings.ToLower(path) }

// find gives the node of a path, or why there is none.
func (m *model) find(path string) (*node, error) {
	if strings.ContainsAny(path[2:], `<>"|?*:`) {
		return nil, host.InvalidName
	}
	if n := m.files[key(path)]; n != nil {
		return n, nil
	}
	if up := m.files[key(host.Dir(path))]; up == nil || !up.dir {
		return nil, host.PathNotFound
	}
	return nil, host.FileNotFound
}

func (m *model) info(n *node) host.FileInfo {
	return host.FileInfo{Name: n.name, Dir: n.dir, Size: int64(len(n.data)), ModTime: n.mod, Link: n.link}
}

// put makes a file or directory with its parents; it is how a machine is furnished.
func (m *model) put(path string, dir bool, data []byte) *node {
	if up := host.Dir(path); up != path && m.files[key(up)] == nil {
		m.put(up, true, nil)
	}
	if n := m.files[key(path)]; n != nil {
		n.data, n.mod = shared(data), m.now()
		return n
	}
	n := &node{name: host.Base(path), dir: dir, data: shared(data), mod: m.now()}
	m.files[key(path)] = n
	return n
}

func (m *model) children(path string) []string {
	prefix := strings.TrimSuffix(key(path), `\`) + `\`
	var out []string
	for p := range m.files {
		if strings.HasPrefix(p, prefix) && len(p) > len(prefix) {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

func (m *model) used() uint64 {
	var n uint64
	for _, f := range m.files {
		n += uint64(len(f.data))
	}
	return n
}

// OpenFile gives the content as it is now; what somebody writes has no readers.
func (h *Host) OpenFile(path string) (io.ReadCloser, error) {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	switch {
	case err != nil:
		return nil, err
	case n.dir:
		return nil, host.AccessDenied
	case n.writers > 0:
		return nil, host.SharingViolation
	}
	return io.NopCloser(bytes.NewReader(n.data)), nil
}

type writer struct {
	h      *Host
	m      *model
	n      *node
	closed bool
}

func (h *Host) CreateFile(path string, appendTo bool) (io.WriteCloser, error) {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	switch {
	case err == host.FileNotFound:
		n = m.put(path, false, nil)
	case err != nil:
		return nil, err
	case n.dir:
		return nil, host.AccessDenied
	case n.images > 0 || n.writers > 0:
		return nil, host.SharingViolation
	case !appendTo:
		n.data = nil
	}
	n.mod = m.now()
	n.writers++
	return &writer{h: h, m: m, n: n}, nil
}

func (w *writer) Write(b []byte) (int, error) {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	if w.m.used()+uint64(len(b)) > w.m.set.DiskBytes {
		return 0, host.DiskFull
	}
	w.n.data = append(w.n.data, b...) // readers keep their length, so growing in place is safe
	w.n.mod = w.m.now()
	return len(b), nil
}

func (w *writer) Close() error {
	w.h.mu.Lock()
	defer w.h.mu.Unlock()
	if !w.closed {
		w.closed = true
		w.n.writers--
		w.n.data = shared(w.n.data)
	}
	return nil
}

func (h *Host) Stat(path string) (host.FileInfo, error) {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	if err != nil {
		return host.FileInfo{}, err
	}
	return m.info(n), nil
}

func (h *Host) ReadDir(path string) ([]host.FileInfo, error) {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	if err != nil {
		return nil, err
	}
	if !n.dir {
		return nil, host.DirectoryInvalid
	}
	var out []host.FileInfo
	for _, p := range m.children(path) {
		if key(host.Dir(p)) == key(path) {
			out = append(out, m.info(m.files[p]))
		}
	}
	return out, nil
}

func (h *Host) Mkdir(path string) error {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	if n != nil {
		return host.AlreadyExists
	}
	if err != host.FileNotFound {
		return err
	}
	m.put(path, true, nil)
	return nil
}

func (h *Host) RemoveDir(path string) error {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	switch {
	case err != nil:
		return err
	case !n.dir:
		return host.DirectoryInvalid
	case len(m.children(path)) > 0:
		return host.DirNotEmpty
	}
	delete(m.files, key(path))
	return nil
}

func (h *Host) DeleteFile(path string) error {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	switch {
	case err != nil:
		return err
	case n.dir, n.images > 0:
		return host.AccessDenied
	case n.writers > 0 || n.held > 0:
		return host.SharingViolation
	}
	delete(m.files, key(path))
	return nil
}

// MoveFile lets a running executable be renamed, but not replaced.
func (h *Host) MoveFile(from, to string, replace bool) error {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(from)
	if err != nil {
		return err
	}
	below := m.children(from)
	for _, p := range append(below, key(from)) {
		f := m.files[p]
		if f.writers > 0 || f.held > 0 {
			if n.dir {
				return host.AccessDenied
			}
			return host.SharingViolation
		}
		if n.dir && f.images > 0 {
			return host.AccessDenied
		}
	}
	old, err := m.find(to)
	switch {
	case old == n:
	case old != nil && !replace:
		return host.AlreadyExists
	case old != nil && (old.dir || n.dir || old.images > 0):
		return host.AccessDenied
	case old != nil && (old.writers > 0 || old.held > 0):
		return host.SharingViolation
	case old == nil && err != host.FileNotFound:
		return err
	}
	delete(m.files, key(from))
	n.name = host.Base(to)
	m.files[key(to)] = n
	for _, p := range below {
		m.files[key(to)+p[len(from):]] = m.files[p]
		delete(m.files, p)
	}
	return nil
}

func (h *Host) SetModTime(path string, t time.Time) error {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	if err == nil {
		n.mod = t
	}
	return err
}

func (h *Host) DiskFree(path string) (free, total uint64, err error) {
	m := h.lock()
	defer h.mu.Unlock()
	if _, err := m.find(path[:2] + `\`); err != nil {
		return 0, 0, err
	}
	return m.set.DiskBytes - min(m.used(), m.set.DiskBytes), m.set.DiskBytes, nil
}

func (h *Host) LoadACL(path string) (*acl.ACL, error) {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	if err != nil {
		return nil, err
	}
	return n.acl, nil
}

func (h *Host) StoreACL(path string, a *acl.ACL) error {
	m := h.lock()
	defer h.mu.Unlock()
	n, err := m.find(path)
	if err == nil {
		n.acl = a
	}
	return err
}
