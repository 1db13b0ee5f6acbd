package console

import (
	"reflect"
	"testing"
)

// TestArgv has the examples of Microsoft's "Parsing C command-line arguments" and those proven over WinRS by
// Subject-Void-LLC/the-pleiades.
func TestArgv(t *testing.T) {
	for line, want := range map[string][]string{
		` "abc" d e`: {"abc", "d", "e"}, ` a\\b d"e f"g h`: {`a\\b`, "de fg", "h"}, ` a\\\"b c d`: {`a\"b`, "c", "d"},
		` a\\\\"b c" d e`: {`a\\b c`, "d", "e"}, ` a"b"" c d`: {`ab" c d`}, ` "a b" "" "q\"uote" C:\trailing\ "C:\x y\\"`: {"a b", "", `q"uote`, `C:\trailing\`, `C:\x y\`},
		` binPath= "\"C:\Program Files\x.exe\" --arg"`: {"binPath=", `"C:\Program Files\x.exe" --arg`}, "  ": nil,
	} {
		if got := Argv(line); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}

func TestSplitProgram(t *testing.T) {
	for line, want := range map[string][2]string{
		`sc query x`: {"sc", " query x"}, `"C:\a b\x.exe" -y`: {`C:\a b\x.exe`, " -y"}, `C:\"a b"\x.exe`: {`C:\a b\x.exe`, ""},
	} {
		program, rest := SplitProgram(line)
		if got := [2]string{program, rest}; got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
