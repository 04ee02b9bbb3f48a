// Package mail composes messages from templates and hands them to an SMTP server.
//
// A message that is sent again has the same Message-ID. Depositors' text adds no header, recipient
// or markup. A message is handed over whole or not at all. Errors tell a permanently refused
// address from a server that should be asked again.
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

	"github.com/holdfast/holdfast/registry"
)

// Message is one mail to one address.
type Message struct {
	// ID is the same in every try: with the sender's host it is the Message-ID, by which whoever
	// gets it twice knows it.
	ID      string
	To      string // an address, without a name
	At      time.Time
	Content Content
	// Attachments are at most [MostAttached] bytes together.
	Attachments []Attachment
}

// Content is what a mail says.
type Content struct {
	Subject string
	Text    string
	HTML    string
}

// Options sets up New. URL and From must be set.
type Options struct {
	URL  string // as [ParseURL] takes it
	From string // an address, also with a name: Holdfast <holdfast@example.org>
	// RootCAs verify the server. nil: the system's.
	RootCAs *x509.CertPool
	// Timeout bounds each of the two parts of a try: until the server takes messages, and until it
	// has taken this one. Default two minutes.
	Timeout time.Duration
}

const defaultTimeout = 2 * time.Minute

// Sender hands messages to a server. It may be used concurrently: each message has a connection of
// its own.
type Sender struct {
	server  Server
	from    *mail.Address
	host    string // of the sender's address
	roots   *x509.CertPool
	timeout time.Duration
}

// New returns a sender. The error says what is wrong with the address; nothing is asked of the
// server yet.
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

// ParseFrom reads the address that mails come from. The error does not repeat it.
func ParseFrom(text string) (*mail.Address, error) {
	from, err := mail.ParseAddress(text)
	if err != nil || strings.ContainsFunc(text, unicode.IsControl) {
		return nil, errors.New("it must be a mail address, such as holdfast@example.org or Holdfast <holdfast@example.org>")
	}
	return from, nil
}

// MessageID is the header of messages with this id, without its angle brackets.
func (s *Sender) MessageID(id string) string { return id + "@" + s.host }

// Server names the server for people.
func (s *Sender) Server() string { return s.server.Address() }

// Send hands a message over. nil says that the server has taken it on. *[Error] says why it has
// not, or that nobody knows since the answer was lost: sending the same message again is then
// right. A cancelled ctx breaks the connection off, so that half a message is none.
func (s *Sender) Send(ctx context.Context, m Message) error {
	msg, err := s.compose(m)
	if err != nil {
		return err
	}
	line := &line{}
	client, err := s.client(line)
	if err != nil {
		return fmt.Errorf("set up mail: %w", err)
	}
	// Never by QUIT: after half a message that would end it, and have it delivered.
	defer line.hangUp()
	defer context.AfterFunc(ctx, line.hangUp)()
	smtp, err := client.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return s.fault(ctx, m.To, "connect to", err)
	}
	if err := client.SendWithSMTPClient(smtp, msg); err != nil && !msg.IsDelivered() {
		return s.fault(ctx, m.To, "send by", err)
	}
	_ = client.CloseWithSMTPClient(smtp) // the message is theirs, whatever comes of the farewell
	return nil
}

// client is of one connection, which it makes on the line.
func (s *Sender) client(l *line) (*gomail.Client, error) {
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
		// The last two show the password to the server: go-mail does so over TLS, and on this
		// machine, only.
		options = append(options, gomail.WithUsername(s.server.User), gomail.WithPassword(s.server.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin))
	}
	return gomail.NewClient(s.server.Host, options...)
}

// compose makes the message as it travels.
func (s *Sender) compose(m Message) (*gomail.Msg, error) {
	if to, err := registry.MailAddress(m.To); err != nil || to != m.To {
		return nil, &Error{Server: s.Server(), Permanent: true, said: "this is no mail address", Err: err}
	}
	msg := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	msg.FromMailAddress(s.from)
	msg.ToMailAddress(&mail.Address{Address: m.To})
	msg.Subject(oneLine(m.Content.Subject))
	msg.SetDateWithValue(m.At)
	msg.SetMessageIDWithValue(s.MessageID(m.ID))
	msg.SetGenHeader("Auto-Submitted", "auto-generated") // RFC 3834: nobody's absence note answers
	msg.SetBodyString(gomail.TypeTextPlain, m.Content.Text)
	msg.AddAlternativeString(gomail.TypeTextHTML, m.Content.HTML)
	for _, a := range m.Attachments {
		msg.AttachReadSeeker(a.Name, a.reader(), gomail.WithFileContentType(gomail.ContentType(a.Type)))
	}
	return msg, nil
}

// mostSubject is how many characters of a subject are sent.
const mostSubject = 250

// oneLine makes a header's value of a text.
func oneLine(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
	if r := []rune(text); len(r) > mostSubject {
		return string(r[:mostSubject-3]) + "..."
	}
	return text
}

// fault is the error of a try to tell somebody. It is kept longer than the address may be, which is
// therefore masked.
func (s *Sender) fault(ctx context.Context, to, doing string, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	said, _, _ := strings.Cut(err.Error(), ", affected ") // which go-mail adds, and is known
	e := &Error{Server: s.Server(), doing: doing, said: strings.ReplaceAll(said, to, registry.MaskAddress(to)), Err: err}
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
		default: // what is refused is not this address or message
		}
	}
	return e
}

// unauthorised says whether an answer is about who we are, which an admin changes, and not about
// the recipient (RFC 4954).
func unauthorised(code int) bool { return code == 530 || code == 534 || code == 535 || code == 538 }
