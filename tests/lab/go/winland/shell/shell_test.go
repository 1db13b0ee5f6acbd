package shell_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"kubewin.invalid/lab/winland/shell"
	"kubewin.invalid/lab/winland/testkit"
)

const missing = "'nosuch' is not recognized as an internal or external command,\r\noperable program or batch file.\r\n"

// The inner form is what the collection sends; each case says what real cmd does.
var lines = []struct {
	name, line string
	rc         int
	out, err   string
}{
	{"echo keeps the blank before an operator", "echo out && echo err>&2 && exit 1", 1, "out \r\n", "err \r\n"},
	{"exit /b after ver", "ver >nul & exit /b 5", 5, "", ""},
	{"and stops at a missing program", "nosuch && echo b", 1, "", missing},
	{"or runs after a missing program", "nosuch 2>nul || echo b", 0, "b\r\n", ""},
	{"and looks at the program, not at its redirection", "sc query nosuch >nul && echo ok", 1060, "", ""},
	{"groups", "(sc query nosuch >nul && echo A) || (echo B & exit /b 5)", 5, "B \r\n", ""},
	{"last command's code counts", "sc query nosuch >nul & echo x", 0, "x\r\n", ""},
	{"percent is expanded before anything runs", "sc query nosuch >nul & echo %errorlevel%", 0, "0\r\n", ""},
	{"if errorlevel is late", "sc query nosuch >nul & if errorlevel 1060 echo late", 0, "late\r\n", ""},
	{"if not errorlevel", "sc query nosuch >nul & if not errorlevel 1061 echo below", 0, "below\r\n", ""},
	{"for with a group", "for %i in (a b) do @(echo %i& echo z)", 0, "a\r\nz\r\nb\r\nz\r\n", ""},
	{"for /l", "for /l %i in (3,-1,1) do @echo %i", 0, "3\r\n2\r\n1\r\n", ""},
	{"for /f over a command", `for /f "tokens=1,2*" %a in ('echo one two three four') do @echo %a-%b-%c`, 0, "one-two-three four\r\n", ""},
	{"for /f with delims and a quoted string", `for /f "tokens=2 delims=:" %a in ("k:v") do @echo %a`, 0, "v\r\n", ""},
	{"for /f over a pipe", `for /f "tokens=3" %i in ('sc queryex System 2^>nul ^| findstr /c:nothing ^|^| echo a b c') do @echo %i`, 0, "c\r\n", ""},
	{"undefined variables stay", "echo %NOSUCH% %OS%", 0, "%NOSUCH% Windows_NT\r\n", ""},
	{"variables are expanded inside quotes", `echo "%OS%"`, 0, "\"Windows_NT\"\r\n", ""},
	{"substring and replacement", "echo %OS:~0,3% %OS:_NT=x%", 0, "Win Windowsx\r\n", ""},
	{"carets escape outside quotes only", `echo a^&b "c^&d"`, 0, "a&b \"c^&d\"\r\n", ""},
	{"quotes hide operators", `echo "a & b | c > d"`, 0, "\"a & b | c > d\"\r\n", ""},
	{"a digit before a redirection is a handle only as a word", "echo a2>nul & echo b 2>nul", 0, "b \r\n", ""},
	{"stderr into stdout", "nosuch 2>&1", 1, missing, ""},
	{"order of redirections", "nosuch 2>&1 >nul", 1, missing, ""},
	{"pipe gives the right side's code", "echo abc | findstr /c:x", 1, "", ""},
	{"pipe passes data", "echo abc | findstr /c:b", 0, "abc \r\n", ""},
	{"exit in a pipe's side ends that side", "(exit /b 3) | findstr /v /c:x & echo after", 0, "after\r\n", ""},
	{"an if takes the rest of its line", "if 1==2 echo a & echo b", 0, "", ""},
	{"else", "if exist C:\\nowhere (echo yes) else (echo no)", 0, "no\r\n", ""},
	{"if exist finds directories", `if exist "C:\Program Files" echo yes`, 0, "yes\r\n", ""},
	{"if /i and ==", `if /i "AbC"=="aBc" echo same`, 0, "same\r\n", ""},
	{"numbers compare as numbers", "if 10 gtr 9 echo more", 0, "more\r\n", ""},
	{"if defined", "if defined OS (if not defined NOSUCH echo both)", 0, "both\r\n", ""},
	{"rem swallows operators", "rem a & echo b", 0, "", ""},
	{"call expands once more", "set X=OS& call echo %^X% %%OS%%", 0, "OS %Windows_NT%\r\n", ""},
	{"set and show", "set KUBEWIN_A=1& set KUBEWIN", 0, "KUBEWIN_A=1\r\n", ""},
	{"echo forms", "echo.& echo(x& echo/y", 0, "\r\nx\r\ny\r\n", ""},
	{"a full path that is missing", `C:\nowhere\x.exe`, 1, "", "The system cannot find the path specified.\r\n"},
	{"rd keeps ERRORLEVEL, its code shows to ||", `rd C:\nosuch 2>nul || echo failed`, 0, "failed\r\n", ""},
	{"del gives 0 although nothing was there", `del /q C:\nosuch.txt 2>nul && echo zero`, 0, "zero\r\n", ""},
	{"failed redirection", `echo x > C:\nowhere\f 2>nul || echo no`, 0, "no\r\n", "The system cannot find the path specified.\r\n"},
	{"directories with parents", `md "C:\a b\c" && dir /b "C:\a b"`, 0, "c\r\n", ""},
	{"md of what is there", `md C:\Windows`, 1, "", "A subdirectory or file C:\\Windows already exists.\r\n"},
	{"ren does not overwrite", `md C:\r & echo 1>C:\r\a& echo 2>C:\r\b& ren C:\r\a b`, 1, "ECHO is on.\r\n", "A duplicate file name exists, or the file\r\ncannot be found.\r\n"},
	{"empty directory has nothing to list", `md C:\e & dir /b C:\e`, 1, "", "File Not Found\r\n"},
	{"type", `echo hello>C:\h.txt& type C:\h.txt`, 0, "hello\r\n", ""},
	{"append", `echo a>C:\h.txt& echo b>>C:\h.txt& type C:\h.txt`, 0, "a\r\nb\r\n", ""},
	{"syntax", "echo a & ) b", 255, "", ") was unexpected at this time.\r\n"},
	{"line end ends the line", "echo a\necho b", 0, "a\r\n", ""},
	{"quoted program name", `"C:\Windows\System32\hostname.exe"`, 0, "win-1\r\n", ""},
}

func TestLines(t *testing.T) {
	for _, c := range lines {
		t.Run(c.name, func(t *testing.T) {
			r := testkit.New(t, nil).Run(c.line)
			if r.RC != c.rc || r.Out != c.out || r.Err != c.err {
				t.Errorf("%s\nrc  %d, want %d\nout %q\nwant %q\nerr %q\nwant %q", c.line, r.RC, c.rc, r.Out, c.out, r.Err, c.err)
			}
		})
	}
}

func inner(line string) string { return `C:\Windows\System32\cmd.exe /d /v:on /s /c "` + line + `"` }

// TestWrapped runs lines inside the wrapper that the collection's channels add.
func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		line string
		rc   int
		out  string
	}{
		{"sc query nosuch >nul & echo #1=!errorlevel! & sc query EventLog >nul & echo #2=!errorlevel!", 0, "#1=1060 \r\n#2=0\r\n"},
		{"nosuch 2>nul & echo #!errorlevel!", 0, "#9009\r\n"},
		{"md C:\\x && echo #1=0 && md C:\\x 2>nul && echo #2=0 || echo #f=!errorlevel!", 0, "#1=0 \r\n#f=1\r\n"},
		{`if exist "C:\Program Files" (echo "a b" & exit /b 7)`, 7, "\"a b\" \r\n"},
		{"certutil -hashfile C:\\nosuch SHA256 >nul & echo #!errorlevel!", 0, "#-2147024894\r\n"},
		{"echo !NOSUCH!x^^!", 0, "x!\r\n"},
		{"rd C:\\nosuch 2>nul & echo !errorlevel!", 0, "0\r\n"},
	} {
		r := testkit.New(t, nil).Run(inner(c.line))
		if r.RC != c.rc || r.Out != c.out {
			t.Errorf("%s\nrc %d, want %d; out %q, want %q; err %q", c.line, r.RC, c.rc, r.Out, c.out, r.Err)
		}
	}
}

func TestLimit(t *testing.T) {
	m := testkit.New(t, nil)
	if r := m.Run("echo " + strings.Repeat("x", 8191-5)); r.RC != 0 {
		t.Errorf("8191 characters: rc %d %s", r.RC, r.Err)
	}
	if r := m.Run("echo " + strings.Repeat("x", 8192-5)); r.RC != 1 || !strings.Contains(r.Err, "too long") {
		t.Errorf("8192 characters: rc %d %s", r.RC, r.Err)
	}
	if r := m.Run("echo " + strings.Repeat("\U0001F600", 4094)); r.RC != 1 {
		t.Errorf("characters outside the basic plane count twice, got rc %d", r.RC)
	}
}

// TestLoud: what is not implemented is refused and recorded, never guessed.
func TestLoud(t *testing.T) {
	for _, line := range []string{
		"set /a 1+1", "for /r %i in (*) do echo %i", "tasklist", "taskkill /IM x.exe", "rd /s C:\\x", "reg add HKLM\\SOFTWARE\\Microsoft /v a /q",
		`if exist \\.\pipe\csi-proxy-disk-v1 echo x`, `dir \\.\pipe\csi-proxy-disk-v1`, "tar -xzf x.tgz", "sc sdshow EventLog", "curl --retry-all-errors http://x/",
		"nosuch.exe", "cmd /k echo", "copy C:\\h C:\\h", "wmic os get x", "chcp x y",
	} {
		m := testkit.New(t, nil)
		m.Must("echo x>C:\\h")
		r := m.Run(line)
		if len(r.Unknown) == 0 {
			t.Errorf("%s: not recorded; rc %d %s%s", line, r.RC, r.Out, r.Err)
		}
	}
}

func TestSteps(t *testing.T) {
	got := shell.Steps(inner(`md C:\x && echo #0 || (sc query "a b" & for %i in (1 2) do echo %i)`))
	want := []string{`md C:\x`, "echo #0", `sc query "a b"`, "echo %i"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestQuoteRule: without /s a line that begins with a quote loses first and last unless it just names a program.
func TestQuoteRule(t *testing.T) {
	m := testkit.New(t, nil)
	m.Must(`md "C:\a b" & copy C:\Windows\System32\hostname.exe "C:\a b\where.exe"`)
	for line, want := range map[string]string{
		`"echo a" & "echo b"`:    "rc 0 a\" & \"echo b|",
		`"echo "x" & echo y"`:    "rc 0 \"x\" |y|",
		`cmd /s /c ""echo" hi"`:  "rc 1",
		`cmd /c "echo hi"`:       "rc 0 hi|",
		`cmd /s /c "echo "a b""`: "rc 0 \"a b\"|",
	} {
		r := m.Run(line)
		got := strings.TrimSpace(fmt.Sprintf("rc %d %s", r.RC, strings.ReplaceAll(r.Out, "\r\n", "|")))
		if got != want {
			t.Errorf("%s: got %q (%s), want %q", line, got, r.Err, want)
		}
	}
}
