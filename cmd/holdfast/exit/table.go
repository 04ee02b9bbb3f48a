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
	"github.com/holdfast/holdfast/export"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

// row maps a kind of error to an exit code and advice.
type row struct {
	is   func(error) bool
	code Code
	fix  string // advice, unless the error has its own
}

// table maps errors to exit codes. The first matching row counts; other errors have code 1.
func table() []row {
	return []row{
		{As[*usageError], Usage, ""},
		{As[*config.Fault], Usage, ""},
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
				wire.CodeClaimLost, wire.CodeCycle, wire.CodeSealed, wire.CodeNoKey, wire.CodeVersion), Refused, "",
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
		{is(export.ErrTwice), Failed, "export without --system, or with --bag"},
		{is(export.ErrName), Failed, "a bag cannot hold every name: export without --bag"},
		{is(registry.ErrNotFound), NotFound, ""},
		{is(registry.ErrNameTaken), Refused, ""},
		{As[*registry.VersionError], Refused, ""},
		{sqldb.IsDamaged, Failed, node.FixDamaged},
		{is(node.ErrInUse), Temporary, "stop that one, or give another folder by --dir"},
		{isAll(node.ErrFolder, fs.ErrPermission), Refused, "give a folder that you may write to by --dir"},
		{isAll(node.ErrFolder, syscall.EROFS), Refused, "give a folder that you may write to by --dir"},
		{isAll(node.ErrFolder, syscall.ENOSPC), NoSpace, "make room on the disk"},
		{is(node.ErrFolder), Failed, "give a folder that you may write to by --dir"},
		{is(syscall.EADDRINUSE), Temporary, "stop what listens there, or give another address by --listen"},
		{is(syscall.EADDRNOTAVAIL), Usage, "give an address of this machine by --listen"},
		{is(syscall.ENOSPC), NoSpace, "make room on the disk"},
		{is(syscall.EDQUOT), NoSpace, "make room on the disk"},
		{is(syscall.EFBIG), NoSpace, "the file exceeds the limit of this file system or process; write to another file system"},
		{is(syscall.ENAMETOOLONG), Failed, "give a shorter name"},
		{is(fs.ErrNotExist), NotFound, "check the path"},
		{is(fs.ErrPermission), Refused, "change its permissions, or use another path"},
		{is(syscall.EROFS), Refused, "use another path"},
		{As[*client.ConnectError], Temporary, ""},
		{As[*client.DigestError], Temporary, ""},
		{is(syscall.ECONNREFUSED), Temporary, "check that it is running there"},
		{is(context.DeadlineExceeded), Temporary, "try again"},
		{is(io.ErrUnexpectedEOF), Temporary, "try again"},
		{is(io.EOF), Temporary, "the connection was lost: try again"},
		{ofNetwork, Temporary, "check the network, then try again"},
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

// rowOf returns the row of an error, false if there is none.
func rowOf(err error) (row, bool) {
	// An interruption takes precedence over the errors joined with it.
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

// Advice returns what to do about an error, "" if that is unknown or part of the error.
func Advice(err error) string {
	if As[*FixError](err) {
		return ""
	}
	row, _ := rowOf(err)
	return row.fix
}

// ofNetwork reports an error of the network. A bare number of the system also has the methods of a
// net.Error, and is as often of a file.
func ofNetwork(err error) bool {
	var e net.Error
	if !errors.As(err, &e) {
		return false
	}
	_, bare := e.(syscall.Errno)
	return !bare
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isAll(targets ...error) func(error) bool {
	return func(err error) bool {
		return !slices.ContainsFunc(targets, func(target error) bool { return !errors.Is(err, target) })
	}
}

// need matches errors of the services that a role needs to start: with down those that do not
// answer, else those that are wrong. It looks at each of joined errors.
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
