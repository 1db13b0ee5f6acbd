package tools

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/text"
)

// fsutil volume diskfree prints free, total, quota-free in this order on every release.
func fsutil(s *console.Session, args []string) int {
	if len(args) != 3 || !strings.EqualFold(args[0], "volume") || !strings.EqualFold(args[1], "diskfree") {
		return s.Reject("fsutil %s", strings.Join(args, " "))
	}
	free, total, err := s.DiskFree(s.Abs(args[2]))
	if err != nil {
		s.Printf("Error:  %s\r\n", s.Message(host.Code(err)))
		return 1
	}
	row := func(label string, n uint64) {
		tenths := n * 10 >> 30
		point := s.Pick(".", ",")
		s.Printf("%-32s: %15s (%4s GB)\r\n", label, text.Group(n, s.Lang()), strconv.FormatUint(tenths/10, 10)+point+strconv.FormatUint(tenths%10, 10))
	}
	row("Total free bytes", free)
	row("Total bytes", total)
	row("Total quota free bytes", free)
	return 0
}

// wevtutil tells the events of the clock, newest first, as XML, and the events that were planted: those of a channel are the
// value "Events CHANNEL" below HKLM\SOFTWARE\WinLab, whatever is asked of them.
func wevtutil(s *console.Session, args []string) int {
	line := strings.ToLower(strings.Join(args, " "))
	if len(args) != 6 || args[0] != "qe" || args[4] != "/rd:true" || args[5] != "/f:xml" || !strings.HasPrefix(args[3], "/c:") {
		return s.Reject("wevtutil %s", strings.Join(args, " "))
	}
	wanted := map[string]bool{}
	for _, id := range regexp.MustCompile(`eventid=(\d+)`).FindAllStringSubmatch(line, -1) {
		wanted[id[1]] = true
	}
	if len(wanted) == 0 {
		if v, err := host.RegValueOf(s, `HKLM\SOFTWARE\WinLab`, "Events "+args[1]); err == nil {
			s.Printf("%s\r\n", v.Text())
		}
		return 0
	}
	most, err := strconv.Atoi(args[3][len("/c:"):])
	if err != nil || !strings.EqualFold(args[1], "System") {
		return s.Reject("wevtutil %s", strings.Join(args, " "))
	}
	events := clockEvents(s)
	for record := len(events); record > 0 && most > 0; record-- {
		if e := events[record-1]; wanted[e.id] {
			s.Printf("%s\r\n", e.xml(record, s.Name()))
			most--
		}
	}
	return 0
}

// clockEvent is an event of the System log; at is what the clock said.
type clockEvent struct {
	id   string
	at   time.Time
	data string
}

const eventTime = "2006-01-02T15:04:05.000000000Z"

// clockEvents are the start of the system (Kernel-General 12), what the event log says at boot and once a day (EventLog 6013),
// and each time the clock was set (Kernel-General 1). WinLab\RtcOffset, in seconds, is by how much the hardware's clock was
// ahead: a hypervisor that keeps it in UTC for a Windows that takes it for local time. It is set right 20 s after the boot.
// WinLab\ClockSteps is how often an integration service set the clock by less than a millisecond since.
func clockEvents(s *console.Session) []clockEvent {
	number := func(name string) int64 {
		v, err := host.RegValueOf(s, `HKLM\SOFTWARE\WinLab`, name)
		if err != nil {
			return 0
		}
		n, _ := strconv.ParseInt(v.Text(), 10, 64) // not planted is 0
		return n
	}
	boot, offset := s.Boot().UTC(), time.Duration(number("RtcOffset"))*time.Second
	wrong := boot.Add(offset)
	uptime := func(at time.Time, seconds int64) clockEvent {
		return clockEvent{"6013", at, fmt.Sprintf("<Data></Data><Data></Data><Data></Data><Data></Data><Data>%d</Data><Data>60</Data>"+
			"<Data>0 Coordinated Universal Time</Data>", seconds)}
	}
	step := func(to, from time.Time) clockEvent {
		return clockEvent{"1", to, fmt.Sprintf("<Data Name='NewTime'>%s</Data><Data Name='OldTime'>%s</Data><Data Name='Reason'>1</Data>",
			to.Format(eventTime), from.Format(eventTime))}
	}
	events := []clockEvent{
		{"12", wrong, "<Data Name='StartTime'>" + wrong.Format(eventTime) + "</Data>"}, uptime(wrong.Add(6*time.Second), 6),
	}
	if offset != 0 {
		events = append(events, step(boot.Add(20*time.Second), wrong.Add(20*time.Second)))
	}
	for day := int64(1); boot.Add(time.Duration(day) * 24 * time.Hour).Before(s.Now()); day++ {
		events = append(events, uptime(boot.Add(time.Duration(day)*24*time.Hour), day*86400))
	}
	for n := number("ClockSteps"); n > 0; n-- {
		now := s.Now().UTC()
		events = append(events, step(now, now.Add(600*time.Microsecond)))
	}
	return events
}

func (e clockEvent) xml(record int, computer string) string {
	provider := "<Provider Name='Microsoft-Windows-Kernel-General' Guid='{a68ca8b7-004f-d7b6-a698-07e2de0f1f5d}'/><EventID>" + e.id + "</EventID>"
	if e.id == "6013" {
		provider = "<Provider Name='EventLog'/><EventID Qualifiers='32768'>6013</EventID>"
	}
	return fmt.Sprintf("<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>%s"+
		"<Version>1</Version><Level>4</Level><Task>1</Task><Opcode>0</Opcode><Keywords>0x8000000000000080</Keywords>"+
		"<TimeCreated SystemTime='%s'/><EventRecordID>%d</EventRecordID><Correlation/><Execution ProcessID='4' ThreadID='8'/>"+
		"<Channel>System</Channel><Computer>%s</Computer><Security UserID='S-1-5-18'/></System><EventData>%s</EventData></Event>",
		provider, e.at.Format(eventTime), record, computer, e.data)
}

// Volumes gives the names of the volumes that the mount manager knows, as Volume{...}.
func Volumes(s *console.Session) ([]string, error) {
	values, err := s.RegValues(`HKLM\SYSTEM\MountedDevices`)
	var out []string
	for _, v := range values {
		if name, ok := strings.CutPrefix(v.Name, `\??\`); ok {
			out = append(out, name)
		}
	}
	return out, err
}

// mountvol without arguments prints its usage and the volumes with their mount points.
func mountvol(s *console.Session, args []string) int {
	if len(args) > 0 {
		return s.Reject("mountvol %s", strings.Join(args, " "))
	}
	s.Printf("Creates, deletes, or lists a volume mount point.\r\n\r\nPossible values for VolumeName along with current mount points are:\r\n\r\n")
	volumes, _ := Volumes(s)
	for _, v := range volumes {
		s.Printf("    \\\\?\\%s\\\r\n        *** NO MOUNT POINTS ***\r\n\r\n", v)
	}
	return 0
}

// How the mappings of SMB shares are asked for (MSFT_SmbGlobalMapping).
const (
	smbMappings    = `/namespace:\\root\microsoft\windows\smb path msft_smbglobalmapping get localpath,remotepath,status /value`
	smbMappingsCim = `-noprofile -noninteractive -command $erroractionpreference='stop';` +
		`foreach($m in get-ciminstance -namespace root/microsoft/windows/smb -classname %s)` +
		`{'localpath='+$m.localpath;'remotepath='+$m.remotepath;'status='+$m.status}`
)

// plantedMappings are the mappings of SMB shares as LOCAL, REMOTE, STATUS: what stands between semicolons in the value
// SmbGlobalMappings below HKLM\SOFTWARE\WinLab, each with | between its parts.
func plantedMappings(s *console.Session) [][]string {
	v, err := host.RegValueOf(s, `HKLM\SOFTWARE\WinLab`, "SmbGlobalMappings")
	if err != nil {
		return nil
	}
	var mappings [][]string
	for _, mapping := range strings.Split(v.Text(), ";") {
		mappings = append(mappings, append(strings.Split(mapping, "|"), "", ""))
	}
	return mappings
}

// powershell lists the planted mappings of SMB shares, and fails for a class that is not there.
func powershell(s *console.Session, args []string) int {
	switch strings.ToLower(strings.Join(args, " ")) {
	case fmt.Sprintf(smbMappingsCim, "msft_smbglobalmapping"):
	case fmt.Sprintf(smbMappingsCim, "msft_nosuchmapping"):
		s.Errorf("Get-CimInstance : Invalid class \r\n")
		return 1
	default:
		return s.Reject("powershell %s", strings.Join(args, " "))
	}
	for _, mapping := range plantedMappings(s) {
		s.Printf("LocalPath=%s\r\nRemotePath=%s\r\nStatus=%s\r\n", mapping[0], mapping[1], mapping[2])
	}
	return 0
}

// wmic tells the last boot, as WMI writes times, and the planted mappings of SMB shares.
func wmic(s *console.Session, args []string) int {
	if strings.ToLower(strings.Join(args, " ")) == smbMappings {
		mappings := plantedMappings(s)
		if mappings == nil {
			s.Errorf("No Instance(s) Available.\r\n")
			return 0
		}
		for _, mapping := range mappings {
			s.Printf("\r\r\n\r\r\nLocalPath=%s\r\r\nRemotePath=%s\r\r\nStatus=%s\r\r\n", mapping[0], mapping[1], mapping[2])
		}
		s.Printf("\r\r\n\r\r\n")
		return 0
	}
	if strings.ToLower(strings.Join(args, " ")) != "os get lastbootuptime /value" {
		return s.Reject("wmic %s", strings.Join(args, " "))
	}
	s.Printf("\r\r\n\r\r\nLastBootUpTime=%s+060\r\r\n\r\r\n", s.Boot().UTC().Add(time.Hour).Format("20060102150405.000000"))
	return 0
}

func hostname(s *console.Session, args []string) int {
	if len(args) > 0 {
		return s.Reject("hostname %s", strings.Join(args, " "))
	}
	s.Printf("%s\r\n", s.Name())
	return 0
}

func whoami(s *console.Session, args []string) int {
	if len(args) > 0 {
		return s.Reject("whoami %s", strings.Join(args, " "))
	}
	s.Printf("%s\\administrator\r\n", strings.ToLower(s.Name()))
	return 0
}

// chcp shows or sets the console's code page.
func chcp(s *console.Session, args []string) int {
	if len(args) > 1 {
		return s.Reject("chcp %s", strings.Join(args, " "))
	}
	if len(args) == 1 {
		n, err := strconv.Atoi(args[0])
		if err != nil || !text.KnownPage(n) {
			s.Errorf("Invalid code page\r\n")
			return 1
		}
		s.CodePage.Store(int32(n))
	}
	s.Printf("Active code page: %d\r\n", s.CodePage.Load())
	return 0
}

// ping is the pause that needs no console: -n COUNT to the machine itself takes COUNT-1 seconds.
func ping(s *console.Session, args []string) int {
	if len(args) != 3 || args[0] != "-n" || args[2] != "127.0.0.1" {
		return s.Reject("ping %s", strings.Join(args, " "))
	}
	n, err := strconv.Atoi(args[1])
	if err != nil || n < 1 {
		return s.Reject("ping -n %s", args[1])
	}
	s.Printf("\r\nPinging 127.0.0.1 with 32 bytes of data:\r\n")
	for i := 0; i < n; i++ {
		if i > 0 {
			s.Pause(s.Ctx, time.Second)
			if s.Killed() {
				return host.Killed
			}
		}
		s.Printf("Reply from 127.0.0.1: bytes=32 time<1ms TTL=128\r\n")
	}
	return 0
}
