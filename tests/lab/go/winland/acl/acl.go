// Package acl models the part of Windows' access control lists that icacls shows and sets. Nothing is enforced.
package acl

import (
	"fmt"
	"slices"
	"strings"
)

// ACE is one allow entry. Flags are of O (object inherit), C (container inherit), I (inherit only), N (no propagate);
// Rights is icacls' letter form (F, M, RX, R, W).
type ACE struct {
	SID       string `json:"sid"`
	Flags     string `json:"flags"`
	Rights    string `json:"rights"`
	Inherited bool   `json:"inherited,omitempty"`
}

// ACL is what lies on one path itself. Protected means that nothing is inherited.
type ACL struct {
	Protected bool  `json:"protected"`
	Entries   []ACE `json:"entries"`
}

// Drive is what an ordinary system drive hands down.
var Drive = []ACE{
	{SID: "S-1-5-18", Flags: "OC", Rights: "F"},
	{SID: "S-1-5-32-544", Flags: "OC", Rights: "F"},
	{SID: "S-1-5-32-545", Flags: "OC", Rights: "RX"},
	{SID: "S-1-3-0", Flags: "OCI", Rights: "F"},
}

// Account names of the well-known SIDs. Of the German ones only the one seen in a capture is here (SecretLUL/WinMedic);
// the others are shown in English, and no English name resolves on a German host.
var names = []struct{ sid, en, de string }{
	{"S-1-5-18", `NT AUTHORITY\SYSTEM`, ""},
	{"S-1-5-32-544", `BUILTIN\Administrators`, `VORDEFINIERT\Administratoren`},
	{"S-1-5-32-545", `BUILTIN\Users`, ""},
	{"S-1-5-11", `NT AUTHORITY\Authenticated Users`, ""},
	{"S-1-1-0", "Everyone", ""},
	{"S-1-3-0", "CREATOR OWNER", ""},
}

// SID resolves what a user typed: *S-1-..., or an account's name in the host's language.
func SID(account, lang string) (string, bool) {
	if strings.HasPrefix(account, "*S-1-") {
		return strings.ToUpper(account[1:]), true
	}
	for _, n := range names {
		name := n.en
		if lang == "de" {
			name = n.de
		}
		if name != "" && (strings.EqualFold(account, name) || strings.EqualFold(account, bare(name))) {
			return n.sid, true
		}
	}
	return "", false
}

func bare(full string) string { return full[strings.LastIndexByte(full, '\\')+1:] }

// Account is the name that a listing shows.
func Account(sid, lang string) string {
	for _, n := range names {
		if n.sid == sid {
			if lang == "de" && n.de != "" {
				return n.de
			}
			return n.en
		}
	}
	return sid
}

// Text is the form of a listing, without the account: (I)(OI)(CI)(F).
func (e ACE) Text() string {
	var b strings.Builder
	if e.Inherited {
		b.WriteString("(I)")
	}
	for _, f := range "OCIN" {
		if strings.ContainsRune(e.Flags, f) {
			b.WriteString(map[rune]string{'O': "(OI)", 'C': "(CI)", 'I': "(IO)", 'N': "(NP)"}[f])
		}
	}
	fmt.Fprintf(&b, "(%s)", e.Rights)
	return b.String()
}

// ParseGrant reads the part after the account: (OI)(CI)F or (OI)(CI)(RX).
func ParseGrant(s string) (flags, rights string, ok bool) {
	for strings.HasPrefix(s, "(") {
		i := strings.IndexByte(s, ')')
		if i < 0 {
			return "", "", false
		}
		word := strings.ToUpper(s[1:i])
		s = s[i+1:]
		f, isFlag := map[string]string{"OI": "O", "CI": "C", "IO": "I", "NP": "N"}[word]
		if isFlag {
			flags += f
			continue
		}
		return flags, word, s == "" && known(word)
	}
	s = strings.ToUpper(s)
	return flags, s, known(s)
}

func known(rights string) bool { return masks[rights] != "" }

// SDDL rights of icacls' letters.
var masks = map[string]string{"F": "FA", "M": "0x1301bf", "RX": "0x1200a9", "R": "FR", "W": "FW"}

var aliases = map[string]string{
	"S-1-5-18": "SY", "S-1-5-32-544": "BA", "S-1-5-32-545": "BU", "S-1-5-11": "AU", "S-1-1-0": "WD", "S-1-3-0": "CO",
}

// Inherit gives what children of a directory with these entries receive.
func Inherit(parent []ACE, dir bool) []ACE {
	var out []ACE
	for _, e := range parent {
		object, container := strings.Contains(e.Flags, "O"), strings.Contains(e.Flags, "C")
		if dir && !object && !container || !dir && !object {
			continue
		}
		c := ACE{SID: e.SID, Rights: e.Rights, Inherited: true}
		if dir && !strings.Contains(e.Flags, "N") {
			c.Flags = strings.ReplaceAll(e.Flags, "I", "")
			if !container || e.SID == "S-1-3-0" {
				c.Flags += "I"
			}
		}
		if !dir && e.SID == "S-1-3-0" {
			continue
		}
		out = append(out, c)
	}
	return out
}

// SDDL is the form that `icacls /save` writes: no owner, no group.
func SDDL(protected bool, entries []ACE) string {
	var b strings.Builder
	b.WriteString("D:")
	if protected {
		b.WriteString("P")
	}
	b.WriteString("AI")
	for _, e := range entries {
		flags := ""
		for _, f := range "OCIN" {
			if strings.ContainsRune(e.Flags, f) {
				flags += map[rune]string{'O': "OI", 'C': "CI", 'I': "IO", 'N': "NP"}[f]
			}
		}
		if e.Inherited {
			flags += "ID"
		}
		who := aliases[e.SID]
		if who == "" {
			who = e.SID
		}
		fmt.Fprintf(&b, "(A;%s;%s;;;%s)", flags, masks[e.Rights], who)
	}
	return b.String()
}

// Without drops the explicit entries of a SID.
func Without(entries []ACE, sid string) []ACE {
	return slices.DeleteFunc(slices.Clone(entries), func(e ACE) bool { return e.SID == sid && !e.Inherited })
}
