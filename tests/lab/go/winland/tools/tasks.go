package tools

import (
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/text"
)

// tasklist knows /fo csv /nh with filters on PID and IMAGENAME; no match is exit 0 and a localised line.
func tasklist(s *console.Session, args []string) int {
	var filters []string
	csv, noHeader, services := false, false, false
	for i := 0; i < len(args); i++ {
		switch o := strings.ToLower(args[i]); {
		case o == "/fi" && i+1 < len(args):
			i++
			filters = append(filters, args[i])
		case o == "/fo" && i+1 < len(args) && strings.EqualFold(args[i+1], "csv"):
			i++
			csv = true
		case o == "/nh":
			noHeader = true
		case o == "/svc":
			services = true
		default:
			return s.Reject("tasklist %s", strings.Join(args, " "))
		}
	}
	if !csv || !noHeader {
		return s.Reject("tasklist without /fo csv /nh: headers are localised")
	}
	found := false
	for _, p := range s.Processes() {
		fits := true
		for _, f := range filters {
			ok, known := filterFits(f, p)
			if !known {
				return s.Reject("tasklist /fi %q", f)
			}
			fits = fits && ok
		}
		if !fits {
			continue
		}
		found = true
		if services {
			s.Printf("\"%s\",\"%d\",\"%s\"\r\n", p.Image, p.PID, servicesOf(s, p.PID))
			continue
		}
		s.Printf("\"%s\",\"%d\",\"Services\",\"0\",\"%s K\"\r\n", p.Image, p.PID, text.Group(p.Memory/1024, s.Lang()))
	}
	if !found {
		s.Printf("%s\r\n", s.Pick("INFO: No tasks are running which match the specified criteria.",
			"INFORMATION: Es werden keine Aufgaben mit den angegebenen Kriterien ausgeführt."))
	}
	return 0
}

// servicesOf lists the services in a process as tasklist /svc does.
func servicesOf(s *console.Session, pid uint32) string {
	var names []string
	for _, name := range s.Services() {
		if st, err := s.ServiceStatus(name); err == nil && st.PID == pid {
			if c, err := s.ServiceConfig(name); err == nil {
				names = append(names, c.Name)
			}
		}
	}
	if len(names) == 0 {
		return s.Pick("N/A", "Nicht zutreffend")
	}
	return strings.Join(names, ",")
}

func filterFits(filter string, p host.Process) (fits, known bool) {
	w := strings.Fields(filter)
	if len(w) < 3 || !strings.EqualFold(w[1], "eq") {
		return false, false
	}
	value := strings.Join(w[2:], " ")
	switch strings.ToUpper(w[0]) {
	case "PID":
		return strconv.FormatUint(uint64(p.PID), 10) == value, true
	case "IMAGENAME":
		return host.Match(value, p.Image), true
	}
	return false, false
}

// taskkill knows /F with /PID; a process that is gone is 128.
func taskkill(s *console.Session, args []string) int {
	force := false
	var pids []string
	for i := 0; i < len(args); i++ {
		switch o := strings.ToLower(args[i]); {
		case o == "/f":
			force = true
		case o == "/pid" && i+1 < len(args):
			i++
			pids = append(pids, args[i])
		default:
			return s.Reject("taskkill %s", strings.Join(args, " "))
		}
	}
	if !force || len(pids) == 0 {
		return s.Reject("taskkill %s: services ignore a polite request", strings.Join(args, " "))
	}
	rc := 0
	for _, text := range pids {
		pid, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return s.Reject("taskkill /PID %s", text)
		}
		switch err := s.KillProcess(uint32(pid)); host.Code(err) {
		case 0:
			s.Printf("SUCCESS: The process with PID %d has been terminated.\r\n", pid)
		case int(host.FileNotFound):
			s.Errorf("ERROR: The process \"%d\" not found.\r\n", pid)
			rc = 128
		default:
			s.Errorf("ERROR: The process with PID %d could not be terminated.\r\nReason: %s\r\n", pid, s.Message(host.Code(err)))
			rc = 1
		}
	}
	return rc
}
