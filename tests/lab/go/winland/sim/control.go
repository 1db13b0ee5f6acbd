package sim

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"kubewin.invalid/lab/winland/agent"
	"kubewin.invalid/lab/winland/host"
)

// change alters settings at run time.
func (h *Host) change(args json.RawMessage) error {
	m := h.lock()
	defer h.mu.Unlock()
	set := m.set
	if err := agent.Strict(args, &set); err != nil {
		return err
	}
	if set.Lang != "en" && set.Lang != "de" {
		return fmt.Errorf("lang %q: expected en or de", set.Lang)
	}
	m.set = set
	return nil
}

// keep saves the model under an id or brings it back; the clock goes back too.
func (h *Host) keep(verb string, args json.RawMessage) error {
	a := struct {
		ID string `json:"id"`
	}{"default"}
	if len(args) > 0 {
		if err := agent.Strict(args, &a); err != nil {
			return err
		}
	}
	m := h.lock()
	defer h.mu.Unlock()
	if verb == "snapshot" {
		c := m.clone()
		c.offset = time.Duration(m.now().UnixNano()) // a kept clock stands still
		h.saved[a.ID] = c
		return nil
	}
	saved := h.saved[a.ID]
	if saved == nil {
		return fmt.Errorf("no snapshot %q", a.ID)
	}
	h.m = saved.clone()
	h.m.offset = time.Until(time.Unix(0, int64(saved.offset)))
	for _, n := range h.m.files {
		n.writers = 0 // whoever wrote then is not part of the machine that comes back
	}
	return nil
}

// reboot restarts the machine: commands that run end, args.took_s is how long the clock says it was away.
func (h *Host) reboot(args json.RawMessage) error {
	a := struct {
		Took int `json:"took_s"`
	}{30}
	if len(args) > 0 {
		if err := agent.Strict(args, &a); err != nil {
			return err
		}
	}
	m := h.lock()
	defer h.mu.Unlock()
	h.die()
	h.renew()
	m.reboot(time.Duration(a.Took) * time.Second)
	return nil
}

// clock moves the machine's clock forward; what falls due meanwhile happens.
func (h *Host) clock(args json.RawMessage) (map[string]any, error) {
	var a struct {
		Advance int64 `json:"advance_ms"`
	}
	if len(args) > 0 {
		if err := agent.Strict(args, &a); err != nil {
			return nil, err
		}
	}
	m := h.lock()
	defer h.mu.Unlock()
	if a.Advance < 0 {
		return nil, fmt.Errorf("advance_ms %d: the clock goes forward only", a.Advance)
	}
	m.advance(time.Duration(a.Advance) * time.Millisecond)
	return map[string]any{"now": m.now().UTC().Format(time.RFC3339Nano)}, nil
}

type plantService struct {
	Name         string        `json:"name"`
	DisplayName  string        `json:"display_name"`
	Command      string        `json:"command"`
	Start        string        `json:"start"` // auto delayed-auto demand disabled
	Account      string        `json:"account"`
	Description  string        `json:"description"`
	Dependencies []string      `json:"dependencies"`
	Failure      *host.Failure `json:"failure"`
	Running      bool          `json:"running"`
	Handles      *int          `json:"handles"` // open handles of others: a delete waits for them
	Absent       bool          `json:"absent"`
}

type plantFile struct {
	Text   *string         `json:"text"`
	Base64 *string         `json:"base64"`
	Exe    json.RawMessage `json:"exe"` // a simulated executable: {"kind":"csi-proxy","release":"1.3.0"}
	Dir    bool            `json:"dir"`
	Link   string          `json:"link"` // a directory that leads elsewhere: `\??\Volume{...}\` or `\\server\share`
	Size   int             `json:"size"` // padded with zeros to that size
}

type plantValue struct {
	Key   string          `json:"key"`
	Name  string          `json:"name"`
	Type  string          `json:"type"` // REG_SZ when absent
	Data  json.RawMessage `json:"data"` // string, number, list of strings, hex
	Gone  bool            `json:"absent"`
	Whole bool            `json:"key_only"` // the key itself, without a value
	Deny  bool            `json:"denied"`   // nobody may open the key
}

type plantProcess struct {
	Image string   `json:"image"`
	Path  string   `json:"path"` // its executable is locked
	Pipes []string `json:"pipes"`
}

// plant puts things on the machine past the SCM and the tools: files, registry, services, processes with pipes.
func (h *Host) plant(args json.RawMessage) error {
	var a struct {
		Files     map[string]*plantFile `json:"files"` // null removes
		Registry  []plantValue          `json:"registry"`
		Services  []plantService        `json:"services"`
		Processes []plantProcess        `json:"processes"`
		Pipes     []string              `json:"pipes"` // served by a process of no name of interest
	}
	if err := agent.Strict(args, &a); err != nil {
		return err
	}
	m := h.lock()
	defer h.mu.Unlock()
	for path, f := range a.Files {
		if err := m.plantFile(host.Abs(`C:\`, path), f); err != nil {
			return err
		}
	}
	for _, v := range a.Registry {
		if err := m.plantValue(v); err != nil {
			return err
		}
	}
	for _, s := range a.Services {
		if err := m.plantService(s); err != nil {
			return err
		}
	}
	if len(a.Pipes) > 0 {
		a.Processes = append(a.Processes, plantProcess{Image: "other.exe", Pipes: a.Pipes})
	}
	for _, p := range a.Processes {
		image := m.files[key(p.Path)]
		if p.Image == "" {
			p.Image = host.Base(p.Path)
		}
		if image == nil {
			image = &node{} // a program from a place that nobody looks at
		}
		m.launch(p.Image, image, program{}).pipes = p.Pipes
	}
	return nil
}

func (m *model) plantFile(path string, f *plantFile) error {
	if f == nil {
		for _, p := range append(m.children(path), key(path)) {
			delete(m.files, p)
		}
		return nil
	}
	var data []byte
	switch {
	case f.Text != nil:
		data = []byte(*f.Text)
	case f.Base64 != nil:
		var err error
		if data, err = base64.StdEncoding.DecodeString(*f.Base64); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	case f.Exe != nil:
		data = append(append([]byte{}, mark...), f.Exe...)
		data = append(data, '\n')
	}
	if pad := f.Size - len(data); pad > 0 {
		data = append(data, make([]byte, pad)...)
	}
	m.put(path, f.Dir || f.Link != "", data).link = f.Link
	return nil
}

func (m *model) plantValue(v plantValue) error {
	switch {
	case v.Gone && v.Name == "" && v.Whole:
		m.regDelete(v.Key)
		return nil
	case v.Gone:
		m.regMake(v.Key).unset(v.Name)
		return nil
	case v.Deny:
		m.regMake(v.Key).denied = true
		return nil
	case v.Whole:
		m.regMake(v.Key)
		return nil
	}
	var text string
	var number uint32
	var list []string
	var into any = &text
	switch v.Type {
	case "REG_DWORD":
		into = &number
	case "REG_MULTI_SZ":
		into = &list
	}
	if err := json.Unmarshal(v.Data, into); err != nil {
		return fmt.Errorf("%s\\%s: %w", v.Key, v.Name, err)
	}
	k := m.regMake(v.Key)
	switch v.Type {
	case "", "REG_SZ":
		k.set(host.Sz(v.Name, text))
	case "REG_EXPAND_SZ":
		k.set(host.ExpandSz(v.Name, text))
	case "REG_DWORD":
		k.set(host.Dword(v.Name, number))
	case "REG_MULTI_SZ":
		k.set(host.MultiSz(v.Name, list))
	case "REG_BINARY":
		b, err := hex.DecodeString(text)
		if err != nil {
			return fmt.Errorf("%s\\%s: %w", v.Key, v.Name, err)
		}
		k.set(host.Binary(v.Name, b))
	default:
		return fmt.Errorf("%s\\%s: type %s is not known", v.Key, v.Name, v.Type)
	}
	return nil
}

func (m *model) plantService(p plantService) error {
	s := m.services[key(p.Name)]
	if p.Absent {
		if s != nil {
			m.stopAndForget(s)
		}
		return nil
	}
	if s == nil {
		start, ok := map[string]uint32{"": host.StartDemand, "demand": host.StartDemand, "auto": host.StartAuto, "delayed-auto": host.StartAuto, "disabled": host.StartDisabled}[p.Start]
		if !ok {
			return fmt.Errorf("service %s: start %q", p.Name, p.Start)
		}
		c := host.Service{
			Name: p.Name, DisplayName: p.DisplayName, Command: p.Command, Account: p.Account, Description: p.Description, Type: host.OwnProcess,
			Start: start, ErrorControl: 1, Delayed: p.Start == "delayed-auto", Dependencies: p.Dependencies, Failure: p.Failure,
		}
		if c.DisplayName == "" {
			c.DisplayName = p.Name
		}
		if c.Account == "" {
			c.Account = "LocalSystem"
		}
		s = m.addService(c)
	}
	if p.Handles != nil {
		s.handles = *p.Handles
		m.reap(s)
	}
	if p.Running && s.status.State == host.Stopped {
		m.startNow(s)
		if s.status.State != host.Running {
			return fmt.Errorf("service %s: cannot run %q (Win32 %d)", p.Name, s.cfg.Command, s.status.Win32Exit)
		}
	}
	return nil
}

func (m *model) stopAndForget(s *service) {
	s.marked, s.handles = true, 0
	if p := m.procs[s.status.PID]; p != nil && s.status.PID != 0 {
		m.end(p)
	}
	s.status.State = host.Stopped
	m.reap(s)
}
