package sim

import (
	"fmt"
	"strings"
	"time"

	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/tools"
)

const (
	control = `HKLM\SYSTEM\CurrentControlSet\Control`
	tcpip   = `HKLM\SYSTEM\CurrentControlSet\Services\Tcpip\Parameters`
	version = `HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion`
)

// seed makes a machine as the collection may meet one: Server 2022 Core with kubelet and containerd running.
func seed(set Settings) *model {
	m := &model{
		set: set, files: map[string]*node{}, registry: map[string]*regKey{}, services: map[string]*service{},
		procs: map[uint32]*process{}, nextPID: 1000, bootID: 7,
	}
	m.boot = m.now()
	m.files[`c:\`] = &node{name: `C:\`, dir: true, mod: m.now()}
	build, _, _ := strings.Cut(set.OSBuild, ".")
	for _, t := range tools.Names() {
		if t == "wmic" && build == "26100" {
			continue // Windows Server 2025 has it as a feature on demand only
		}
		m.put(`C:\Windows\System32\`+tools.FileName(t), false, []byte("MZ\x90\x00 winland tool"))
	}
	m.put(`C:\Windows\System32\cmd.exe`, false, []byte("MZ\x90\x00 winland tool"))
	for _, d := range []string{
		`C:\Users\Administrator\AppData\Local\Temp`, `C:\Program Files`, `C:\ProgramData`, `C:\Windows\Temp`, `C:\var\lib\kubelet\plugins_registry`,
		`C:\var\lib\kubelet\pods`, `C:\var\lib\kubelet\plugins\kubernetes.io\csi`, `C:\var\log`,
	} {
		m.put(d, true, nil)
	}
	m.seedRegistry()
	m.seedServices()
	return m
}

func (m *model) seedRegistry() {
	build, ubr, _ := strings.Cut(m.set.OSBuild, ".")
	n := uint32(0)
	_, _ = fmt.Sscan(ubr, &n) // an absent UBR is 0
	k := m.regMake(version)
	for _, v := range []host.RegValue{
		host.Sz("SystemRoot", `C:\Windows`), host.Sz("CurrentBuild", build), host.Sz("CurrentBuildNumber", build),
		host.Sz("CurrentVersion", "6.3"), host.Sz("EditionID", "ServerStandard"), host.Sz("InstallationType", m.set.InstallationType),
		host.Sz("ProductName", "Windows Server 2022 Standard"), host.Dword("UBR", n),
	} {
		k.set(v)
	}
	m.regMake(control + `\ComputerName\ComputerName`).set(host.Sz("ComputerName", netbios(m.set.Name)))
	m.regMake(control + `\ComputerName\ActiveComputerName`).set(host.Sz("ComputerName", netbios(m.set.Name)))
	p := m.regMake(tcpip)
	p.set(host.Sz("Domain", m.set.Domain))
	p.set(host.Sz("Hostname", m.set.Name))
	p.set(host.Sz("NV Hostname", m.set.Name))
	p.set(host.Sz("NV Domain", m.set.Domain))
	for i, a := range m.set.Addresses {
		nic := m.regMake(fmt.Sprintf(`%s\Interfaces\{5a1e0000-0000-4000-8000-%012d}`, tcpip, i))
		if i == 0 {
			nic.set(host.Dword("EnableDHCP", 1))
			nic.set(host.Sz("DhcpIPAddress", a))
			nic.set(host.Sz("DhcpSubnetMask", "255.255.255.0"))
		} else {
			nic.set(host.Dword("EnableDHCP", 0))
			nic.set(host.MultiSz("IPAddress", []string{a}))
			nic.set(host.MultiSz("SubnetMask", []string{"255.255.255.0"}))
		}
	}
	m.saveBootID()
	m.regMake(`HKLM\SYSTEM\CurrentControlSet\Services\partmgr\Parameters`).set(host.Dword("SanPolicy", 1))
	m.regMake(`HKLM\SYSTEM\CurrentControlSet\Services\hns\State`)
}

// netbios is the computer name: 15 characters, upper case.
func netbios(name string) string { return strings.ToUpper(name[:min(15, len(name))]) }

func (m *model) saveBootID() {
	m.regMake(control + `\Session Manager\Memory Management\PrefetchParameters`).set(host.Dword("BootId", m.bootID))
}

const plainService = `WINLAND-EXE {"kind":"service"}` + "\n"

func (m *model) seedServices() {
	m.addProcess(4, "System", nil)
	m.addProcess(600, "services.exe", []string{"ntsvcs", "scerpc"})
	m.addProcess(620, "lsass.exe", []string{"lsass"})
	m.addProcess(640, "wininit.exe", []string{"InitShutdown", `Winsock2\CatalogChangeListener-230-0`})
	m.put(`C:\Windows\System32\svchost.exe`, false, []byte(plainService))
	m.put(`C:\k\kubelet.exe`, false, []byte(plainService))
	m.put(`C:\Program Files\containerd\containerd.exe`, false, []byte(plainService))
	hosted := func(name, display, group string, start uint32, failure *host.Failure) host.Service {
		return host.Service{
			Name: name, DisplayName: display, Account: "LocalSystem", Type: host.ShareProcess, Start: start, ErrorControl: 1,
			Command: `C:\Windows\System32\svchost.exe -k ` + group + ` -p`, Failure: failure,
		}
	}
	eventLog := &host.Failure{Reset: 86400, Actions: []host.Action{{Type: 1, Delay: 60000}, {Type: 1, Delay: 120000}, {}}}
	own := func(name, display, command string, deps ...string) host.Service {
		return host.Service{
			Name: name, DisplayName: display, Command: command, Account: "LocalSystem", Type: host.OwnProcess,
			Start: host.StartAuto, ErrorControl: 1, Dependencies: deps,
		}
	}
	for _, s := range []struct {
		host.Service
		run bool
	}{
		{hosted("EventLog", "Windows Event Log", "LocalServiceNetworkRestricted", host.StartAuto, eventLog), true},
		{hosted("defragsvc", "Optimize drives", "defragsvc", host.StartDemand, nil), false},
		{hosted("AppIDSvc", "Application Identity", "LocalServiceNetworkRestricted", host.StartDemand, nil), false},
		{host.Service{Name: "afunix", DisplayName: "afunix", Command: `\SystemRoot\system32\drivers\afunix.sys`, Type: host.KernelDriver, Start: 1, ErrorControl: 1}, true},
		{hosted("WinDefend", "Microsoft Defender Antivirus Service", "netsvcs", host.StartAuto, nil), true},
		{own("containerd", "containerd", `"C:\Program Files\containerd\containerd.exe" --run-service`), true},
		{own("kubelet", "kubelet", `C:\k\kubelet.exe --windows-service --root-dir=C:\var\lib\kubelet`, "containerd"), true},
	} {
		if s.Name == "AppIDSvc" && m.set.Lang == "de" {
			s.DisplayName = "Anwendungsidentität"
		}
		svc := m.addService(s.Service)
		if s.run {
			m.startNow(svc)
		}
	}
}

func (m *model) addProcess(pid uint32, image string, pipes []string) *process {
	p := &process{Process: host.Process{PID: pid, Image: image, Memory: 5844 << 10}, pipes: pipes}
	m.procs[pid] = p
	return p
}

// startNow puts a service into RUNNING without the time that takes.
func (m *model) startNow(s *service) {
	s.status = host.Status{Type: s.cfg.Type, State: host.Running, Accepted: host.AcceptStop | host.AcceptShutdown}
	if s.cfg.Type == host.KernelDriver {
		return
	}
	path, rest, err := host.ResolveImage(lockedFiles{m}, s.cfg.Command)
	if err != nil {
		s.status = host.Status{Type: s.cfg.Type, State: host.Stopped, Win32Exit: uint32(host.Code(err))}
		return
	}
	image := m.files[key(path)]
	prog, _ := readProgram(image.data)
	p := m.launch(path, image, prog)
	p.service = key(s.cfg.Name)
	s.status.PID = p.PID
	if prog.Kind == "csi-proxy" {
		if flags, ok := parseFlags(prog.Release, rest); ok {
			if file := flags["log_file"]; file != "" && !isTrue(flags, "logtostderr", true) {
				m.openLog(p, file)
			}
		}
		if prog.Pipes != "none" {
			p.pipes = pipeNames(prog.Release)
		}
		if p.log != nil {
			m.writeLog(p)
		}
	}
}

// reboot ends all processes and starts the automatic services from what the registry says.
func (m *model) reboot(took time.Duration) {
	m.events = nil
	m.offset += took
	m.boot = m.now()
	m.bootID++
	m.saveBootID()
	for _, n := range m.files {
		n.images, n.held, n.writers = 0, 0, 0
	}
	for pid, p := range m.procs {
		if pid > 1000 {
			delete(m.procs, pid)
		}
		p.service = ""
	}
	for _, name := range sortedKeys(m.services) {
		s := m.services[name]
		s.handles, s.failures, s.starting = 0, 0, false
		s.status = host.Status{Type: s.cfg.Type, State: host.Stopped, Win32Exit: uint32(host.NeverStarted)}
		m.reap(s)
	}
	for _, name := range sortedKeys(m.services) {
		s := m.services[name]
		m.reloadService(s)
		if s.cfg.Start <= host.StartAuto && s.status.State == host.Stopped {
			if s.cfg.Type == host.KernelDriver || strings.Contains(s.cfg.Command, "svchost") {
				m.startNow(s)
			} else {
				_ = m.start(name) // a failure shows in the status
			}
		}
	}
}

// reloadService reads what somebody wrote into the registry past the SCM; it counts from the next boot.
func (m *model) reloadService(s *service) {
	k := m.regMake(host.ServiceKey(s.cfg.Name))
	if v, ok := k.get("Start"); ok {
		s.cfg.Start = uint32(v.Number())
	}
	if v, ok := k.get("ImagePath"); ok {
		s.cfg.Command = v.Text()
	}
	v, ok := k.get("DelayedAutostart")
	s.cfg.Delayed = ok && v.Number() == 1
	s.cfg.Failure = nil
	if v, ok := k.get("FailureActions"); ok {
		s.cfg.Failure = host.ParseFailure(v.Data)
	}
}

// lockedFiles serves ResolveImage while the model is locked.
type lockedFiles struct{ m *model }

func (f lockedFiles) Stat(path string) (host.FileInfo, error) {
	n, err := f.m.find(path)
	if err != nil {
		return host.FileInfo{}, err
	}
	return f.m.info(n), nil
}
