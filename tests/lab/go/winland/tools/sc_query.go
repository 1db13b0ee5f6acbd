package tools

import (
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

var (
	stateNames = map[uint32]string{
		1: "STOPPED", 2: "START_PENDING", 3: "STOP_PENDING", 4: "RUNNING", 5: "CONTINUE_PENDING", 6: "PAUSE_PENDING", 7: "PAUSED",
	}
	startNames = map[uint32]string{0: "BOOT_START", 1: "SYSTEM_START", 2: "AUTO_START", 3: "DEMAND_START", 4: "DISABLED"}
	errorNames = map[uint32]string{0: "IGNORE", 1: "NORMAL", 2: "SEVERE", 3: "CRITICAL"}
	typeNames  = map[uint32]string{1: "KERNEL_DRIVER", 2: "FILE_SYSTEM_DRIVER", 0x10: "WIN32_OWN_PROCESS", 0x20: "WIN32_SHARE_PROCESS"}
)

func typeName(t uint32) string {
	if t&0x100 != 0 {
		return typeNames[t&0xff] + " (interactive)"
	}
	return typeNames[t&0xff]
}

// scStatus prints one service as query, queryex, start and stop do; display is set in lists only.
func scStatus(s *console.Session, name, display string, st host.Status, extended bool) {
	word := func(bit uint32, yes, no string) string {
		if st.Accepted&bit != 0 {
			return yes
		}
		return no
	}
	s.Printf("\r\nSERVICE_NAME: %s\r\n", name)
	if display != "" {
		s.Printf("DISPLAY_NAME: %s\r\n", display)
	}
	s.Printf("        TYPE               : %x  %s  \r\n", st.Type, typeName(st.Type))
	s.Printf("        STATE              : %d  %s \r\n", st.State, stateNames[st.State])
	if st.State != host.Stopped {
		s.Printf("                                (%s, %s, %s)\r\n", word(host.AcceptStop, "STOPPABLE", "NOT_STOPPABLE"),
			word(2, "PAUSABLE", "NOT_PAUSABLE"), word(host.AcceptShutdown, "ACCEPTS_SHUTDOWN", "IGNORES_SHUTDOWN"))
	}
	s.Printf("        WIN32_EXIT_CODE    : %d  (0x%x)\r\n        SERVICE_EXIT_CODE  : %d  (0x%x)\r\n", st.Win32Exit, st.Win32Exit,
		st.ServiceExit, st.ServiceExit)
	s.Printf("        CHECKPOINT         : 0x%x\r\n        WAIT_HINT          : 0x%x\r\n", st.CheckPoint, st.WaitHint)
	if extended {
		s.Printf("        PID                : %d\r\n        FLAGS              : \r\n", st.PID)
	}
}

// scList enumerates; the default buffer of 4 KiB cuts the list (error 234), bufsize= makes it larger.
func scList(s *console.Session, args []string, extended bool) int {
	o, ok := scOptions(args, "type", "state", "bufsize")
	if !ok {
		return scUsage(s, "query")
	}
	if t := strings.ToLower(o["type"]); t != "" && t != "service" && t != "all" {
		return s.Reject("sc query type= %s", t)
	}
	state, size := strings.ToLower(o["state"]), 4096
	if v := o["bufsize"]; v != "" {
		size, _ = strconv.Atoi(v)
	}
	used, missing, resume := 0, 0, 0
	shown := 0
	for _, name := range s.Services() {
		c, err := s.ServiceConfig(name)
		if err != nil {
			continue
		}
		st, err := s.ServiceStatus(name)
		active := st.State != host.Stopped
		if err != nil || c.Type&0x30 == 0 || state == "inactive" && active || state != "inactive" && state != "all" && !active {
			continue
		}
		need := 56 + 2*(len(c.Name)+len(c.DisplayName)+2)
		if used+need > size {
			if missing == 0 {
				resume = shown
			}
			missing += need
			continue
		}
		used += need
		shown++
		scStatus(s, c.Name, c.DisplayName, st, extended)
	}
	if missing > 0 {
		s.Printf("Enum: more data, need %d bytes start resume at index %d\r\n", missing, resume)
		return int(host.MoreData)
	}
	return 0
}

// scQuery is qc, qdescription, qfailure and qfailureflag.
func scQuery(s *console.Session, op, name string, c host.Service, args []string) int {
	if len(args) > 1 {
		return scUsage(s, op)
	}
	if op == "qc" {
		size := 1024
		if len(args) == 1 {
			size, _ = strconv.Atoi(args[0])
		}
		need := 64 + 2*(len(c.Command)+len(c.DisplayName)+len(c.Group)+len(c.Account)+len(strings.Join(c.Dependencies, " "))+6)
		if need > size {
			rc := scFail(s, "QueryServiceConfig", host.DataAreaTooSmall)
			s.Printf("[SC] GetServiceConfig needs %d bytes\r\n", need)
			return rc
		}
		scOK(s, "QueryServiceConfig")
		scShowConfig(s, name, c)
		return 0
	}
	scOK(s, "QueryServiceConfig2")
	s.Printf("\r\nSERVICE_NAME: %s\r\n", name)
	switch op {
	case "qdescription":
		s.Printf("DESCRIPTION:  %s\r\n", c.Description)
	case "qfailureflag":
		s.Printf("        FAILURE_ACTIONS_ON_NONCRASH_FAILURES : %s\r\n", strings.ToUpper(strconv.FormatBool(c.FailureFlag)))
	case "qfailure":
		scShowFailure(s, c)
	}
	return 0
}

func scShowConfig(s *console.Session, name string, c host.Service) {
	delayed := ""
	if c.Delayed && c.Start == host.StartAuto {
		delayed = "  (DELAYED)"
	}
	s.Printf("\r\nSERVICE_NAME: %s\r\n", name)
	row := func(label, value string) { s.Printf("        %-19s: %s\r\n", label, value) }
	row("TYPE", strconv.FormatUint(uint64(c.Type), 16)+"  "+typeName(c.Type))
	row("START_TYPE", strconv.Itoa(int(c.Start))+"   "+startNames[c.Start]+delayed)
	row("ERROR_CONTROL", strconv.Itoa(int(c.ErrorControl))+"   "+errorNames[c.ErrorControl])
	row("BINARY_PATH_NAME", c.Command)
	row("LOAD_ORDER_GROUP", c.Group)
	row("TAG", strconv.Itoa(int(c.Tag)))
	row("DISPLAY_NAME", c.DisplayName)
	row("DEPENDENCIES", strings.Join(c.Dependencies, "\r\n                           : "))
	row("SERVICE_START_NAME", c.Account)
}

func scShowFailure(s *console.Session, c host.Service) {
	f := c.Failure
	if f == nil {
		f = &host.Failure{}
	}
	reset := strconv.FormatUint(uint64(f.Reset), 10)
	if f.Reset == host.Infinite {
		reset = "INFINITE"
	}
	s.Printf("        RESET_PERIOD (in seconds)    : %s\r\n", reset)
	s.Printf("        REBOOT_MESSAGE               : %s\r\n        COMMAND_LINE                 : %s\r\n", f.RebootMessage, f.Command)
	label := "FAILURE_ACTIONS              :"
	for _, a := range f.Actions {
		if a.Type == host.ActionNone {
			return // sc cuts the list at the first "no action"
		}
		word := map[uint32]string{host.ActionRestart: "RESTART", host.ActionReboot: "REBOOT", host.ActionRun: "RUN PROCESS"}[a.Type]
		s.Printf("        %-30s %s -- Delay = %d milliseconds.\r\n", label, word, a.Delay)
		label = ""
	}
}

// scDependents lists the services that need this one; nothing but the count line when there are none.
func scDependents(s *console.Session, c host.Service) int {
	var list []string
	for _, name := range s.Services() {
		o, err := s.ServiceConfig(name)
		if err == nil && o.DependsOn(c.Name) {
			list = append(list, name)
		}
	}
	s.Printf("Enum: entriesRead  = %d\r\n", len(list))
	for _, name := range list {
		o, _ := s.ServiceConfig(name)
		st, err := s.ServiceStatus(name)
		if err == nil {
			scStatus(s, o.Name, o.DisplayName, st, false)
		}
	}
	return 0
}
