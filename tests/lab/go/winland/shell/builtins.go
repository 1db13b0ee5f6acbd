package shell

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/tools"
)

func nothing(*interpreter, arguments) outcome { return outcome{keep: true} }

func echo(in *interpreter, a arguments) outcome {
	switch t := strings.ToLower(strings.TrimSpace(a.tail)); t {
	case "":
		if a.tail == "" || strings.TrimSpace(a.tail) == "" {
			in.s.Printf("ECHO is on.\r\n")
			return outcome{keep: true}
		}
	case "on", "off":
		return outcome{keep: true}
	}
	in.s.Printf("%s\r\n", a.tail[1:])
	return outcome{keep: true}
}

func ver(in *interpreter, _ arguments) outcome {
	in.s.Printf("\r\nMicrosoft Windows [Version %s]\r\n", in.s.OSVersion())
	return outcome{}
}

func exit(in *interpreter, a arguments) outcome {
	if sw, ok := a.only("b"); !ok {
		return outcome{rc: in.s.Reject("exit /%s", sw)}
	}
	in.exited, in.code = true, in.level
	if len(a.words) > 0 {
		n, _ := strconv.ParseInt(a.words[0], 10, 64)
		in.code = int(int32(n))
	}
	return outcome{rc: in.code}
}

func set(in *interpreter, a arguments) outcome {
	t := strings.TrimLeft(a.tail, " \t")
	if strings.HasPrefix(t, "/") {
		return outcome{rc: in.s.Reject("set %s", t)}
	}
	if strings.HasPrefix(t, `"`) {
		t = t[1:]
		if i := strings.LastIndexByte(t, '"'); i >= 0 {
			t = t[:i]
		}
	}
	name, value, assign := strings.Cut(t, "=")
	if assign {
		in.s.Env.Set(name, value)
		return outcome{keep: true}
	}
	list := in.s.Env.List(strings.TrimSpace(name))
	for _, v := range list {
		in.s.Printf("%s\r\n", v)
	}
	if len(list) == 0 {
		in.s.Errorf("Environment variable %s not defined\r\n", strings.TrimSpace(name))
		return outcome{rc: 1}
	}
	return outcome{keep: true}
}

func cd(in *interpreter, a arguments) outcome {
	if sw, ok := a.only("d"); !ok {
		return outcome{rc: in.s.Reject("cd /%s", sw)}
	}
	if len(a.words) == 0 {
		in.s.Printf("%s\r\n", in.s.Dir)
		return outcome{}
	}
	d := in.s.Abs(a.words[0])
	if st, err := in.s.Stat(d); err != nil || !st.Dir {
		return in.fail(host.PathNotFound, 1)
	}
	in.s.Dir = d
	return outcome{}
}

func (in *interpreter) fail(err error, rc int) outcome {
	in.s.Errorf("%s\r\n", in.s.Message(host.Code(err)))
	return outcome{rc: rc}
}

func (in *interpreter) usage(a arguments) outcome {
	return outcome{rc: in.s.Reject("%s%s", a.name, a.tail)}
}

func typeFile(in *interpreter, a arguments) outcome {
	if len(a.words) != 1 || len(a.switches) > 0 {
		return in.usage(a)
	}
	f, err := in.s.OpenFile(in.s.Abs(a.words[0]))
	if err != nil {
		return in.fail(err, 1)
	}
	defer f.Close()
	if _, err := io.Copy(in.s.Out, f); err != nil {
		return outcome{rc: 1}
	}
	return outcome{}
}

func mkdir(in *interpreter, a arguments) outcome {
	if len(a.words) == 0 || len(a.switches) > 0 {
		return in.usage(a)
	}
	o := outcome{}
	for _, w := range a.words {
		path := in.s.Abs(w)
		if _, err := in.s.Stat(path); err == nil {
			in.s.Errorf("A subdirectory or file %s already exists.\r\n", w)
			o.rc = 1
		} else if err := tools.MakeDirs(in.s, path); err != nil {
			o = in.fail(err, 1)
		}
	}
	return o
}

// rmdir keeps ERRORLEVEL; its code shows to || and && only.
func rmdir(in *interpreter, a arguments) outcome {
	if sw, ok := a.only("s", "q"); !ok || len(a.words) == 0 || a.has("s") && !a.has("q") {
		return outcome{rc: in.s.Reject("rd /%s %s", sw, a.tail)}
	}
	o := outcome{keep: true}
	for _, w := range a.words {
		path := in.s.Abs(w)
		st, err := in.s.Stat(path)
		switch {
		case err != nil:
		case !st.Dir:
			err = host.DirectoryInvalid
		case a.has("s"):
			err = removeTree(in.s, path)
		default:
			err = in.s.RemoveDir(path)
		}
		if err != nil {
			o.rc = in.fail(err, host.Code(err)).rc
		}
	}
	return o
}

func removeTree(f host.Files, path string) error {
	list, err := f.ReadDir(path)
	if err != nil {
		return err
	}
	var first error
	for _, e := range list {
		p := host.Join(path, e.Name)
		if e.Dir {
			err = removeTree(f, p)
		} else {
			err = f.DeleteFile(p)
		}
		if err != nil && first == nil {
			first = err
		}
	}
	if err := f.RemoveDir(path); err != nil && first == nil {
		first = err
	}
	return first
}

// del gives 0 even when a file could not be deleted.
func del(in *interpreter, a arguments) outcome {
	if sw, ok := a.only("f", "q", "a"); !ok || len(a.words) == 0 {
		return outcome{rc: in.s.Reject("del /%s %s", sw, a.tail)}
	}
	for _, w := range a.words {
		path := in.s.Abs(w)
		if st, err := in.s.Stat(path); err == nil && st.Dir || strings.ContainsAny(w, "*?") && !a.has("q") {
			return outcome{rc: in.s.Reject("del %s would prompt or empty a directory", w)}
		}
		found := host.Glob(in.s, path)
		if len(found) == 0 {
			in.s.Errorf("Could Not Find %s\r\n", path)
		}
		for _, f := range found {
			if err := in.s.DeleteFile(f); err != nil {
				in.s.Errorf("%s\r\n%s\r\n", f, in.s.Message(host.Code(err)))
			}
		}
	}
	return outcome{}
}

func ren(in *interpreter, a arguments) outcome {
	if len(a.words) != 2 || len(a.switches) > 0 || strings.ContainsAny(a.words[0]+a.words[1], "*?") {
		return in.usage(a)
	}
	from := in.s.Abs(a.words[0])
	if strings.ContainsAny(a.words[1], `\/:`) {
		in.s.Errorf("The syntax of the command is incorrect.\r\n")
		return outcome{rc: 1}
	}
	err := in.s.MoveFile(from, host.Join(host.Dir(from), a.words[1]), false)
	if err == host.AlreadyExists {
		in.s.Errorf("A duplicate file name exists, or the file\r\ncannot be found.\r\n")
		return outcome{rc: 1}
	}
	if err != nil {
		return in.fail(err, 1)
	}
	return outcome{}
}

func move(in *interpreter, a arguments) outcome {
	if sw, ok := a.only("y"); !ok || len(a.words) != 2 || strings.ContainsAny(a.words[0], "*?") {
		return outcome{rc: in.s.Reject("move /%s %s", sw, a.tail)}
	}
	from, to := in.s.Abs(a.words[0]), in.s.Abs(a.words[1])
	src, err := in.s.Stat(from)
	if err != nil {
		return in.fail(host.FileNotFound, 1)
	}
	if st, err := in.s.Stat(to); err == nil {
		if st.Dir {
			to = host.Join(to, host.Base(from))
		}
		if st, err := in.s.Stat(to); err == nil && !st.Dir && !a.has("y") {
			return outcome{rc: in.s.Reject("move onto %s without /y prompts", to)}
		}
	}
	what := "file(s)"
	if src.Dir {
		what = "dir(s)"
	}
	if err := in.s.MoveFile(from, to, true); err != nil {
		in.fail(err, 1)
		in.s.Printf("        0 %s moved.\r\n", what)
		return outcome{rc: 1}
	}
	in.s.Printf("        1 %s moved.\r\n", what)
	return outcome{}
}

func copyFile(in *interpreter, a arguments) outcome {
	if sw, ok := a.only("y", "b"); !ok || len(a.words) != 2 || strings.ContainsAny(a.tail, "*?+") {
		return outcome{rc: in.s.Reject("copy /%s %s", sw, a.tail)}
	}
	to := in.s.Abs(a.words[1])
	if st, err := in.s.Stat(to); err == nil {
		if st.Dir {
			to = host.Join(to, host.Base(a.words[0]))
		}
		if _, err := in.s.Stat(to); err == nil && !a.has("y") {
			return outcome{rc: in.s.Reject("copy onto %s without /y prompts", to)}
		}
	}
	if err := duplicate(in, a.words[0], to); err != nil {
		in.fail(err, 1)
		in.s.Printf("        0 file(s) copied.\r\n")
		return outcome{rc: 1}
	}
	in.s.Printf("        1 file(s) copied.\r\n")
	return outcome{}
}

func duplicate(in *interpreter, from, to string) error {
	var r io.Reader = strings.NewReader("")
	if !strings.EqualFold(from, "nul") {
		f, err := in.s.OpenFile(in.s.Abs(from))
		if err != nil {
			return host.FileNotFound
		}
		defer f.Close()
		r = bufio.NewReaderSize(f, 1<<18)
	}
	w, err := in.s.CreateFile(to, false)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	if err = errors.Join(err, w.Close()); err != nil {
		_ = in.s.DeleteFile(to) // copy removes what it could not finish
	}
	return err
}
