// Package exit says what a command ends in: the exit codes (docs/exit-codes.md), errors that carry a code or advice, and one table that
// maps the errors of other packages to codes. A code's meaning never changes.
//
// It knows no command, terminal or service. An error that only one command has is declared by that command with Coded.
package exit

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"slices"
	"syscall"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/parcel"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// The exit codes (docs/exit-codes.md). Their meanings never change.
const (
	OK          Code = 0
	Failed      Code = 1
	Usage       Code = 2
	Partly      Code = 3
	NotFound    Code = 4
	Temporary   Code = 5
	Content     Code = 6
	Held        Code = 7
	Refused     Code = 8
	NoSpace     Code = 9
	Nothing     Code = 10
	Interrupted Code = 130
)

// Meaning says what an exit code means.
type Meaning struct {
	Code Code
	Text string
}

// Meanings lists all exit codes, for help and docs/exit-codes.md.
func Meanings() []Meaning {
	return []Meaning{
		{OK, "done; with --wait: all completed, or had completed before"},
		{Failed, "failed; with --wait: all failed on the system, and can be requeued"},
		{Usage, "the command line, a value or the environment is wrong"},
		{Partly, "partly done; with --wait: some completed, or they failed on both grounds"},
		{NotFound, "not found: no such item, object, collection or path"},
		{Temporary, "try again: not reachable, too slow, or port or folder in use"},
		{Content, "the content is wrong, and its producer must correct it"},
		{Held, "all that is left is held, or somebody must confirm an act"},
		{Refused, "refused: not allowed, or in conflict with what was done before"},
		{NoSpace, "no space"},
		{Nothing, "nothing to do: no item matches"},
		{Interrupted, "interrupted"},
	}
}

// row says what an error of a kind ends in.
type row struct {
	is   func(error) bool
	code Code
	fix  string // what to do about it, when the error itself does not say
}

// table maps errors to exit codes; the first row that fits counts. What fits none is exit code 1.
func table() []row {
	return []row{
		{As[*usageError], Usage, ""},
		{As[*config.Fault], Usage, ""},
		{As[*config.UnknownError], Usage, ""},
		{As[*config.MissingError], Usage, ""},
		{As[*UndecidedError], Held, ""},
		{is(context.Canceled), Interrupted, ""},

		{code(wire.CodeContentInvalid, wire.CodeDigestMismatch, wire.CodeEmptyUpload), Content, ""},
		{code(wire.CodeInvalid, wire.CodeGraph, wire.CodeTooLarge), Usage, ""},
		{code(wire.CodeQuota), NoSpace, ""},
		{code(wire.CodeDamaged), Failed, ""},
		{code(wire.CodeBrokenOff), Temporary, ""},
		{code(wire.CodeConfirm), Held, "repeat it with --yes"},
		{
			code(wire.CodeTransition, wire.CodePastNoReturn, wire.CodeLastAdmin, wire.CodeNameTaken, wire.CodeIdempotency, wire.CodeConflict,
				wire.CodeCycle, wire.CodeSealed, wire.CodeNoKey, wire.CodeVersion), Refused, "",
		},
		{status(http.StatusNotFound), NotFound, ""},
		{status(http.StatusGone), NotFound, ""},
		{status(http.StatusUnauthorized), Refused, ""},
		{status(http.StatusForbidden), Refused, ""},
		{status(http.StatusInsufficientStorage), NoSpace, ""},
		{status(http.StatusTooManyRequests), Temporary, ""},
		{status(http.StatusBadGateway), Temporary, ""},
		{status(http.StatusServiceUnavailable), Temporary, ""},
		{status(http.StatusGatewayTimeout), Temporary, ""},

		{need(false), Usage, ""},
		{need(true), Temporary, ""},

		{is(replica.ErrDamaged), Failed, ""},
		{is(parcel.ErrTwice), Failed, "export without --system, or with --bag"},
		{is(parcel.ErrName), Failed, "a bag cannot hold every name: export without --bag"},
		{is(registry.ErrNotFound), NotFound, ""},
		{is(registry.ErrNameTaken), Refused, ""},
		{As[*registry.VersionError], Refused, ""},
		{is(node.ErrInUse), Temporary, "stop that one, or give another folder by --dir"},
		{isAll(node.ErrFolder, fs.ErrPermission), Refused, "give a folder that you may write by --dir"},
		{isAll(node.ErrFolder, syscall.EROFS), Refused, "give a folder that you may write by --dir"},
		{isAll(node.ErrFolder, syscall.ENOSPC), NoSpace, "make room on the disk"},
		{is(node.ErrFolder), Failed, "give a folder that you may write by --dir"},
		{is(syscall.EADDRINUSE), Temporary, "stop what listens there, or give another address by --listen"},
		{is(syscall.EADDRNOTAVAIL), Usage, "give an address of this machine by --listen"},
		{is(syscall.ENOSPC), NoSpace, "make room on the disk"},
		{is(syscall.EDQUOT), NoSpace, "make room on the disk"},
		{is(syscall.EFBIG), NoSpace, "this file system, or a limit on the process, takes no file of that size; write to another one"},
		{is(syscall.ENAMETOOLONG), Failed, "give a shorter name"},
		{is(fs.ErrNotExist), NotFound, "check the path"},
		{is(fs.ErrPermission), Refused, "give yourself the right to it, or use another path"},
		{is(syscall.EROFS), Refused, "use another path"},
		{As[*client.ConnectError], Temporary, ""},
		{As[*client.DigestError], Temporary, ""},
		{is(syscall.ECONNREFUSED), Temporary, "is it running there?"},
		{is(context.DeadlineExceeded), Temporary, "try again"},
		{is(io.ErrUnexpectedEOF), Temporary, "try again"},
		{is(io.EOF), Temporary, "the connection broke off: try again"},
		{As[net.Error], Temporary, "check the network, then try again"},
	}
}

// Of returns the exit code of an error, OK for nil.
func Of(err error) Code {
	if err == nil {
		return OK
	}
	if said := Code(0); errors.As(err, &said) {
		return said
	}
	if row, ok := rowOf(err); ok {
		return row.code
	}
	return Failed
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isAll(targets ...error) func(error) bool {
	return func(err error) bool {
		return !slices.ContainsFunc(targets, func(target error) bool { return !errors.Is(err, target) })
	}
}

// As says whether err is, or wraps, an error of type T.
func As[T error](err error) bool { return errors.As(err, new(T)) }

// need is whether any of joined errors is something that a role cannot start without, and that does not answer, or is wrong.
func need(down bool) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(Parts(err), func(e error) bool {
			var n *node.NeedError
			return errors.As(e, &n) && n.Down == down
		})
	}
}

func code(codes ...wire.Code) func(error) bool {
	return func(err error) bool {
		var p *wire.Problem
		if !errors.As(err, &p) {
			return false
		}
		for _, c := range codes {
			if p.Code == c {
				return true
			}
		}
		return false
	}
}

func status(s int) func(error) bool {
	return func(err error) bool {
		var p *wire.Problem
		return errors.As(err, &p) && p.Status == s
	}
}

// Together is the exit code of several: their common one, or that they are mixed. What is held comes first, because it
// still needs somebody.
func Together(codes []Code) Code {
	if len(codes) == 0 {
		return OK
	}
	for _, c := range codes {
		if c == Held {
			return Held
		}
	}
	for _, c := range codes[1:] {
		if c != codes[0] {
			return Partly
		}
	}
	return codes[0]
}

// rowOf says what an error ends in, false when nothing is known about it.
func rowOf(err error) (row, bool) {
	// An interruption outranks whatever else is told with it.
	if e, ok := errors.AsType[*codedError](err); ok && !errors.Is(err, context.Canceled) {
		return row{code: e.code, fix: e.advice}, true
	}
	for _, row := range table() {
		if row.is(err) {
			return row, true
		}
	}
	return row{}, false
}

// Advice says what to do about an error, "" when that is not known or the error itself says it.
func Advice(err error) string {
	if As[*FixError](err) {
		return ""
	}
	row, _ := rowOf(err)
	return row.fix
}
