package tools

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

type regCall struct {
	s           *console.Session
	typed       string // the key with its root spelled out, the rest as it was typed
	key         string // HKLM\...
	value       *string
	kind, data  string
	separator   string
	find        string
	force, deep bool
	hasData     bool
	byData      bool
	byKey       bool
	byName      bool
	exact       bool
}

// reg answers 0 or 1; the reason for a 1 is on stderr.
func reg(s *console.Session, args []string) int {
	if len(args) < 2 {
		return s.Reject("reg %s", strings.Join(args, " "))
	}
	c := &regCall{s: s, kind: "REG_SZ", separator: `\0`}
	if !c.root(args[1]) {
		s.Errorf("ERROR: Invalid key name.\r\nType \"REG %s /?\" for usage.\r\n", strings.ToUpper(args[0]))
		return 1
	}
	if bad := c.options(strings.ToLower(args[0]), args[2:]); bad != "" {
		return s.Reject("reg %s: %s", strings.Join(args, " "), bad)
	}
	switch strings.ToLower(args[0]) {
	case "query":
		return c.query()
	case "add":
		return c.add()
	case "delete":
		return c.remove()
	}
	return s.Reject("reg %s", args[0])
}

func (c *regCall) root(key string) bool {
	root, rest, _ := strings.Cut(key, `\`)
	long := map[string]string{"HKLM": "HKEY_LOCAL_MACHINE", "HKCU": "HKEY_CURRENT_USER"}
	for short, full := range long {
		if strings.EqualFold(root, short) || strings.EqualFold(root, full) {
			c.key, c.typed = short, full
			if rest = strings.TrimSuffix(rest, `\`); rest != "" {
				c.key, c.typed = short+`\`+rest, full+`\`+rest
			}
			return true
		}
	}
	return false
}

func (c *regCall) options(op string, args []string) (bad string) {
	allowed := map[string]string{
		"query": "/v /ve /s /f /d /k /e /t /reg:64", "add": "/v /ve /t /d /f /s /reg:64", "delete": "/v /ve /f /reg:64",
	}[op]
	for i := 0; i < len(args); i++ {
		o := strings.ToLower(args[i])
		if !contains(strings.Fields(allowed), o) {
			return o
		}
		next := func(to *string) {
			i++
			if i >= len(args) {
				bad = o + " without a value"
				return
			}
			*to = args[i]
		}
		switch o {
		case "/v":
			if op == "query" && (i+1 == len(args) || strings.HasPrefix(args[i+1], "/")) {
				c.byName = true // with /f: search the names of values
				continue
			}
			c.value = new(string)
			next(c.value)
		case "/ve":
			c.value = new(string)
		case "/t":
			next(&c.kind)
		case "/d":
			if op == "query" {
				c.byData = true
			} else {
				c.hasData = true
				next(&c.data)
			}
		case "/s":
			if op == "query" {
				c.deep = true
			} else {
				next(&c.separator)
			}
		case "/f":
			if op == "query" {
				next(&c.find)
			} else {
				c.force = true
			}
		case "/k":
			c.byKey = true
		case "/e":
			c.exact = true
		}
		if bad != "" {
			return bad
		}
	}
	return ""
}

func (c *regCall) missing() int {
	c.s.Errorf("%s\r\n", c.s.Pick("ERROR: The system was unable to find the specified registry key or value.",
		"FEHLER: Der angegebene Registrierungsschlüssel bzw. Wert wurde nicht gefunden."))
	return 1
}

func (c *regCall) failed(err error) int {
	switch host.Code(err) {
	case int(host.FileNotFound):
		return c.missing()
	case int(host.AccessDenied):
		c.s.Errorf("ERROR: Access is denied.\r\n")
	default:
		c.s.Errorf("ERROR: %s\r\n", c.s.Message(host.Code(err)))
	}
	return 1
}

func (c *regCall) done() int {
	c.s.Printf("The operation completed successfully.\r\n")
	return 0
}

func (c *regCall) query() int {
	if c.find != "" {
		n, denied := c.search(c.key, c.typed)
		if denied {
			return c.failed(host.AccessDenied) // the search ends there, without its last line
		}
		c.s.Printf("\r\nEnd of search: %d match(es) found.\r\n", n)
		if n == 0 {
			return 1
		}
		return 0
	}
	if c.byData || c.byKey || c.byName || c.exact {
		return c.s.Reject("reg query /d, /k, /v without a name or /e without /f")
	}
	if _, err := c.s.RegValues(c.key); err == nil && (c.value == nil || c.deep) {
		c.s.Printf("\r\n")
	}
	return c.list(c.key, c.typed)
}

func (c *regCall) list(key, typed string) int {
	values, err := c.s.RegValues(key)
	if err != nil {
		return c.failed(err)
	}
	var hits []host.RegValue
	for _, v := range values {
		if c.value == nil || strings.EqualFold(v.Name, *c.value) {
			hits = append(hits, v)
		}
	}
	if c.value != nil && len(hits) == 0 && !c.deep {
		return c.missing()
	}
	if c.value != nil && !c.deep {
		c.s.Printf("\r\n")
	}
	c.show(typed, hits)
	subkeys, _ := c.s.RegSubkeys(key)
	if c.deep {
		for _, k := range subkeys {
			c.list(key+`\`+k, typed+`\`+k)
		}
		return 0
	}
	if c.value == nil {
		for _, k := range subkeys {
			c.s.Printf("%s\\%s\r\n", typed, k)
		}
	}
	return 0
}

// show prints a key with values and the blank line after them; a key without values has no block.
func (c *regCall) show(typed string, values []host.RegValue) {
	if len(values) == 0 {
		return
	}
	c.s.Printf("%s\r\n", typed)
	for _, v := range values {
		name := v.Name
		if name == "" {
			name = c.s.Pick("(Default)", "(Standard)")
		}
		c.s.Printf("    %s    %s    %s\r\n", name, host.RegTypes[v.Type], regData(v))
	}
	c.s.Printf("\r\n")
}

func regData(v host.RegValue) string {
	switch v.Type {
	case host.RegSz, host.RegExpandSz:
		return v.Text()
	case host.RegMultiSz:
		return strings.Join(v.List(), `\0`)
	case host.RegDword, host.RegQword:
		return fmt.Sprintf("0x%x", v.Number())
	}
	return strings.ToUpper(hex.EncodeToString(v.Data))
}

func (c *regCall) search(key, typed string) (n int, denied bool) {
	fits := func(text string) bool {
		if c.exact {
			return strings.EqualFold(text, c.find)
		}
		return strings.Contains(strings.ToLower(text), strings.ToLower(c.find))
	}
	values, err := c.s.RegValues(key)
	if err != nil {
		return 0, host.Code(err) == int(host.AccessDenied)
	}
	var hits []host.RegValue
	for _, v := range values {
		if c.value != nil && !strings.EqualFold(v.Name, *c.value) || c.byKey {
			continue
		}
		all := !c.byData && !c.byName && c.value == nil
		if fits(regData(v)) && !c.byName || (all || c.byName) && fits(v.Name) {
			hits = append(hits, v)
		}
	}
	n = len(hits)
	if n > 0 {
		c.s.Printf("\r\n")
		c.show(typed, hits)
	}
	subkeys, _ := c.s.RegSubkeys(key)
	for _, k := range subkeys {
		if !c.byData && !c.byName && c.value == nil && fits(k) {
			c.s.Printf("%s\\%s\r\n", typed, k)
			n++
		}
		if c.deep {
			below, denied := c.search(key+`\`+k, typed+`\`+k)
			if n += below; denied {
				return n, true
			}
		}
	}
	return n, false
}

func (c *regCall) add() int {
	if c.value == nil {
		if c.hasData {
			c.value = new(string)
		} else if err := c.s.RegCreate(c.key); err != nil {
			return c.failed(err)
		} else {
			return c.done()
		}
	}
	if _, err := host.RegValueOf(c.s, c.key, *c.value); err == nil && !c.force {
		return c.s.Reject("reg add on an existing value without /f prompts")
	}
	v, err := c.parse()
	if err != nil {
		c.s.Errorf("ERROR: Invalid syntax.\r\nType \"REG ADD /?\" for usage.\r\n")
		return 1
	}
	if err := c.s.RegSet(c.key, v); err != nil {
		return c.failed(err)
	}
	return c.done()
}

func (c *regCall) parse() (host.RegValue, error) {
	name := *c.value
	switch strings.ToUpper(c.kind) {
	case "REG_SZ":
		return host.Sz(name, c.data), nil
	case "REG_EXPAND_SZ":
		return host.ExpandSz(name, c.data), nil
	case "REG_MULTI_SZ":
		var list []string
		for _, p := range strings.Split(c.data, c.separator) {
			if p != "" {
				list = append(list, p)
			}
		}
		return host.MultiSz(name, list), nil
	case "REG_DWORD":
		n, err := strconv.ParseUint(c.data, 0, 32)
		return host.Dword(name, uint32(n)), err
	case "REG_QWORD":
		n, err := strconv.ParseUint(c.data, 0, 64)
		return host.RegValue{Name: name, Type: host.RegQword, Data: binary.LittleEndian.AppendUint64(nil, n)}, err
	case "REG_BINARY":
		b, err := hex.DecodeString(c.data)
		return host.Binary(name, b), err
	}
	return host.RegValue{}, fmt.Errorf("type %s", c.kind)
}

func (c *regCall) remove() int {
	if !c.force {
		return c.s.Reject("reg delete without /f prompts")
	}
	err := error(nil)
	if c.value != nil {
		err = c.s.RegDeleteValue(c.key, *c.value)
	} else {
		err = c.s.RegDeleteKey(c.key)
	}
	if err != nil {
		return c.failed(err)
	}
	return c.done()
}
