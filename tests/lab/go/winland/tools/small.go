package tools

import (
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

// wevtutil tells the newest start of the system, as XML, and the events that were planted: those of a channel are the value
// "Events CHANNEL" below HKLM\SOFTWARE\WinLab, whatever is asked of them.
func wevtutil(s *console.Session, args []string) int {
	line := strings.ToLower(strings.Join(args, " "))
	if len(args) == 6 && args[0] == "qe" && args[4] == "/rd:true" && args[5] == "/f:xml" && !strings.Contains(line, "eventid=12") {
		if v, err := host.RegValueOf(s, `HKLM\SOFTWARE\WinLab`, "Events "+args[1]); err == nil {
			s.Printf("%s\r\n", v.Text())
		}
		return 0
	}
	for _, part := range []string{"qe system ", "microsoft-windows-kernel-general", "eventid=12", "/c:1", "/rd:true", "/f:xml"} {
		if !strings.Contains(line, part) {
			return s.Reject("wevtutil %s", strings.Join(args, " "))
		}
	}
	at := s.Boot().UTC().Format("2006-01-02T15:04:05.000000000Z")
	s.Printf("<Event xmlns='http://schemas.microsoft.com/win/2004/08/events/event'><System>"+
		"<Provider Name='Microsoft-Windows-Kernel-General' Guid='{a68ca8b7-004f-d7b6-a698-07e2de0f1f5d}'/><EventID>12</EventID>"+
		"<Version>1</Version><Level>4</Level><Task>1</Task><Opcode>0</Opcode><Keywords>0x8000000000000080</Keywords>"+
		"<TimeCreated SystemTime='%s'/><EventRecordID>1</EventRecordID><Correlation/><Execution ProcessID='4' ThreadID='8'/>"+
		"<Channel>System</Channel><Computer>%s</Computer><Security UserID='S-1-5-18'/></System><EventData>"+
		"<Data Name='StartTime'>%s</Data></EventData></Event>\r\n", at, s.Name(), at)
	return 0
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

// smbMappings is how the mappings of SMB shares are asked for (MSFT_SmbGlobalMapping).
const smbMappings = `/namespace:\\root\microsoft\windows\smb path msft_smbglobalmapping get localpath,remotepath,status /value`

// wmic tells the last boot, as WMI writes times, and the planted mappings of SMB shares: lines of LOCAL|REMOTE|STATUS in the
// value SmbGlobalMappings below HKLM\SOFTWARE\WinLab, between semicolons.
func wmic(s *console.Session, args []string) int {
	if strings.ToLower(strings.Join(args, " ")) == smbMappings {
		v, err := host.RegValueOf(s, `HKLM\SOFTWARE\WinLab`, "SmbGlobalMappings")
		if err != nil {
			s.Errorf("No Instance(s) Available.\r\n")
			return 0
		}
		for _, one := range strings.Split(v.Text(), ";") {
			part := append(strings.Split(one, "|"), "", "")
			s.Printf("\r\r\n\r\r\nLocalPath=%s\r\r\nRemotePath=%s\r\r\nStatus=%s\r\r\n", part[0], part[1], part[2])
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
