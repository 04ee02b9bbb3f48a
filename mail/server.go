package mail

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

// Security is how a connection is kept from others.
type Security string

// The ways. With the first two the server's certificate is verified.
const (
	StartTLS    Security = "starttls" // the connection begins plain; a server that does not offer STARTTLS gets no mail
	ImplicitTLS Security = "tls"
	NoTLS       Security = "none"
)

// Server is where messages are handed over.
type Server struct {
	Host           string
	Port           int
	User, Password string // "": the server takes mail without
	Security       Security
}

// Address is host:port.
func (s Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// The ports of a URL without one: of submission (RFC 6409) and of submission over TLS (RFC 8314).
const (
	submissionPort  = 587
	submissionsPort = 465
)

var errURL = errors.New("it must be smtp://USER:PASSWORD@HOST[:PORT], or the same with smtps")

// ParseURL reads smtp://USER:PASSWORD@HOST:PORT, which is STARTTLS, or smtps://..., which is TLS
// from the first byte. User, password and port may be left out. `?tls=none` turns STARTTLS off,
// which it is on this machine's own loopback, too, and `?tls=starttls` on. The error never repeats
// the text.
func ParseURL(text string) (Server, error) {
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return Server{}, errURL
	}
	s := Server{Host: u.Hostname()}
	s.User = u.User.Username()
	s.Password, _ = u.User.Password()
	switch u.Scheme {
	case "smtp":
		s.Port, s.Security = submissionPort, StartTLS
		if isLoopback(s.Host) {
			s.Security = NoTLS
		}
	case "smtps":
		s.Port, s.Security = submissionsPort, ImplicitTLS
	default:
		return Server{}, errURL
	}
	if p := u.Port(); p != "" {
		if s.Port, err = strconv.Atoi(p); err != nil || s.Port < 1 || s.Port > 65535 {
			return Server{}, errURL
		}
	}
	for name, values := range u.Query() {
		asked := Security(values[0])
		if name != "tls" || len(values) > 1 || u.Scheme != "smtp" || asked != NoTLS && asked != StartTLS {
			return Server{}, errors.New("all that may follow a question mark is tls=none or tls=starttls, with smtp://")
		}
		s.Security = asked
	}
	switch {
	case s.User == "" && s.Password != "" || s.User != "" && s.Password == "":
		return Server{}, errors.New("user and password go together")
	case s.User != "" && s.Security == NoTLS && !isLoopback(s.Host):
		return Server{}, errors.New("without TLS everybody on the way could read the password")
	}
	return s, nil
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// line is a connection that can be broken off at any moment.
type line struct {
	mu   sync.Mutex
	conn net.Conn
}

// dialer makes the line's connection, as go-mail asks for it.
func (l *line) dialer(d interface {
	DialContext(ctx context.Context, network, address string) (net.Conn, error)
},
) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := d.DialContext(ctx, network, address)
		if err == nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.conn = conn
		}
		return conn, err
	}
}

// hangUp closes the connection under everything that speaks on it; it may be called at any time,
// and again.
func (l *line) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return
	}
	conn := l.conn
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn() // closing TLS would say goodbye first, and wait for whoever is writing
	}
	_ = conn.Close() // it is closed already, or of no more use
}
