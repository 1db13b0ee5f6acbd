// Package tools holds the in-box programs: each is a function of a session and its arguments.
package tools

import (
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

// Tool is one program; it returns its exit code.
type Tool func(s *console.Session, args []string) int

var table map[string]Tool

func init() {
	table = map[string]Tool{
		"sc": sc, "reg": reg, "certutil": certutil, "icacls": icacls, "cacls": cacls, "curl": curl, "tar": tarx, "tasklist": tasklist,
		"taskkill": taskkill, "find": find, "findstr": findstr, "fsutil": fsutil, "wevtutil": wevtutil, "where": where,
		"whoami": whoami, "hostname": hostname, "chcp": chcp, "ping": ping, "mountvol": mountvol, "wmic": wmic,
		"powershell": powershell,
	}
}

// Names lists the programs, as files they are NAME.exe (chcp is chcp.com).
func Names() []string {
	var out []string
	for n := range table {
		out = append(out, n)
	}
	return out
}

// FileName gives the program's file in System32.
func FileName(name string) string {
	switch name {
	case "chcp":
		return "chcp.com"
	case "wmic":
		return `wbem\WMIC.exe`
	case "powershell":
		return `WindowsPowerShell\v1.0\powershell.exe`
	}
	return name + ".exe"
}

// Find gives the tool behind a path, nil when the path is none of System32's tools.
func Find(path string) Tool {
	name, _, _ := strings.Cut(strings.ToLower(host.Base(path)), ".")
	if table[name] == nil || !strings.EqualFold(path, `C:\Windows\System32\`+FileName(name)) {
		return nil
	}
	return table[name]
}

// ByName gives a tool for the multi-call program.
func ByName(name string) Tool { return table[strings.ToLower(name)] }

// MakeDirs creates a directory and its parents.
func MakeDirs(f host.Files, path string) error {
	if st, err := f.Stat(path); err == nil {
		if st.Dir {
			return nil
		}
		return host.AlreadyExists
	}
	if up := host.Dir(path); up != path {
		if err := MakeDirs(f, up); err != nil {
			return err
		}
	}
	return f.Mkdir(path)
}
