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

// lookEvery is the least interval between two checks of a certificate's files.
const lookEvery = time.Second

// Certificate is a certificate chain and its key in PEM files. It reads the files again when they
// change.
type Certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	looked time.Time
	files  [2]os.FileInfo // the files as last loaded
	fault  string         // why the last check could not read them, logged once; "": it could
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

// read loads the files. files describes them as they were before.
func (c *Certificate) read(files [2]os.FileInfo) error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.loaded, c.files = &pair, files
	}
	return err
}

// Config returns a TLS configuration with the certificate.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(hello.Context()), nil },
	}
}

// current returns the certificate in the files. If they cannot be read, or only one of them has
// been replaced yet, it returns the previous one, and later checks try again.
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
		c.log.InfoContext(ctx, "serving a changed TLS certificate", "file", c.cert, "not_after", c.loaded.Leaf.NotAfter)
	case err.Error() != c.fault:
		c.fault = err.Error()
		c.log.WarnContext(ctx, "reading the changed TLS certificate failed; the previous one is served", "file", c.cert, "err", err)
	}
	return c.loaded
}

// same reports whether a file was neither written nor replaced.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Name returns the host name that clients must use for an address so that the certificate is valid:
// host itself, or else a name or address in the certificate. If the certificate has only wildcards,
// it returns host.
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

// names returns the names and then the addresses of a certificate.
func names(leaf *x509.Certificate) []string {
	all := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		all = append(all, ip.String())
	}
	return all
}

// Trust returns the machine's certificate authorities and those of a PEM file. If file is "", it
// returns nil, which means the machine's.
func Trust(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil //nolint:nilnil // nil means the machine's for x509
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

// Own returns a TLS configuration for a client on the same machine. The client recognises the
// server by the file of its certificate, whatever address it uses.
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
		config.ServerName = strings.Replace(all[0], "*", "holdfast", 1) // any name that matches the wildcard
	}
	return config, nil
}

// first returns the first certificate of PEM blocks, which may also contain keys and parameters.
func first(text []byte) (*x509.Certificate, error) {
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			return x509.ParseCertificate(block.Bytes)
		}
	}
	return nil, errors.New("there is no certificate in PEM")
}

// ErrPlain says that plain HTTP would be served to other machines.
var ErrPlain = errors.New("this would serve plain HTTP on an address other than loopback, where others can read tokens and cookies in transit")

// Reachable reports whether other machines can reach a listening address.
func Reachable(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}

// PlainTo reports whether requests to an address use plain HTTP to another machine.
func PlainTo(address string) bool {
	u, err := url.Parse(address)
	if err != nil || !strings.EqualFold(u.Scheme, "http") || strings.EqualFold(u.Hostname(), "localhost") {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	return err != nil || !ip.Unmap().IsLoopback()
}
