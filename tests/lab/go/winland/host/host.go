// Package host says what the interpreter and the tools need of a Windows machine. Two packages provide it: sim (a model
// in memory) and wine (Win32).
package host

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"kubewin.invalid/lab/winland/acl"
)

// Errno is a Win32 error code; every error of a Host is one.
type Errno uint32

func (e Errno) Error() string { return fmt.Sprintf("Win32 error %d", uint32(e)) }

// The codes that the lab's parts name.
const (
	FileNotFound      Errno = 2
	PathNotFound      Errno = 3
	AccessDenied      Errno = 5
	SharingViolation  Errno = 32
	NotSupported      Errno = 50
	InvalidParameter  Errno = 87
	DiskFull          Errno = 112
	DataAreaTooSmall  Errno = 122
	InvalidName       Errno = 123
	DirNotEmpty       Errno = 145
	AlreadyExists     Errno = 183
	BadExeFormat      Errno = 193
	VirusInfected     Errno = 225
	MoreData          Errno = 234
	DirectoryInvalid  Errno = 267
	DependentsRunning Errno = 1051
	ServiceTimeout    Errno = 1053
	AlreadyRunning    Errno = 1056
	ServiceDisabled   Errno = 1058
	ServiceUnknown    Errno = 1060
	CannotAcceptCtrl  Errno = 1061
	ServiceNotActive  Errno = 1062
	ProcessAborted    Errno = 1067
	DependencyFailed  Errno = 1068
	MarkedForDelete   Errno = 1072
	ServiceExists     Errno = 1073
	NeverStarted      Errno = 1077
	DuplicateName     Errno = 1078
	NoneMapped        Errno = 1332
	BadCommandLine    Errno = 1639
)

// Killed is the exit code of a process that was terminated: STATUS_CONTROL_C_EXIT, 0xC000013A.
const Killed = -1073741510

// Code gives the Win32 code of an error: 0 for nil, 31 (ERROR_GEN_FAILURE) for one that has none.
func Code(err error) int {
	var e Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &e):
		return int(e)
	}
	return 31
}

// Host is one Windows machine.
type Host interface {
	Name() string
	Lang() string      // "en" or "de"
	OSVersion() string // "10.0.20348.2700"
	OEMCodePage() int
	Environment() map[string]string
	Now() time.Time // the machine's clock
	Boot() time.Time
	// Pause lets time pass on the machine's clock; it ends early with the context.
	Pause(ctx context.Context, d time.Duration)
	Files
	Registry
	SCM
	Processes
	Network
}

// FileInfo describes a file or directory.
type FileInfo struct {
	Name    string
	Dir     bool
	Size    int64
	ModTime time.Time
	Link    string // where a directory's reparse point leads: `\??\Volume{...}\` or `\\server\share`
}

// Files takes absolute paths with backslashes. It keeps Windows' rules of sharing: a running executable may be renamed,
// not overwritten (32) or deleted (5).
type Files interface {
	OpenFile(path string) (io.ReadCloser, error)
	CreateFile(path string, appendTo bool) (io.WriteCloser, error)
	Stat(path string) (FileInfo, error)
	ReadDir(path string) ([]FileInfo, error)
	Mkdir(path string) error
	RemoveDir(path string) error
	DeleteFile(path string) error
	MoveFile(from, to string, replace bool) error
	SetModTime(path string, t time.Time) error
	DiskFree(path string) (free, total uint64, err error)
	// LoadACL gives what was set on the path itself; nil means that it only inherits.
	LoadACL(path string) (*acl.ACL, error)
	StoreACL(path string, a *acl.ACL) error
}

// Registry takes paths such as HKLM\SOFTWARE\X; a missing key or value is FileNotFound.
type Registry interface {
	RegValues(key string) ([]RegValue, error)
	RegSubkeys(key string) ([]string, error)
	RegCreate(key string) error
	RegSet(key string, v RegValue) error
	RegDeleteValue(key, name string) error
	RegDeleteKey(key string) error // with everything below
}

// Process is one line of tasklist.
type Process struct {
	PID, PPID uint32
	Image     string
	Memory    uint64 // bytes
}

// Processes lists, kills and starts processes, and lists the named pipes that have a server.
type Processes interface {
	Processes() []Process
	KillProcess(pid uint32) error // FileNotFound when there is none
	Pipes() []string              // bare names
	// Spawn runs a program that is not one of the userland's tools and waits for its exit code.
	Spawn(ctx context.Context, p Program) (int, error)
}

// Program is one start of an executable.
type Program struct {
	Path, CommandLine, Dir string
	Env                    map[string]string
	In                     io.Reader
	Out, Err               io.Writer
}

// Network is what curl and certutil -addstore need.
type Network interface {
	Dial(ctx context.Context, network, address string) (net.Conn, error)
	Roots() (*x509.CertPool, error)
	AddRoot(der []byte) error
}
