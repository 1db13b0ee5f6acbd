package agent

import (
	"encoding/json"
	"fmt"

	"kubewin.invalid/lab/winland/shell"
)

// control answers the verbs that every agent knows and hands the rest to the machines.
func (s *Server) control(req request) (map[string]any, error) {
	d := s.desk(s.provider.Desk(req.Host))
	switch req.Control {
	case "ping":
		return nil, nil
	case "fault":
		var a struct {
			Rule Rule `json:"rule"`
		}
		if err := decode(req.Args, &a); err != nil {
			return nil, err
		}
		return nil, d.faults.add(a.Rule)
	case "clear_faults":
		d.faults.clear()
		return nil, nil
	case "journal":
		var a struct {
			Clear bool `json:"clear"`
		}
		if err := decode(req.Args, &a); err != nil {
			return nil, err
		}
		return map[string]any{"journal": d.journal.list(a.Clear)}, nil
	case "steps":
		var a struct {
			Line string `json:"line"`
		}
		if err := decode(req.Args, &a); err != nil {
			return nil, err
		}
		return map[string]any{"steps": shell.Steps(a.Line), "count": len(shell.Steps(a.Line)), "ran": d.journal.ran(a.Line)}, nil
	}
	out, err := s.provider.Control(req.Host, req.Control, req.Args)
	if err == ErrVerb {
		err = fmt.Errorf("control verb %q is not known; see README.md", req.Control)
	}
	if req.Control == "delete_host" && err == nil {
		s.mu.Lock()
		delete(s.desks, req.Host)
		s.mu.Unlock()
	}
	return out, err
}

func decode(raw json.RawMessage, into any) error {
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	return Strict(raw, into)
}
