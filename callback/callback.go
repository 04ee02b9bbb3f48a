// Package callback tells a receiver over HTTP what happened, by one signed POST per try (Standard
// Webhooks 1.0).
//
// A receiver can recognise a repeated message by its id and a forged one by its signature. Nothing
// is sent to an address that the guard refuses. The package never retries; its caller decides that.
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
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/holdfast/holdfast/source"
)

// Message is what is told.
type Message struct {
	ID   string    // the same in every try: its Idempotency-Key
	At   time.Time // of the try
	Body []byte    // JSON
	Type string    // of the body, as Content-Type has it; "": application/json
}

// Options sets up New. The zero value is usable: it tells public addresses only.
type Options struct {
	// Guard judges every address that is connected to.
	Guard source.Guard
	// UserAgent names us. Default "Holdfast".
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
	// mostAnswer is how much of a receiver's answer is read, and mostShown of that is told to
	// people.
	mostAnswer = 64 << 10
	mostShown  = 200
)

// New returns a client. Close lets go of its idle connections.
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
		Proxy:               nil, // the guard could not see past one
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connectTimeout,
		TLSClientConfig:     &tls.Config{RootCAs: o.RootCAs, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        32, IdleConnTimeout: 30 * time.Second,
	}
	c.http = &http.Client{
		Transport: transport,
		// A POST is not carried elsewhere: what it says, and what it shows, was meant for the one
		// that was named.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c
}

// Close lets go of idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Error is a try that failed.
type Error struct {
	Host   string
	Status int           // the receiver's answer; 0: none came
	After  time.Duration // how long it asks to be left alone, or 0
	Answer string        // the beginning of what it said
	Err    error         // why no answer came
}

// Error says what the receiver answered.
func (e *Error) Error() string {
	switch {
	case e.Status == 0:
		return fmt.Sprintf("receiver %s did not answer: %v", e.Host, e.Err)
	case e.Status/100 == 3:
		return fmt.Sprintf("receiver %s answers HTTP %d; redirects are not followed: correct its address", e.Host, e.Status)
	case e.Answer == "":
		return fmt.Sprintf("receiver %s answers HTTP %d", e.Host, e.Status)
	}
	return fmt.Sprintf("receiver %s answers HTTP %d: %s", e.Host, e.Status, e.Answer)
}

// Unwrap returns why no answer came.
func (e *Error) Unwrap() error { return e.Err }

// ErrorCode is the error in one word, which failures are grouped by: http-503, or why no answer
// came. However it shows that a receiver is down, refused or in silence, is one.
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

// ErrorHost is the receiver's host, with its port if the address names one.
func (e *Error) ErrorHost() string { return e.Host }

// Remedy says what lets the message be told.
func (e *Error) Remedy() string {
	switch {
	case e.Host == "", e.Status/100 == 3:
		return "correct the callback's address"
	case e.Status == http.StatusUnauthorized, e.Status == http.StatusForbidden:
		return fmt.Sprintf("set what the receiver %s asks for (holdfast collection credential set)", e.Host)
	}
	return fmt.Sprintf("see that the receiver %s is up and takes what it is told", e.Host)
}

// AsksToWait is how long the receiver asks to be left alone (RFC 9110, Retry-After).
func (e *Error) AsksToWait() time.Duration { return e.After }

// Send makes one try to tell a receiver a message, signed by each of the keys, and returns its
// answer's status: delivered is what it answers with 2xx. authorization is the value of the header
// of that name; "" for none. The error is an *Error, which never repeats the address, since that
// may hold a secret.
func (c *Client) Send(ctx context.Context, address string, m Message, authorization string, keys ...Key) (status int, err error) {
	u, err := url.Parse(address)
	if err != nil {
		return 0, &Error{Err: errors.New("its address cannot be read")}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, u.String(), bytes.NewReader(m.Body))
	if err != nil {
		return 0, &Error{Host: u.Host, Err: errors.New("its address cannot be asked")}
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
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		var told *url.Error // it quotes the address
		if errors.As(err, &told) {
			err = told.Err
		}
		return 0, &Error{Host: u.Host, Err: err}
	}
	defer answer.Body.Close()
	said, _ := io.ReadAll(io.LimitReader(answer.Body, mostAnswer)) // what it says beside its status is of no consequence
	if answer.StatusCode/100 == 2 {
		return answer.StatusCode, nil
	}
	return answer.StatusCode, &Error{
		Host: u.Host, Status: answer.StatusCode, After: source.RetryAfter(answer), Answer: shown(said),
	}
}

// shown is the beginning of an answer on one line.
func shown(said []byte) string {
	text := strings.Join(strings.FieldsFunc(strings.ToValidUTF8(string(said), "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || !unicode.IsPrint(r)
	}), " ")
	if runes := []rune(text); len(runes) > mostShown {
		return string(runes[:mostShown]) + "…"
	}
	return text
}
