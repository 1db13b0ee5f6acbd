package host

import (
	"context"
	"encoding/binary"
	"strings"
)

// States, start types and types as the service control manager numbers them.
const (
	Stopped      uint32 = 1
	StartPending uint32 = 2
	StopPending  uint32 = 3
	Running      uint32 = 4

	StartAuto     uint32 = 2
	StartDemand   uint32 = 3
	StartDisabled uint32 = 4

	OwnProcess   uint32 = 0x10
	ShareProcess uint32 = 0x20
	KernelDriver uint32 = 0x1

	AcceptStop     uint32 = 1
	AcceptShutdown uint32 = 4
)

// Service is the configuration of one service.
type Service struct {
	Name, DisplayName, Command, Account, Group, Description string
	Type, Start, ErrorControl, Tag                          uint32
	Delayed                                                 bool
	Dependencies                                            []string // groups carry a leading +
	Failure                                                 *Failure
	FailureFlag                                             bool
	SidType                                                 uint32
}

// Change holds what ChangeService is to alter; nil leaves a field as it is.
type Change struct {
	DisplayName, Command, Account, Group, Description *string
	Type, Start, ErrorControl                         *uint32
	Delayed                                           *bool
	Dependencies                                      *[]string
	Failure                                           *Failure
	FailureFlag                                       *bool
	SidType                                           *uint32
}

// Status is SERVICE_STATUS_PROCESS.
type Status struct {
	Type, State, Accepted, Win32Exit, ServiceExit, CheckPoint, WaitHint, PID uint32
}

// SCM is the service control manager. Names are not case sensitive; an unknown one is ServiceUnknown.
type SCM interface {
	CreateService(s Service) error
	ChangeService(name string, c Change) error
	DeleteService(name string) error
	// StartService returns when the process has connected to the SCM, or with the code of the failure.
	StartService(ctx context.Context, name string, args []string) error
	StopService(name string) (Status, error)
	ServiceConfig(name string) (Service, error)
	ServiceStatus(name string) (Status, error)
	Services() []string
}

// Kinds of recovery action.
const (
	ActionNone uint32 = iota
	ActionRestart
	ActionReboot
	ActionRun
)

// Infinite is the reset period that never ends.
const Infinite uint32 = 0xFFFFFFFF

// Action is one recovery action; the delay is in milliseconds.
type Action struct{ Type, Delay uint32 }

// Failure is what `sc failure` sets; Reset is in seconds.
type Failure struct {
	Reset                  uint32
	Actions                []Action
	Command, RebootMessage string
}

// Blob gives the registry form of the FailureActions value (a 20-byte header, then type and delay of each action).
func (f Failure) Blob() []byte {
	b := make([]byte, 20, 20+8*len(f.Actions))
	binary.LittleEndian.PutUint32(b, f.Reset)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(f.Actions)))
	binary.LittleEndian.PutUint32(b[16:], 0x14)
	for _, a := range f.Actions {
		b = binary.LittleEndian.AppendUint32(b, a.Type)
		b = binary.LittleEndian.AppendUint32(b, a.Delay)
	}
	return b
}

// ParseFailure reads the registry form; words 1, 2 and 4 of the header may hold anything and are ignored.
func ParseFailure(b []byte) *Failure {
	if len(b) < 20 {
		return nil
	}
	f := &Failure{Reset: binary.LittleEndian.Uint32(b)}
	n := int(binary.LittleEndian.Uint32(b[12:]))
	for i := 0; i < n && 28+8*i <= len(b); i++ {
		f.Actions = append(f.Actions, Action{binary.LittleEndian.Uint32(b[20+8*i:]), binary.LittleEndian.Uint32(b[24+8*i:])})
	}
	return f
}

// Apply writes a change into a configuration.
func (s *Service) Apply(c Change) {
	set(&s.DisplayName, c.DisplayName)
	set(&s.Command, c.Command)
	set(&s.Account, c.Account)
	set(&s.Group, c.Group)
	set(&s.Description, c.Description)
	set(&s.Type, c.Type)
	set(&s.Start, c.Start)
	set(&s.ErrorControl, c.ErrorControl)
	set(&s.Delayed, c.Delayed)
	set(&s.Dependencies, c.Dependencies)
	set(&s.FailureFlag, c.FailureFlag)
	set(&s.SidType, c.SidType)
	if c.Failure != nil {
		f := *c.Failure
		s.Failure = &f
	}
}

func set[T any](to *T, from *T) {
	if from != nil {
		*to = *from
	}
}

// DependsOn tells whether a service names another as a dependency.
func (s *Service) DependsOn(name string) bool {
	for _, d := range s.Dependencies {
		if strings.EqualFold(d, name) {
			return true
		}
	}
	return false
}
