package sim

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/console"
)

// program is what a simulated executable does: the JSON line after `WINLAND-EXE `.
type program struct {
	Kind    string `json:"kind"`    // csi-proxy, service (a plain one), none (no service)
	Release string `json:"release"` // of csi-proxy
	Pipes   string `json:"pipes"`   // "none": RUNNING, but no pipe ever
	Start   string `json:"start"`   // exit:N (before it connects), crash:N (after RUNNING), hang, not-a-service
	Stop    string `json:"stop"`    // linger:MS, refuse (1061)
}

var mark = []byte("WINLAND-EXE ")

// readProgram looks at the first line of a file; runnable is false for what is no executable at all (193).
func readProgram(data []byte) (p program, runnable bool) {
	if line, ok := bytes.CutPrefix(data, mark); ok {
		line, _, _ = bytes.Cut(line, []byte("\n"))
		err := json.Unmarshal(line, &p)
		return p, err == nil
	}
	return program{Kind: "none"}, bytes.HasPrefix(data, []byte("MZ"))
}

// The klog flags that every release of csi-proxy takes, and its own by release (cmd/csi-proxy/main.go at each tag).
var klogFlags = map[string]string{
	"v": "int", "vmodule": "text", "log_dir": "text", "log_file": "text", "log_file_max_size": "int", "logtostderr": "bool",
	"alsologtostderr": "bool", "stderrthreshold": "text", "add_dir_header": "bool", "skip_headers": "bool",
	"skip_log_headers": "bool", "one_output": "bool", "log_backtrace_at": "text",
}

func ownFlags(release string) map[string]string {
	f := map[string]string{"windows-service": "bool", "kubelet-path": "text"}
	if atLeast(release, 1, 1) {
		f["working-dir"] = "text"
	}
	if atLeast(release, 1, 2) {
		f["require-privacy"] = "bool"
	}
	if atLeast(release, 1, 3) {
		f["metrics-bind-address"] = "text"
	}
	return f
}

func atLeast(release string, major, minor int) bool {
	part := strings.SplitN(strings.TrimPrefix(release, "v"), ".", 3)
	if len(part) < 2 {
		return false
	}
	a, _ := strconv.Atoi(part[0])
	b, _ := strconv.Atoi(part[1])
	return a > major || a == major && b >= minor
}

// parseFlags reads a command line as Go's flag package does; ok is false where that would exit with code 2.
func parseFlags(release, rest string) (flags map[string]string, ok bool) {
	known := ownFlags(release)
	flags = map[string]string{}
	args := console.Argv(rest)
	for i := 0; i < len(args); i++ {
		a := args[i]
		if len(a) < 2 || a[0] != '-' {
			return flags, true // flag stops at the first word that is no flag
		}
		a = strings.TrimPrefix(a[1:], "-")
		if a == "" {
			return flags, true
		}
		name, value, given := strings.Cut(a, "=")
		kind := known[name]
		if kind == "" {
			kind = klogFlags[name]
		}
		switch {
		case kind == "":
			return nil, false
		case kind == "bool" && !given:
			value = "true"
		case !given && i+1 == len(args):
			return nil, false
		case !given:
			i++
			value = args[i]
		}
		_, badBool := strconv.ParseBool(value)
		_, badInt := strconv.Atoi(value)
		if kind == "bool" && badBool != nil || kind == "int" && badInt != nil {
			return nil, false
		}
		flags[name] = value
	}
	return flags, true
}

func isTrue(flags map[string]string, name string, unset bool) bool {
	v, ok := flags[name]
	if !ok {
		return unset
	}
	b, _ := strconv.ParseBool(v)
	return b
}

// pipeNames lists what a release serves (api_group_generated.go at each tag): 21 pipes up to 1.0, 23 since 1.1.
func pipeNames(release string) []string {
	groups := []struct{ name, versions string }{
		{"disk", "v1alpha1 v1beta1 v1beta2 v1beta3 v1"},
		{"filesystem", "v1alpha1 v1beta1 v1beta2 v1 v2alpha1"},
		{"iscsi", "v1alpha1 v1alpha2"},
		{"smb", "v1alpha1 v1beta1 v1beta2 v1"},
		{"system", "v1alpha1"},
		{"volume", "v1alpha1 v1beta1 v1beta2 v1beta3 v1 v2alpha1"},
	}
	var out []string
	for _, g := range groups {
		for _, v := range strings.Fields(g.versions) {
			if v != "v2alpha1" || atLeast(release, 1, 1) {
				out = append(out, "csi-proxy-"+g.name+"-"+v)
			}
		}
	}
	return out
}

// option takes "linger:500" apart.
func option(text, name string) (int, bool) {
	v, ok := strings.CutPrefix(text, name+":")
	n, err := strconv.Atoi(v)
	return n, ok && err == nil
}
