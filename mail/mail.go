// Package mail composes messages from templates and hands them to an SMTP server.
//
// A repeated message has the same Message-ID. Text from depositors cannot add headers, recipients
// or markup. A message is handed over completely or not at all. Errors distinguish a permanently
// refused address from a server that should be tried again.
package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode"

	gomail "github.com/wneessen/go-mail"
	gosmtp "github.com/wneessen/go-mail/smtp"

	"github.com/holdfast/holdfast/netfault"
	"github.com/holdfast/holdfast/registry"
)

// Message is one mail to one address.
type Message struct {
	// ID is the same in every try. With the host of the sender it is the Message-ID, by which a
	// receiver recognises repeats.
	ID      string
	To      string // an address, without a name
	At      time.Time
	Content Content
	// Attachments have at most [MostAttached] bytes together.
	Attachments []Attachment
}

// Content is the content of a mail.
type Content struct {
	Subject string
	Text    string
	HTML    string
}

// Options configure a Sender. URL and From must be set.
type Options struct {
	URL  string // in the form of [ParseURL]
	From string // an address, optionally with a name: Holdfast <holdfast@example.org>
	// RootCAs verify the server. nil: the system's.
	RootCAs *x509.CertPool
	// Timeout bounds each of the two parts of a try: connecting until the server accepts messages,
	// and sending this one. Default two minutes.
	Timeout time.Duration
}

const defaultTimeout = 2 * time.Minute

// Sender hands messages to a server. It may be used concurrently: each message has its own
// connection.
type Sender struct {
	server  Server
	from    *mail.Address
	host    string // of the sender's address
	roots   *x509.CertPool
	timeout time.Duration
}

// New returns a Sender. The error says what is wrong with an address. It does not connect yet.
func New(o Options) (*Sender, error) {
	server, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	from, err := ParseFrom(o.From)
	if err != nil {
		return nil, err
	}
	s := &Sender{server: server, from: from, host: from.Address[strings.LastIndexByte(from.Address, '@')+1:], roots: o.RootCAs, timeout: o.Timeout}
	if s.timeout <= 0 {
		s.timeout = defaultTimeout
	}
	return s, nil
}

// ParseFrom parses the sender's address. The error does not repeat it.
func ParseFrom(text string) (*mail.Address, error) {
	from, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, errors.New("must be a mail address, such as holdfast@example.org or Holdfast <holdfast@example.org>")
	}
	return from, nil
}

// MessageID returns the Message-ID header of an id, without angle brackets.
func (s *Sender) MessageID(id string) string { return id + "@" + s.host }

// Server returns the server's address for people.
func (s *Sender) Server() string { return s.server.Address() }

// Send hands over a message. nil means that the server has accepted it. An *[Error] says why it has
// not, or that its answer was lost: sending the same message again is right in both cases.
// Cancelling ctx breaks the connection, so that the server drops an incomplete message.
func (s *Sender) Send(ctx context.Context, m Message) error {
	msg, err := s.compose(m)
	if err != nil {
		return err
	}
	return s.connected(ctx, m.To, func(client *gomail.Client, smtp *gosmtp.Client) error {
		if err := client.SendWithSMTPClient(smtp, msg); err != nil && !msg.IsDelivered() {
			return s.fault(ctx, m.To, "send by", err)
		}
		_ = client.CloseWithSMTPClient(smtp) // the server has the message; errors of QUIT do not matter
		return nil
	})
}

// Check connects to the server, secures the connection and authenticates, as Send does, and sends
// nothing. The error is an *[Error].
func (s *Sender) Check(ctx context.Context) error {
	return s.connected(ctx, "", func(client *gomail.Client, smtp *gosmtp.Client) error {
		_ = client.CloseWithSMTPClient(smtp) // it has shown all it can
		return nil
	})
}

// connected calls use with a connection that is ready for a message to an address.
func (s *Sender) connected(ctx context.Context, to string, use func(*gomail.Client, *gosmtp.Client) error) error {
	line := &connection{}
	client, err := s.client(line)
	if err != nil {
		return fmt.Errorf("set up mail: %w", err)
	}
	// The connection is never ended by QUIT: after half a message that would deliver it.
	defer line.hangUp()
	defer context.AfterFunc(ctx, line.hangUp)()
	smtp, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return s.fault(ctx, to, "connect to", err)
	}
	return use(client, smtp)
}

// client returns a client for one connection, which it makes with l.
func (s *Sender) client(l *connection) (*gomail.Client, error) {
	config := &tls.Config{ServerName: s.server.Host, RootCAs: s.roots, MinVersion: tls.VersionTLS12}
	options := []gomail.Option{gomail.WithPort(s.server.Port), gomail.WithTimeout(s.timeout), gomail.WithTLSConfig(config), gomail.WithoutNoop()}
	switch s.server.Security {
	case ImplicitTLS:
		options = append(options, gomail.WithSSL(), gomail.WithDialContextFunc(l.dialer(&tls.Dialer{Config: config})))
	case StartTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.TLSMandatory), gomail.WithDialContextFunc(l.dialer(&net.Dialer{})))
	case NoTLS:
		options = append(options, gomail.WithTLSPolicy(gomail.NoTLS), gomail.WithDialContextFunc(l.dialer(&net.Dialer{})))
	}
	if s.server.User != "" {
		// The last two mechanisms show the password to the server. go-mail uses them only over TLS,
		// and on this machine.
		options = append(options, gomail.WithUsername(s.server.User), gomail.WithPassword(s.server.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	return gomail.NewClient(s.server.Host, options...)
}

// compose builds the message.
func (s *Sender) compose(m Message) (*gomail.Msg, error) {
	if to, err := registry.MailAddress(m.To); err != nil || to != m.To {
		return nil, &Error{Server: s.Server(), Permanent: true, said: "not a mail address", Err: err}
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	msg.Subject(oneLine(m.Content.Subject))
	msg.SetDateWithValue(m.At)
	msg.SetMessageIDWithValue(s.MessageID(m.ID))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: prevents automatic replies
	msg.SetBodyString(gomail.TypeTextPlain, m.Content.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.Content.HTML)
	for _, a := range m.Attachments {
		msg.AttachReadSeeker(a.Name, a.reader(), gomail.WithFileContentType(gomail.ContentType(a.Type)))
	}
	return msg, nil
}

// mostSubject is the largest length of a subject, in characters.
const mostSubject = 250

// oneLine turns a text into the value of a header.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if r := []rune(text); len(r) > mostSubject {
		return string(r[:mostSubject-3]) + "..."
	}
	return text
}

// fault returns the error of a failed try. It masks the address, because errors are kept longer
// than addresses may be.
func (s *Sender) fault(ctx context.Context, to, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	said, _, _ := strings.Cut(netfault.Word(err).Error(), ", affected ") // added by go-mail; the address is known
	e := &Error{Server: s.Server(), doing: doing, said: said, Err: err}
	if to != "" {
		e.said = strings.ReplaceAll(said, to, registry.MaskAddress(to))
	}
	var answer *textproto.Error
	if !errors.As(err, &answer) {
		// go-mail keeps the answer to a recipient as a text, with its code apart.
		var send *gomail.SendError
		if errors.As(err, &send) {
			e.Code = send.ErrorCode()
		}
	} else {
		e.Code = answer.Code
	}
	var send *gomail.SendError
	if e.Code >= 500 && errors.As(err, &send) {
		switch send.Reason {
		case gomail.ErrSMTPRcptTo, gomail.ErrSMTPDataClose:
			e.Permanent = !unauthorised(e.Code)
		default: // neither this address nor this message is refused
		}
	}
	return e
}

// unauthorised reports whether an answer refuses the sender's credentials, which an admin can
// change, and not the recipient (RFC 4954).
func unauthorised(code int) bool { return code == 530 || code == 534 || code == 535 || code == 538 }
