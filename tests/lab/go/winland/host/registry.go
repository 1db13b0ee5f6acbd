package host

import (
	"encoding/binary"
	"strings"
	"unicode/utf16"
)

// Types of registry values.
const (
	RegSz       uint32 = 1
	RegExpandSz uint32 = 2
	RegBinary   uint32 = 3
	RegDword    uint32 = 4
	RegMultiSz  uint32 = 7
	RegQword    uint32 = 11
)

// RegTypes names the types.
var RegTypes = map[uint32]string{
	0: "REG_NONE", RegSz: "REG_SZ", RegExpandSz: "REG_EXPAND_SZ", RegBinary: "REG_BINARY", RegDword: "REG_DWORD",
	RegMultiSz: "REG_MULTI_SZ", RegQword: "REG_QWORD",
}

// RegValue is a value with its bytes as the registry stores them.
type RegValue struct {
	Name string
	Type uint32
	Data []byte
}

// UTF16 encodes text with a closing zero, little-endian.
func UTF16(s string) []byte {
	var b []byte
	for _, u := range utf16.Encode([]rune(s + "\x00")) {
		b = binary.LittleEndian.AppendUint16(b, u)
	}
	return b
}

func fromUTF16(b []byte) string {
	u := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		u = append(u, binary.LittleEndian.Uint16(b[i:]))
	}
	return string(utf16.Decode(u))
}

// Sz makes a REG_SZ, ExpandSz a REG_EXPAND_SZ, Dword a REG_DWORD, MultiSz a REG_MULTI_SZ, Binary a REG_BINARY.
func Sz(name, s string) RegValue       { return RegValue{name, RegSz, UTF16(s)} }
func ExpandSz(name, s string) RegValue { return RegValue{name, RegExpandSz, UTF16(s)} }
func Binary(name string, b []byte) RegValue {
	return RegValue{name, RegBinary, b}
}
func Dword(name string, n uint32) RegValue {
	return RegValue{name, RegDword, binary.LittleEndian.AppendUint32(nil, n)}
}
func MultiSz(name string, list []string) RegValue {
	var b []byte
	for _, s := range list {
		b = append(b, UTF16(s)...)
	}
	return RegValue{name, RegMultiSz, append(b, 0, 0)}
}

// Text gives a REG_SZ or REG_EXPAND_SZ without its closing zero.
func (v RegValue) Text() string {
	s, _, _ := strings.Cut(fromUTF16(v.Data), "\x00")
	return s
}

// List gives the strings of a REG_MULTI_SZ.
func (v RegValue) List() []string {
	s := strings.TrimRight(fromUTF16(v.Data), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

// Number gives a REG_DWORD or REG_QWORD.
func (v RegValue) Number() uint64 {
	var b [8]byte
	copy(b[:], v.Data)
	return binary.LittleEndian.Uint64(b[:])
}

// RegValueOf reads one value.
func RegValueOf(r Registry, key, name string) (RegValue, error) {
	vs, err := r.RegValues(key)
	if err != nil {
		return RegValue{}, err
	}
	for _, v := range vs {
		if strings.EqualFold(v.Name, name) {
			return v, nil
		}
	}
	return RegValue{}, FileNotFound
}

// ServiceKey is where the configuration of a service lies.
func ServiceKey(name string) string { return `HKLM\SYSTEM\CurrentControlSet\Services\` + name }
