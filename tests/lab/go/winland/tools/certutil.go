package tools

import (
	"bufio"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"encoding/pem"
	"hash"
	"io"
	"strings"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
	"kubewin.invalid/lab/winland/text"
)

// certutil knows -hashfile (the form of Server 2016 and later) and -addstore Root.
func certutil(s *console.Session, args []string) int {
	if len(args) > 0 && strings.EqualFold(args[0], "-f") {
		args = args[1:]
	}
	switch {
	case len(args) >= 2 && len(args) <= 3 && strings.EqualFold(args[0], "-hashfile"):
		alg := "SHA1"
		if len(args) == 3 {
			alg = args[2]
		}
		return hashFile(s, args[1], alg)
	case len(args) == 3 && strings.EqualFold(args[0], "-addstore") && strings.EqualFold(args[1], "root"):
		return addStore(s, args[2])
	}
	return s.Reject("certutil %s", strings.Join(args, " "))
}

func hashFile(s *console.Session, file, alg string) int {
	makers := map[string]func() hash.Hash{
		"SHA1": sha1.New, "SHA256": sha256.New, "SHA384": sha512.New384, "SHA512": sha512.New, "MD5": md5.New,
	}
	maker := makers[alg]
	if maker == nil { // lower case fails on old releases
		return s.Reject("certutil -hashfile FILE %s", alg)
	}
	h := maker()
	var n int64
	f, err := s.OpenFile(s.Abs(file))
	if err == nil {
		n, err = io.Copy(h, bufio.NewReaderSize(f, 1<<18))
		_ = f.Close()
	}
	switch {
	case err != nil:
		return certFailed(s, "-hashfile", host.Code(err))
	case n == 0:
		return certFailed(s, "-hashfile", 1006)
	}
	s.Printf("%s %s:\r\n%s\r\n%s\r\n", s.Pick(alg+" hash of", alg+"-Hash von"), file, hex.EncodeToString(h.Sum(nil)),
		s.Pick("CertUtil: -hashfile command completed successfully.", "CertUtil: -hashfile-Befehl wurde erfolgreich ausgeführt."))
	return 0
}

// certFailed prints the HRESULT line and gives the HRESULT as exit code.
func certFailed(s *console.Session, verb string, code int) int {
	s.Printf("CertUtil: %s command FAILED: 0x8007%04x (WIN32: %d %s)\r\nCertUtil: %s\r\n", verb, code, code, text.Symbol(code),
		s.Message(code))
	hr := uint32(0x80070000) + uint32(code)
	return int(int32(hr))
}

func addStore(s *console.Session, file string) int {
	f, err := s.OpenFile(s.Abs(file))
	if err != nil {
		return certFailed(s, "-addstore", host.Code(err))
	}
	defer f.Close()
	der, err := io.ReadAll(f)
	if p, _ := pem.Decode(der); p != nil {
		der = p.Bytes
	}
	if err == nil {
		err = s.AddRoot(der)
	}
	if err != nil {
		return certFailed(s, "-addstore", host.Code(err))
	}
	s.Printf("Root \"Trusted Root Certification Authorities\"\r\nCertUtil: -addstore command completed successfully.\r\n")
	return 0
}
