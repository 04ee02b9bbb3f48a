// Package mailtest runs a real SMTP server in the process of a test. It keeps the mails it
// receives, and can misbehave on request.
package mailtest

import (
	"bytes"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/http/httptest"
	"net/mail"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// Options configure a server. The zero value accepts mail from everybody, without TLS.
type Options struct {
	Security       string // "starttls" or "tls"; "": no TLS
	User, Password string // "": no authentication
}

// Server is a running server. Its methods may be called concurrently.
type Server struct {
	t       testing.TB
	options Options
	tls     *tls.Config
	roots   *x509.CertPool
	address string // kept across a restart

	mu      sync.Mutex
	server  *smtp.Server
	listens net.Listener // closed separately: Close of a server that does not serve yet would miss it
	served  chan struct{}
	mails   []Mail
	refused map[string]*smtp.SMTPError // by recipient
	data    func(from, to string, raw []byte) error
	logins  int
}

// Mail is a received message.
type Mail struct {
	From, To string // of the envelope
	TLS      bool   // it came over TLS
	User     string // the authenticated user, or ""
	Raw      []byte
	Header   mail.Header
	Subject  string // decoded
	Text     string
	HTML     string
	Files    map[string][]byte // attachments by name, decompressed if they end in .gz
}

// Start starts a server on a free port of 127.0.0.1. It ends with the test.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	s := &Server{t: t, options: o, refused: map[string]*smtp.SMTPError{}, address: "127.0.0.1:0"}
	if o.Security != "" {
		web := httptest.NewUnstartedServer(nil) // for its certificate
		web.StartTLS()
		s.tls = &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
		s.roots = x509.NewCertPool()
		s.roots.AddCert(web.Certificate())
		web.Close()
	}
	s.Up()
	t.Cleanup(s.Down)
	return s
}

// Up restarts a stopped server at its address.
func (s *Server) Up() {
	s.t.Helper()
	l, err := net.Listen("tcp", s.address)
	if err != nil {
		s.t.Fatal(err)
	}
	server := smtp.NewServer(smtp.BackendFunc(func(c *smtp.Conn) (smtp.Session, error) { return &session{s: s, conn: c}, nil }))
	server.Domain, server.MaxMessageBytes, server.AllowInsecureAuth = "mail.test", 32<<20, true
	server.ErrorLog = quiet{}
	if s.options.Security == "starttls" {
		server.TLSConfig = s.tls
	}
	if s.options.Security == "tls" {
		l = tls.NewListener(l, s.tls)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.address, s.server, s.listens, s.served = l.Addr().String(), server, l, make(chan struct{})
	go func(served chan struct{}) {
		defer close(served)
		_ = server.Serve(l) // its end is Down's
	}(s.served)
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// Down stops the server and breaks its connections. It may be called again.
func (s *Server) Down() {
	s.mu.Lock()
	server, listens, served := s.server, s.listens, s.served
	s.server = nil
	s.mu.Unlock()
	if server == nil {
		return
	}
	_ = listens.Close()
	_ = server.Close()
	<-served
}

// URL returns a HOLDFAST_SMTP_URL for the server, with its user.
func (s *Server) URL() string {
	u := url.URL{Scheme: "smtp", Host: s.address}
	switch s.options.Security {
	case "starttls":
		u.RawQuery = "tls=starttls"
	case "tls":
		u.Scheme = "smtps"
	}
	if s.options.User != "" {
		u.User = url.UserPassword(s.options.User, s.options.Password)
	}
	return u.String()
}

// Roots verify the server's certificate; nil if it has none.
func (s *Server) Roots() *x509.CertPool { return s.roots }

// Refuse makes the server answer an address with a code, such as 550; 0 accepts it again.
func (s *Server) Refuse(address string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if code == 0 {
		delete(s.refused, address)
		return
	}
	s.refused[address] = &smtp.SMTPError{Code: code, EnhancedCode: smtp.EnhancedCode{code / 100, 1, 1}, Message: "not this address"}
}

// ErrDrop makes the server break the connection instead of answering.
var ErrDrop = errors.New("drop the connection")

// OnData sets a function that decides about every complete message. Its error is the server's
// answer, and [ErrDrop] breaks the connection; in both cases the message is not kept. nil accepts
// all.
func (s *Server) OnData(judge func(from, to string, raw []byte) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.data = judge
}

// Got returns the messages since the last call.
func (s *Server) Got() []Mail {
	s.mu.Lock()
	defer s.mu.Unlock()
	mails := s.mails
	s.mails = nil
	return mails
}

// Logins counts the attempts to authenticate, successful or not.
func (s *Server) Logins() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logins
}

// session is one connection.
type session struct {
	s              *Server
	conn           *smtp.Conn
	user, from, to string
}

func (c *session) AuthMechanisms() []string {
	if c.s.options.User == "" {
		return nil
	}
	return []string{sasl.Plain}
}

func (c *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		c.s.mu.Lock()
		defer c.s.mu.Unlock()
		c.s.logins++
		if user != c.s.options.User || password != c.s.options.Password {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong user or password"}
		}
		c.user = user
		return nil
	}), nil
}

func (c *session) Mail(from string, _ *smtp.MailOptions) error {
	if c.s.options.User != "" && c.user == "" {
		return &smtp.SMTPError{Code: 530, EnhancedCode: smtp.EnhancedCode{5, 7, 0}, Message: "authentication required"}
	}
	c.from = from
	return nil
}

func (c *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if e := c.s.refused[to]; e != nil {
		return e
	}
	c.to = strings.TrimSpace(c.to + " " + to)
	return nil
}

func (c *session) Data(r io.Reader) error {
	raw, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	c.s.mu.Lock()
	judge := c.s.data
	c.s.mu.Unlock()
	if judge != nil {
		if err := judge(c.from, c.to, raw); errors.Is(err, ErrDrop) {
			_ = c.conn.Conn().Close()
			return err
		} else if err != nil {
			return err
		}
	}
	m, err := Parse(raw)
	if err != nil {
		return err
	}
	m.From, m.To, m.User = c.from, c.to, c.user
	_, m.TLS = c.conn.TLSConnectionState()
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	c.s.mails = append(c.s.mails, m)
	return nil
}

func (c *session) Reset()        { c.from, c.to = "", "" }
func (c *session) Logout() error { return nil }

// Parse parses a message as a mail program does.
func Parse(raw []byte) (Mail, error) {
	m := Mail{Raw: raw, Files: map[string][]byte{}}
	msg, err := mail.ReadMessage(bytes.NewReader(raw))
	if err != nil {
		return m, fmt.Errorf("read message: %w", err)
	}
	m.Header = msg.Header
	if m.Subject, err = new(mime.WordDecoder).DecodeHeader(msg.Header.Get("Subject")); err != nil {
		return m, fmt.Errorf("decode subject: %w", err)
	}
	return m, m.part(msg.Header.Get, msg.Body)
}

// part parses one part of a message and its parts.
func (m *Mail) part(header func(string) string, body io.Reader) error {
	media, params, err := mime.ParseMediaType(header("Content-Type"))
	if err != nil {
		return fmt.Errorf("content type: %w", err)
	}
	if strings.HasPrefix(media, "multipart/") {
		parts := multipart.NewReader(body, params["boundary"])
		for {
			p, err := parts.NextRawPart()
			if errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return fmt.Errorf("next part: %w", err)
			}
			if err := m.part(p.Header.Get, p); err != nil {
				return err
			}
		}
	}
	switch strings.ToLower(header("Content-Transfer-Encoding")) {
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	}
	data, err := io.ReadAll(body)
	if err != nil {
		return fmt.Errorf("decode %s: %w", media, err)
	}
	_, disposition, err := mime.ParseMediaType(header("Content-Disposition"))
	name := disposition["filename"]
	switch {
	case err == nil && strings.HasSuffix(name, ".gz"):
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return fmt.Errorf("unpack %s: %w", name, err)
		}
		m.Files[name], err = io.ReadAll(z)
		return err
	case err == nil && name != "":
		m.Files[name] = data
	case media == "text/html":
		m.HTML = string(data)
	default:
		m.Text = string(data)
	}
	return nil
}
