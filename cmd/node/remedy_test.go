package node_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/storage"
)

// answer is an answer of S3.
type answer int

func (a answer) Error() string            { return "operation error S3: HeadBucket" }
func (a answer) HTTPStatusCode() int      { return int(a) }
func (a answer) ServiceRequestID() string { return "R1" }

// TestRemedy: an operator reads what happened and what to do, by the cause.
func TestRemedy(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, tt := range []struct {
		err       error
		says, fix string
	}{
		{&pgconn.PgError{Code: "28P01", Message: "password authentication failed"}, "the database refuses: password authentication failed", "the password in HOLDFAST_X"},
		{&pgconn.PgError{Code: "3D000", Message: "no"}, "3D000", "createdb"},
		{&pgconn.PgError{Code: "42501", Message: "no"}, "42501", "the owner"},
		{&sqldb.SchemaError{Have: 1, Needs: 3}, "run: holdfast migrate", ""},
		{answer(403), "S3 answers 403 Forbidden (request R1)", "access keys"},
		{answer(0), "HeadBucket", "otherwise"},
		{fmt.Errorf("%w: %w", answer(0), refused), "could not connect: connection refused", "start it"},
		{fmt.Errorf("ask: %w", &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1}, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}), "ask: could not connect to 127.0.0.1:1: connection refused", "start it"},
		{&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Name: "h", IsNotFound: true}}, "the host h has no address", "DNS"},
		{answer(301), "301", "region="},
		{fmt.Errorf("write: %w", storage.ErrNoSpace), "no space is left", "make room"},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.ENOSPC}, "no space is left", "make room"},
		{&fs.PathError{Op: "mkdir", Path: "/x", Err: syscall.EROFS}, "read-only", "writable"},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}, "/x", "uid"},
		{&fs.PathError{Op: "open", Path: "/x", Err: syscall.ENOENT}, "/x", "mount its volume"},
		{refused, "connection refused", "start it"},
		{&net.DNSError{Name: "h", IsNotFound: true}, "h", "DNS"},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), "ask", "firewall"},
		{errors.New("something"), "something", "otherwise"},
	} {
		e := &node.NeedError{Setting: "HOLDFAST_X", What: "it", Err: tt.err, Fix: node.Remedy(tt.err, "HOLDFAST_X", "otherwise")}
		if text := e.Error(); !strings.HasPrefix(text, "HOLDFAST_X: it: ") || !strings.Contains(text, tt.says) || !strings.Contains(e.Fix, tt.fix) || (e.Fix == "") != (tt.fix == "") || strings.HasSuffix(text, "; ") {
			t.Errorf("%v: %q, want %q and %q", tt.err, text, tt.says, tt.fix)
		}
	}
}

// An S3 that is not there may come; one that answers with a refusal is wrong.
func TestIsDown_S3(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for err, want := range map[error]bool{fmt.Errorf("%w: %w", answer(0), refused): true, answer(503): true, answer(403): false} {
		if got := node.IsDown(err); got != want {
			t.Errorf("%v: down %t, want %t", err, got, want)
		}
	}
}
