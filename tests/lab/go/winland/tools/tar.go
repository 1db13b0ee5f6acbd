package tools

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

// tarx extracts from stdin only: without -f bsdtar reads a tape drive.
func tarx(s *console.Session, args []string) int {
	args = ansi(args)
	dir, ok := "", false
	for i := 0; i < len(args); i++ {
		switch {
		case (args[i] == "-xf" || args[i] == "-xzf") && i+1 < len(args) && args[i+1] == "-":
			ok = true
			i++
		case args[i] == "-C" && i+1 < len(args):
			i++
			dir = args[i]
		default:
			return s.Reject("tar %s", strings.Join(args, " "))
		}
	}
	if !ok {
		return s.Reject("tar %s", strings.Join(args, " "))
	}
	target := s.Abs(dir)
	if dir == "" {
		target = s.Dir
	}
	if st, err := s.Stat(target); err != nil || !st.Dir {
		s.Errorf("tar.exe: could not chdir to '%s'\r\n", dir)
		return 1
	}
	br := bufio.NewReaderSize(s.In, 1<<18)
	var r io.Reader = br
	if magic, _ := br.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		z, err := gzip.NewReader(br)
		if err != nil {
			s.Errorf("tar.exe: Error opening archive: truncated gzip input\r\n")
			return 1
		}
		r = z
	}
	if err := extract(s, tar.NewReader(r), target); err != nil {
		s.Errorf("tar.exe: %s\r\ntar.exe: Error exit delayed from previous errors.\r\n", err)
		return 1
	}
	return 0
}

func extract(s *console.Session, r *tar.Reader, target string) error {
	for n := 0; ; n++ {
		h, err := r.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil && n == 0:
			return errors.New("Error opening archive: Unrecognized archive format")
		case err != nil:
			return errors.New("Truncated input file (needed 512 bytes, only 0 available)")
		case s.Killed():
			return errors.New("terminated")
		}
		name := strings.Trim(strings.TrimPrefix(h.Name, "./"), "/")
		if name == "" {
			continue
		}
		for _, part := range strings.Split(name, "/") {
			if part == ".." {
				return errors.New(h.Name + ": Path contains '..'")
			}
		}
		path := host.Abs(target, name)
		if h.FileInfo().IsDir() {
			err = MakeDirs(s, path)
		} else {
			err = extractFile(s, r, h, path)
		}
		if err != nil {
			return err
		}
	}
}

// extractFile removes what is there first, as bsdtar does; a running program therefore stops it.
func extractFile(s *console.Session, r io.Reader, h *tar.Header, path string) error {
	if err := MakeDirs(s, host.Dir(path)); err != nil {
		return errors.New(h.Name + ": Can't create directory")
	}
	if _, err := s.Stat(path); err == nil {
		if err := s.DeleteFile(path); err != nil {
			return errors.New(h.Name + ": Can't unlink already-existing object: " + s.Message(host.Code(err)))
		}
	}
	w, err := s.CreateFile(path, false)
	if err != nil {
		return errors.New(h.Name + ": Can't create '" + path + "': " + s.Message(host.Code(err)))
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, r, make([]byte, 1<<17))
	if e := w.Close(); err == nil {
		err = e
	}
	if err != nil && host.Code(err) != 31 {
		return errors.New(h.Name + ": Write failed: " + s.Message(host.Code(err)))
	} else if err != nil {
		return errors.New(h.Name + ": Truncated input file")
	}
	return s.SetModTime(path, h.ModTime)
}
