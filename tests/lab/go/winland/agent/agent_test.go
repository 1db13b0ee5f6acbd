package agent_test

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"kubewin.invalid/lab/winland/agent"
	"kubewin.invalid/lab/winland/sim"
)

// client talks to an agent with one simulated machine, win-1.
type client struct {
	t       *testing.T
	address string
}

func start(t *testing.T) *client {
	t.Helper()
	r, w := io.Pipe()
	go func() { _ = agent.New(sim.NewFleet()).Serve("127.0.0.1:0", w) }()
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "LISTEN ") {
		t.Fatal(line, err)
	}
	c := &client{t, strings.TrimSpace(line[7:])}
	c.must("create_host", `{"addresses":["127.0.11.1"],"scm_timeout_ms":50,"orphan_stdin_ms":100}`)
	return c
}

func (c *client) dial(request map[string]any) net.Conn {
	c.t.Helper()
	k, err := net.Dial("tcp", c.address)
	if err != nil {
		c.t.Fatal(err)
	}
	b, _ := json.Marshal(request)
	if _, err := k.Write(append(b, '\n')); err != nil {
		c.t.Fatal(err)
	}
	return k
}

func (c *client) control(verb, args string) map[string]any {
	c.t.Helper()
	k := c.dial(map[string]any{"host": "win-1", "control": verb, "args": json.RawMessage(args)})
	defer k.Close()
	var out map[string]any
	if err := json.NewDecoder(k).Decode(&out); err != nil {
		c.t.Fatal(err)
	}
	return out
}

func (c *client) must(verb, args string) map[string]any {
	c.t.Helper()
	out := c.control(verb, args)
	if out["ok"] != true {
		c.t.Fatalf("%s %s: %v", verb, args, out)
	}
	return out
}

func frame(kind byte, data string) []byte {
	b := []byte{kind, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(b[1:], uint32(len(data)))
	return append(b, data...)
}

// answer reads frames up to the exit code.
func (c *client) answer(k net.Conn) (rc uint32, out, errs string) {
	c.t.Helper()
	_ = k.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		var head [5]byte
		if _, err := io.ReadFull(k, head[:]); err != nil {
			c.t.Fatal(err)
		}
		b := make([]byte, binary.BigEndian.Uint32(head[1:]))
		if _, err := io.ReadFull(k, b); err != nil {
			c.t.Fatal(err)
		}
		switch head[0] {
		case 1:
			out += string(b)
		case 2:
			errs += string(b)
		case 3:
			return binary.BigEndian.Uint32(b), out, errs
		}
	}
}

func (c *client) run(line string, more map[string]any, stdin string) (rc uint32, out, errs string) {
	c.t.Helper()
	request := map[string]any{"host": "win-1", "line": line, "shell": true, "codepage": 65001}
	for k, v := range more {
		request[k] = v
	}
	k := c.dial(request)
	defer k.Close()
	if _, err := k.Write(append(frame(0, stdin), frame(1, "")...)); err != nil {
		c.t.Fatal(err)
	}
	return c.answer(k)
}

func (c *client) eventually(what string, ok func() bool) {
	c.t.Helper()
	for end := time.Now().Add(5 * time.Second); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	c.t.Fatal("never: " + what)
}

func TestCommand(t *testing.T) {
	c := start(t)
	if rc, out, errs := c.run("findstr /c:b & nosuch", nil, "abc\r\nx\r\n"); rc != 1 || out != "abc\r\n" || !strings.HasPrefix(errs, "'nosuch'") {
		t.Error(rc, out, errs)
	}
	if rc, _, _ := c.run("certutil -hashfile C:\\none SHA256", nil, ""); rc != 2147942402 {
		t.Error("codes are unsigned:", rc)
	}
	c.must("set", `{"lang":"de"}`)
	if _, out, _ := c.run("sc qc nosuch", map[string]any{"codepage": 850}, ""); len(out) != 89 {
		t.Errorf("code page 850: %q", out)
	}
	if _, _, errs := c.run("reg query HKLM\\SOFTWARE\\none", map[string]any{"codepage": 437}, ""); !strings.Contains(errs, "Registrierungsschl\x81ssel") {
		t.Errorf("code page 437: %q", errs)
	}
	// as CreateProcess: no builtins, no operators
	if rc, out, _ := c.run("echo x", map[string]any{"shell": false}, ""); rc != 2 || out != "" {
		t.Error("builtin without a command processor:", rc, out)
	}
	if rc, out, _ := c.run(`cmd.exe /c echo %A%& cd`, map[string]any{"shell": false, "env": map[string]string{"a": "1"}, "dir": `C:\Windows`}, ""); rc != 0 || out != "1\r\nC:\\Windows\r\n" {
		t.Error("environment and directory:", rc, out)
	}
	if rc, _, errs := c.run("ver", map[string]any{"host": "nobody"}, ""); rc != 1 || !strings.Contains(errs, "create_host") {
		t.Error("unknown host:", rc, errs)
	}
}

func TestStopAfter(t *testing.T) {
	c := start(t)
	line := `C:\Windows\System32\cmd.exe /d /v:on /s /c "echo a & echo b& (echo c || echo d)"`
	if out := c.must("steps", `{"line":`+quote(line)+`}`); out["count"] != 4.0 || out["ran"] != -1.0 {
		t.Error(out)
	}
	for k, want := range []string{"", "a \r\n", "a \r\nb\r\n", "a \r\nb\r\nc \r\n"} {
		rc, out, _ := c.run(line, map[string]any{"stop_after": k}, "")
		if rc != 0xC000013A || out != want {
			t.Errorf("stop_after %d: rc %x, %q", k, rc, out)
		}
	}
	if rc, out, _ := c.run(line, map[string]any{"stop_after": 9}, ""); rc != 0 || !strings.Contains(out, "c") {
		t.Error("more than the line has:", rc, out)
	}
	if out := c.must("steps", `{"line":`+quote(line)+`}`); out["ran"] != 3.0 {
		t.Error(out)
	}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func TestTerminateAndLostClient(t *testing.T) {
	c := start(t)
	k := c.dial(map[string]any{"host": "win-1", "line": "echo up & ping -n 60 127.0.0.1 >nul & echo x>C:\\t", "shell": true})
	defer k.Close()
	var first [5]byte
	if _, err := io.ReadFull(k, first[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Write(frame(2, "")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.CopyN(io.Discard, k, int64(binary.BigEndian.Uint32(first[1:])))
	if rc, _, _ := c.answer(k); rc != 0xC000013A {
		t.Errorf("terminated: rc %x", rc)
	}
	if rc, _, _ := c.run("type C:\\t", nil, ""); rc != 1 {
		t.Error("the line ran on after terminate")
	}
	// a dropped connection is not the end of the command
	c.must("fault", `{"rule":{"match":"^echo slow","delay_ms":50}}`)
	c.dial(map[string]any{"host": "win-1", "line": "echo slow & echo done>C:\\d", "shell": true}).Close()
	c.eventually("the command ran on", func() bool { rc, _, _ := c.run("type C:\\d", nil, ""); return rc == 0 })
	// nor does a lost client close stdin at once: a search that reads it ends when the shell does
	c.dial(map[string]any{"host": "win-1", "line": "findstr /c:x & echo done>C:\\e", "shell": true}).Close()
	if rc, _, _ := c.run("type C:\\e", nil, ""); rc == 0 {
		t.Error("stdin ended with the connection")
	}
	c.eventually("stdin of the lost client ended", func() bool { rc, _, _ := c.run("type C:\\e", nil, ""); return rc == 0 })
}

func TestFaults(t *testing.T) {
	c := start(t)
	c.must("fault", `{"rule":{"match":"^sc query","after":1,"times":1,"rc":5,"stdout":"denied\r\n"}}`)
	for i, want := range []uint32{0, 5, 0} {
		if rc, _, _ := c.run("sc query EventLog", nil, ""); rc != want {
			t.Errorf("query %d: rc %d, want %d", i, rc, want)
		}
	}
	for effect, size := range map[string]string{"none": "", "half": " 5 f", "done": " 10 f"} {
		c.must("fault", `{"rule":{"match":"^copy","rc":1,"stderr":"broken","effect":"`+effect+`"}}`)
		rc, out, errs := c.run("echo 12345678>C:\\src& copy C:\\src C:\\f", nil, "")
		if rc != 1 || out != "" || errs != "broken" {
			t.Errorf("%s: rc %d %q %q", effect, rc, out, errs)
		}
		_, out, _ = c.run("dir C:\\ & del C:\\f 2>nul", nil, "")
		if strings.Contains(out, " f\r\n") != (size != "") || !strings.Contains(out, size) {
			t.Errorf("%s: %s", effect, out)
		}
	}
	c.must("fault", `{"rule":{"disk_free":100}}`)
	if _, out, _ := c.run("fsutil volume diskfree C:", nil, ""); !strings.Contains(out, " 100 (") {
		t.Error(out)
	}
	if rc, _, errs := c.run("copy C:\\Windows\\System32\\svchost.exe C:\\a & copy C:\\a C:\\b & copy C:\\a C:\\c & copy C:\\a C:\\d", nil, ""); rc != 1 || !strings.Contains(errs, "not enough space") {
		t.Error("disk full:", rc, errs)
	}
	c.must("clear_faults", `{}`)
	c.must("plant", `{"files":{"C:\\p\\csi.exe":{"exe":{"kind":"csi-proxy","release":"1.3.0"}}},"services":[{"name":"csi","command":"C:\\p\\csi.exe -windows-service"}]}`)
	c.must("fault", `{"rule":{"block":"p.csi[.]exe","code":1260}}`)
	if rc, out, _ := c.run("sc start csi", nil, ""); rc != 1260 || !strings.Contains(out, "blocked by group policy") {
		t.Error("blocked:", rc, out)
	}
	c.must("clear_faults", `{}`)
	c.must("fault", `{"rule":{"quarantine":"q.csi[.]exe"}}`)
	if rc, _, _ := c.run(`md C:\q & copy C:\p\csi.exe C:\q\csi.exe & sc config csi binPath= "C:\q\csi.exe -windows-service" & dir /b C:\q`, nil, ""); rc != 1 {
		t.Error("a quarantined file is still there")
	}
	if rc, _, _ := c.run("sc start csi", nil, ""); rc != 225 {
		t.Error("quarantined:", rc)
	}
	for _, bad := range []string{`{"rule":{}}`, `{"rule":{"match":"x","block":"y","code":1}}`, `{"rule":{"match":"("}}`, `{"rule":{"match":"x","effect":"odd"}}`, `{"rule":{"block":"x"}}`, `{"rule":{"mtach":"x"}}`} {
		if out := c.control("fault", bad); out["ok"] != false {
			t.Errorf("%s was accepted", bad)
		}
	}
}

func TestJournal(t *testing.T) {
	c := start(t)
	c.run("echo a & nosuch & exit /b 4", nil, "")
	out := c.must("journal", `{"clear":true}`)
	b, _ := json.Marshal(out["journal"])
	want := `[{"line":"echo a \u0026 nosuch \u0026 exit /b 4","rc":4,"steps":["echo a","nosuch","exit /b 4"],"unknown":["program nosuch"]}]`
	if string(b) != want {
		t.Errorf("got  %s\nwant %s", b, want)
	}
	if out := c.must("journal", `{}`); len(out["journal"].([]any)) != 0 {
		t.Error("not cleared")
	}
	if out := c.control("nosuch", `{}`); out["ok"] != false {
		t.Error("unknown verb accepted")
	}
}

// TestReboot ends what runs.
func TestReboot(t *testing.T) {
	c := start(t)
	k := c.dial(map[string]any{"host": "win-1", "line": "ping -n 60 127.0.0.1", "shell": true})
	defer k.Close()
	var first [1]byte
	if _, err := k.Read(first[:]); err != nil {
		t.Fatal(err)
	}
	c.must("reboot", `{}`)
	_ = k.SetReadDeadline(time.Now().Add(5 * time.Second))
	rest, err := io.ReadAll(k)
	if err != nil || len(rest) < 4 || binary.BigEndian.Uint32(rest[len(rest)-4:]) != 0xC000013A {
		t.Error("a command survived the reboot", err)
	}
}
