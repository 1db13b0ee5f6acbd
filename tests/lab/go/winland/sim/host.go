package sim

import (
	"context"
	"crypto/x509"
	"net"
	"sync"
	"time"

	"kubewin.invalid/lab/winland/host"
)

// Host is one simulated machine.
type Host struct {
	mu    sync.Mutex
	m     *model
	saved map[string]*model
	// life ends with a reboot; what runs on the machine ends with it.
	life context.Context
	die  context.CancelFunc
}

var _ host.Host = (*Host)(nil)

// New furnishes a machine.
func New(set Settings) *Host {
	h := &Host{saved: map[string]*model{}}
	h.renew()
	h.m = seed(set)
	return h
}

func (h *Host) renew() { h.life, h.die = context.WithCancel(context.Background()) }

// lock gives the model, up to date; the caller unlocks.
func (h *Host) lock() *model {
	h.mu.Lock()
	h.m.settle()
	return h.m
}

// Life is the context of everything that runs on the machine until it reboots.
func (h *Host) Life() context.Context {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.life
}

// Settings gives the knobs as they are.
func (h *Host) Settings() Settings {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.m.set
}

func (h *Host) Name() string      { return h.Settings().Name }
func (h *Host) Lang() string      { return h.Settings().Lang }
func (h *Host) OSVersion() string { return "10.0." + h.Settings().OSBuild }

// OEMCodePage is what a console has that nobody told otherwise.
func (h *Host) OEMCodePage() int {
	if h.Lang() == "de" {
		return 850
	}
	return 437
}

func (h *Host) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.m.now().UTC()
}

// Pause takes real time, or moves the clock.
func (h *Host) Pause(ctx context.Context, d time.Duration) {
	if h.Settings().SkipPauses {
		m := h.lock()
		defer h.mu.Unlock()
		m.advance(d)
		return
	}
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

func (h *Host) Boot() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.m.boot.UTC()
}

func (h *Host) Environment() map[string]string {
	return map[string]string{
		"ComSpec": `C:\Windows\system32\cmd.exe`, "COMPUTERNAME": h.Name(), "OS": "Windows_NT", "SystemDrive": "C:",
		"SystemRoot": `C:\Windows`, "windir": `C:\Windows`, "ProgramFiles": `C:\Program Files`, "ProgramData": `C:\ProgramData`,
		"Path": `C:\Windows\system32;C:\Windows;C:\Windows\System32\Wbem`, "PATHEXT": ".COM;.EXE;.BAT;.CMD",
		"TEMP": `C:\Users\Administrator\AppData\Local\Temp`, "TMP": `C:\Users\Administrator\AppData\Local\Temp`,
		"USERNAME": "Administrator", "USERPROFILE": `C:\Users\Administrator`, "PROCESSOR_ARCHITECTURE": "AMD64",
	}
}

// Dial uses the real network: downloads come from the lab's servers.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	return d.DialContext(ctx, network, address)
}

// Roots are the system's and those that certutil -addstore brought.
func (h *Host) Roots() (*x509.CertPool, error) {
	m := h.lock()
	defer h.mu.Unlock()
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	for _, der := range m.roots {
		if c, err := x509.ParseCertificate(der); err == nil {
			pool.AddCert(c)
		}
	}
	return pool, nil
}

func (h *Host) AddRoot(der []byte) error {
	if _, err := x509.ParseCertificate(der); err != nil {
		return host.Errno(13)
	}
	m := h.lock()
	defer h.mu.Unlock()
	m.roots = append(m.roots, der)
	return nil
}
