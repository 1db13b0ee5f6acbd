package tools

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"kubewin.invalid/lab/winland/console"
	"kubewin.invalid/lab/winland/host"
)

// curl's exit codes as they are used here.
const (
	curlBadOption  = 2
	curlBadURL     = 3
	curlProxyName  = 5
	curlHostName   = 6
	curlConnect    = 7
	curlPartial    = 18
	curlHTTPError  = 22
	curlWrite      = 23
	curlTimeout    = 28
	curlTLS        = 35
	curlBadResume  = 36
	curlFile       = 37
	curlReceive    = 56
	curlUntrusted  = 60
	curlTooLarge   = 63
	curlCACertFile = 77
)

type curlCall struct {
	s                                       *console.Session
	url, output, cacert, proxy, span        string
	fail, follow, silent, showError         bool
	insecure, noRevoke, retryRefused, write bool
	literal, head                           bool
	more                                    []*curlCall // the transfers behind "next"
	format                                  string
	retries                                 int
	retryDelay, connectTimeout, maxTime     time.Duration
	status                                  int
	maxSize                                 int64
}

// curl knows options of 7.55.1 only (the oldest that Windows ships) and of those the ones that fetch one file.
func curl(s *console.Session, args []string) int {
	if len(args) == 1 && args[0] == "-V" {
		s.Printf("curl %s (Windows) libcurl/%[1]s Schannel\r\n", curlRelease(s))
		return 0
	}
	args = ansi(args)
	c := &curlCall{s: s, connectTimeout: 300 * time.Second}
	if rc := c.options(args); rc != 0 {
		return rc
	}
	rc := c.transfer()
	for _, next := range c.more {
		rc = next.transfer()
	}
	return rc
}

// transfer fetches one URL, as often as it may; the last one's code is curl's.
func (c *curlCall) transfer() int {
	s := c.s
	if c.url == "" {
		return c.failed(curlBadOption, "no URL specified!")
	}
	delay := c.retryDelay
	for try := 0; ; try++ {
		c.status = 0
		rc := c.fetch()
		transient := rc == curlTimeout || rc == curlHTTPError && (c.status == 408 || c.status >= 500) ||
			rc == curlConnect && c.retryRefused
		if rc == 0 || !transient || try >= c.retries || s.Killed() {
			if c.write {
				s.Printf("%s", strings.NewReplacer("%{http_code}", fmt.Sprintf("%03d", c.status), `\n`, "\n").Replace(c.format))
			}
			return rc
		}
		if c.retryDelay == 0 {
			delay = time.Duration(1<<min(try, 9)) * time.Second
		}
		s.Errorf("Warning: Transient problem: will retry in %d seconds. %d retries left.\n", int(delay.Seconds()), c.retries-try)
		select {
		case <-time.After(delay):
		case <-s.Ctx.Done():
		}
	}
}

// curlRelease is 8.4.0, or what CurlVersion below HKLM\SOFTWARE\WinLab says.
func curlRelease(s *console.Session) string {
	if v, err := host.RegValueOf(s, `HKLM\SOFTWARE\WinLab`, "CurlVersion"); err == nil {
		return v.Text()
	}
	return "8.4.0"
}

// ansi is what a program without Unicode gets of its arguments: a character that the code page lacks becomes another.
func ansi(args []string) []string {
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.Map(func(r rune) rune {
			if r > 0xFF {
				return '_'
			}
			return r
		}, a)
	}
	return out
}

func (c *curlCall) options(args []string) int {
	flags := map[string]*bool{
		"-f": &c.fail, "--fail": &c.fail, "-L": &c.follow, "--location": &c.follow, "-s": &c.silent, "--silent": &c.silent,
		"-S": &c.showError, "--show-error": &c.showError, "-k": &c.insecure, "--insecure": &c.insecure,
		"--ssl-no-revoke": &c.noRevoke, "--retry-connrefused": &c.retryRefused, "-g": &c.literal, "--globoff": &c.literal,
		"-I": &c.head, "--head": &c.head,
	}
	values := map[string]func(string) error{
		"-o": word(&c.output), "--output": word(&c.output), "--cacert": word(&c.cacert), "-x": word(&c.proxy),
		"--proxy": word(&c.proxy), "-w": word(&c.format), "--write-out": word(&c.format),
		"--retry":       func(v string) (err error) { c.retries, err = strconv.Atoi(v); return },
		"--retry-delay": seconds(&c.retryDelay), "--connect-timeout": seconds(&c.connectTimeout),
		"-m": seconds(&c.maxTime), "--max-time": seconds(&c.maxTime),
		"--max-filesize": func(v string) (err error) { c.maxSize, err = strconv.ParseInt(v, 10, 64); return },
		"-K":             c.config, "--config": c.config, "-r": word(&c.span), "--range": word(&c.span),
	}
	for i := 0; i < len(args); i++ {
		o := args[i]
		if len(o) > 2 && o[0] == '-' && o[1] != '-' { // -fsSL
			rest := "-" + o[2:]
			if values[o[:2]] != nil {
				rest = o[2:]
			}
			args = append(append(append([]string{}, args[:i]...), o[:2], rest), args[i+1:]...)
			o = args[i]
		}
		if f := flags[o]; f != nil {
			*f = true
			continue
		}
		if set := values[o]; set != nil && i+1 < len(args) {
			i++
			if set(args[i]) != nil {
				return c.failed(curlBadOption, "option "+o+": expected a proper numerical parameter")
			}
			c.write = c.write || o == "-w" || o == "--write-out"
			continue
		}
		if strings.HasPrefix(o, "-") || c.url != "" {
			c.s.Reject("curl %s", o)
			c.s.Errorf("curl: option %s: is unknown\ncurl: try 'curl --help' or 'curl --manual' for more information\n", o)
			return curlBadOption
		}
		c.url = o
	}
	return 0
}

// config reads options from standard input as curl does from a file: lines of name = "value", with backslash escapes.
func (c *curlCall) config(file string) error {
	if file != "-" {
		return errors.New("the lab reads curl's configuration from standard input only")
	}
	raw, err := io.ReadAll(c.s.In)
	if err != nil {
		return err
	}
	for _, line := range strings.Split(string(raw), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, value, _ := strings.Cut(line, "=")
		value = strings.TrimSpace(value)
		if len(value) > 1 && value[0] == '"' && strings.HasSuffix(value, `"`) {
			value = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(value[1 : len(value)-1])
		}
		at := c
		if len(c.more) > 0 {
			at = c.more[len(c.more)-1]
		}
		switch strings.TrimSpace(name) {
		case "url":
			at.url = value
		case "proxy":
			at.proxy = value
		case "range":
			at.span = value
		case "head":
			at.head = true
		case "write-out":
			at.write, at.format = true, value
		case "next": // begins anew, but for what is said of all: -s and -S
			c.more = append(c.more, &curlCall{s: c.s, silent: c.silent, showError: c.showError, connectTimeout: 300 * time.Second})
		default:
			return fmt.Errorf("the lab does not know %q in curl's configuration", name)
		}
	}
	return nil
}

func word(to *string) func(string) error { return func(v string) error { *to = v; return nil } }

func seconds(to *time.Duration) func(string) error {
	return func(v string) error {
		f, err := strconv.ParseFloat(v, 64)
		*to = time.Duration(f * float64(time.Second))
		return err
	}
}

func (c *curlCall) failed(code int, message string) int {
	if !c.silent || c.showError {
		c.s.Errorf("curl: (%d) %s\n", code, message)
	}
	return code
}

func (c *curlCall) fetch() int {
	u, err := url.Parse(c.url)
	if err != nil {
		return c.failed(curlBadURL, "<url> malformed")
	}
	switch u.Scheme {
	case "http", "https":
	case "file":
		return c.local(u.Path)
	default:
		return c.s.Reject("curl %s", c.url)
	}
	if c.span != "" && c.span != "0-0" || c.head {
		return c.s.Reject("curl -r %s %s", c.span, c.url)
	}
	client, rc := c.client()
	if rc != 0 {
		return rc
	}
	defer client.CloseIdleConnections()
	ctx := c.s.Ctx
	if c.maxTime > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.maxTime)
		defer cancel()
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return c.failed(curlBadURL, "<url> malformed")
	}
	req.Header.Set("User-Agent", "curl/7.55.1")
	if c.span != "" {
		req.Header.Set("Range", "bytes="+c.span)
	}
	resp, err := client.Do(req)
	if err != nil {
		return c.explain(err, u)
	}
	defer resp.Body.Close()
	if c.status = resp.StatusCode; c.fail && c.status >= 400 {
		return c.failed(curlHTTPError, fmt.Sprintf("The requested URL returned error: %d %s", c.status, http.StatusText(c.status)))
	}
	if c.maxSize > 0 && resp.ContentLength > c.maxSize {
		return c.failed(curlTooLarge, "Maximum file size exceeded")
	}
	return c.save(resp.Body)
}

// local reads a file: URL as curl's lib/file.c does. Of -r there are -N (the last N bytes), N- and N-M; what begins before the
// file or beyond its end is 36, so that -r -N of a file of fewer than N bytes is no way to read all of it.
func (c *curlCall) local(path string) int {
	name := c.s.Abs(strings.TrimPrefix(path, "/"))
	st, err := c.s.Stat(name)
	var f io.ReadCloser
	if err == nil {
		f, err = c.s.OpenFile(name)
	}
	if err != nil {
		return c.failed(curlFile, "Couldn't open file "+path)
	}
	defer f.Close()
	if c.head {
		c.s.Printf("Content-Length: %d\r\nAccept-ranges: bytes\r\nLast-Modified: %s\r\n", st.Size, st.ModTime.UTC().Format(http.TimeFormat))
		return 0
	}
	if c.span == "" {
		return c.save(f)
	}
	raw, err := io.ReadAll(f)
	if err != nil {
		return c.failed(curlFile, "Couldn't open file "+path)
	}
	first, last, _ := strings.Cut(c.span, "-")
	from, to := 0, len(raw)
	switch {
	case first == "":
		n, bad := strconv.Atoi(last)
		from, err = len(raw)-n, bad
	default:
		from, err = strconv.Atoi(first)
		if err == nil && last != "" {
			to, err = strconv.Atoi(last)
			to++
		}
	}
	if err != nil {
		return c.s.Reject("curl -r %s %s", c.span, c.url)
	}
	if from < 0 || from > len(raw) {
		return c.failed(curlBadResume, "Couldn't resume download")
	}
	return c.save(bytes.NewReader(raw[from:max(from, min(to, len(raw)))]))
}

// errRevocation stands for Schannel's refusal of a certificate whose revocation it cannot check.
var errRevocation = errors.New("CRYPT_E_NO_REVOCATION_CHECK (0x80092012)")

func (c *curlCall) client() (*http.Client, int) {
	roots, err := c.s.Roots()
	if err != nil {
		return nil, c.failed(curlTLS, "schannel: cannot open the certificate store")
	}
	if c.cacert != "" && !strings.HasPrefix(curlRelease(c.s), "7.55") { // before 7.60 Schannel builds ignore it
		roots = x509.NewCertPool()
		f, err := c.s.OpenFile(c.s.Abs(c.cacert))
		if err != nil {
			return nil, c.failed(curlCACertFile, "schannel: failed to open CA file '"+c.cacert+"'")
		}
		defer f.Close()
		if pem, err := io.ReadAll(f); err != nil || !roots.AppendCertsFromPEM(pem) {
			return nil, c.failed(curlCACertFile, "schannel: failed to read CA file '"+c.cacert+"'")
		}
	}
	tr := &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, InsecureSkipVerify: c.insecure, VerifyConnection: c.revocation},
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, c.connectTimeout)
			defer cancel()
			return c.s.Dial(ctx, network, addr)
		},
		Proxy:              c.proxyFor,
		DisableCompression: true,
	}
	client := &http.Client{Transport: tr}
	if !c.follow {
		client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	return client, 0
}

// revocation refuses a certificate without a distribution point of a revocation list, as Schannel does.
func (c *curlCall) revocation(state tls.ConnectionState) error {
	if c.noRevoke || c.insecure || len(state.PeerCertificates[0].CRLDistributionPoints) > 0 {
		return nil
	}
	return errRevocation
}

func (c *curlCall) proxyFor(req *http.Request) (*url.URL, error) {
	p := c.proxy
	if p == "" {
		p, _ = c.s.Env.Get(req.URL.Scheme + "_proxy")
	}
	if p == "" {
		return nil, nil
	}
	if !strings.Contains(p, "://") {
		p = "http://" + p
	}
	return url.Parse(p)
}

// explain turns a Go error into curl's code.
func (c *curlCall) explain(err error, u *url.URL) int {
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var dns *net.DNSError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errRevocation):
		return c.failed(curlTLS, "schannel: next InitializeSecurityContext failed: Unknown error (0x80092012) - The revocation function was unable to check revocation for the certificate.")
	case errors.As(err, &unknown):
		return c.failed(curlUntrusted, "schannel: SEC_E_UNTRUSTED_ROOT (0x80090325) - The certificate chain was issued by an authority that is not trusted.")
	case errors.As(err, &name):
		return c.failed(curlUntrusted, "schannel: SNI or certificate check failed: SEC_E_WRONG_PRINCIPAL (0x80090322) - The target principal name is incorrect.")
	case errors.As(err, &invalid):
		return c.failed(curlUntrusted, "schannel: SEC_E_CERT_EXPIRED (0x80090328) - The received certificate has expired.")
	case errors.As(err, &timeout) && timeout.Timeout() && !errors.As(err, &dns):
		return c.failed(curlTimeout, "Operation timed out")
	case errors.As(err, &dns):
		if c.proxy != "" {
			return c.failed(curlProxyName, "Could not resolve proxy: "+dns.Name)
		}
		return c.failed(curlHostName, "Could not resolve host: "+dns.Name)
	case strings.Contains(err.Error(), "tls:"), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return c.failed(curlTLS, "schannel: next InitializeSecurityContext failed: SEC_E_INVALID_TOKEN (0x80090308)")
	case strings.Contains(err.Error(), "EOF"), strings.Contains(err.Error(), "reset"), strings.Contains(err.Error(), "Forbidden"):
		return c.failed(curlReceive, "Failure when receiving data from the peer")
	}
	return c.failed(curlConnect, "Failed to connect to "+u.Host+": Connection refused")
}

// save writes the body; what was received stays in the file when the transfer breaks.
func (c *curlCall) save(body io.Reader) int {
	var w io.Writer = c.s.Out
	if c.output != "" {
		f, err := c.s.CreateFile(c.s.Abs(c.output), false)
		if err != nil {
			c.s.Errorf("Warning: Failed to create the file %s: %s\n", c.output, c.s.Message(host.Code(err)))
			return c.failed(curlWrite, "Failed writing body")
		}
		defer f.Close()
		w = f
	}
	var timeout interface{ Timeout() bool }
	source := &readError{Reader: body}
	_, err := io.CopyBuffer(struct{ io.Writer }{w}, source, make([]byte, 1<<17))
	switch {
	case err == nil:
		return 0
	case source.err == nil:
		return c.failed(curlWrite, "Failed writing body")
	case errors.As(err, &timeout) && timeout.Timeout():
		return c.failed(curlTimeout, "Operation timed out")
	case errors.Is(err, io.ErrUnexpectedEOF):
		return c.failed(curlPartial, "transfer closed with outstanding read data remaining")
	}
	return c.failed(curlReceive, "Recv failure: Connection was reset")
}

// readError remembers whether it was the reading side that failed.
type readError struct {
	io.Reader
	err error
}

func (r *readError) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}
