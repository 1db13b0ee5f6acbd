package shell

import (
	"sort"
	"strings"

	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/text"
	"kubewin.invalid/lab/winland/tools"
)

// pipeName takes \\.\pipe\... apart; the form that lists has a doubled backslash after pipe, which stays in the result.
func pipeName(path string) (string, bool) {
	low := strings.ToLower(strings.ReplaceAll(path, "/", `\`))
	if strings.HasPrefix(low, `\\.\pipe`) {
		return path[8:], true
	}
	return "", false
}

func dir(in *interpreter, a arguments) outcome {
	if sw, ok := a.only("b", "a", "s", "ad", "a-d", "a:d", "a:-d", "al", "a:l", "on", "o:n", "od", "o-d", "-c"); !ok {
		return outcome{rc: in.s.Reject("dir /%s", sw)}
	}
	if len(a.words) > 1 || a.has("s") && !a.has("b") {
		return in.usage(a)
	}
	where := "."
	if len(a.words) == 1 {
		where = a.words[0]
	}
	if tail, ok := pipeName(where); ok {
		return in.dirPipes(a, tail)
	}
	path := in.s.Abs(where)
	pattern := "*"
	if st, err := in.s.Stat(path); err != nil || !st.Dir {
		path, pattern = host.Dir(path), host.Base(path)
	} else if st.Link != "" && !in.reach(st.Link) {
		return in.fail(host.PathNotFound, 1)
	}
	if pattern == "*.*" {
		pattern = "*"
	}
	if !in.listDir(a, path, pattern) {
		return in.noFile()
	}
	return outcome{}
}

// dirPipes lists names without connecting; only the doubled backslash is shown to work.
func (in *interpreter) dirPipes(a arguments, tail string) outcome {
	if !strings.HasPrefix(tail, `\\`) || !a.has("b") {
		return outcome{rc: in.s.Reject(`dir of pipes other than dir \\.\pipe\\... /b`)}
	}
	pattern := tail[2:]
	if pattern == "" {
		pattern = "*"
	}
	found := false
	for _, p := range in.s.Pipes() {
		if host.Match(pattern, p) {
			in.s.Printf("%s\r\n", p)
			found = true
		}
	}
	if !found {
		return in.noFile()
	}
	return outcome{}
}

// reach walks into what a link leads to: a share that does not answer holds whoever looks into it.
func (in *interpreter) reach(target string) bool {
	if strings.HasPrefix(target, `\\`) {
		<-in.s.Ctx.Done()
		return false
	}
	volumes, _ := tools.Volumes(in.s)
	for _, v := range volumes {
		if strings.Contains(strings.ToLower(target), strings.ToLower(v)) {
			return true
		}
	}
	return false
}

func (in *interpreter) noFile() outcome {
	in.s.Errorf("File Not Found\r\n")
	return outcome{rc: 1}
}

// listDir prints what fits and tells whether there was anything.
func (in *interpreter) listDir(a arguments, path, pattern string) bool {
	all, err := in.s.ReadDir(path)
	if err != nil {
		return false
	}
	var list []host.FileInfo
	for _, e := range all {
		if !host.Match(pattern, e.Name) || (a.has("ad") || a.has("a:d")) && !e.Dir || (a.has("a-d") || a.has("a:-d")) && e.Dir ||
			(a.has("al") || a.has("a:l")) && e.Link == "" {
			continue
		}
		list = append(list, e)
	}
	newest := a.has("o-d")
	if newest || a.has("od") {
		sort.SliceStable(list, func(i, j int) bool { return newest != list[i].ModTime.Before(list[j].ModTime) })
	}
	if !a.has("b") {
		if len(list) == 0 && (pattern != "*" || a.has("al") || a.has("a:l")) {
			return false
		}
		in.longList(path, list, a.has("-c"))
		return true
	}
	found := len(list) > 0
	for _, e := range list {
		if a.has("s") {
			e.Name = host.Join(path, e.Name)
		}
		in.s.Printf("%s\r\n", e.Name)
	}
	if a.has("s") {
		for _, e := range all {
			if e.Dir && in.listDir(a, host.Join(path, e.Name), pattern) {
				found = true
			}
		}
	}
	return found
}

func (in *interpreter) longList(path string, list []host.FileInfo, plain bool) {
	number := func(n uint64) string {
		if plain {
			return text.Group(n, "plain")
		}
		return text.Group(n, in.s.Lang())
	}
	in.s.Printf(" Volume in drive %s has no label.\r\n Volume Serial Number is 4300-0000\r\n\r\n Directory of %s\r\n\r\n", path[:1], path)
	var total uint64
	dirs := 0
	for _, e := range list {
		stamp := e.ModTime.Format("01/02/2006  03:04 PM")
		if e.Dir {
			dirs++
			if e.Link != "" {
				// Of a share as on a node with Azure File (kubernetes/kubernetes#94213).
				kind := "<JUNCTION>"
				if strings.HasPrefix(e.Link, `\\`) {
					kind = "<SYMLINKD>"
				}
				in.s.Printf("%s    %s     %s [%s]\r\n", stamp, kind, e.Name, e.Link)
				continue
			}
			in.s.Printf("%s    <DIR>          %s\r\n", stamp, e.Name)
			continue
		}
		total += uint64(e.Size)
		in.s.Printf("%s %17s %s\r\n", stamp, number(uint64(e.Size)), e.Name)
	}
	free, _, _ := in.s.DiskFree(path)
	in.s.Printf("%16d File(s) %14s bytes\r\n%16d Dir(s)  %14s bytes free\r\n", len(list)-dirs, number(total), dirs, number(free))
}
