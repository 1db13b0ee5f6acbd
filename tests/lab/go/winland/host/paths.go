package host

import "strings"

// Abs makes a path absolute and clean: backslashes, no `.` and `..`, no trailing backslash (except `C:\`).
func Abs(dir, p string) string {
	p = strings.ReplaceAll(p, "/", `\`)
	switch {
	case strings.HasPrefix(p, `\\`):
		return p
	case len(p) > 1 && p[1] == ':':
		if len(p) == 2 {
			p += `\`
		}
	case strings.HasPrefix(p, `\`):
		p = dir[:2] + p
	default:
		p = dir + `\` + p
	}
	var parts []string
	for _, s := range strings.Split(p[2:], `\`) {
		switch s {
		case "", ".":
		case "..":
			if len(parts) > 0 {
				parts = parts[:len(parts)-1]
			}
		default:
			parts = append(parts, s)
		}
	}
	return strings.ToUpper(p[:1]) + `:\` + strings.Join(parts, `\`)
}

// Dir and Base split an absolute path.
func Dir(p string) string {
	i := strings.LastIndexByte(p, '\\')
	if i <= 2 {
		return p[:min(3, len(p))]
	}
	return p[:i]
}

// Base is the last element of a path.
func Base(p string) string { return p[strings.LastIndexAny(p, `\/`)+1:] }

// Join puts a name under a directory.
func Join(dir, name string) string { return strings.TrimSuffix(dir, `\`) + `\` + name }

// Match tells whether a name fits a pattern of * and ?, as FindFirstFile does (case-insensitive).
func Match(pattern, name string) bool {
	return match([]rune(strings.ToLower(pattern)), []rune(strings.ToLower(name)))
}

func match(p, s []rune) bool {
	for len(p) > 0 {
		switch {
		case p[0] == '*':
			for i := 0; i <= len(s); i++ {
				if match(p[1:], s[i:]) {
					return true
				}
			}
			return false
		case len(s) == 0 || p[0] != '?' && p[0] != s[0]:
			return false
		}
		p, s = p[1:], s[1:]
	}
	return len(s) == 0
}

// Glob gives the full paths of the files and directories that a pattern in the last element fits; ones without a
// pattern are returned when they exist.
func Glob(f Files, p string) []string {
	if !strings.ContainsAny(Base(p), "*?") {
		if _, err := f.Stat(p); err != nil {
			return nil
		}
		return []string{p}
	}
	list, err := f.ReadDir(Dir(p))
	if err != nil {
		return nil
	}
	pat := Base(p)
	if pat == "*.*" {
		pat = "*"
	}
	var out []string
	for _, e := range list {
		if Match(pat, e.Name) {
			out = append(out, Join(Dir(p), e.Name))
		}
	}
	return out
}

// Statter is the part of Files that looking for a program needs.
type Statter interface {
	Stat(path string) (FileInfo, error)
}

// ResolveImage finds the executable of a service's command line as CreateProcess does: a quoted path as it is, an
// unquoted one cut at each blank in turn, .exe added. The rest is the raw arguments.
func ResolveImage(f Statter, command string) (path, rest string, err error) {
	command = strings.TrimLeft(command, " \t")
	if strings.HasPrefix(command, `"`) {
		inner, after, _ := strings.Cut(command[1:], `"`)
		path, err = existing(f, inner)
		return path, after, err
	}
	for i := 0; i <= len(command); i++ {
		if i < len(command) && command[i] != ' ' && command[i] != '\t' {
			continue
		}
		if path, err = existing(f, command[:i]); err == nil {
			return path, command[i:], nil
		}
	}
	first, _, _ := strings.Cut(command, " ")
	_, err = existing(f, first)
	return "", "", err
}

func existing(f Statter, path string) (string, error) {
	p := Abs(`C:\Windows\System32`, path)
	for _, try := range []string{p, p + ".exe"} {
		if st, err := f.Stat(try); err == nil && !st.Dir {
			return try, nil
		}
	}
	if _, err := f.Stat(Dir(p)); err != nil {
		return "", PathNotFound
	}
	return "", FileNotFound
}
