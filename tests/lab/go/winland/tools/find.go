package tools

import (
	"bufio"
	"io"
	"regexp"
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/text"
)

// grep is the common part of find and findstr over one file or stdin.
type grep struct {
	s                     *console.Session
	fits                  func(string) bool
	invert, count, number bool
}

func (g *grep) run(files []string, missing string) int {
	if len(files) > 1 || len(files) == 1 && strings.ContainsAny(files[0], "*?") {
		return g.s.Reject("searching several files")
	}
	var r io.Reader = g.s.In
	if len(files) == 1 {
		f, err := g.s.OpenFile(g.s.Abs(files[0]))
		if err != nil {
			g.s.Errorf(missing, files[0])
			return 1
		}
		defer f.Close()
		r = f
	}
	hits, line := 0, 0
	for scan := bufio.NewScanner(r); scan.Scan(); {
		line++
		l := text.Decode(int(g.s.CodePage.Load()), []byte(strings.TrimSuffix(scan.Text(), "\r")))
		if g.fits(l) == g.invert {
			continue
		}
		hits++
		if g.number {
			g.s.Printf("%d:", line)
		}
		if !g.count {
			g.s.Printf("%s\r\n", l)
		}
	}
	if g.count {
		g.s.Printf("%d\r\n", hits)
	}
	if hits == 0 {
		return 1
	}
	return 0
}

func find(s *console.Session, args []string) int {
	g := &grep{s: s}
	fold := false
	var rest []string
	for _, a := range args {
		switch strings.ToLower(a) {
		case "/i":
			fold = true
		case "/v":
			g.invert = true
		case "/c":
			g.count = true
		default:
			if strings.HasPrefix(a, "/") {
				return s.Reject("find %s", a)
			}
			rest = append(rest, a)
		}
	}
	if len(rest) != 1 { // with a file find prints a header
		return s.Reject("find %s", strings.Join(args, " "))
	}
	g.fits = contain(rest[:1], fold)
	return g.run(nil, "")
}

func contain(words []string, fold bool) func(string) bool {
	return func(l string) bool {
		for _, w := range words {
			if fold && strings.Contains(strings.ToLower(l), strings.ToLower(w)) || strings.Contains(l, w) {
				return true
			}
		}
		return false
	}
}

// findstr knows /c:literal, /r (a subset of its expressions), /b /e /x /i /v /n.
func findstr(s *console.Session, args []string) int {
	g := &grep{s: s}
	var patterns, files []string
	literal, expression, fold, begin, end := false, false, false, false, false
	for _, a := range args {
		low := strings.ToLower(a)
		switch {
		case strings.HasPrefix(low, "/c:"):
			patterns, literal = append(patterns, a[3:]), true
		case low == "/l":
			literal = true
		case low == "/r":
			expression = true
		case low == "/i":
			fold = true
		case low == "/v":
			g.invert = true
		case low == "/n":
			g.number = true
		case low == "/b":
			begin = true
		case low == "/e":
			end = true
		case low == "/x":
			begin, end = true, true
		case strings.HasPrefix(a, "/"):
			return s.Reject("findstr %s", a)
		case len(patterns) == 0:
			patterns = strings.Fields(a)
		default:
			files = append(files, a)
		}
	}
	var all []string
	for _, p := range patterns {
		if literal && !expression {
			p = regexp.QuoteMeta(p)
		} else {
			p = regexp.MustCompile(`[(){}|+?]`).ReplaceAllStringFunc(p, regexp.QuoteMeta)
			p = strings.NewReplacer(`\<`, `\b`, `\>`, `\b`).Replace(p)
		}
		if begin {
			p = "^(?:" + p + ")"
		}
		if end {
			p = "(?:" + p + ")$"
		}
		all = append(all, "(?:"+p+")")
	}
	e := strings.Join(all, "|")
	if fold {
		e = "(?i)" + e
	}
	re, err := regexp.Compile(e)
	if err != nil || len(all) == 0 {
		return s.Reject("findstr %s", strings.Join(args, " "))
	}
	g.fits = re.MatchString
	return g.run(files, "FINDSTR: Cannot open %s\r\n")
}

// where looks in the current directory and PATH.
func where(s *console.Session, args []string) int {
	if len(args) != 1 || strings.HasPrefix(args[0], "/") || strings.ContainsAny(args[0], `\:*?$`) {
		return s.Reject("where %s", strings.Join(args, " "))
	}
	path, _ := s.Env.Get("PATH")
	rc := 1
	for _, d := range append([]string{s.Dir}, strings.Split(path, ";")...) {
		for _, e := range []string{"", ".com", ".exe", ".bat", ".cmd"} {
			if d == "" {
				continue
			}
			f := host.Join(host.Abs(s.Dir, d), args[0]+e)
			if st, err := s.Stat(f); err == nil && !st.Dir {
				s.Printf("%s\r\n", f)
				rc = 0
			}
		}
	}
	if rc != 0 {
		s.Errorf("INFO: Could not find files for the given pattern(s).\r\n")
	}
	return rc
}
