// Package callback notifies a receiver over HTTP, with one signed POST per try (Standard Webhooks
// 1.0).
//
// A receiver recognises a repeated message by its id and a forged one by its signature. Nothing is
// sent to an address that the guard refuses. The package never retries; its caller decides about
// that.
package callback

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/net/html"

	"github.com/holdfast/holdfast/netfault"
	"github.com/holdfast/holdfast/source"
)

// Message is a message to a receiver.
type Message struct {
	ID   string    // the same in every try; also the Idempotency-Key
	At   time.Time // of the try
	Body []byte    // JSON
	Type string    // Content-Type of the body; "": application/json
	// Trace is the value of the header traceparent; "": none.
	Trace string
}

// Options configure a Client. The zero value allows public addresses only.
type Options struct {
	// Guard checks every address before a connection.
	Guard source.Guard
	// UserAgent is the User-Agent header. Default "Holdfast".
	UserAgent string
	// RootCAs verify receivers. Default: the system's.
	RootCAs *x509.CertPool
	// Timeout bounds a try. Default one minute.
	Timeout time.Duration
}

// Client sends messages. It may be used concurrently.
type Client struct {
	http      *http.Client
	userAgent string
	timeout   time.Duration
}

const (
	defaultUserAgent = "Holdfast"
	defaultTimeout   = time.Minute
	connectTimeout   = 15 * time.Second
	// mostAnswer is the largest part of a receiver's answer that is read, in bytes; mostShown is
	// the part shown, in characters.
	mostAnswer = 64 << 10
	mostShown  = 200
)

// New returns a Client. Close closes its idle connections.
func New(o Options) *Client {
	c := &Client{userAgent: o.UserAgent, timeout: o.Timeout}
	if c.userAgent == "" {
		c.userAgent = defaultUserAgent
	}
	if c.timeout <= 0 {
		c.timeout = defaultTimeout
	}
	dialer := &net.Dialer{Timeout: connectTimeout, Control: o.Guard.Control}
	transport := &http.Transport{
		Proxy:               nil, // the guard could not check addresses behind a proxy
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connectTimeout,
		TLSClientConfig:     &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        32, IdleConnTimeout: 30 * time.Second,
	}
	c.http = &http.Client{
		Transport: transport,
		// Redirects are not followed: the message and its authorization are meant for the named
		// receiver only.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is a failed try.
type Error struct {
	Host   string
	Status int           // of the receiver's answer; 0: none
	After  time.Duration // the receiver's Retry-After, or 0
	Answer string        // the beginning of its body
	Err    error         // why there is no answer
}

// Error describes the receiver's answer.
func (e *Error) Error() string {
	switch {
	case e.Status == 0:
		return fmt.Sprintf("receiver %s did not answer: %v", e.Host, netfault.Word(e.Err))
	case e.Status/100 == 3:
		return fmt.Sprintf("receiver %s answered HTTP %d; redirects are not followed: correct its address", e.Host, e.Status)
	case e.Answer == "":
		return fmt.Sprintf("receiver %s answered HTTP %d", e.Host, e.Status)
	}
	return fmt.Sprintf("receiver %s answered HTTP %d: %s", e.Host, e.Status, e.Answer)
}

// Unwrap returns why there is no answer.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode returns a word by which failures are grouped: http-503, or why there is no answer. All
// ways in which a receiver can be down (refused, silent) have the same code.
func (e *Error) ErrorCode() string {
	switch {
	case e.Status != 0:
		return fmt.Sprintf("http-%d", e.Status)
	case e.Host == "":
		return string(source.FaultURL)
	}
	switch fault := source.FaultOf(e.Err); fault {
	case source.FaultForbidden, source.FaultDNS, source.FaultTLS:
		return string(fault)
	default:
		return "no-answer"
	}
}

// ErrorHost returns the receiver's host, with the port if the address has one.
func (e *Error) ErrorHost() string { return e.Host }

// Remedy says what to do so that the message can be delivered.
func (e *Error) Remedy() string {
	switch {
	case e.Host == "", e.Status/100 == 3:
		return "correct the callback's address"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return fmt.Sprintf("set the credential for the receiver %s (holdfast collection credential set)", e.Host)
	}
	return fmt.Sprintf("check that the receiver %s is running and accepts messages", e.Host)
}

// AsksToWait returns the receiver's Retry-After (RFC 9110), or 0.
func (e *Error) AsksToWait() time.Duration { return e.After }

// Send makes one try to deliver a message, signed with each of the keys, and returns the status of
// the answer. A 2xx answer means delivered. authorization is the value of that header; "" means
// none. Errors are of type *Error and never repeat the address, which may contain a secret.
func (c *Client) Send(ctx context.Context, address string, m Message, authorization string, keys ...Key) (status int, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, &Error{Err: errors.New("its address is not a URL")}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return 0, &Error{Host: u.Host, Err: errors.New("no request can be made to its address")}
	}
	signatures := make([]string, len(keys))
	for i, k := range keys {
		signatures[i] = k.sign(m)
	}
	r.Header.Set("Content-Type", cmp.Or(m.Type, "application/json"))
	r.Header.Set("User-Agent", c.userAgent)
	r.Header.Set("Idempotency-Key", m.ID)
	r.Header.Set(headerID, m.ID)
	r.Header.Set(headerTimestamp, strconv.FormatInt(m.At.Unix(), 10))
	if len(keys) > 0 {
		r.Header.Set(headerSignature, strings.Join(signatures, " "))
	}
	if m.Trace != "" {
		r.Header.Set("Traceparent", m.Trace)
	}
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var quoting *url.Error // its text quotes the address
		if errors.As(err, &quoting) {
			err = quoting.Err
		}
		return 0, &Error{Host: u.Host, Err: err}
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer)) // only the status matters
	if answer.StatusCode/100 == 2 {
		return answer.StatusCode, nil
	}
	return answer.StatusCode, &Error{
		Host: u.Host, Status: answer.StatusCode, After: source.RetryAfter(answer), Answer: shown(said),
	}
}

// shown returns the beginning of an answer on one line. Of a page in HTML it is the text.
func shown(said []byte) string {
	if bytes.HasPrefix(bytes.TrimSpace(said), []byte("<")) {
		said = textOf(said)
	}
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(said), "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > mostShown {
		return string(runes[:mostShown]) + "…"
	}
	return text
}

// textOf returns the text of a page, without its scripts, styles and title.
func textOf(page []byte) []byte {
	var text bytes.Buffer
	z := html.NewTokenizer(bytes.NewReader(page))
	for hidden := false; ; {
		switch z.Next() {
		case html.ErrorToken: // the end
			return text.Bytes()
		case html.StartTagToken:
			name, _ := z.TagName()
			hidden = slices.Contains([]string{"script", "style", "title"}, string(name))
			text.WriteByte(' ')
		case html.TextToken:
			if !hidden {
				text.Write(z.Text())
			}
		default:
			hidden = false
			text.WriteByte(' ')
		}
	}
}
