package tools

import (
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

// sc prints everything to stdout, failures too; its exit code is the Win32 error.
func sc(s *console.Session, args []string) int {
	if len(args) == 0 || strings.HasPrefix(args[0], `\\`) {
		return s.Reject("sc %s", strings.Join(args, " "))
	}
	op := strings.ToLower(args[0])
	switch op {
	case "query", "queryex":
		if len(args) < 2 || strings.Contains(args[1], "=") {
			return scList(s, args[1:], op == "queryex")
		}
	case "create", "config", "failure", "failureflag", "sidtype", "description", "start", "stop", "delete", "qc",
		"qdescription", "qfailure", "qfailureflag", "enumdepend":
	default:
		return s.Reject("sc %s", strings.Join(args, " "))
	}
	if len(args) < 2 {
		return scUsage(s, op)
	}
	name, rest := args[1], args[2:]
	switch op {
	case "query", "queryex":
		st, err := s.ServiceStatus(name)
		if err != nil {
			return scFail(s, "EnumQueryServicesStatus:OpenService", err)
		}
		scStatus(s, name, "", st, op == "queryex")
		return 0
	case "create":
		return scCreate(s, name, rest)
	case "start":
		return scStart(s, name, rest)
	case "stop":
		return scStop(s, name)
	}
	c, err := s.ServiceConfig(name)
	if err != nil {
		return scFail(s, "OpenService", err)
	}
	switch op {
	case "config":
		return scConfig(s, name, rest)
	case "delete":
		if err := s.DeleteService(name); err != nil {
			return scFail(s, "DeleteService", err)
		}
		return scOK(s, "DeleteService")
	case "failure":
		return scFailure(s, c, rest)
	case "failureflag", "sidtype", "description":
		return scConfig2(s, name, op, rest)
	case "enumdepend":
		return scDependents(s, c)
	}
	return scQuery(s, op, name, c, rest)
}

// scFail prints "[SC] Api FAILED n:" and the sentence, and gives n.
func scFail(s *console.Session, api string, err error) int {
	n := host.Code(err)
	s.Printf("[SC] %s %s %d:\r\n\r\n%s\r\n\r\n", api, s.Pick("FAILED", "FEHLER"), n, s.Message(n))
	return n
}

func scOK(s *console.Session, api string) int {
	s.Printf("[SC] %s %s\r\n", api, s.Pick("SUCCESS", "ERFOLG"))
	return 0
}

func scUsage(s *console.Session, op string) int {
	s.Printf("DESCRIPTION:\r\n        winland: bad command line for sc %s\r\nUSAGE:\r\n        sc <server> %s [service name] ...\r\n", op, op)
	return int(host.BadCommandLine)
}

// scOptions reads `key= value` pairs. Recent Windows takes key=value as well; the lab insists on the form that every
// release takes.
func scOptions(args []string, known ...string) (map[string]string, bool) {
	out := map[string]string{}
	for i := 0; i < len(args); i += 2 {
		key, ok := strings.CutSuffix(strings.ToLower(args[i]), "=")
		if !ok || i+1 >= len(args) || !contains(known, key) {
			return nil, false
		}
		out[key] = args[i+1]
	}
	return out, true
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}

func scStart(s *console.Session, name string, args []string) int {
	if _, err := s.ServiceStatus(name); err != nil {
		return scFail(s, "StartService: OpenService", err)
	}
	if err := s.StartService(s.Ctx, name, args); err != nil {
		return scFail(s, "StartService", err)
	}
	st, err := s.ServiceStatus(name)
	if err != nil {
		return scFail(s, "QueryServiceStatus", err)
	}
	scStatus(s, name, "", st, true)
	return 0
}

func scStop(s *console.Session, name string) int {
	if _, err := s.ServiceStatus(name); err != nil {
		return scFail(s, "OpenService", err)
	}
	st, err := s.StopService(name)
	if err != nil {
		return scFail(s, "ControlService", err)
	}
	scStatus(s, name, "", st, false)
	return 0
}

var configOptions = []string{"type", "start", "error", "binpath", "group", "depend", "obj", "displayname", "password"}

// scChange turns options into a change; ok is false for a value that sc refuses.
func scChange(o map[string]string) (c host.Change, ok bool) {
	number := func(key string, words map[string]uint32, to **uint32) {
		if v, has := o[key]; has {
			n, known := words[strings.ToLower(v)]
			ok = ok && known
			*to = &n
		}
	}
	str := func(key string, to **string) {
		if v, has := o[key]; has {
			*to = &v
		}
	}
	ok = true
	number("type", map[string]uint32{"own": host.OwnProcess, "share": host.ShareProcess}, &c.Type)
	number("start", map[string]uint32{"boot": 0, "system": 1, "auto": 2, "delayed-auto": 2, "demand": 3, "disabled": 4}, &c.Start)
	number("error", map[string]uint32{"ignore": 0, "normal": 1, "severe": 2, "critical": 3}, &c.ErrorControl)
	str("binpath", &c.Command)
	str("group", &c.Group)
	str("obj", &c.Account)
	str("displayname", &c.DisplayName)
	if v, has := o["start"]; has {
		delayed := strings.EqualFold(v, "delayed-auto")
		c.Delayed = &delayed
	}
	if v, has := o["depend"]; has {
		list := []string{}
		for _, d := range strings.Split(v, "/") {
			if d != "" {
				list = append(list, d)
			}
		}
		c.Dependencies = &list
	}
	return c, ok
}

func scCreate(s *console.Session, name string, args []string) int {
	o, ok := scOptions(args, configOptions...)
	if !ok || o["binpath"] == "" {
		return scUsage(s, "create")
	}
	c, ok := scChange(o)
	if !ok {
		return scUsage(s, "create")
	}
	svc := host.Service{
		Name: name, DisplayName: name, Account: "LocalSystem", Type: host.OwnProcess, Start: host.StartDemand, ErrorControl: 1,
	}
	svc.Apply(c)
	if err := s.CreateService(svc); err != nil {
		return scFail(s, "CreateService", err)
	}
	return scOK(s, "CreateService")
}

func scConfig(s *console.Session, name string, args []string) int {
	o, ok := scOptions(args, configOptions...)
	c, good := scChange(o)
	if !ok || !good || len(o) == 0 {
		return scUsage(s, "config")
	}
	if err := s.ChangeService(name, c); err != nil {
		return scFail(s, "ChangeServiceConfig", err)
	}
	return scOK(s, "ChangeServiceConfig")
}

func scConfig2(s *console.Session, name, op string, args []string) int {
	var c host.Change
	switch {
	case op == "description" && len(args) == 0:
		c.Description = new(string)
	case len(args) != 1:
		return scUsage(s, op)
	case op == "description":
		c.Description = &args[0]
	case op == "failureflag":
		on := args[0] == "1"
		if args[0] != "0" && !on {
			return scUsage(s, op)
		}
		c.FailureFlag = &on
	case op == "sidtype":
		n, ok := map[string]uint32{"none": 0, "unrestricted": 1, "restricted": 3}[strings.ToLower(args[0])]
		if !ok {
			return scUsage(s, op)
		}
		c.SidType = &n
	}
	if err := s.ChangeService(name, c); err != nil {
		return scFail(s, "ChangeServiceConfig2", err)
	}
	return scOK(s, "ChangeServiceConfig2")
}

// scFailure sets recovery: reset= in seconds and actions= type/milliseconds pairs belong together; actions= "" clears.
func scFailure(s *console.Session, svc host.Service, args []string) int {
	o, ok := scOptions(args, "reset", "actions", "command", "reboot")
	if !ok || len(o) == 0 {
		return scUsage(s, "failure")
	}
	f := host.Failure{}
	if svc.Failure != nil {
		f = *svc.Failure
	}
	if v, has := o["command"]; has {
		f.Command = v
	}
	if v, has := o["reboot"]; has {
		f.RebootMessage = v
	}
	reset, hasReset := o["reset"]
	actions, hasActions := o["actions"]
	if hasReset != hasActions {
		s.Printf("ERROR:  The reset and actions options must be set simultaneously.\r\n")
		return int(host.BadCommandLine)
	}
	if hasReset {
		n, err := strconv.ParseUint(reset, 10, 32)
		if strings.EqualFold(reset, "INFINITE") {
			n, err = uint64(host.Infinite), nil
		}
		list, ok := scActions(actions)
		if err != nil || !ok {
			return scUsage(s, "failure")
		}
		if len(list) == 0 {
			n = 0
		}
		f.Reset, f.Actions = uint32(n), list
	}
	if err := s.ChangeService(svc.Name, host.Change{Failure: &f}); err != nil {
		return scFail(s, "ChangeServiceConfig2", err)
	}
	return scOK(s, "ChangeServiceConfig2")
}

// scActions reads restart/10000/run/500//0: an empty type is "no action".
func scActions(text string) ([]host.Action, bool) {
	if text == "" {
		return nil, true
	}
	parts := strings.Split(text, "/")
	if len(parts)%2 != 0 {
		if parts[len(parts)-1] != "" {
			return nil, false
		}
		parts = parts[:len(parts)-1]
	}
	var out []host.Action
	for i := 0; i+1 < len(parts); i += 2 {
		kind, ok := map[string]uint32{
			"": host.ActionNone, "restart": host.ActionRestart, "reboot": host.ActionReboot, "run": host.ActionRun,
		}[strings.ToLower(parts[i])]
		delay, err := strconv.ParseUint(parts[i+1], 10, 32)
		if !ok || err != nil {
			return nil, false
		}
		out = append(out, host.Action{Type: kind, Delay: uint32(delay)})
	}
	return out, true
}
