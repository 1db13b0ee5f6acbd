//go:build windows

package wine

import (
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"
	"golang.org/x/sys/windows/registry"

	"kubewin.invalid/lab/winland/host"
)

var (
	advapi32       = windows.NewLazySystemDLL("advapi32.dll")
	regSetValueExW = advapi32.NewProc("RegSetValueExW")
)

func split(key string) (registry.Key, string) {
	root, rest, _ := strings.Cut(key, `\`)
	if root == "HKCU" {
		return registry.CURRENT_USER, rest
	}
	return registry.LOCAL_MACHINE, rest
}

func openKey(key string, access uint32) (registry.Key, error) {
	root, rest := split(key)
	k, err := registry.OpenKey(root, rest, access)
	return k, win(err)
}

func (h *Host) RegValues(key string) ([]host.RegValue, error) {
	k, err := openKey(key, registry.READ)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	names, err := k.ReadValueNames(-1)
	if err != nil {
		return nil, win(err)
	}
	var out []host.RegValue
	for _, n := range names {
		size, _, err := k.GetValue(n, nil)
		if err != nil {
			continue // gone meanwhile
		}
		b := make([]byte, size)
		size, kind, err := k.GetValue(n, b)
		if err == nil {
			out = append(out, host.RegValue{Name: n, Type: kind, Data: b[:size]})
		}
	}
	return out, nil
}

func (h *Host) RegSubkeys(key string) ([]string, error) {
	k, err := openKey(key, registry.READ)
	if err != nil {
		return nil, err
	}
	defer k.Close()
	names, err := k.ReadSubKeyNames(-1)
	return names, win(err)
}

func (h *Host) RegCreate(key string) error {
	root, rest := split(key)
	k, _, err := registry.CreateKey(root, rest, registry.ALL_ACCESS)
	if err == nil {
		err = k.Close()
	}
	return win(err)
}

func (h *Host) RegSet(key string, v host.RegValue) error {
	root, rest := split(key)
	k, _, err := registry.CreateKey(root, rest, registry.ALL_ACCESS)
	if err != nil {
		return win(err)
	}
	defer k.Close()
	data := v.Data
	if len(data) == 0 {
		data = []byte{0}
	}
	code, _, _ := regSetValueExW.Call(uintptr(k), uintptr(unsafe.Pointer(wide(v.Name))), 0, uintptr(v.Type), uintptr(unsafe.Pointer(&data[0])), uintptr(len(v.Data)))
	if code != 0 {
		return host.Errno(code)
	}
	return nil
}

func (h *Host) RegDeleteValue(key, name string) error {
	k, err := openKey(key, registry.ALL_ACCESS)
	if err != nil {
		return err
	}
	defer k.Close()
	return win(k.DeleteValue(name))
}

func (h *Host) RegDeleteKey(key string) error {
	subkeys, err := h.RegSubkeys(key)
	if err != nil {
		return err
	}
	for _, s := range subkeys {
		if err := h.RegDeleteKey(key + `\` + s); err != nil {
			return err
		}
	}
	root, rest := split(key)
	return win(registry.DeleteKey(root, rest))
}
