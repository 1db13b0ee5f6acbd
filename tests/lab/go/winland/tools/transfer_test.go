package tools_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"kubewin.invalid/lab/winland/testkit"
)

func TestCurl(t *testing.T) {
	tries := 0
	mux := http.NewServeMux()
	mux.HandleFunc("/file", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "content") })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/file", http.StatusFound) })
	mux.HandleFunc("/large", func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(make([]byte, 4096)))
	})
	mux.HandleFunc("/whole", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2048)) })
	mux.HandleFunc("/cut", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		fmt.Fprint(w, "half")
	})
	mux.HandleFunc("/busy", func(w http.ResponseWriter, _ *http.Request) {
		if tries++; tries < 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("/hang", func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	plain := httptest.NewServer(mux)
	defer plain.Close()
	secure := httptest.NewTLSServer(mux)
	defer secure.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = closed.Close()

	m := testkit.New(t, nil)
	ca, err := m.CreateFile(`C:\ca.pem`, false)
	if err != nil {
		t.Fatal(err)
	}
	if err := pem.Encode(ca, &pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}); err != nil || ca.Close() != nil {
		t.Fatal(err)
	}
	m.Must(`md C:\dir`)
	for _, c := range []struct {
		args string
		rc   int
		file string // what --output holds afterwards, - when it must not exist
	}{
		{"-fsSL --output C:\\o " + plain.URL + "/file", 0, "content"},
		{"-fsSL --output C:\\o " + plain.URL + "/moved", 0, "content"},
		{"-fsSL --output C:\\o " + plain.URL + "/none", 22, "-"},
		{"-fsSL --range 0-0 --max-filesize 1024 --output C:\\o " + plain.URL + "/large", 0, "\x00"},
		{"-fsSL --range 0-0 --max-filesize 1024 --output C:\\o " + plain.URL + "/whole", 63, "-"},
		{"-fsSL --range 0-0 --max-filesize 1024 --output C:\\o " + plain.URL + "/none", 22, "-"},
		{"-fsSL --output C:\\o " + plain.URL + "/cut", 18, "half"},
		{"-fsSL --output C:\\o --max-time 0.1 " + plain.URL + "/hang", 28, "-"},
		{"-fsSL --output C:\\o --retry 2 --retry-delay 0 --connect-timeout 5 " + plain.URL + "/busy", 0, ""},
		{"-fsSL --output C:\\dir " + plain.URL + "/file", 23, "-"},
		{"-fsSL --output C:\\no\\o " + plain.URL + "/file", 23, "-"},
		{"-fsSL --output C:\\o http://" + closed.Addr().String() + "/", 7, "-"},
		{"-fsSL --output C:\\o http://nosuch.invalid/", 6, "-"},
		{"-fsSL --output C:\\o --proxy " + plain.URL + " http://nosuch.invalid/file", 0, "content"},
		{"-fsSL --output C:\\o file:///C:/none", 37, "-"},
		{"-fsSL --output C:\\o --ssl-no-revoke " + secure.URL + "/file", 60, "-"},
		{"-fsSL --output C:\\o --cacert C:\\ca.pem " + secure.URL + "/file", 35, "-"},
		{"-fsSL --output C:\\o --ssl-no-revoke --cacert C:\\ca.pem " + secure.URL + "/file", 0, "content"},
		{"-fsSL --output C:\\o --ssl-no-revoke " + strings.Replace(plain.URL, "http:", "https:", 1), 35, "-"},
		{"-fsSL --output C:\\o --fail-with-body " + plain.URL + "/file", 2, "-"},
	} {
		m.Run(`del /q C:\o`)
		r := m.Run("curl " + c.args)
		content := m.Run(`type C:\o`)
		if content.RC != 0 {
			content.Out = "-"
		}
		if r.RC != c.rc || content.Out != c.file {
			t.Errorf("curl %s\nrc %d, want %d; file %q, want %q; %s", c.args, r.RC, c.rc, content.Out, c.file, r.Err)
		}
	}
	m.Must(`certutil -addstore Root C:\ca.pem`)
	m.Must(`curl -fsSL --ssl-no-revoke --output C:\o ` + secure.URL + "/file")
}

func archive(t *testing.T, names ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, n := range names {
		if err := w.WriteHeader(&tar.Header{Name: n, Mode: 0o755, Size: 5000}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, strings.Repeat(n[:1], 5000)); err != nil {
			t.Fatal(err)
		}
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("archive")
	}
	return b.Bytes()
}

func TestTar(t *testing.T) {
	m := testkit.New(t, nil)
	m.Must(`md "C:\a b"`)
	data := archive(t, "x.exe", "sub/y.txt")
	if r := m.Feed(`tar.exe -xzf - -C "C:\a b"`, data); r.RC != 0 || r.Out+r.Err != "" {
		t.Fatal(r)
	}
	if r := m.Must(`dir /s /b "C:\a b"`); r.Out != "C:\\a b\\sub\r\nC:\\a b\\x.exe\r\nC:\\a b\\sub\\y.txt\r\n" {
		t.Errorf("%q", r.Out)
	}
	if r := m.Feed(`tar.exe -xzf - -C "C:\a b"`, data[:len(data)-30]); r.RC != 1 || !strings.Contains(r.Err, "Error exit delayed") {
		t.Error("cut stream:", r)
	}
	if r := m.Feed(`tar.exe -xzf - -C C:\none`, data); r.RC != 1 || !strings.Contains(r.Err, "could not chdir") {
		t.Error("no directory:", r)
	}
	if r := m.Feed(`tar.exe -xf - -C C:\`, []byte("no archive")); r.RC != 1 {
		t.Error("no archive:", r)
	}
	if r := m.Feed(`tar.exe -xzf - -C C:\`, archive(t, "../x")); r.RC != 1 {
		t.Error("a name that climbs:", r)
	}
}

// TestLocked: a running program can be renamed, and neither unpacked over nor fetched over.
func TestLocked(t *testing.T) {
	m := testkit.New(t, nil)
	m.Plant(`C:\x.exe`, `{"kind":"csi-proxy","release":"1.3.0"}`)
	m.Must(`sc create c binPath= "C:\x.exe -windows-service" & sc start c`)
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for line, rc := range map[string]int{
		`tar.exe -xzf - -C C:\`: 1, `curl -sS --output C:\x.exe ` + server.URL: 23, `copy /y C:\Windows\System32\hostname.exe C:\x.exe`: 1,
		`echo x>C:\x.exe`: 1, `move /y C:\Windows\System32\hostname.exe C:\x.exe`: 1, `certutil -hashfile C:\x.exe SHA256`: 0,
	} {
		if r := m.Feed(line, archive(t, "x.exe")); r.RC != rc {
			t.Errorf("%s: rc %d, want %d; %s%s", line, r.RC, rc, r.Out, r.Err)
		}
	}
	m.Must(`ren C:\x.exe x.old & copy C:\Windows\System32\hostname.exe C:\x.exe & del C:\x.old & dir /b C:\x.old`)
}
