package shell

import (
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/tools"
)

// outcome of a builtin: some leave ERRORLEVEL as it was.
type outcome struct {
	rc   int
	keep bool
}

type builtin func(in *interpreter, a arguments) outcome

// arguments of a builtin: tail is the raw text after the name, words are without quotes, switches in lower case.
type arguments struct {
	name, tail string
	words      []string
	switches   []string
}

func (a arguments) has(s string) bool {
	for _, x := range a.switches {
		if x == s {
			return true
		}
	}
	return false
}

// only reports a switch that the builtin's implementation does not know.
func (a arguments) only(known ...string) (string, bool) {
next:
	for _, s := range a.switches {
		for _, k := range known {
			if s == k {
				continue next
			}
		}
		return s, false
	}
	return "", true
}

var builtins map[string]builtin

func init() {
	builtins = map[string]builtin{
		"echo": echo, "rem": nothing, "set": set, "ver": ver, "exit": exit, "cd": cd, "chdir": cd, "type": typeFile,
		"md": mkdir, "mkdir": mkdir, "rd": rmdir, "rmdir": rmdir, "del": del, "erase": del, "ren": ren, "rename": ren,
		"move": move, "copy": copyFile, "dir": dir, "title": nothing, "cls": nothing,
	}
}

// command runs one simple command, expanded.
func (in *interpreter) command(line string) int {
	line = strings.TrimLeft(line, " \t,;=")
	name, tail := splitBuiltin(line)
	trimmed := strings.TrimRight(line, " \t")
	switch {
	case trimmed == "", name == "rem":
		return 0
	case name == "call":
		return in.call(tail)
	case name == "" && isCmd(trimmed):
		return in.nested(trimmed)
	}
	var o outcome
	reached := false
	rc := in.s.Step(in.s, trimmed, func() int {
		reached = true
		o = in.dispatch(name, tail, trimmed)
		return o.rc
	})
	if in.exited {
		return in.code
	}
	if !reached || !o.keep {
		in.level = rc
	}
	if reached && o.rc == notFound {
		in.level = 9009 // ERRORLEVEL says 9009, the return code (cmd /c, ||) is 1
		return 1
	}
	return rc
}

// notFound is the internal mark of a missing program.
const notFound = 9009

func (in *interpreter) dispatch(name, tail, line string) outcome {
	if f := builtins[name]; f != nil {
		a := arguments{name: name, tail: tail}
		if name != "echo" && name != "set" {
			a.words, a.switches = splitArguments(tail)
		}
		in.s.Unread = false
		o := f(in, a)
		if in.s.Unread { // "The process tried to write to a nonexistent pipe.": taken for the end of the line
			in.exited, in.code = true, 1
		}
		return o
	}
	return in.external(line)
}

// splitBuiltin finds the name of a builtin: letters, ended by a separator or by one of . / \ ( : where cmd allows it.
func splitBuiltin(line string) (name, tail string) {
	i := 0
	for i < len(line) && (line[i]|0x20 >= 'a' && line[i]|0x20 <= 'z') {
		i++
	}
	name = strings.ToLower(line[:i])
	if name != "call" && builtins[name] == nil {
		return "", line
	}
	if i < len(line) {
		allowed := " \t,;=/"
		switch name {
		case "echo":
			allowed += ".(:\\"
		case "cd", "chdir":
			allowed += ".\\"
		case "dir", "type", "del", "rd", "md":
			allowed += "\""
		}
		if !strings.ContainsRune(allowed, rune(line[i])) {
			return "", line
		}
	}
	return name, line[i:]
}

func splitArguments(tail string) (words, switches []string) {
	p := &parser{s: []rune(strings.ReplaceAll(tail, "^", "^^"))} // carets were resolved by the first parse
	for p.delims(); !p.end(); p.delims() {
		start := p.pos
		w := p.word()
		if p.pos == start {
			w = string(p.s[p.pos])
			p.pos++
		}
		if strings.HasPrefix(w, "/") {
			for _, s := range strings.Split(w[1:], "/") {
				switches = append(switches, strings.ToLower(s))
			}
			continue
		}
		words = append(words, strings.ReplaceAll(w, `"`, ""))
	}
	return words, switches
}

// call expands percents once more and runs the command.
func (in *interpreter) call(tail string) int {
	n, err := parse(in.percent(strings.TrimSpace(tail)))
	if err != nil {
		return in.syntax(err)
	}
	return in.run(n)
}

func isCmd(line string) bool {
	program, _ := console.SplitProgram(line)
	switch strings.ToLower(program) {
	case "cmd", "cmd.exe", `c:\windows\system32\cmd.exe`, `c:\windows\system32\cmd`:
		return true
	}
	return false
}

// isPowerShell knows it by its name, as modules and raw over WinRM start it: Wine has a stub that does nothing and succeeds.
// By its whole path it is a tool.
func isPowerShell(s *console.Session, program string) bool {
	switch strings.TrimSuffix(strings.ToLower(host.Base(program)), ".exe") {
	case "powershell", "pwsh":
		return tools.Find(s.Abs(program)) == nil
	}
	return false
}

// nested runs a command processor inside the line. It counts as no step of its own: its commands do.
func (in *interpreter) nested(line string) int {
	_, rest := console.SplitProgram(line)
	in.level = Run(in.s.Copy(), rest)
	return in.level
}

func (in *interpreter) external(line string) outcome {
	s := in.s
	program, rest := console.SplitProgram(line)
	if isPowerShell(s, program) {
		return outcome{rc: s.Reject("%s: the lab has no PowerShell, which modules and raw over WinRM need", program)}
	}
	path := Resolve(s, program)
	if path == "" {
		if strings.ContainsAny(program, `\/`) {
			if _, err := s.Stat(host.Dir(s.Abs(program))); err != nil {
				s.Errorf("%s\r\n", s.Message(int(host.PathNotFound)))
				return outcome{rc: notFound}
			}
		}
		if s.Unknown != nil {
			s.Unknown("program " + program)
		}
		s.Errorf("'%s' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n", program)
		return outcome{rc: notFound}
	}
	return outcome{rc: Start(s, path, line, rest)}
}

// Start runs the program at a path: a tool of the userland inside this process, anything else through the host.
func Start(s *console.Session, path, line, rest string) int {
	base := strings.ToLower(host.Base(path))
	if tool := tools.Find(path); tool != nil {
		return tool(s, console.Argv(rest))
	}
	if base == "cmd.exe" {
		return Run(s.Copy(), rest)
	}
	if strings.HasSuffix(base, ".bat") || strings.HasSuffix(base, ".cmd") {
		return s.Reject("batch file %s", path)
	}
	rc, err := s.Spawn(s.Ctx, host.Program{
		Path: path, CommandLine: line, Dir: s.Dir, Env: s.Env.Map(), In: s.In, Out: s.Out, Err: s.Err,
	})
	if err == host.NotSupported {
		return s.Reject("program %s", path)
	}
	if err != nil {
		s.Errorf("%s\r\n", s.Message(host.Code(err)))
		return host.Code(err)
	}
	return rc
}

// Resolve finds a program as cmd does: the current directory, then PATH, with the usual extensions.
func Resolve(s *console.Session, program string) string {
	extensions := []string{".exe", ".com", ".bat", ".cmd"}
	if strings.Contains(host.Base(program), ".") {
		extensions = append([]string{""}, extensions...)
	}
	path, _ := s.Env.Get("PATH")
	dirs := append([]string{s.Dir}, strings.Split(path, ";")...)
	if strings.ContainsAny(program, `\/:`) {
		dirs = []string{""}
	}
	for _, d := range dirs {
		file := s.Abs(program)
		if d != "" {
			file = host.Abs(d, program)
		} else if len(dirs) > 1 {
			continue
		}
		for _, e := range extensions {
			if st, err := s.Stat(file + e); err == nil && !st.Dir {
				return file + e
			}
		}
	}
	return ""
}

// Exec starts one program without a command processor, as CreateProcess does: no builtins, no operators, no expansion.
func Exec(s *console.Session, line string) int {
	if isCmd(line) {
		_, rest := console.SplitProgram(line)
		return Run(s, rest)
	}
	program, rest := console.SplitProgram(line)
	if isPowerShell(s, program) {
		return s.Reject("%s: the lab has no PowerShell, which modules and raw over WinRM need", program)
	}
	path := Resolve(s, program)
	if path == "" {
		s.Errorf("%s\r\n", s.Message(int(host.FileNotFound)))
		return int(host.FileNotFound)
	}
	return s.Step(s, line, func() int { return Start(s, path, line, rest) })
}
