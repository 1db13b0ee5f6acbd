package console

import "strings"

// SplitProgram separates the program's name from the rest of a raw command line, as CreateProcess and the C runtime do:
// quotes group, backslashes mean nothing.
func SplitProgram(raw string) (program, rest string) {
	raw = strings.TrimLeft(raw, " \t")
	quoted := false
	for i := 0; i < len(raw); i++ {
		switch {
		case raw[i] == '"':
			quoted = !quoted
		case !quoted && (raw[i] == ' ' || raw[i] == '\t'):
			return strings.ReplaceAll(raw[:i], `"`, ""), raw[i:]
		}
	}
	return strings.ReplaceAll(raw, `"`, ""), ""
}

// Argv splits the rest of a command line by the rules of the C runtime (2008 and later): 2n backslashes before a quote
// are n backslashes, one more makes the quote literal, and "" inside quotes is a literal quote.
func Argv(rest string) []string {
	var args []string
	var b strings.Builder
	quoted, inside := false, false
	for i := 0; i < len(rest); i++ {
		c := rest[i]
		switch {
		case c == '\\':
			n := 1
			for i+n < len(rest) && rest[i+n] == '\\' {
				n++
			}
			if i+n < len(rest) && rest[i+n] == '"' {
				b.WriteString(strings.Repeat(`\`, n/2))
				if n%2 == 1 {
					b.WriteByte('"')
					n++
				}
			} else {
				b.WriteString(strings.Repeat(`\`, n))
			}
			i += n - 1
			inside = true
		case c == '"':
			if quoted && i+1 < len(rest) && rest[i+1] == '"' {
				b.WriteByte('"')
				i++
			} else {
				quoted = !quoted
			}
			inside = true
		case !quoted && (c == ' ' || c == '\t'):
			if inside {
				args = append(args, b.String())
				b.Reset()
				inside = false
			}
		default:
			b.WriteByte(c)
			inside = true
		}
	}
	if inside {
		args = append(args, b.String())
	}
	return args
}
