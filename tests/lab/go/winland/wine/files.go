//go:build windows

package wine

import (
	"encoding/json"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/windows"

	"kubewin.invalid/lab/winland/acl"
	"kubewin.invalid/lab/winland/host"
)

// file turns errors of an open file into the host's.
type file struct{ f *os.File }

func (f file) Read(b []byte) (int, error) {
	n, err := f.f.Read(b)
	if err != nil && err != io.EOF {
		err = win(err)
	}
	return n, err
}

func (f file) Write(b []byte) (int, error) {
	n, err := f.f.Write(b)
	return n, win(err)
}

func (f file) Close() error { return win(f.f.Close()) }

func open(path string, access, share, mode uint32) (file, error) {
	h, err := windows.CreateFile(wide(path), access, share, nil, mode, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return file{}, win(err)
	}
	return file{os.NewFile(uintptr(h), path)}, nil
}

func (h *Host) OpenFile(path string) (io.ReadCloser, error) {
	return open(path, windows.GENERIC_READ, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, windows.OPEN_EXISTING)
}

func (h *Host) CreateFile(path string, appendTo bool) (io.WriteCloser, error) {
	if appendTo {
		return open(path, windows.FILE_APPEND_DATA, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE, windows.OPEN_ALWAYS)
	}
	return open(path, windows.GENERIC_WRITE, windows.FILE_SHARE_READ, windows.CREATE_ALWAYS)
}

func (h *Host) Stat(path string) (host.FileInfo, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return host.FileInfo{}, win(err)
	}
	return host.FileInfo{Name: st.Name(), Dir: st.IsDir(), Size: st.Size(), ModTime: st.ModTime()}, nil
}

func (h *Host) ReadDir(path string) ([]host.FileInfo, error) {
	list, err := os.ReadDir(path)
	if err != nil {
		return nil, win(err)
	}
	var out []host.FileInfo
	for _, e := range list {
		st, err := e.Info()
		if err != nil { // gone meanwhile
			continue
		}
		out = append(out, host.FileInfo{Name: e.Name(), Dir: e.IsDir(), Size: st.Size(), ModTime: st.ModTime()})
	}
	return out, nil
}

func (h *Host) Mkdir(path string) error { return win(windows.CreateDirectory(wide(path), nil)) }

func (h *Host) RemoveDir(path string) error {
	err := win(windows.RemoveDirectory(wide(path)))
	if err == nil {
		h.moveACLs(path, "")
	}
	return err
}

func (h *Host) DeleteFile(path string) error {
	err := win(windows.DeleteFile(wide(path)))
	if err == nil {
		h.moveACLs(path, "")
	}
	return err
}

func (h *Host) MoveFile(from, to string, replace bool) error {
	flags := uint32(0)
	if replace {
		flags = windows.MOVEFILE_REPLACE_EXISTING
	} else if _, err := os.Lstat(to); err == nil && !strings.EqualFold(from, to) {
		return host.AlreadyExists
	}
	err := win(windows.MoveFileEx(wide(from), wide(to), flags))
	if err == nil {
		h.moveACLs(from, to)
	}
	return err
}

func (h *Host) SetModTime(path string, t time.Time) error { return win(os.Chtimes(path, t, t)) }

func (h *Host) DiskFree(path string) (free, total uint64, err error) {
	var mine uint64
	err = windows.GetDiskFreeSpaceEx(wide(path[:2]+`\`), &mine, &total, &free)
	return mine, total, win(err)
}

// Wine keeps no access control lists: they lie in the registry, one value a path.
const aclKey = `HKLM\Software\WinLab\Acl`

func (h *Host) LoadACL(path string) (*acl.ACL, error) {
	v, err := host.RegValueOf(h, aclKey, strings.ToLower(path))
	if err != nil {
		return nil, nil
	}
	a := &acl.ACL{}
	if err := json.Unmarshal([]byte(v.Text()), a); err != nil {
		return nil, err
	}
	return a, nil
}

func (h *Host) StoreACL(path string, a *acl.ACL) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return h.RegSet(aclKey, host.Sz(strings.ToLower(path), string(b)))
}

// moveACLs follows a renamed or (to is empty) deleted file or directory.
func (h *Host) moveACLs(from, to string) {
	values, err := h.RegValues(aclKey)
	if err != nil {
		return // nothing was ever set
	}
	from = strings.ToLower(from)
	for _, v := range values {
		if v.Name != from && !strings.HasPrefix(v.Name, from+`\`) {
			continue
		}
		_ = h.RegDeleteValue(aclKey, v.Name) // it was listed a moment ago
		if to != "" {
			v.Name = strings.ToLower(to) + v.Name[len(from):]
			_ = h.RegSet(aclKey, v)
		}
	}
}
