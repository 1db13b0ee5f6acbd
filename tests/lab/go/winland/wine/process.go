//go:build windows

package wine

import (
	"context"
	"io"
	"os"
	"os/exec"
	"sort"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"

	"kubewin.invalid/lab/winland/host"
)

var (
	kernel32             = windows.NewLazySystemDLL("kernel32.dll")
	waitNamedPipeW       = kernel32.NewProc("WaitNamedPipeW")
	psapi                = windows.NewLazySystemDLL("psapi.dll")
	getProcessMemoryInfo = psapi.NewProc("GetProcessMemoryInfo")
	ntdll                = windows.NewLazySystemDLL("ntdll.dll")
	querySystem          = ntdll.NewProc("NtQuerySystemInformation")
	queryObject          = ntdll.NewProc("NtQueryObject")
)

func alive(pid uint32) bool {
	p, err := windows.OpenProcess(windows.SYNCHRONIZE, false, pid)
	if err != nil {
		return false
	}
	defer windows.CloseHandle(p)
	w, _ := windows.WaitForSingleObject(p, 0)
	return w != windows.WAIT_OBJECT_0
}

func (h *Host) Processes() []host.Process {
	snap, err := windows.CreateToolhelp32Snapshot(windows.TH32CS_SNAPPROCESS, 0)
	if err != nil {
		return nil
	}
	defer windows.CloseHandle(snap)
	var out []host.Process
	var e windows.ProcessEntry32
	e.Size = uint32(unsafe.Sizeof(e))
	for err = windows.Process32First(snap, &e); err == nil; err = windows.Process32Next(snap, &e) {
		out = append(out, host.Process{
			PID: e.ProcessID, PPID: e.ParentProcessID, Image: windows.UTF16ToString(e.ExeFile[:]), Memory: memory(e.ProcessID),
		})
	}
	return out
}

func memory(pid uint32) uint64 {
	p, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, pid)
	if err != nil {
		return 0
	}
	defer windows.CloseHandle(p)
	var m struct { // PROCESS_MEMORY_COUNTERS
		size, faults uint32
		peak, used   uintptr
		rest         [6]uintptr
	}
	m.size = uint32(unsafe.Sizeof(m))
	getProcessMemoryInfo.Call(uintptr(p), uintptr(unsafe.Pointer(&m)), uintptr(m.size))
	return uint64(m.used)
}

func (h *Host) KillProcess(pid uint32) error {
	if !alive(pid) {
		return host.FileNotFound
	}
	return h.terminate(pid, 1)
}

func (h *Host) terminate(pid, code uint32) error {
	p, err := windows.OpenProcess(windows.PROCESS_TERMINATE|windows.SYNCHRONIZE, false, pid)
	if err != nil {
		return win(err)
	}
	defer windows.CloseHandle(p)
	if err := windows.TerminateProcess(p, code); err != nil {
		return win(err)
	}
	_, err = windows.WaitForSingleObject(p, 2000)
	return win(err)
}

// Spawn runs a real program. A busy Wine refuses one of 7,000 with an internal error.
func (h *Host) Spawn(ctx context.Context, p host.Program) (int, error) {
	code, err := spawn(ctx, p)
	if err == host.Errno(windows.ERROR_INTERNAL_ERROR) {
		code, err = spawn(ctx, p)
	}
	return code, err
}

func spawn(ctx context.Context, p host.Program) (int, error) {
	c := exec.Command(p.Path)
	c.SysProcAttr = &syscall.SysProcAttr{CmdLine: p.CommandLine}
	c.Dir = p.Dir
	for k, v := range p.Env {
		c.Env = append(c.Env, k+"="+v)
	}
	c.Stdout, c.Stderr = p.Out, p.Err
	c.WaitDelay = 2 * time.Second // Wine may leave a pipe's handle in another child
	in, err := c.StdinPipe()
	if err != nil {
		return 0, win(err)
	}
	if err := c.Start(); err != nil {
		return 0, win(err)
	}
	go func() {
		_, _ = io.Copy(in, p.In) // ends with the program or with its input
		_ = in.Close()
	}()
	stop := context.AfterFunc(ctx, func() { _ = c.Process.Kill() })
	defer stop()
	_ = c.Wait() // the code says it all
	return int(int32(c.ProcessState.ExitCode())), nil
}

// pipeExists asks without connecting; 121 means that all instances are busy.
func pipeExists(name string) bool {
	r, _, err := waitNamedPipeW.Call(uintptr(unsafe.Pointer(wide(`\\.\pipe\`+name))), 1)
	return r != 0 || err == windows.Errno(121)
}

type handleEntry struct { // SYSTEM_HANDLE_TABLE_ENTRY_INFO_EX
	object, pid, handle uintptr
	access              uint32
	backtrace, kind     uint16
	attributes, _       uint32
}

// Pipes goes through the handles of all processes: Wine lists no pipe directory.
func (h *Host) Pipes() []string {
	b := make([]byte, 1<<20)
	for {
		var n uint32
		r, _, _ := querySystem.Call(64, uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)), uintptr(unsafe.Pointer(&n)))
		if r == 0 {
			break
		}
		if r != 0xC0000004 || len(b) > 1<<26 { // anything but STATUS_INFO_LENGTH_MISMATCH
			return nil
		}
		b = make([]byte, 2*len(b))
	}
	count := *(*uintptr)(unsafe.Pointer(&b[0]))
	owners := map[uintptr]windows.Handle{}
	defer func() {
		for _, p := range owners {
			if p != 0 {
				_ = windows.CloseHandle(p)
			}
		}
	}()
	seen := map[string]bool{}
	for _, e := range unsafe.Slice((*handleEntry)(unsafe.Pointer(&b[16])), count) {
		p, ok := owners[e.pid]
		if !ok {
			p, _ = windows.OpenProcess(windows.PROCESS_DUP_HANDLE, false, uint32(e.pid)) // 0 when it is gone
			owners[e.pid] = p
		}
		if name := pipeOf(p, windows.Handle(e.handle)); name != "" {
			seen[name] = true
		}
	}
	out := []string{"lsass"} // every Windows serves it, and Wine has no lsass.exe
	for name := range seen {
		if pipeExists(name) { // a client's leftover has no server
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

func pipeOf(owner, h windows.Handle) string {
	var d windows.Handle
	if owner == 0 || windows.DuplicateHandle(owner, h, windows.CurrentProcess(), &d, 0, false, windows.DUPLICATE_SAME_ACCESS) != nil {
		return ""
	}
	defer windows.CloseHandle(d)
	var b [1024]uint64 // aligned for UNICODE_STRING
	var n uint32
	if r, _, _ := queryObject.Call(uintptr(d), 1, uintptr(unsafe.Pointer(&b[0])), unsafe.Sizeof(b), uintptr(unsafe.Pointer(&n))); r != 0 {
		return ""
	}
	s := (*windows.NTUnicodeString)(unsafe.Pointer(&b[0]))
	if s.Buffer == nil {
		return ""
	}
	name, _ := strings.CutPrefix(s.String(), `\Device\NamedPipe\`)
	if name == s.String() {
		return ""
	}
	return name
}

func environment() map[string]string {
	m := map[string]string{"OS": "Windows_NT"}
	for _, e := range os.Environ() {
		if k, v, ok := strings.Cut(e[1:], "="); ok {
			m[e[:1]+k] = v
		}
	}
	return m
}
