//go:build windows

// Package wine is the machine that the program itself runs on: Win32's service control manager, registry, files,
// processes and pipes, with what Wine lacks put on top (README.md lists it).
package wine

import (
	"errors"

	"golang.org/x/sys/windows"

	"kubewin.invalid/lab/winland/host"
)

// win gives the host's error of a Win32 error.
func win(err error) error {
	var e windows.Errno
	if errors.As(err, &e) {
		return host.Errno(e)
	}
	return err
}

func wide(s string) *uint16 {
	p, err := windows.UTF16PtrFromString(s)
	if err != nil { // a zero inside: no name that Windows knows
		p, _ = windows.UTF16PtrFromString("?")
	}
	return p
}
