package sim

import (
	"slices"
	"strings"

	"kubewin.invalid/lab/winland/host"
)

func (m *model) regFind(path string) (*regKey, error) {
	k := m.registry[key(path)]
	switch {
	case k == nil:
		return nil, host.FileNotFound
	case k.denied:
		return nil, host.AccessDenied
	}
	return k, nil
}

// regMake gives a key, made with its parents if need be.
func (m *model) regMake(path string) *regKey {
	if k := m.registry[key(path)]; k != nil {
		return k
	}
	name := path
	if i := strings.LastIndexByte(path, '\\'); i >= 0 {
		m.regMake(path[:i])
		name = path[i+1:]
	}
	k := &regKey{name: name}
	m.registry[key(path)] = k
	return k
}

func (k *regKey) set(v host.RegValue) {
	for i := range k.values {
		if strings.EqualFold(k.values[i].Name, v.Name) {
			v.Name = k.values[i].Name
			k.values[i] = v
			return
		}
	}
	k.values = append(k.values, v)
}

func (k *regKey) unset(name string) bool {
	n := len(k.values)
	k.values = slices.DeleteFunc(k.values, func(v host.RegValue) bool { return strings.EqualFold(v.Name, name) })
	return len(k.values) < n
}

func (k *regKey) get(name string) (host.RegValue, bool) {
	for _, v := range k.values {
		if strings.EqualFold(v.Name, name) {
			return v, true
		}
	}
	return host.RegValue{}, false
}

// regSubkeys gives the names of the keys directly below, in order.
func (m *model) regSubkeys(path string) []string {
	prefix := key(path) + `\`
	var out []string
	for _, p := range sortedKeys(m.registry) {
		if rest, ok := strings.CutPrefix(p, prefix); ok && !strings.Contains(rest, `\`) {
			out = append(out, m.registry[p].name)
		}
	}
	return out
}

func (m *model) regDelete(path string) {
	for p := range m.registry {
		if p == key(path) || strings.HasPrefix(p, key(path)+`\`) {
			delete(m.registry, p)
		}
	}
}

func (h *Host) RegValues(path string) ([]host.RegValue, error) {
	m := h.lock()
	defer h.mu.Unlock()
	k, err := m.regFind(path)
	if err != nil {
		return nil, err
	}
	return slices.Clone(k.values), nil
}

func (h *Host) RegSubkeys(path string) ([]string, error) {
	m := h.lock()
	defer h.mu.Unlock()
	if _, err := m.regFind(path); err != nil {
		return nil, err
	}
	return m.regSubkeys(path), nil
}

func (h *Host) RegCreate(path string) error {
	m := h.lock()
	defer h.mu.Unlock()
	m.regMake(path)
	return nil
}

func (h *Host) RegSet(path string, v host.RegValue) error {
	m := h.lock()
	defer h.mu.Unlock()
	m.regMake(path).set(v)
	return nil
}

func (h *Host) RegDeleteValue(path, name string) error {
	m := h.lock()
	defer h.mu.Unlock()
	k, err := m.regFind(path)
	if err == nil && !k.unset(name) {
		err = host.FileNotFound
	}
	return err
}

func (h *Host) RegDeleteKey(path string) error {
	m := h.lock()
	defer h.mu.Unlock()
	if _, err := m.regFind(path); err != nil {
		return err
	}
	m.regDelete(path)
	return nil
}
