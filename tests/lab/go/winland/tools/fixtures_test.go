package tools_test

import (
	"regexp"
	"strings"
	"testing"

	"kubewin.invalid/lab/winland/acl"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/sim"
	"kubewin.invalid/lab/winland/testkit"
)

func german(s *sim.Settings) { s.Lang = "de" }

func crlf(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }

func same(t *testing.T, got testkit.Result, rc int, out string) {
	t.Helper()
	if got.RC != rc || got.Out != crlf(out) {
		t.Errorf("rc %d, want %d\ngot  %q\nwant %q\nerr %q", got.RC, rc, got.Out, crlf(out), got.Err)
	}
}

// TestMissingServiceGerman is SecretLUL/WinMedic's capture sc_qc_not_installed_de.bin: 89 bytes in code page 850.
func TestMissingServiceGerman(t *testing.T) {
	m := testkit.New(t, german)
	m.Page = 850
	r := m.Run("sc qc nosuch")
	same(t, r, 1060, "[SC] OpenService FEHLER 1060:\n\nDer angegebene Dienst ist kein installierter Dienst.\n\n")
	if len(r.Raw) != 89 {
		t.Errorf("%d bytes, the capture has 89", len(r.Raw))
	}
}

// TestConfigGerman is WinMedic's capture of `sc qc spooler`.
func TestConfigGerman(t *testing.T) {
	m := testkit.New(t, german)
	err := m.CreateService(host.Service{
		Name: "spooler", DisplayName: "Druckwarteschlange", Command: `C:\WINDOWS\System32\spoolsv.exe`, Account: "LocalSystem",
		Group: "SpoolerGroup", Type: 0x110, Start: host.StartAuto, ErrorControl: 1, Dependencies: []string{"RPCSS", "http"},
	})
	if err != nil {
		t.Fatal(err)
	}
	same(t, m.Run("sc qc spooler"), 0, `[SC] QueryServiceConfig ERFOLG

SERVICE_NAME: spooler
        TYPE               : 110  WIN32_OWN_PROCESS (interactive)
        START_TYPE         : 2   AUTO_START
        ERROR_CONTROL      : 1   NORMAL
        BINARY_PATH_NAME   : C:\WINDOWS\System32\spoolsv.exe
        LOAD_ORDER_GROUP   : SpoolerGroup
        TAG                : 0
        DISPLAY_NAME       : Druckwarteschlange
        DEPENDENCIES       : RPCSS
                           : http
        SERVICE_START_NAME : LocalSystem
`)
}

// TestListGerman is WinMedic's capture of entries of `sc query`, one running and one that never started.
func TestListGerman(t *testing.T) {
	m := testkit.New(t, german)
	stopped := crlf(`
SERVICE_NAME: AppIDSvc
DISPLAY_NAME: Anwendungsidentität
        TYPE               : 20  WIN32_SHARE_PROCESS  
        STATE              : 1  STOPPED 
        WIN32_EXIT_CODE    : 1077  (0x435)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x0
`)
	if r := m.Run("sc query state= all"); r.RC != 0 || !strings.Contains(r.Out, stopped) {
		t.Errorf("rc %d, no stopped entry in\n%s", r.RC, r.Out)
	}
	m.Must("sc start AppIDSvc")
	m.Eventually("sc query AppIDSvc", "RUNNING")
	running := crlf(`
SERVICE_NAME: AppIDSvc
DISPLAY_NAME: Anwendungsidentität
        TYPE               : 20  WIN32_SHARE_PROCESS  
        STATE              : 4  RUNNING 
                                (STOPPABLE, NOT_PAUSABLE, ACCEPTS_SHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x0
`)
	if r := m.Run("sc query"); r.RC != 0 || !strings.Contains(r.Out, running) {
		t.Errorf("rc %d, no running entry in\n%s", r.RC, r.Out)
	}
}

func trimmed(s string) string { return regexp.MustCompile(`[ \t]+\r\n`).ReplaceAllString(s, "\r\n") }

// TestStartShape is the answer of `sc start w32time` in public threads, whose blanks at line ends are lost.
func TestStartShape(t *testing.T) {
	m := testkit.New(t, nil)
	err := m.CreateService(host.Service{Name: "w32time", DisplayName: "Windows Time", Type: host.ShareProcess, Start: 3, ErrorControl: 1, Command: `C:\Windows\System32\svchost.exe -k x`})
	if err != nil {
		t.Fatal(err)
	}
	r := m.Run("sc start w32time")
	got := regexp.MustCompile(`PID                : \d+`).ReplaceAllString(trimmed(r.Out), "PID                : 19212")
	want := crlf(`
SERVICE_NAME: w32time
        TYPE               : 20  WIN32_SHARE_PROCESS
        STATE              : 2  START_PENDING
                                (NOT_STOPPABLE, NOT_PAUSABLE, IGNORES_SHUTDOWN)
        WIN32_EXIT_CODE    : 0  (0x0)
        SERVICE_EXIT_CODE  : 0  (0x0)
        CHECKPOINT         : 0x0
        WAIT_HINT          : 0x7d0
        PID                : 19212
        FLAGS              :
`)
	if r.RC != 0 || got != want {
		t.Errorf("rc %d\ngot  %q\nwant %q", r.RC, got, want)
	}
	m.Eventually("sc query w32time", "RUNNING")
	if r := m.Run("sc stop w32time"); r.RC != 0 || !strings.Contains(r.Out, "STATE              : 3  STOP_PENDING") || strings.Contains(r.Out, "PID") {
		t.Errorf("stop: rc %d\n%s", r.RC, r.Out)
	}
}

// TestFailureActions is `sc qfailure` of public threads, and EventLog's blob in the registry.
func TestFailureActions(t *testing.T) {
	m := testkit.New(t, nil)
	m.Must(`sc create ShineHeMCP binPath= C:\x.exe`)
	m.Must("sc failure ShineHeMCP reset= 86400 actions= restart/5000/restart/10000")
	r := m.Run("sc qfailure ShineHeMCP")
	r.Out = trimmed(r.Out)
	same(t, r, 0, `[SC] QueryServiceConfig2 SUCCESS

SERVICE_NAME: ShineHeMCP
        RESET_PERIOD (in seconds)    : 86400
        REBOOT_MESSAGE               :
        COMMAND_LINE                 :
        FAILURE_ACTIONS              : RESTART -- Delay = 5000 milliseconds.
                                       RESTART -- Delay = 10000 milliseconds.
`)
	blobs := map[string]string{
		`actions= restart/10000 reset= 0`:    "00000000000000000000000001000000140000000100000010270000",
		`reset= INFINITE actions= restart/0`: "FFFFFFFF000000000000000001000000140000000100000000000000",
	}
	for args, blob := range blobs {
		m.Must("sc failure ShineHeMCP " + args)
		if r := m.Run(`reg query HKLM\SYSTEM\CurrentControlSet\Services\ShineHeMCP /v FailureActions`); !strings.Contains(r.Out, "    FailureActions    REG_BINARY    "+blob+"\r\n") {
			t.Errorf("%s: %s", args, r.Out)
		}
	}
	const eventLog = "805101000000000000000000030000001400000001000000" + "60EA000001000000C0D401000000000000000000"
	if r := m.Run(`reg query HKLM\SYSTEM\CurrentControlSet\Services\EventLog /v FailureActions`); !strings.Contains(r.Out, eventLog) {
		t.Errorf("EventLog: %s", r.Out)
	}
	m.Must(`sc failure ShineHeMCP reset= 5 actions= ""`)
	if r := m.Run("sc qfailure ShineHeMCP"); strings.Contains(r.Out, "FAILURE_ACTIONS") || !strings.Contains(r.Out, "(in seconds)    : 0\r\n") {
		t.Errorf("cleared: %s", r.Out)
	}
}

// TestErrors are the failure texts of public issue threads.
func TestErrors(t *testing.T) {
	m := testkit.New(t, nil)
	m.Plant(`C:\csi.exe`, `{"kind":"csi-proxy","release":"1.3.0"}`)
	m.Must(`sc create p binPath= "C:\csi.exe -windows-service"`)
	m.Must(`sc create bad binPath= "C:\csi.exe -windows-service -nosuch"`)
	for _, c := range []struct {
		line string
		rc   int
		out  string
	}{
		{"sc query nosuch", 1060, "[SC] EnumQueryServicesStatus:OpenService FAILED 1060:\n\nThe specified service does not exist as an installed service.\n\n"},
		{"sc create p binPath= x", 1073, "[SC] CreateService FAILED 1073:\n\nThe specified service already exists.\n\n"},
		{"sc start bad", 1053, "[SC] StartService FAILED 1053:\n\nThe service did not respond to the start or control request in a timely fashion.\n\n"},
		{"sc start EventLog", 1056, "[SC] StartService FAILED 1056:\n\nAn instance of the service is already running.\n\n"},
		{"sc stop p", 1062, "[SC] ControlService FAILED 1062:\n\nThe service has not been started.\n\n"},
		{"sc stop containerd", 1051, "[SC] ControlService FAILED 1051:\n\nA stop control has been sent to a service that other running services are dependent on.\n\n"},
		{"sc delete EventLog & sc delete EventLog", 1072, "[SC] DeleteService SUCCESS\n[SC] DeleteService FAILED 1072:\n\nThe specified service has been marked for deletion.\n\n"},
		{"sc config EventLog start= auto", 1072, "[SC] ChangeServiceConfig FAILED 1072:\n\nThe specified service has been marked for deletion.\n\n"},
	} {
		same(t, m.Run(c.line), c.rc, c.out)
	}
	for _, line := range []string{"sc create x", "sc create x binPath=C:\\x.exe", "sc config p", "sc config p depend=", "sc failure p reset= 1"} {
		if r := m.Run(line); r.RC != 1639 {
			t.Errorf("%s: rc %d, want 1639", line, r.RC)
		}
	}
	m.Must(`sc config p depend= "EventLog/defragsvc" & sc config p depend= ""`)
}

// TestRegistry holds WinMedic's capture reg_query_current_build (106 bytes) and the shapes of public threads.
func TestRegistry(t *testing.T) {
	m := testkit.New(t, func(s *sim.Settings) { s.OSBuild = "26200.1000" })
	r := m.Run(`reg query "HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion" /v CurrentBuild`)
	same(t, r, 0, "\nHKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\n    CurrentBuild    REG_SZ    26200\n\n")
	if len(r.Raw) != 106 {
		t.Errorf("%d bytes, the capture has 106", len(r.Raw))
	}
	m.Must(`reg add HKLM\SOFTWARE\t /v DependOnService /t REG_MULTI_SZ /d RpcSs\0nsi\0vfpext /f`)
	if r := m.Run(`reg query hklm\software\T`); r.Out != "\r\nHKEY_LOCAL_MACHINE\\software\\T\r\n    DependOnService    REG_MULTI_SZ    RpcSs\\0nsi\\0vfpext\r\n\r\n" {
		t.Errorf("multi: %q", r.Out)
	}
	m.Must(`reg add HKLM\SOFTWARE\t\Sub /ve /d x /f & reg add HKLM\SOFTWARE\t\Sub /v n /t REG_DWORD /d 0x1F /f`)
	if r := m.Run(`reg query HKLM\SOFTWARE\t\Sub`); !strings.Contains(r.Out, "    (Default)    REG_SZ    x\r\n    n    REG_DWORD    0x1f\r\n") {
		t.Errorf("default value: %q", r.Out)
	}
	r = m.Run(`reg query HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters\Interfaces /s /f IPAddress /v`)
	if r.RC != 0 || !strings.Contains(r.Out, "    DhcpIPAddress    REG_SZ    127.0.11.1\r\n") || !strings.Contains(r.Out, "End of search: 1 match(es) found.") {
		t.Errorf("search by name: rc %d %s", r.RC, r.Out)
	}
	if r := m.Run(`reg query HKLM\SYSTEM\CurrentControlSet\Services /s /f csi-proxy /d`); r.RC != 1 || !strings.Contains(r.Out, "0 match(es)") {
		t.Errorf("search without a hit: rc %d %s", r.RC, r.Out)
	}
	m.Must(`reg delete HKLM\SOFTWARE\t /f`)
	for lang, text := range map[string]string{
		"en": "ERROR: The system was unable to find the specified registry key or value.\r\n",
		"de": "FEHLER: Der angegebene Registrierungsschlüssel bzw. Wert wurde nicht gefunden.\r\n",
	} {
		m := testkit.New(t, func(s *sim.Settings) { s.Lang = lang })
		if r := m.Run(`reg query HKLM\SOFTWARE\t`); r.RC != 1 || r.Err != text || r.Out != "" {
			t.Errorf("%s: rc %d %q %q", lang, r.RC, r.Out, r.Err)
		}
	}
}

func TestHash(t *testing.T) {
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // of "abc", FIPS 180-2
	for lang, frame := range map[string][2]string{
		"en": {"SHA256 hash of C:\\x.exe:", "CertUtil: -hashfile command completed successfully."},
		"de": {"SHA256-Hash von C:\\x.exe:", "CertUtil: -hashfile-Befehl wurde erfolgreich ausgeführt."},
	} {
		m := testkit.New(t, func(s *sim.Settings) { s.Lang = lang })
		w, err := m.CreateFile(`C:\x.exe`, false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("abc")); err != nil || w.Close() != nil {
			t.Fatal("write", err)
		}
		same(t, m.Run(`certutil -hashfile C:\x.exe SHA256`), 0, frame[0]+"\n"+sum+"\n"+frame[1]+"\n")
	}
	m := testkit.New(t, nil)
	r := m.Run(`certutil -hashfile C:\none SHA256`)
	if uint32(int32(r.RC)) != 2147942402 || !strings.HasPrefix(r.Out, "CertUtil: -hashfile command FAILED: 0x80070002 (WIN32: 2 ERROR_FILE_NOT_FOUND)\r\n") {
		t.Errorf("missing: rc %d %q", r.RC, r.Out)
	}
	m.Must(`copy nul C:\empty`)
	if r := m.Run(`certutil -hashfile C:\empty SHA256`); uint32(int32(r.RC)) != 0x800703ee || !strings.Contains(r.Out, "0x800703ee (WIN32: 1006 ERROR_FILE_INVALID)") {
		t.Errorf("empty: rc %d %q", r.RC, r.Out)
	}
}

func TestTasks(t *testing.T) {
	m := testkit.New(t, nil)
	same(t, m.Run(`tasklist /fi "PID eq 4" /fo csv /nh`), 0, "\"System\",\"4\",\"Services\",\"0\",\"5,844 K\"\n")
	same(t, m.Run(`tasklist /fi "PID eq 99999" /fo csv /nh`), 0, "INFO: No tasks are running which match the specified criteria.\n")
	de := testkit.New(t, german)
	same(t, de.Run(`tasklist /fi "PID eq 99999" /fo csv /nh`), 0, "INFORMATION: Es werden keine Aufgaben mit den angegebenen Kriterien ausgeführt.\n")
	if r := de.Run(`tasklist /fi "IMAGENAME eq kubelet.exe" /fo csv /nh`); !strings.Contains(r.Out, `"14.348 K"`) {
		t.Errorf("German separators: %q", r.Out)
	}
	if r := m.Run("taskkill /F /PID 11356"); r.RC != 128 || r.Err != "ERROR: The process \"11356\" not found.\r\n" || r.Out != "" {
		t.Errorf("gone: rc %d %q %q", r.RC, r.Out, r.Err)
	}
	pid := regexp.MustCompile(`PID\s+: (\d+)`).FindStringSubmatch(m.Run("sc queryex kubelet").Out)[1]
	same(t, m.Run("taskkill /F /PID "+pid), 0, "SUCCESS: The process with PID "+pid+" has been terminated.\n")
}

func TestAccess(t *testing.T) {
	m := testkit.New(t, nil)
	m.Must(`md c:\users2`)
	err := m.StoreACL(`C:\users2`, &acl.ACL{Protected: true, Entries: []acl.ACE{
		{SID: "S-1-1-0", Flags: "OC", Rights: "RX"}, {SID: "S-1-5-18", Flags: "OC", Rights: "F"}, {SID: "S-1-5-32-544", Flags: "OC", Rights: "F"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, m.Run(`icacls c:\users2`), 0, `c:\users2 Everyone:(OI)(CI)(RX)
          NT AUTHORITY\SYSTEM:(OI)(CI)(F)
          BUILTIN\Administrators:(OI)(CI)(F)

Successfully processed 1 files; Failed processing 0 files
`)
	// /grant:r replaces that SID's own entry only, /inheritance:r drops inherited ones only
	m.Must(`md C:\d & icacls C:\d /grant "*S-1-1-0:(OI)(CI)R"`)
	m.Must(`icacls C:\d /inheritance:r /grant:r "*S-1-5-18:(OI)(CI)F" /grant:r "*S-1-5-32-544:(OI)(CI)F"`)
	if r := m.Run(`icacls C:\d`); !strings.Contains(r.Out, "Everyone:(OI)(CI)(R)") || strings.Contains(r.Out, "(I)") {
		t.Errorf("other explicit entries survive: %s", r.Out)
	}
	m.Must(`icacls C:\d /reset & icacls C:\d /inheritance:r /grant:r "*S-1-5-18:(OI)(CI)F" "*S-1-5-32-544:(OI)(CI)F" & md C:\d\sub`)
	m.Must(`icacls C:\d /save C:\acl.txt`)
	if r := m.Run(`type C:\acl.txt`); strings.ReplaceAll(string(r.Raw), "\x00", "") != "d\r\nD:PAI(A;OICI;FA;;;BA)(A;OICI;FA;;;SY)\r\n" {
		t.Errorf("saved: %q", r.Raw)
	}
	if r := m.Run(`icacls C:\d\sub`); !strings.Contains(r.Out, `BUILTIN\Administrators:(I)(OI)(CI)(F)`) || strings.Contains(r.Out, "Users") {
		t.Errorf("inherited: %s", r.Out)
	}
	de := testkit.New(t, german)
	de.Must(`md C:\d`)
	if r := de.Run(`icacls C:\d /grant Administrators:F`); r.RC != 1332 || !strings.HasPrefix(r.Err, "Administrators: Zuordnungen von Kontennamen und Sicherheitskennungen wurden nicht durchgeführt.") {
		t.Errorf("English name on a German host: rc %d %q", r.RC, r.Err)
	}
	if r := de.Run(`icacls C:\d`); !strings.Contains(r.Out, `VORDEFINIERT\Administratoren:`) {
		t.Errorf("German names: %s", r.Out)
	}
	if r := m.Run(`icacls C:\nosuch`); r.RC != 2 {
		t.Errorf("missing file: rc %d", r.RC)
	}
}

func TestPipeNames(t *testing.T) {
	m := testkit.New(t, nil)
	r := m.Run(`dir \\.\pipe\\ /b`)
	for _, name := range []string{"InitShutdown", "lsass", "ntsvcs", "scerpc", `Winsock2\CatalogChangeListener-230-0`} {
		if !strings.Contains("\r\n"+r.Out, "\r\n"+name+"\r\n") {
			t.Errorf("%s is not a line of %q", name, r.Out)
		}
	}
	same(t, m.Run(`dir \\.\pipe\\Winsock2* /b`), 0, "Winsock2\\CatalogChangeListener-230-0\n")
	if r := m.Run(`dir \\.\pipe\\csi-proxy-* /b`); r.RC != 1 || r.Out != "" || r.Err != "File Not Found\r\n" {
		t.Errorf("none: rc %d %q %q", r.RC, r.Out, r.Err)
	}
}

// TestDiskFree reads the answer as one has to on every release and locale: on the first line, the longest digit group.
func TestDiskFree(t *testing.T) {
	for _, lang := range []string{"en", "de"} {
		m := testkit.New(t, func(s *sim.Settings) { s.Lang = lang; s.DiskBytes = 164371357696 })
		line := strings.SplitN(m.Must(`fsutil volume diskfree C:`).Out, "\r\n", 2)[0]
		best := ""
		for _, g := range regexp.MustCompile(`\d[\d.,]*`).FindAllString(line[strings.Index(line, ":"):], -1) {
			if g = strings.NewReplacer(".", "", ",", "").Replace(g); len(g) > len(best) {
				best = g
			}
		}
		if len(best) != 12 || best[:6] != "164371" {
			t.Errorf("%s: %q gives %s", lang, line, best)
		}
	}
}
