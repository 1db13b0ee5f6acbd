package shell

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"strconv"
	"strings"
	"unicode/utf16"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

// lineLimit is the longest line that cmd takes, in UTF-16 units (Microsoft KB830473).
const lineLimit = 8191

type interpreter struct {
	s       *console.Session
	level   int // ERRORLEVEL
	delayed bool
	vars    map[rune]string // of FOR
	exited  bool
	code    int // of exit
}

// Run executes `cmd.exe <arguments>`; arguments is everything after the program's name, raw.
func Run(s *console.Session, arguments string) int {
	o, line, ok := splitOptions(arguments)
	if !ok {
		return s.Reject("cmd.exe %s", arguments)
	}
	if !o.told {
		o.delayed = registryDelays(s)
	}
	in := &interpreter{s: s, delayed: o.delayed}
	return in.line(stripQuotes(s, line, o.strip))
}

// options of cmd.exe: strip is /s, delayed is /v:on, told that there was any /v.
type options struct{ strip, delayed, told bool }

// registryDelays is cmd's default for /v: DelayedExpansion of the account, or else of the machine (cmd /?).
func registryDelays(s *console.Session) bool {
	for _, root := range []string{"HKCU", "HKLM"} {
		values, err := s.RegValues(root + `\Software\Microsoft\Command Processor`)
		for _, v := range values {
			if err == nil && strings.EqualFold(v.Name, "DelayedExpansion") {
				return len(v.Data) > 0 && v.Data[0] == 1
			}
		}
	}
	return false
}

// splitOptions reads cmd's switches up to /c and gives the line behind it.
func splitOptions(arguments string) (o options, line string, ok bool) {
	for rest := arguments; ; {
		rest = strings.TrimLeft(rest, " \t")
		low := strings.ToLower(rest)
		switch {
		case strings.HasPrefix(low, "/c"):
			return o, strings.TrimLeft(rest[2:], " \t"), true
		case strings.HasPrefix(low, "/v:on"):
			o.delayed, o.told, rest = true, true, rest[5:]
		case strings.HasPrefix(low, "/v:off"):
			o.delayed, o.told, rest = false, true, rest[6:]
		case strings.HasPrefix(low, "/e:on"): // the only form of the interpreter there is
			rest = rest[5:]
		case strings.HasPrefix(low, "/s"):
			o.strip, rest = true, rest[2:]
		case strings.HasPrefix(low, "/d"), strings.HasPrefix(low, "/q"):
			rest = rest[2:]
		default:
			return o, "", false
		}
	}
}

// nestedLine gives the line that a `cmd.exe ... /c ...` would run, without looking at any file.
func nestedLine(command string) (o options, line string, ok bool) {
	_, rest := console.SplitProgram(command)
	o, line, ok = splitOptions(rest)
	if i := strings.LastIndexByte(line, '"'); ok && i > 0 && line[0] == '"' {
		line = line[1:i] + line[i+1:]
	}
	return o, line, ok
}

// stripQuotes applies cmd's rule for a line that begins with a quote: without /S it stays only when there are exactly
// two quotes, a blank and no special character between them, and it names an executable; otherwise the first and the
// last quote go.
func stripQuotes(s *console.Session, line string, always bool) string {
	if !strings.HasPrefix(line, `"`) {
		return line
	}
	last := strings.LastIndexByte(line, '"')
	if last == 0 {
		return line[1:]
	}
	inner := line[1:last]
	if !always && strings.Count(line, `"`) == 2 && !strings.ContainsAny(inner, "&<>()@^|") && strings.ContainsAny(inner, " \t") {
		if _, err := s.Stat(s.Abs(inner)); err == nil {
			return line
		}
	}
	return inner + line[last+1:]
}

func (in *interpreter) line(line string) int {
	line, _, _ = strings.Cut(line, "\n")
	line = strings.TrimSuffix(line, "\r")
	if tooLong(line) {
		in.s.Errorf("The command line is too long.\r\n")
		return 1
	}
	line = in.percent(line)
	if tooLong(line) {
		in.s.Errorf("The input line is too long.\r\n")
		return 1
	}
	n, err := parse(line)
	if err != nil {
		return in.syntax(err)
	}
	rc := in.run(n)
	if in.exited {
		return in.code
	}
	return rc
}

func tooLong(line string) bool { return len(utf16.Encode([]rune(line))) > lineLimit }

func (in *interpreter) syntax(err error) int {
	in.level = 255
	switch {
	case errors.Is(err, errUnknown):
		return in.s.Reject("%s", err)
	case err.Error() == "":
		in.s.Errorf("The syntax of the command is incorrect.\r\n")
	default:
		in.s.Errorf("%s was unexpected at this time.\r\n", err)
	}
	return 255
}

// run executes a node and gives its return code; ERRORLEVEL is kept apart, as in cmd.
func (in *interpreter) run(n any) int {
	if in.exited {
		return in.code
	}
	if in.s.Killed() {
		in.exited, in.code = true, host.Killed
		return in.code
	}
	switch n := n.(type) {
	case *binary:
		return in.binary(n)
	case *condition:
		if in.test(n) != n.not {
			return in.run(n.then)
		} else if n.els != nil {
			return in.run(n.els)
		}
		return 0
	case *loop:
		return in.loop(n)
	case *group:
		return in.redirected(n.redirs, func() int { return in.run(n.body) })
	case *simple:
		return in.redirected(n.redirs, func() int {
			return in.command(in.delayedExpand(in.forExpand(n.text)))
		})
	}
	return 0
}

func (in *interpreter) binary(n *binary) int {
	switch n.op {
	case "|":
		return in.pipe(n)
	case "&":
		in.run(n.left)
		return in.run(n.right)
	case "&&":
		if rc := in.run(n.left); rc != 0 || in.exited {
			return rc
		}
		return in.run(n.right)
	}
	rc := in.run(n.left)
	if rc == 0 || in.exited {
		return rc
	}
	in.level = rc // only || makes ERRORLEVEL of the codes that rd and a failed redirection keep to themselves
	return in.run(n.right)
}

// pipe runs both sides at once, each in a command processor of its own; the right side's code counts.
func (in *interpreter) pipe(n *binary) int {
	r, w := io.Pipe()
	left, right := in.child(), in.child()
	left.s.Out, right.s.In = w, r
	done := make(chan struct{})
	go func() {
		defer close(done)
		left.run(n.left)
		_ = w.Close()
	}()
	rc := right.run(n.right)
	if right.exited {
		rc = right.code
	}
	_ = r.Close()
	<-done
	in.level = rc
	return rc
}

func (in *interpreter) child() *interpreter {
	c := *in
	c.s = in.s.Copy()
	c.vars = maps.Clone(in.vars)
	return &c
}

func (in *interpreter) redirected(list []redirection, run func() int) int {
	s := in.s
	oldIn, oldOut, oldErr := s.In, s.Out, s.Err
	var open []io.Closer
	defer func() {
		s.In, s.Out, s.Err = oldIn, oldOut, oldErr
		for _, c := range open {
			_ = c.Close() // a full disk shows when the tool writes, not here
		}
	}()
	for _, r := range list {
		var w io.Writer
		target := in.delayedExpand(in.forExpand(r.target))
		null := strings.EqualFold(target, "nul")
		switch {
		case r.op == "&":
			w = map[string]io.Writer{"1": s.Out, "2": s.Err}[r.target]
			if w == nil {
				return s.Reject("redirection to handle %s", r.target)
			}
		case r.op == "<" && null:
			s.In = bytes.NewReader(nil)
			continue
		case r.op == "<" && isPipe(target):
			if !in.served(target) {
				s.Errorf("%s\r\n", s.Message(int(host.FileNotFound)))
				return 1
			}
			s.In = bytes.NewReader(nil)
			continue
		case r.op == "<":
			f, err := s.OpenFile(s.Abs(target))
			if err != nil {
				s.Errorf("%s\r\n", s.Message(host.Code(err)))
				return 1
			}
			open = append(open, f)
			s.In = f
			continue
		case null:
			w = io.Discard
		default:
			f, err := s.CreateFile(s.Abs(target), r.op == ">>")
			if err != nil {
				s.Errorf("%s\r\n", s.Message(host.Code(err)))
				return 1
			}
			open = append(open, f)
			w = f
		}
		switch r.fd {
		case 1:
			s.Out = w
		case 2:
			s.Err = w
		default:
			return s.Reject("redirection of handle %d", r.fd)
		}
	}
	return run()
}

func isPipe(path string) bool {
	_, pipe := pipeName(path)
	return pipe
}

// served tells whether opening a pipe would find its server.
func (in *interpreter) served(path string) bool {
	tail, _ := pipeName(path)
	for _, p := range in.s.Pipes() {
		if strings.EqualFold(p, strings.TrimLeft(tail, `\`)) {
			return true
		}
	}
	return false
}

func (in *interpreter) test(n *condition) bool {
	value := func(t string) string { return in.delayedExpand(in.forExpand(t)) }
	a, b := value(n.a), value(n.b)
	switch n.kind {
	case "exist":
		return in.exists(strings.ReplaceAll(a, `"`, ""))
	case "errorlevel":
		want, _ := strconv.Atoi(a)
		return int(int32(in.level)) >= want
	case "defined":
		_, ok := in.variable(a)
		return ok
	}
	if n.fold {
		a, b = strings.ToLower(a), strings.ToLower(b)
	}
	if n.kind == "==" {
		return a == b
	}
	order := strings.Compare(a, b)
	x, errA := strconv.ParseInt(a, 0, 64)
	y, errB := strconv.ParseInt(b, 0, 64)
	if errA == nil && errB == nil {
		order = int(min(max(x-y, -1), 1))
	}
	switch n.kind {
	case "equ":
		return order == 0
	case "neq":
		return order != 0
	case "lss":
		return order < 0
	case "leq":
		return order <= 0
	case "gtr":
		return order > 0
	}
	return order >= 0
}

func (in *interpreter) exists(path string) bool {
	if _, pipe := pipeName(path); pipe {
		in.s.Reject("if exist on a pipe opens it: %s", path)
		return false
	}
	return len(host.Glob(in.s, in.s.Abs(strings.TrimSuffix(path, `\`)))) > 0
}
