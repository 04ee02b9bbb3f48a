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

// Security is how a connection is protected.
type Security string

// Values of Security. With the first two, the server's certificate is verified.
const (
	StartTLS    Security = "starttls" // plain at first; a server without STARTTLS gets no mail
	ImplicitTLS Security = "tls"
	NoTLS       Security = "none"
)

// Server is an SMTP server.
type Server struct {
	Host           string
	Port           int
	User, Password string // "": no authentication
	Security       Security
}

// Address returns host:port.
func (s Server) Address() string { return net.JoinHostPort(s.Host, strconv.Itoa(s.Port)) }

// Default ports: submission (RFC 6409) and submission over TLS (RFC 8314).
const (
	submissionPort  = 587
	submissionsPort = 465
)

var errURL = errors.New("must be smtp://USER:PASSWORD@HOST[:PORT], or the same with smtps")

// ParseURL parses smtp://USER:PASSWORD@HOST:PORT, which means STARTTLS, or smtps://..., which means
// TLS from the first byte. User, password and port are optional. `?tls=none` switches STARTTLS off,
// which is the default on loopback; `?tls=starttls` switches it on. The error never repeats the
// text.
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
			return Server{}, errors.New("the only parameters are tls=none and tls=starttls, with smtp://")
		}
		s.Security = asked
	}
	switch {
	case s.User == "" && s.Password != "" || s.User != "" && s.Password == "":
		return Server{}, errors.New("give both user and password, or neither")
	case s.User != "" && s.Security == NoTLS && !isLoopback(s.Host):
		return Server{}, errors.New("without TLS others could read the password in transit")
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

// connection is a network connection that can be broken at any moment.
type connection struct {
	mu   sync.Mutex
	conn net.Conn
}

// dialer returns a dial function for go-mail that makes this connection.
func (l *connection) dialer(d interface {
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

// hangUp closes the network connection under all protocols. It may be called at any time,
// repeatedly.
func (l *connection) hangUp() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == nil {
		return
	}
	conn := l.conn
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn() // closing TLS would first send an alert, and wait for writers
	}
	_ = conn.Close() // an error does not matter: the connection is no longer used
}
