package tools

import (
	"io"

	"kubewin.invalid/lab/winland/acl"
	"kubewin.invalid/lab/winland/host"
)

// User is the account of a command that is no administrator's.
const User = "S-1-5-21-1004336348-1177238915-682003330-1001"

// userSIDs are the SIDs of its token: itself, Everyone, Authenticated Users, Users.
var userSIDs = []string{User, "S-1-1-0", "S-1-5-11", "S-1-5-32-545"}

// restricted is a machine as a user without administrator rights sees it: the access lists of its files count, and neither
// registry nor processes can be changed.
type restricted struct{ host.Host }

// Restrict gives a machine to such a user.
func Restrict(h host.Host) host.Host { return restricted{h} }

// may tells whether the user has all bits of a mask on a path. An owner may always change the list (MS-DTYP 2.5.3.2).
func (r restricted) may(path string, mask uint32) bool {
	entries, _ := effective(r.Host, path)
	if acl.Allows(entries, userSIDs, mask) {
		return true
	}
	return mask == acl.WriteDAC && ownerOf(r.Host, path) == User
}

// mayRemove is the rule of NTFS: DELETE on the file, or FILE_DELETE_CHILD on its directory.
func (r restricted) mayRemove(path string) bool {
	return r.may(path, acl.Delete) || r.may(host.Dir(path), acl.DeleteChild)
}

func (r restricted) OpenFile(path string) (io.ReadCloser, error) {
	if _, err := r.Stat(path); err == nil && !r.may(path, acl.ReadData) {
		return nil, host.AccessDenied
	}
	return r.Host.OpenFile(path)
}

func (r restricted) CreateFile(path string, appendTo bool) (io.WriteCloser, error) {
	_, err := r.Stat(path)
	switch {
	case err == nil && !r.may(path, acl.WriteData), err != nil && !r.may(host.Dir(path), acl.WriteData):
		return nil, host.AccessDenied
	}
	w, failed := r.Host.CreateFile(path, appendTo)
	if failed == nil && err != nil {
		_ = r.Host.StoreACL(path, &acl.ACL{Owner: User}) // it was just made
	}
	return w, failed
}

func (r restricted) Mkdir(path string) error {
	if !r.may(host.Dir(path), acl.AppendData) {
		return host.AccessDenied
	}
	err := r.Host.Mkdir(path)
	if err == nil {
		_ = r.Host.StoreACL(path, &acl.ACL{Owner: User})
	}
	return err
}

func (r restricted) RemoveDir(path string) error {
	if !r.mayRemove(path) {
		return host.AccessDenied
	}
	return r.Host.RemoveDir(path)
}

func (r restricted) DeleteFile(path string) error {
	if !r.mayRemove(path) {
		return host.AccessDenied
	}
	return r.Host.DeleteFile(path)
}

func (r restricted) MoveFile(from, to string, replace bool) error {
	add := uint32(acl.WriteData)
	if st, err := r.Stat(from); err == nil && st.Dir {
		add = acl.AppendData
	}
	_, err := r.Stat(to)
	if !r.mayRemove(from) || !r.may(host.Dir(to), add) || err == nil && !r.mayRemove(to) {
		return host.AccessDenied
	}
	return r.Host.MoveFile(from, to, replace)
}

func (r restricted) StoreACL(path string, a *acl.ACL) error {
	if !r.may(path, acl.WriteDAC) || a.Owner != ownerOf(r.Host, path) && !r.may(path, acl.WriteOwner) {
		return host.AccessDenied
	}
	return r.Host.StoreACL(path, a)
}

func (r restricted) RegCreate(string) error                  { return host.AccessDenied }
func (r restricted) RegSet(string, host.RegValue) error      { return host.AccessDenied }
func (r restricted) RegDeleteValue(string, string) error     { return host.AccessDenied }
func (r restricted) RegDeleteKey(string) error               { return host.AccessDenied }
func (r restricted) KillProcess(uint32) error                { return host.AccessDenied }
func (r restricted) CreateService(host.Service) error        { return host.AccessDenied }
func (r restricted) ChangeService(string, host.Change) error { return host.AccessDenied }
func (r restricted) DeleteService(string) error              { return host.AccessDenied }
