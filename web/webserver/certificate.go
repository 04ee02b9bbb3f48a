package webserver

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// lookEvery is how often at most the files of a certificate are looked at.
const lookEvery = time.Second

// Certificate is a certificate chain and its key, in PEM files that are read again when they
// change.
type Certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	looked time.Time
	files  [2]os.FileInfo // as they were when what is loaded was read
	fault  string         // why they could not be read at the last look, which is logged once; "": they could
}

// LoadCertificate reads a certificate chain and its key.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{cert: certFile, key: keyFile, log: log}
	files, err := c.stat()
	if err == nil {
		err = c.read(files)
	}
	if err != nil {
		return nil, fmt.Errorf("load the TLS certificate: %w", err)
	}
	return c, nil
}

func (c *Certificate) stat() (files [2]os.FileInfo, err error) {
	for i, name := range []string{c.cert, c.key} {
		if files[i], err = os.Stat(name); err != nil {
			return files, err
		}
	}
	return files, nil
}

// read loads the files, which looked like this before they were opened.
func (c *Certificate) read(files [2]os.FileInfo) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.loaded, c.files = &pair, files
	}
	return err
}

// Config serves the certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(hello.Context()), nil },
	}
}

// current is the certificate of the files as they are. While they cannot be read, or one of them
// was replaced and the other not yet, it is the one from before, and each look tries again.
func (c *Certificate) current(ctx context.Context) *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.looked) < lookEvery {
		return c.loaded
	}
	c.looked = now
	files, err := c.stat()
	if err == nil {
		if same(files[0], c.files[0]) && same(files[1], c.files[1]) {
			c.fault = ""
			return c.loaded
		}
		err = c.read(files)
	}
	switch {
	case err == nil:
		c.fault = ""
		c.log.InfoContext(ctx, "the TLS certificate has changed and is served", "file", c.cert, "not_after", c.loaded.Leaf.NotAfter)
	case err.Error() != c.fault:
		c.fault = err.Error()
		c.log.WarnContext(ctx, "the TLS certificate has changed and cannot be read; the one from before is served", "file", c.cert, "err", err)
	}
	return c.loaded
}

// same says whether a file was not written or replaced.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Name is the host of an address as clients must call it for the certificate to hold: the host
// itself, or a name or address that the certificate is for. It is the host itself, too, when the
// certificate is for wildcards only: which of their names leads here is not known.
func (c *Certificate) Name(host string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	leaf := c.loaded.Leaf
	if leaf.VerifyHostname(host) == nil {
		return host
	}
	for _, name := range names(leaf) {
		if !strings.HasPrefix(name, "*") {
			return name
		}
	}
	return host
}

// names are what a certificate holds for: names, and after them addresses.
func names(leaf *x509.Certificate) []string {
	all := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// Trust returns the machine's certificate authorities and those of a PEM file; nil, the machine's,
// when the file is "".
func Trust(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // as x509 takes it
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read certificate authorities: %w", err)
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine may have none
	}
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("read certificate authorities: %s has no certificate in PEM", file)
	}
	return pool, nil
}

// Own is how a process on the same machine knows a server by the file of its certificate, whatever
// address it asks.
func Own(certFile string) (*tls.Config, error) {
	pool, err := Trust(certFile)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate: %w", err)
	}
	leaf, err := first(text)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate %s: %w", certFile, err)
	}
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if all := names(leaf); len(all) > 0 {
		config.ServerName = strings.Replace(all[0], "*", "holdfast", 1) // any name that a wildcard holds for
	}
	return config, nil
}

// first is the first certificate of PEM blocks, among which there may be keys and parameters, too.
func first(text []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("there is no certificate in PEM")
}

// ErrPlain says that plain HTTP would be served where others can listen in.
var ErrPlain = errors.New("it would serve plain HTTP on an address that is not loopback, where tokens and cookies can be read on the way")

// Reachable says whether others than this machine can reach an address that is listened on.
func Reachable(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// PlainTo says whether requests to an address go to another machine by plain HTTP.
func PlainTo(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Hostname(), "localhost") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.Unmap().IsLoopback()
}
