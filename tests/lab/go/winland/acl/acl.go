// Package acl models the part of Windows' access control lists that icacls and cacls show and set.
package acl

import (
	"fmt"
	"slices"
	"strings"
)

// ACE is one allow entry. Flags are of O (object inherit), C (container inherit), I (inherit only), N (no propagate);
// Rights is icacls' form: F, M, RX, R, W, or specific rights between commas (AD, WD, DC, D, WDAC, WO).
type ACE struct {
	SID       string `json:"sid"`
	Flags     string `json:"flags"`
	Rights    string `json:"rights"`
	Inherited bool   `json:"inherited,omitempty"`
}

// ACL is what lies on one path itself. Protected means that nothing is inherited. Owner is Administrators when it is empty.
type ACL struct {
	Protected bool   `json:"protected"`
	Entries   []ACE  `json:"entries"`
	Owner     string `json:"owner,omitempty"`
}

// Administrators own what an elevated administrator creates.
const Administrators = "S-1-5-32-544"

const creatorOwner = "S-1-3-0"

// Drive is the list of C:\ on Windows Server 2016 and later (DISA's STIG of Windows Server, WN12-GE-000006 and its
// successors, has the listing of icacls).
var Drive = []ACE{
	{SID: "S-1-5-18", Flags: "OC", Rights: "F"},
	{SID: Administrators, Flags: "OC", Rights: "F"},
	{SID: "S-1-5-32-545", Flags: "OC", Rights: "RX"},
	{SID: "S-1-5-32-545", Flags: "C", Rights: "AD"},
	{SID: "S-1-5-32-545", Flags: "CI", Rights: "WD"},
	{SID: creatorOwner, Flags: "OCI", Rights: "F"},
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

func known(rights string) bool { return Mask(rights) != 0 }

// Rights that somebody needs to change a file or directory (winnt.h).
const (
	ReadData    = 0x1
	WriteData   = 0x2 // of a directory: add a file
	AppendData  = 0x4 // of a directory: add a directory
	DeleteChild = 0x40
	Delete      = 0x10000
	WriteDAC    = 0x40000
	WriteOwner  = 0x80000
)

var masks = map[string]uint32{
	"F": 0x1f01ff, "M": 0x1301bf, "RX": 0x1200a9, "R": 0x120089, "W": 0x120116,
	"AD": AppendData, "WD": WriteData, "DC": DeleteChild, "D": Delete, "WDAC": WriteDAC, "WO": WriteOwner,
}

// Mask gives the bits of icacls' form of rights, 0 for an unknown one.
func Mask(rights string) uint32 {
	mask := uint32(0)
	for _, word := range strings.Split(rights, ",") {
		if masks[word] == 0 {
			return 0
		}
		mask |= masks[word]
	}
	return mask
}

// The rights of SDDL: whole sets, else a letter pair a bit, else a number, as ConvertSecurityDescriptorToStringSecurityDescriptor
// writes them: C:\ hands "LC" and "DC" to users, and 0x1200a9 (captures of Get-Acl on Windows Server in public audit scripts).
var sddlSets = map[uint32]string{0x1f01ff: "FA", 0x120089: "FR", 0x120116: "FW", 0x1200a0: "FX", 0x10000000: "GA"}

var sddlBits = []struct {
	bit  uint32
	name string
}{
	{0x1, "CC"}, {0x2, "DC"}, {0x4, "LC"}, {0x8, "SW"}, {0x10, "RP"}, {0x20, "WP"}, {0x40, "DT"}, {0x80, "LO"}, {0x100, "CR"},
	{0x10000, "SD"}, {0x20000, "RC"}, {0x40000, "WD"}, {0x80000, "WO"},
}

func sddlRights(mask uint32) string {
	if set := sddlSets[mask]; set != "" {
		return set
	}
	text, rest := "", mask
	for _, b := range sddlBits {
		if mask&b.bit != 0 {
			text += b.name
			rest &^= b.bit
		}
	}
	if rest != 0 {
		return fmt.Sprintf("0x%x", mask)
	}
	return text
}

// Allows tells whether these entries give one of the SIDs all bits of a mask.
func Allows(entries []ACE, sids []string, mask uint32) bool {
	have := uint32(0)
	for _, e := range entries {
		if !strings.Contains(e.Flags, "I") && slices.Contains(sids, e.SID) {
			have |= Mask(e.Rights)
		}
	}
	return have&mask == mask
}

var aliases = map[string]string{
	"S-1-5-18": "SY", "S-1-5-32-544": "BA", "S-1-5-32-545": "BU", "S-1-5-11": "AU", "S-1-1-0": "WD", "S-1-3-0": "CO",
}

// Inherit gives what a child of a directory with these entries receives. What the creator gets its owner has.
func Inherit(parent []ACE, dir bool, owner string) []ACE {
	var out []ACE
	for _, e := range parent {
		object, container := strings.Contains(e.Flags, "O"), strings.Contains(e.Flags, "C")
		if dir && !object && !container || !dir && !object {
			continue
		}
		c := ACE{SID: e.SID, Rights: e.Rights, Inherited: true}
		if dir && !strings.Contains(e.Flags, "N") {
			c.Flags = strings.ReplaceAll(e.Flags, "I", "")
			if !container || e.SID == creatorOwner {
				c.Flags += "I"
			}
		}
		if e.SID == creatorOwner && owner != Administrators { // they have everything already
			out = append(out, ACE{SID: owner, Rights: e.Rights, Inherited: true})
		}
		if !dir && e.SID == creatorOwner {
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
		mask := Mask(e.Rights)
		if e.SID == creatorOwner && e.Rights == "F" {
			mask = 0x10000000 // GENERIC_ALL, which icacls shows as F too
		}
		fmt.Fprintf(&b, "(A;%s;%s;;;%s)", flags, sddlRights(mask), who)
	}
	return b.String()
}

// Without drops the explicit entries of a SID.
func Without(entries []ACE, sid string) []ACE {
	return slices.DeleteFunc(slices.Clone(entries), func(e ACE) bool { return e.SID == sid && !e.Inherited })
}
