package host

import (
	"encoding/hex"
	"reflect"
	"strings"
	"testing"
)

func TestAbs(t *testing.T) {
	for in, want := range map[string]string{
		`x`: `C:\d\x`, `..\x\.\y`: `C:\x\y`, `\x`: `C:\x`, `c:`: `C:\`, `C:/a//b/`: `C:\a\b`, `\\.\pipe\x`: `\\.\pipe\x`, `..\..\..`: `C:\`,
	} {
		if got := Abs(`C:\d`, in); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
	if Dir(`C:\a`) != `C:\` || Dir(`C:\a\b`) != `C:\a` || Dir(`C:\`) != `C:\` || Base(`C:\a\b`) != "b" {
		t.Error("Dir or Base")
	}
}

func TestMatch(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{{"*", "x", true}, {"csi-*-v1", "CSI-disk-v1", true}, {"csi-*-v1", "csi-disk-v1beta1", false}, {"a?c", "abc", true}, {"a?c", "ac", false}} {
		if Match(c.pattern, c.name) != c.want {
			t.Errorf("%s on %s", c.pattern, c.name)
		}
	}
}

type some map[string]bool // path to "is a directory"

func (s some) Stat(path string) (FileInfo, error) {
	dir, ok := s[strings.ToLower(path)]
	if !ok {
		return FileInfo{}, FileNotFound
	}
	return FileInfo{Dir: dir}, nil
}

// TestResolveImage: an unquoted path with blanks is tried at each of them, which is why it can be hijacked.
func TestResolveImage(t *testing.T) {
	files := some{`c:\`: true, `c:\a b`: true, `c:\a b\x.exe`: false}
	for command, want := range map[string][2]string{
		`"C:\a b\x.exe" -f`: {`C:\a b\x.exe`, " -f"}, `C:\a b\x.exe -f`: {`C:\a b\x.exe`, " -f"}, `C:\a b\x`: {`C:\a b\x.exe`, ""},
	} {
		path, rest, err := ResolveImage(files, command)
		if got := [2]string{path, rest}; got != want || err != nil {
			t.Errorf("%s: %q %v", command, got, err)
		}
	}
	files[`c:\a.exe`] = false
	if path, _, _ := ResolveImage(files, `C:\a b\x.exe -f`); path != `C:\a.exe` {
		t.Errorf("the first that exists is taken, got %s", path)
	}
	for command, want := range map[string]error{`C:\none.exe`: FileNotFound, `C:\no\x.exe -f`: PathNotFound} {
		if _, _, err := ResolveImage(files, command); err != want {
			t.Errorf("%s: %v, want %v", command, err, want)
		}
	}
}

// TestFailureBlob reads NSSM's and EventLog's blobs as public registry exports have them.
func TestFailureBlob(t *testing.T) {
	for text, want := range map[string]Failure{
		"80510100000000000000000003000000140000000100000060EA000001000000C0D401000000000000000000":  {Reset: 86400, Actions: []Action{{1, 60000}, {1, 120000}, {0, 0}}},
		"FFFFFFFF000000000000000001000000140000000100000000000000":                                  {Reset: Infinite, Actions: []Action{{1, 0}}},
		"00000000010000000100000003000000440055000100000060EA00000000000000000000000000000000 0000": {Actions: []Action{{1, 60000}, {0, 0}, {0, 0}}},
	} {
		b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := ParseFailure(b); !reflect.DeepEqual(*got, want) {
			t.Errorf("%s: %+v, want %+v", text, *got, want)
		}
	}
	f := Failure{Reset: 5, Actions: []Action{{1, 10000}}}
	if got := ParseFailure(f.Blob()); !reflect.DeepEqual(*got, f) {
		t.Errorf("%+v", *got)
	}
	if ParseFailure([]byte{1}) != nil {
		t.Error("a stump is no recovery")
	}
}

func TestRegistryValues(t *testing.T) {
	if v := MultiSz("n", []string{"a b", "ü"}); !reflect.DeepEqual(v.List(), []string{"a b", "ü"}) {
		t.Errorf("%q", v.List())
	}
	if v := Sz("n", "\U0001F600"); v.Text() != "\U0001F600" || len(v.Data) != 6 {
		t.Errorf("%q %d", v.Text(), len(v.Data))
	}
	if v := Dword("n", 0xFFFFFFFF); v.Number() != 0xFFFFFFFF {
		t.Error(v.Number())
	}
}
