package sim_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"kubewin.invalid/lab/winland/sim"
	"kubewin.invalid/lab/winland/testkit"
)

func quick(s *sim.Settings) {
	s.ConnectMS, s.RunningMS, s.PipesMS, s.SCMTimeoutMS = 1, 5, 10, 50
}

const list = `dir /b \\.\pipe\\csi-proxy-*`

// machine has a csi-proxy service of a release, stopped.
func machine(t *testing.T, release, flags string) *testkit.Machine {
	t.Helper()
	m := testkit.New(t, quick)
	m.Plant(`C:\csi-proxy.exe`, fmt.Sprintf(`{"kind":"csi-proxy","release":%q}`, release))
	m.Must(`sc create csi-proxy binPath= "C:\csi-proxy.exe -windows-service ` + flags + `"`)
	return m
}

func control(t *testing.T, h *sim.Host, verb, args string) {
	t.Helper()
	f := sim.NewFleet()
	f.Adopt(h)
	if _, err := f.Control(h.Name(), verb, json.RawMessage(args)); err != nil {
		t.Fatalf("%s %s: %v", verb, args, err)
	}
}

// TestFlags: a release refuses flags of a later one by exiting, which the SCM reports as 1053.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		release, flags string
		rc             int
	}{
		{"1.0.2", "-kubelet-path=C:\\k -v=4", 0}, {"1.0.2", "-working-dir=C:\\k", 1053}, {"1.1.2", "-working-dir=C:\\k -working-dir C:\\l", 0},
		{"1.1.3", "-require-privacy=false", 1053}, {"1.2.1", "-require-privacy=false", 0}, {"1.2.1", "-metrics-bind-address=x:1", 1053},
		{"1.3.0", "-metrics-bind-address=x:1 --v=2 -logtostderr=false", 0}, {"1.3.0", "-nosuch", 1053}, {"1.3.0", "-v=high", 1053}, {"1.3.0", "-v", 1053},
	} {
		if r := machine(t, c.release, c.flags).Run("sc start csi-proxy"); r.RC != c.rc {
			t.Errorf("%s %s: rc %d, want %d\n%s", c.release, c.flags, r.RC, c.rc, r.Out)
		}
	}
}

func TestPipes(t *testing.T) {
	for release, count := range map[string]int{"1.0.2": 21, "1.1.2": 23, "1.1.3": 23, "1.2.1": 23, "1.3.0": 23} {
		m := machine(t, release, "")
		m.Must("sc start csi-proxy")
		m.Eventually(list, "csi-proxy-volume-v1\r\n")
		r := m.Run(list)
		if n := strings.Count(r.Out, "\r\n"); n != count || strings.Contains(r.Out, "v2alpha1") != (count == 23) {
			t.Errorf("%s: %d pipes, want %d", release, n, count)
		}
	}
}

// TestRunningIsNotServing and STOPPED is not gone: the process and its pipes outlive the service.
func TestRunningIsNotServing(t *testing.T) {
	m := machine(t, "1.3.0", "")
	control(t, m.Host, "set", `{"pipes_ms": 300}`)
	m.Must("sc start csi-proxy")
	m.Eventually("sc query csi-proxy", "RUNNING")
	if r := m.Run(list); r.RC != 1 {
		t.Errorf("pipes right after RUNNING: %s", r.Out)
	}
	m.Eventually(list, "csi-proxy-disk-v1")
	m.Must("sc stop csi-proxy")
	m.Eventually("sc query csi-proxy", "STOPPED")
	if r := m.Run("del C:\\csi-proxy.exe & " + list); !strings.Contains(r.Err, "Access is denied.") || !strings.Contains(r.Out, "csi-proxy-disk-v1") {
		t.Errorf("after STOPPED the process should hold exe and pipes: %s%s", r.Out, r.Err)
	}
	m.Must("ren C:\\csi-proxy.exe old.exe & ren C:\\old.exe csi-proxy.exe")
	control(t, m.Host, "clock", `{"advance_ms": 61000}`)
	if r := m.Run(list); r.RC != 1 {
		t.Errorf("after a minute the SCM ends it: %s", r.Out)
	}
	m.Must("del C:\\csi-proxy.exe")
}

// TestSecondInstance: while an old process serves the pipes, a new one dies and recovery fires.
func TestSecondInstance(t *testing.T) {
	m := machine(t, "1.3.0", "")
	m.Must("sc failure csi-proxy reset= 0 actions= restart/100")
	m.Must("sc start csi-proxy")
	m.Eventually(list, "csi-proxy-disk-v1")
	m.Must("sc stop csi-proxy")
	m.Eventually("sc query csi-proxy", "STOPPED")
	m.Must("sc start csi-proxy")
	m.Eventually("sc query csi-proxy", "1067  (0x42b)")
	for _, p := range m.Processes() {
		if p.Image == "csi-proxy.exe" {
			m.Must(fmt.Sprintf("taskkill /F /PID %d", p.PID))
		}
	}
	m.Eventually("sc query csi-proxy", "RUNNING")
	m.Eventually(list, "csi-proxy-disk-v1")
}

// TestRecovery: killing the process while RUNNING counts as a crash, after STOPPED it does not.
func TestRecovery(t *testing.T) {
	m := machine(t, "1.3.0", "")
	m.Must("sc failure csi-proxy reset= 86400 actions= restart/20//0")
	kill := func() {
		t.Helper()
		for _, p := range m.Processes() {
			if p.Image == "csi-proxy.exe" {
				m.Must(fmt.Sprintf("taskkill /F /PID %d", p.PID))
				return
			}
		}
		t.Fatal("no process")
	}
	m.Must("sc start csi-proxy")
	m.Eventually("sc query csi-proxy", "RUNNING")
	kill()
	m.Eventually("sc query csi-proxy", "RUNNING")
	kill()
	control(t, m.Host, "clock", `{"advance_ms": 5000}`)
	if r := m.Run("sc query csi-proxy"); !strings.Contains(r.Out, "STOPPED") {
		t.Errorf("the second action is none: %s", r.Out)
	}
}

func TestLog(t *testing.T) {
	m := machine(t, "1.2.1", `-logtostderr=false -log_file=C:\l.log`)
	m.Must("sc start csi-proxy")
	m.Eventually("sc query csi-proxy", "RUNNING")
	if r := m.Run("ren C:\\l.log m.log"); r.RC != 1 {
		t.Error("an open log was renamed")
	}
	if r := m.Run("type C:\\l.log"); strings.Contains(r.Out, "Version:") {
		t.Error("klog flushes after some seconds, not at once")
	}
	control(t, m.Host, "clock", `{"advance_ms": 6000}`)
	if r := m.Run(`findstr /l /c:"Version:" C:\l.log`); !strings.HasSuffix(r.Out, "] Version: v1.2.1\r\n") {
		t.Errorf("log: %q", r.Out)
	}
	m = machine(t, "1.2.1", `-logtostderr=false -log_file=C:\nowhere\l.log`)
	m.Must("sc start csi-proxy")
	m.Eventually("sc query csi-proxy", "1067  (0x42b)")
}

// TestStarts covers programs that do not come up.
func TestStarts(t *testing.T) {
	for program, want := range map[string]int{
		`{"kind":"csi-proxy","release":"1.3.0","start":"exit:2"}`: 1053, `{"kind":"csi-proxy","release":"1.3.0","start":"hang"}`: 1053,
		`{"kind":"none"}`: 1053, `{"kind":"csi-proxy","release":"1.3.0","start":"crash:2"}`: 0, `{"kind":"csi-proxy","release":"1.3.0","pipes":"none"}`: 0,
	} {
		m := machine(t, "1.3.0", "")
		m.Plant(`C:\csi-proxy.exe`, program)
		if r := m.Run("sc start csi-proxy"); r.RC != want {
			t.Errorf("%s: rc %d, want %d", program, r.RC, want)
		}
		control(t, m.Host, "clock", `{"advance_ms": 1000}`)
		up := want == 0 && !strings.Contains(program, "crash")
		if r := m.Run("sc query csi-proxy"); strings.Contains(r.Out, "RUNNING") != up || m.Run(list).RC != 1 {
			t.Errorf("%s: %s", program, r.Out)
		}
	}
	m := testkit.New(t, quick)
	m.Must(`echo no program>C:\text.exe & sc create a binPath= C:\text.exe & sc create b binPath= C:\none.exe & sc create c binPath= C:\no\x.exe`)
	m.Must(`sc create d binPath= C:\Windows\System32\hostname.exe & sc create e binPath= C:\x start= disabled`)
	for name, rc := range map[string]int{"a": 193, "b": 2, "c": 3, "d": 1053, "e": 1058} {
		if r := m.Run("sc start " + name); r.RC != rc {
			t.Errorf("%s: rc %d, want %d", name, r.RC, rc)
		}
	}
}

// TestDelete: a service that runs or is held open is only marked.
func TestDelete(t *testing.T) {
	m := machine(t, "1.3.0", "")
	control(t, m.Host, "plant", `{"services":[{"name":"csi-proxy","handles":1}]}`)
	m.Must("sc delete csi-proxy")
	if r := m.Run("sc create csi-proxy binPath= C:\\x"); r.RC != 1072 {
		t.Errorf("while somebody holds it: rc %d", r.RC)
	}
	if r := m.Run(`reg query HKLM\SYSTEM\CurrentControlSet\Services\csi-proxy /v DeleteFlag`); !strings.Contains(r.Out, "DeleteFlag    REG_DWORD    0x1") {
		t.Errorf("DeleteFlag: %s", r.Out)
	}
	control(t, m.Host, "plant", `{"services":[{"name":"csi-proxy","handles":0}]}`)
	if r := m.Run("sc query csi-proxy"); r.RC != 1060 {
		t.Errorf("handle closed: rc %d", r.RC)
	}
	if r := m.Run(`reg query HKLM\SYSTEM\CurrentControlSet\Services\csi-proxy`); r.RC != 1 {
		t.Errorf("the key went with the service: rc %d", r.RC)
	}
}

func TestSnapshotAndReboot(t *testing.T) {
	m := machine(t, "1.3.0", "")
	m.Must("sc config csi-proxy start= auto")
	control(t, m.Host, "snapshot", `{"id":"a"}`)
	boot := m.Boot()
	m.Must("sc start csi-proxy & echo x>C:\\new")
	m.Eventually(list, "csi-proxy-disk-v1")
	control(t, m.Host, "reboot", `{}`)
	m.Eventually(list, "csi-proxy-disk-v1")
	if !m.Boot().After(boot) {
		t.Error("boot time did not move")
	}
	if r := m.Run(`reg query "HKLM\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters" /v BootId`); !strings.Contains(r.Out, "0x8") {
		t.Errorf("boot id: %s", r.Out)
	}
	m.Must("type C:\\new")
	control(t, m.Host, "restore", `{"id":"a"}`)
	if r := m.Run("type C:\\new"); r.RC != 1 {
		t.Error("the file survived the restore")
	}
	if r := m.Run("sc query csi-proxy"); !strings.Contains(r.Out, "STOPPED") || !m.Boot().Equal(boot) {
		t.Errorf("restored: %s", r.Out)
	}
	m.Must("del C:\\csi-proxy.exe")
}
