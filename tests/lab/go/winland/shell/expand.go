package shell

import (
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/host"
)

// percent is cmd's first phase on a command line: %NAME% of a defined variable is replaced, also inside quotes; an
// undefined one stays as it is.
func (in *interpreter) percent(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] == '%' {
			if j := strings.IndexByte(line[i+1:], '%'); j > 0 {
				if v, ok := in.lookup(line[i+1 : i+1+j]); ok {
					b.WriteString(v)
					i += j + 1
					continue
				}
			}
		}
		b.WriteByte(line[i])
	}
	return b.String()
}

// delayedExpand is the phase of /v:on: !NAME! anywhere, an undefined one vanishes; when there is any !, carets escape.
func (in *interpreter) delayedExpand(text string) string {
	if !in.delayed || !strings.Contains(text, "!") {
		return text
	}
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '^' && i+1 < len(text):
			i++
			b.WriteByte(text[i])
		case text[i] == '^':
		case text[i] == '!':
			j := strings.IndexByte(text[i+1:], '!')
			if j < 0 {
				continue
			}
			v, _ := in.lookup(text[i+1 : i+1+j])
			b.WriteString(v)
			i += j + 1
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String()
}

// lookup reads NAME, NAME:~start,length or NAME:old=new.
func (in *interpreter) lookup(expr string) (string, bool) {
	name, edit, _ := strings.Cut(expr, ":")
	v, ok := in.variable(name)
	if !ok || edit == "" {
		return v, ok
	}
	if edit[0] == '~' {
		return slice([]rune(v), edit[1:]), true
	}
	if old, repl, found := strings.Cut(edit, "="); found && old != "" {
		return replaceFold(v, old, repl), true
	}
	return v, true
}

func slice(v []rune, spec string) string {
	from, count, hasCount := strings.Cut(spec, ",")
	start, _ := strconv.Atoi(from)
	if start < 0 {
		start += len(v)
	}
	start = min(max(start, 0), len(v))
	end := len(v)
	if hasCount {
		n, _ := strconv.Atoi(count)
		if n < 0 {
			end += n
		} else {
			end = start + n
		}
	}
	return string(v[start:max(start, min(end, len(v)))])
}

func replaceFold(v, old, repl string) string {
	var b strings.Builder
	for {
		i := strings.Index(strings.ToLower(v), strings.ToLower(old))
		if i < 0 {
			return b.String() + v
		}
		b.WriteString(v[:i] + repl)
		v = v[i+len(old):]
	}
}

func (in *interpreter) variable(name string) (string, bool) {
	if v, ok := in.s.Env.Get(name); ok {
		return v, true
	}
	switch strings.ToUpper(name) {
	case "ERRORLEVEL":
		return strconv.Itoa(int(int32(in.level))), true
	case "CD":
		return in.s.Dir, true
	case "DATE":
		return in.s.Now().Format("Mon 01/02/2006"), true
	case "TIME":
		return in.s.Now().Format("15:04:05.00"), true
	case "RANDOM":
		return strconv.Itoa(int(in.s.Now().UnixNano()>>8) & 0x7FFF), true
	}
	return "", false
}

// forExpand replaces %i, %~i and %~nxi of the FOR loops around a command.
func (in *interpreter) forExpand(text string) string {
	if len(in.vars) == 0 || !strings.Contains(text, "%") {
		return text
	}
	r := []rune(text)
	var b strings.Builder
	for i := 0; i < len(r); i++ {
		if r[i] != '%' || i+1 == len(r) {
			b.WriteRune(r[i])
			continue
		}
		if v, ok := in.vars[r[i+1]]; ok {
			b.WriteString(v)
			i++
			continue
		}
		if r[i+1] == '~' {
			j := i + 2
			for j < len(r) && strings.ContainsRune("dpnxfzDPNXFZ", r[j]) {
				if _, ok := in.vars[r[j]]; ok && (j+1 == len(r) || !strings.ContainsRune("dpnxfz", r[j+1])) {
					break
				}
				j++
			}
			if j < len(r) {
				if v, ok := in.vars[r[j]]; ok {
					b.WriteString(in.modify(strings.Trim(v, `"`), strings.ToLower(string(r[i+2:j]))))
					i = j
					continue
				}
			}
		}
		b.WriteRune(r[i])
	}
	return b.String()
}

func (in *interpreter) modify(v, how string) string {
	if how == "" {
		return v
	}
	path := in.s.Abs(v)
	base, out := host.Base(path), ""
	dot := strings.LastIndexByte(base, '.')
	if dot < 0 {
		dot = len(base)
	}
	if strings.ContainsRune(how, 'f') {
		return path
	}
	for _, m := range how {
		switch m {
		case 'd':
			out += path[:2]
		case 'p':
			out += path[2 : len(path)-len(base)]
		case 'n':
			out += base[:dot]
		case 'x':
			out += base[dot:]
		case 'z':
			if st, err := in.s.Stat(path); err == nil {
				out += strconv.FormatInt(st.Size, 10)
			}
		}
	}
	return out
}
