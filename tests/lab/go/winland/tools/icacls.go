package tools

import (
	"slices"
	"strings"

	"kubewin.invalid/lab/winland/acl"
	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

// icacls keeps access control lists per path. Administrators may do everything; Restrict enforces them for others.
func icacls(s *console.Session, args []string) int {
	if len(args) == 0 {
		return s.Reject("icacls without arguments")
	}
	path := s.Abs(strings.TrimSuffix(args[0], `\`))
	if _, err := s.Stat(path); err != nil {
		s.Errorf("%s: %s\r\n", args[0], s.Message(host.Code(err)))
		icaclsSummary(s, 0, 1)
		return host.Code(err)
	}
	if slices.ContainsFunc(args[1:], func(a string) bool { return strings.EqualFold(a, "/t") }) {
		return icaclsTree(s, path, args)
	}
	entries, protected := effective(s, path)
	owner := ownerOf(s, path)
	if len(args) == 1 {
		icaclsShow(s, args[0], entries)
		return 0
	}
	quiet := false
	changed := false
	for i := 1; i < len(args); i++ {
		o := strings.ToLower(args[i])
		switch o {
		case "/q":
			quiet = true
		case "/setowner":
			if i++; i == len(args) {
				return s.Reject("icacls %s", strings.Join(args, " "))
			}
			sid, ok := acl.SID(args[i], s.Lang())
			if !ok {
				return icaclsNobody(s, args[i])
			}
			owner, changed = sid, true
		case "/save":
			if i+1 >= len(args) || len(args) != 3 {
				return s.Reject("icacls %s", strings.Join(args, " "))
			}
			return icaclsSave(s, path, args[2], acl.SDDL(protected, entries))
		case "/reset":
			if entries, protected, changed = inherited(s, path), false, true; host.Dir(path) == path {
				protected = true
			}
		case "/inheritance:r", "/inheritance:d", "/inheritance:e":
			entries, protected = inheritance(s, path, entries, o[len(o)-1])
			changed = true
		case "/grant", "/grant:r", "/remove", "/remove:g":
			start := i + 1
			for i+1 < len(args) && !strings.HasPrefix(args[i+1], "/") {
				i++
			}
			for _, who := range args[start : i+1] {
				var rc int
				if entries, rc = icaclsEdit(s, entries, o, who); rc != 0 {
					return rc
				}
			}
			changed = true
		default:
			return s.Reject("icacls %s", strings.Join(args, " "))
		}
	}
	if changed {
		if err := s.StoreACL(path, &acl.ACL{Protected: protected, Entries: explicit(entries), Owner: owner}); err != nil {
			s.Errorf("%s: %s\r\n", args[0], s.Message(host.Code(err)))
			icaclsSummary(s, 0, 1)
			return host.Code(err)
		}
		if !quiet {
			s.Printf("processed file: %s\r\n", args[0])
		}
	}
	icaclsSummary(s, 1, 0)
	return 0
}

func icaclsSummary(s *console.Session, ok, failed int) {
	s.Printf("Successfully processed %d files; Failed processing %d files\r\n", ok, failed)
}

func icaclsShow(s *console.Session, typed string, entries []acl.ACE) {
	lead := typed
	for _, e := range entries {
		s.Printf("%s %s:%s\r\n", lead, acl.Account(e.SID, s.Lang()), e.Text())
		lead = strings.Repeat(" ", len([]rune(typed)))
	}
	s.Printf("\r\n")
	icaclsSummary(s, 1, 0)
}

// icaclsSave writes the name and the SDDL, UTF-16LE without a byte order mark.
func icaclsSave(s *console.Session, path, file, sddl string) int {
	w, err := s.CreateFile(s.Abs(file), false)
	if err == nil {
		b := host.UTF16(host.Base(path) + "\r\n" + sddl + "\r\n")
		_, err = w.Write(b[:len(b)-2])
		if e := w.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		s.Errorf("%s: %s\r\n", file, s.Message(host.Code(err)))
		icaclsSummary(s, 0, 1)
		return host.Code(err)
	}
	icaclsSummary(s, 1, 0)
	return 0
}

func explicit(entries []acl.ACE) []acl.ACE {
	return slices.DeleteFunc(slices.Clone(entries), func(e acl.ACE) bool { return e.Inherited })
}

// effective gives what a path has: its own entries, then the inherited ones.
func effective(f host.Files, path string) (entries []acl.ACE, protected bool) {
	own, err := f.LoadACL(path)
	known := err == nil && own != nil
	switch {
	case host.Dir(path) == path && !known:
		return slices.Clone(acl.Drive), true
	case known:
		entries, protected = slices.Clone(own.Entries), own.Protected
	}
	if !protected {
		entries = append(entries, inherited(f, path)...)
	}
	return entries, protected
}

func ownerOf(f host.Files, path string) string {
	if own, err := f.LoadACL(path); err == nil && own != nil && own.Owner != "" {
		return own.Owner
	}
	return acl.Administrators
}

func inherited(f host.Files, path string) []acl.ACE {
	up := host.Dir(path)
	if up == path {
		return slices.Clone(acl.Drive)
	}
	st, err := f.Stat(path)
	above, _ := effective(f, up)
	return acl.Inherit(above, err != nil || st.Dir, ownerOf(f, path))
}

func inheritance(f host.Files, path string, entries []acl.ACE, how byte) ([]acl.ACE, bool) {
	switch how {
	case 'r':
		return explicit(entries), true
	case 'd':
		out := slices.Clone(entries)
		for i := range out {
			out[i].Inherited = false
		}
		return out, true
	}
	return append(explicit(entries), inherited(f, path)...), false
}

// icaclsEdit applies one word of /grant, /grant:r or /remove. /grant:r replaces that SID's own entries and no others.
func icaclsEdit(s *console.Session, entries []acl.ACE, op, word string) ([]acl.ACE, int) {
	account, rest := word, ""
	if strings.HasPrefix(op, "/grant") {
		i := strings.LastIndexByte(word, ':')
		if i < 0 {
			return nil, s.Reject("icacls %s %s", op, word)
		}
		account, rest = word[:i], word[i+1:]
	}
	sid, ok := acl.SID(account, s.Lang())
	if !ok {
		return nil, icaclsNobody(s, account)
	}
	if strings.HasPrefix(op, "/remove") {
		return acl.Without(entries, sid), 0
	}
	flags, rights, ok := acl.ParseGrant(rest)
	if !ok {
		return nil, s.Reject("icacls %s %s", op, word)
	}
	if op == "/grant:r" {
		entries = acl.Without(entries, sid)
	}
	// explicit entries stand before inherited ones, a new one first
	return slices.Insert(slices.Clone(entries), 0, acl.ACE{SID: sid, Flags: flags, Rights: rights}), 0
}

func icaclsNobody(s *console.Session, account string) int {
	s.Errorf("%s: %s\r\n", account, s.Message(int(host.NoneMapped)))
	icaclsSummary(s, 0, 1)
	return int(host.NoneMapped)
}

// icaclsTree is /T: the same for a directory and for all below it, up to the first failure.
func icaclsTree(s *console.Session, path string, args []string) int {
	rest := slices.DeleteFunc(slices.Clone(args[1:]), func(a string) bool { return strings.EqualFold(a, "/t") })
	if rc := icacls(s, append([]string{path}, rest...)); rc != 0 {
		return rc
	}
	children, _ := s.ReadDir(path) // none of a file
	for _, child := range children {
		if rc := icaclsTree(s, host.Join(path, child.Name), args); rc != 0 {
			return rc
		}
	}
	return 0
}

// cacls PATH /S shows the list in SDDL (its own usage text: "Displays the SDDL string for the DACL.").
func cacls(s *console.Session, args []string) int {
	if len(args) != 2 || !strings.EqualFold(args[1], "/s") {
		return s.Reject("cacls %s", strings.Join(args, " "))
	}
	path := s.Abs(strings.TrimSuffix(args[0], `\`))
	if len(path) == 2 {
		path += `\`
	}
	if _, err := s.Stat(path); err != nil {
		s.Errorf("%s\r\n", s.Message(host.Code(err)))
		return host.Code(err)
	}
	entries, protected := effective(s, path)
	s.Printf("%s \"%s\" \r\n\r\n", args[0], acl.SDDL(protected, entries))
	return 0
}
