// Package netfault words errors of the network for people: what happened, without the chain of calls in
// which it happened.
package netfault

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
)

// Word returns the error in plain words, such as "connection refused: no service is running at that port"
// for "dial tcp 10.0.0.1:80: connect: connection refused". The words name no address; the caller says with
// what service the fault was. The result wraps err. An error that is not of the network stays as it is.
func Word(err error) error {
	if text := textOf(err); text != "" {
		return &worded{text, err}
	}
	return err
}

type worded struct {
	text string
	err  error
}

func (e *worded) Error() string { return e.text }
func (e *worded) Unwrap() error { return e.err }

// textOf returns the words; "" for an error that is not of the network. If an error is of several kinds,
// the most specific counts.
func textOf(err error) string {
	if name, ok := errors.AsType[*net.DNSError](err); ok {
		if name.IsNotFound {
			return fmt.Sprintf("the name %q is unknown", name.Name)
		}
		return fmt.Sprintf("the name %q could not be looked up", name.Name)
	}
	if text := textOfTLS(err); text != "" {
		return text
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, os.ErrDeadlineExceeded) {
		return "it took longer than allowed"
	}
	for _, known := range []struct {
		err  error
		text string
	}{
		{syscall.ECONNREFUSED, "connection refused: no service is running at that port"},
		{syscall.ECONNRESET, "the other side broke the connection off"},
		{syscall.EPIPE, "the other side broke the connection off"},
		{syscall.EHOSTUNREACH, "the host cannot be reached from here"},
		{syscall.ENETUNREACH, "its network cannot be reached from here"},
		{io.ErrUnexpectedEOF, "the connection was closed too early"},
		{io.EOF, "the connection was closed without an answer"},
		{http.ErrSchemeMismatch, "it speaks HTTP, not HTTPS"},
	} {
		if errors.Is(err, known.err) {
			return known.text
		}
	}
	return ""
}

// textOfTLS returns the words of an error of TLS, or "".
func textOfTLS(err error) string {
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok {
		if invalid.Reason == x509.Expired {
			return "its certificate has expired or is not valid yet"
		}
		return "its certificate is not valid"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "its certificate is not from a trusted authority"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "its certificate is for another name"
	}
	if record, ok := errors.AsType[tls.RecordHeaderError](err); ok {
		if strings.HasPrefix(string(record.RecordHeader[:]), "HTTP/") {
			return "it speaks HTTP, not HTTPS"
		}
		return "it does not speak TLS"
	}
	// An alert from the other side has no type of its own.
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "the TLS handshake failed"
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "remote error" || op.Op == "local error") {
		return "the TLS handshake failed"
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "its certificate is not valid"
	}
	return ""
}
