package shell

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/text"
)

func (in *interpreter) loop(n *loop) int {
	set := in.delayedExpand(in.forExpand(n.set))
	outer := in.vars
	defer func() { in.vars = outer }()
	rc := 0
	do := func(values ...string) {
		in.vars = map[rune]string{}
		for k, v := range outer {
			in.vars[k] = v
		}
		for i, v := range values {
			in.vars[n.name+rune(i)] = v
		}
		rc = in.run(n.body)
	}
	switch n.kind {
	case "/l":
		in.count(set, do)
	case "/f":
		if err := in.parseLines(n.options, strings.TrimSpace(set), do); err != nil {
			in.s.Errorf("The system cannot find the file %s.\r\n", strings.TrimSpace(set))
			in.level = 1
			return 1
		}
	default:
		p := &parser{s: []rune(set)}
		for p.delims(); !p.end(); p.delims() {
			start := p.pos
			w := p.word()
			if p.pos == start { // a character that is an operator elsewhere
				p.pos++
				continue
			}
			if !strings.ContainsAny(w, "*?") {
				do(w)
				continue
			}
			for _, f := range host.Glob(in.s, in.s.Abs(strings.Trim(w, `"`))) {
				if st, err := in.s.Stat(f); err != nil || st.Dir != (n.kind == "/d") {
					continue // without /d files alone, with it directories alone
				}
				do(f)
			}
		}
	}
	return rc
}

func (in *interpreter) count(set string, do func(...string)) {
	var from, step, to int
	for i, f := range strings.FieldsFunc(set, func(r rune) bool { return strings.ContainsRune(" ,;=\t", r) }) {
		v, _ := strconv.Atoi(f)
		switch i {
		case 0:
			from = v
		case 1:
			step = v
		case 2:
			to = v
		}
	}
	for i := from; step > 0 && i <= to || step < 0 && i >= to || step == 0; i += step {
		if in.exited || in.s.Killed() {
			return
		}
		do(strconv.Itoa(i))
	}
}

type lineOptions struct {
	delims, tokens, eol string
	skip                int
	backQuotes          bool
}

func readLineOptions(spec string) (lineOptions, bool) {
	o := lineOptions{delims: " \t", tokens: "1", eol: ";"}
	for rest := strings.TrimSpace(spec); rest != ""; rest = strings.TrimLeft(rest, " ") {
		low := strings.ToLower(rest)
		switch {
		case strings.HasPrefix(low, "usebackq"):
			o.backQuotes, rest = true, rest[8:]
		case strings.HasPrefix(low, "delims="):
			rest = rest[7:]
			if i := strings.IndexByte(rest, ' '); i >= 0 && strings.TrimSpace(rest[i:]) != "" {
				o.delims, rest = rest[:i], rest[i:]
			} else { // a blank counts only as the last character of the options
				o.delims, rest = rest, ""
			}
		case strings.HasPrefix(low, "eol="):
			o.eol, rest = rest[4:5], rest[5:]
		default:
			word, after, _ := strings.Cut(rest, " ")
			key, value, _ := strings.Cut(strings.ToLower(word), "=")
			rest = after
			switch key {
			case "tokens":
				o.tokens = value
			case "skip":
				o.skip, _ = strconv.Atoi(value)
			default:
				return o, false
			}
		}
	}
	return o, true
}

func (in *interpreter) parseLines(spec, set string, do func(...string)) error {
	o, ok := readLineOptions(spec)
	if !ok {
		in.s.Reject("for /f %q", spec)
		return nil
	}
	lines, err := in.source(o.backQuotes, set)
	if err != nil {
		return err
	}
	for i, l := range lines {
		if i < o.skip || l == "" || strings.HasPrefix(l, o.eol) {
			continue
		}
		if values := tokens(l, o); values != nil {
			do(values...)
		}
		if in.exited || in.s.Killed() {
			return nil
		}
	}
	return nil
}

// source gives the lines of a command ('...' or `...`), a string or a file.
func (in *interpreter) source(backQuotes bool, set string) ([]string, error) {
	command, literal := byte('\''), byte('"')
	if backQuotes {
		command, literal = '`', '\''
	}
	quoted := func(q byte) bool { return len(set) > 1 && set[0] == q && set[len(set)-1] == q }
	var raw []byte
	switch {
	case quoted(command):
		var b bytes.Buffer
		c := in.s.Copy()
		c.Out = &b
		Run(c, "/c "+set[1:len(set)-1])
		raw = b.Bytes()
	case quoted(literal):
		return []string{set[1 : len(set)-1]}, nil
	default:
		f, err := in.s.OpenFile(in.s.Abs(strings.Trim(set, `"`)))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if raw, err = io.ReadAll(f); err != nil {
			return nil, err
		}
	}
	all := strings.Split(strings.ReplaceAll(text.Decode(int(in.s.CodePage.Load()), raw), "\r\n", "\n"), "\n")
	return all, nil
}

func tokens(l string, o lineOptions) []string {
	isDelim := func(r rune) bool { return strings.ContainsRune(o.delims, r) }
	fields := strings.FieldsFunc(l, isDelim)
	if o.delims == "" {
		fields = []string{l}
	}
	if len(fields) == 0 {
		return nil
	}
	var out []string
	last := 0
	spec, star := strings.CutSuffix(o.tokens, "*")
	for _, t := range strings.Split(strings.TrimSuffix(spec, ","), ",") {
		if t == "" {
			continue
		}
		from, to, isRange := strings.Cut(t, "-")
		a, _ := strconv.Atoi(from)
		b := a
		if isRange {
			b, _ = strconv.Atoi(to)
		}
		for ; a <= b; a++ {
			v := ""
			if a <= len(fields) {
				v = fields[a-1]
			}
			out = append(out, v)
			last = a
		}
	}
	if star {
		rest := strings.TrimLeftFunc(l, isDelim)
		for ; last > 0; last-- {
			i := strings.IndexFunc(rest, isDelim)
			if i < 0 {
				rest = ""
				break
			}
			rest = strings.TrimLeftFunc(rest[i:], isDelim)
		}
		out = append(out, rest)
	}
	return out
}
