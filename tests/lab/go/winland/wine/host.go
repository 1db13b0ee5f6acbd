//go:build windows

package wine

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"kubewin.invalid/lab/winland/agent"
	"kubewin.invalid/lab/winland/host"
)

// labKey holds what belongs to the lab and to no Windows.
const labKey = `HKLM\Software\WinLab`

// Host is the machine itself.
type Host struct {
	mu       sync.Mutex
	settings settings
	boot     time.Time
}

// settings are what the control verb `set` changes.
type settings struct {
	Lang          string `json:"lang"`
	LatencyMS     int    `json:"latency_ms"`
	OrphanStdinMS int    `json:"orphan_stdin_ms"`
}

var (
	_ host.Host      = (*Host)(nil)
	_ agent.Provider = (*Host)(nil)
)

// New looks at the machine. The language is kept in the registry, so that programs started on their own have it too.
func New() *Host {
	h := &Host{settings: settings{Lang: "en", OrphanStdinMS: 7200000}, boot: time.Now()}
	if v, err := host.RegValueOf(h, labKey, "Lang"); err == nil {
		h.settings.Lang = v.Text()
	}
	return h
}

// Pause takes real time.
func (h *Host) Pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (h *Host) get() settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.settings
}

func (h *Host) value(key, name, otherwise string) string {
	if v, err := host.RegValueOf(h, key, name); err == nil && v.Text() != "" {
		return v.Text()
	}
	return otherwise
}

func (h *Host) Name() string {
	name, _ := os.Hostname()
	return h.value(`HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`, "Hostname", name)
}

func (h *Host) Lang() string { return h.get().Lang }

func (h *Host) OSVersion() string {
	const key = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`
	ubr, _ := host.RegValueOf(h, key, "UBR")
	return fmt.Sprintf("10.0.%s.%d", h.value(key, "CurrentBuildNumber", "0"), ubr.Number())
}

func (h *Host) OEMCodePage() int {
	if h.Lang() == "de" {
		return 850
	}
	return 437
}

func (h *Host) Environment() map[string]string { return environment() }
func (h *Host) Now() time.Time                 { return time.Now().UTC() }

// Boot is when the agent started, which is part of the machine's start: Wine's own uptime is that of Linux.
func (h *Host) Boot() time.Time { return h.boot.UTC() }

func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Roots are Wine's and those that certutil brought: Wine reads its store once a process, so these are kept apart.
func (h *Host) Roots() (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, win(err)
	}
	values, _ := h.RegValues(labKey + `\Roots`) // absent until the first is added
	for _, v := range values {
		if c, err := x509.ParseCertificate(v.Data); err == nil {
			pool.AddCert(c)
		}
	}
	return pool, nil
}

func (h *Host) AddRoot(der []byte) error {
	c, err := x509.ParseCertificate(der)
	if err != nil {
		return host.Errno(13) // ERROR_INVALID_DATA
	}
	store, err := windows.CertOpenStore(windows.CERT_STORE_PROV_SYSTEM, 0, 0, windows.CERT_SYSTEM_STORE_LOCAL_MACHINE, uintptr(unsafe.Pointer(wide("ROOT"))))
	if err != nil {
		return win(err)
	}
	defer windows.CertCloseStore(store, 0)
	cc, err := windows.CertCreateCertificateContext(windows.X509_ASN_ENCODING, &der[0], uint32(len(der)))
	if err != nil {
		return win(err)
	}
	defer windows.CertFreeCertificateContext(cc)
	if err := windows.CertAddCertificateContextToStore(store, cc, windows.CERT_STORE_ADD_REPLACE_EXISTING, nil); err != nil {
		return win(err)
	}
	return h.RegSet(labKey+`\Roots`, host.Binary(strings.ToUpper(c.SerialNumber.Text(16)), der))
}

// Find implements agent.Provider: there is one machine, whatever it is called.
func (h *Host) Find(string) (host.Host, context.Context, error) {
	return h, context.Background(), nil
}

// Desk implements agent.Provider.
func (h *Host) Desk(string) string { return "" }

// Latency implements agent.Provider.
func (h *Host) Latency(string) (latency, orphan time.Duration) {
	s := h.get()
	return time.Duration(s.LatencyMS) * time.Millisecond, time.Duration(s.OrphanStdinMS) * time.Millisecond
}

// Control implements agent.Provider.
func (h *Host) Control(_, verb string, args json.RawMessage) (map[string]any, error) {
	if verb != "set" {
		return nil, agent.ErrVerb
	}
	s := h.get()
	if err := agent.Strict(args, &s); err != nil {
		return nil, err
	}
	if s.Lang != "en" && s.Lang != "de" {
		return nil, fmt.Errorf("lang %q: expected en or de", s.Lang)
	}
	if err := h.RegSet(labKey, host.Sz("Lang", s.Lang)); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.settings = s
	return nil, nil
}
