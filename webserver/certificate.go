package webserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"time"
)

// lookEvery is how often at most the files of a certificate are looked at.
const lookEvery = time.Second

// Certificate is a certificate chain and its key, in PEM files that are read again when they change.
type Certificate struct {
	cert, key string
	log       *slog.Logger

	mu     sync.Mutex
	loaded *tls.Certificate
	looked time.Time
	files  [2]os.FileInfo // as they were when they were read last, whether that worked or not
}

// LoadCertificate reads a certificate chain and its key.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	c := &Certificate{cert: certFile, key: keyFile, log: log}
	files, err := c.stat()
	if err == nil {
		c.files = files
		err = c.read()
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

func (c *Certificate) read() error {
	pair, err := tls.LoadX509KeyPair(c.cert, c.key)
	if err == nil {
		c.loaded = &pair
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

// current is the certificate of the files as they are. While they cannot be read, or one of them was replaced and the other not yet,
// it is the one from before.
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
			return c.loaded
		}
		c.files = files
		err = c.read()
	}
	if err != nil {
		c.log.WarnContext(ctx, "the TLS certificate has changed and cannot be read; the one from before is served", "file", c.cert, "err", err)
		return c.loaded
	}
	c.log.InfoContext(ctx, "the TLS certificate has changed and is served", "file", c.cert, "not_after", c.loaded.Leaf.NotAfter)
	return c.loaded
}

// same says whether a file was not written or replaced.
func same(a, b os.FileInfo) bool {
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// Name is the host of an address as clients must call it for the certificate to hold: the host itself, or the certificate's first name.
func (c *Certificate) Name(host string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if leaf := c.loaded.Leaf; leaf.VerifyHostname(host) != nil {
		return cmp.Or(firstName(leaf), host)
	}
	return host
}

// firstName is a name that a certificate holds for, "" when it has addresses only.
func firstName(leaf *x509.Certificate) string {
	if len(leaf.DNSNames) == 0 {
		return ""
	}
	return strings.Replace(leaf.DNSNames[0], "*", "holdfast", 1)
}

// Trust returns the machine's certificate authorities and those of a PEM file; nil, the machine's, when the file is "".
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

// Own is how a process on the same machine knows a server by the file of its certificate, whatever address it asks.
func Own(certFile string) (*tls.Config, error) {
	pool, err := Trust(certFile)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(certFile)
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate: %w", err)
	}
	block, _ := pem.Decode(text)
	leaf, err := x509.ParseCertificate(block.Bytes) // Trust has found one
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate: %w", err)
	}
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12, ServerName: firstName(leaf)}, nil
}

// ErrPlain says that plain HTTP would be served where others can listen in.
var ErrPlain = errors.New("it would serve plain HTTP on an address that is not loopback, where tokens and cookies can be read on the way")

// Reachable says whether others than this machine can reach an address that is listened on.
func Reachable(a net.Addr) bool {
	tcp, ok := a.(*net.TCPAddr)
	return ok && !tcp.IP.IsLoopback()
}
