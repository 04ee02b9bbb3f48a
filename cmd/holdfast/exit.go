package main

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
	exitOK          outcome = 0
	exitFailed      outcome = 1
	exitUsage       outcome = 2
	exitPartly      outcome = 3
	exitNotFound    outcome = 4
	exitTemporary   outcome = 5
	exitContent     outcome = 6
	exitHeld        outcome = 7
	exitRefused     outcome = 8
	exitNoSpace     outcome = 9
	exitNothing     outcome = 10
	exitInterrupted outcome = 130
)

// exitMeaning says what an exit code means.
type exitMeaning struct {
	code  outcome
	means string
}

// exitMeanings lists all exit codes, for help and docs/exit-codes.md.
func exitMeanings() []exitMeaning {
	return []exitMeaning{
		{exitOK, "done; with --wait: all completed, or had completed before"},
		{exitFailed, "failed; with --wait: all failed on the system, and can be requeued"},
		{exitUsage, "the command line, a value or the environment is wrong"},
		{exitPartly, "partly done; with --wait: some completed, or they failed on both grounds"},
		{exitNotFound, "not found: no such item, object, collection or path"},
		{exitTemporary, "try again: not reachable, too slow, or port or folder in use"},
		{exitContent, "the content is wrong, and its producer must correct it"},
		{exitHeld, "all that is left is held, or somebody must confirm an act"},
		{exitRefused, "refused: not allowed, or in conflict with what was done before"},
		{exitNoSpace, "no space"},
		{exitNothing, "nothing to do: no item matches"},
		{exitInterrupted, "interrupted"},
	}
}

// exitRow says what an error of a kind ends in.
type exitRow struct {
	is   func(error) bool
	code outcome
	fix  string // what to do about it, when the error itself does not say
}

// exitTable maps errors to exit codes; the first row that fits counts. What fits none is exit code 1.
func exitTable() []exitRow {
	return []exitRow{
		{as[*usageError], exitUsage, ""},
		{as[*config.Fault], exitUsage, ""},
		{as[*config.UnknownError], exitUsage, ""},
		{as[*config.MissingError], exitUsage, ""},
		{as[*undecidedError], exitHeld, ""},
		{is(context.Canceled), exitInterrupted, ""},

		{code(wire.CodeContentInvalid, wire.CodeDigestMismatch, wire.CodeEmptyUpload), exitContent, ""},
		{code(wire.CodeInvalid, wire.CodeGraph, wire.CodeTooLarge), exitUsage, ""},
		{code(wire.CodeQuota), exitNoSpace, ""},
		{code(wire.CodeDamaged), exitFailed, ""},
		{code(wire.CodeBrokenOff), exitTemporary, ""},
		{code(wire.CodeConfirm), exitHeld, "repeat it with --yes"},
		{
			code(wire.CodeTransition, wire.CodePastNoReturn, wire.CodeLastAdmin, wire.CodeNameTaken, wire.CodeIdempotency, wire.CodeConflict,
				wire.CodeCycle, wire.CodeSealed, wire.CodeNoKey, wire.CodeVersion), exitRefused, "",
		},
		{status(http.StatusNotFound), exitNotFound, ""},
		{status(http.StatusGone), exitNotFound, ""},
		{status(http.StatusUnauthorized), exitRefused, ""},
		{status(http.StatusForbidden), exitRefused, ""},
		{status(http.StatusInsufficientStorage), exitNoSpace, ""},
		{status(http.StatusTooManyRequests), exitTemporary, ""},
		{status(http.StatusBadGateway), exitTemporary, ""},
		{status(http.StatusServiceUnavailable), exitTemporary, ""},
		{status(http.StatusGatewayTimeout), exitTemporary, ""},

		{need(false), exitUsage, ""},
		{need(true), exitTemporary, ""},

		{is(replica.ErrDamaged), exitFailed, ""},
		{is(parcel.ErrTwice), exitFailed, "export without --system, or with --bag"},
		{is(parcel.ErrName), exitFailed, "a bag cannot hold every name: export without --bag"},
		{is(errNameTaken), exitFailed, "export with --tar"},
		{is(errOccupied), exitRefused, ""},
		{is(errChangedIt), exitRefused, ""},
		{is(errExporting), exitTemporary, "wait until it has ended, or give another place by --out"},
		{is(registry.ErrNotFound), exitNotFound, ""},
		{is(registry.ErrNameTaken), exitRefused, ""},
		{as[*registry.VersionError], exitRefused, ""},
		{is(errEmptyFolder), exitContent, ""},
		{is(errNotAFile), exitContent, ""},
		{is(errChanged), exitTemporary, "submit it again when nothing writes to it"},
		{is(node.ErrInUse), exitTemporary, "stop that one, or give another folder by --dir"},
		{isAll(node.ErrFolder, fs.ErrPermission), exitRefused, "give a folder that you may write by --dir"},
		{isAll(node.ErrFolder, syscall.EROFS), exitRefused, "give a folder that you may write by --dir"},
		{isAll(node.ErrFolder, syscall.ENOSPC), exitNoSpace, "make room on the disk"},
		{is(node.ErrFolder), exitFailed, "give a folder that you may write by --dir"},
		{is(syscall.EADDRINUSE), exitTemporary, "stop what listens there, or give another address by --listen"},
		{is(syscall.EADDRNOTAVAIL), exitUsage, "give an address of this machine by --listen"},
		{is(syscall.ENOSPC), exitNoSpace, "make room on the disk"},
		{is(syscall.EDQUOT), exitNoSpace, "make room on the disk"},
		{is(syscall.EFBIG), exitNoSpace, "this file system, or a limit on the process, takes no file of that size; write to another one"},
		{is(syscall.ENAMETOOLONG), exitFailed, "give a shorter name"},
		{is(fs.ErrNotExist), exitNotFound, "check the path"},
		{is(fs.ErrPermission), exitRefused, "give yourself the right to it, or use another path"},
		{is(syscall.EROFS), exitRefused, "use another path"},
		{as[*client.ConnectError], exitTemporary, ""},
		{as[*client.DigestError], exitTemporary, ""},
		{is(syscall.ECONNREFUSED), exitTemporary, "is it running there?"},
		{is(context.DeadlineExceeded), exitTemporary, "try again"},
		{is(io.ErrUnexpectedEOF), exitTemporary, "try again"},
		{is(io.EOF), exitTemporary, "the connection broke off: try again"},
		{as[net.Error], exitTemporary, "check the network, then try again"},
	}
}

func rowOf(err error) (exitRow, bool) {
	for _, row := range exitTable() {
		if row.is(err) {
			return row, true
		}
	}
	return exitRow{}, false
}

// codeOf returns the exit code of an error, 0 for nil.
func codeOf(err error) int {
	if err == nil {
		return int(exitOK)
	}
	if said := outcome(0); errors.As(err, &said) {
		return int(said)
	}
	if row, ok := rowOf(err); ok {
		return int(row.code)
	}
	return int(exitFailed)
}

func is(target error) func(error) bool {
	return func(err error) bool { return errors.Is(err, target) }
}

func isAll(targets ...error) func(error) bool {
	return func(err error) bool {
		return !slices.ContainsFunc(targets, func(target error) bool { return !errors.Is(err, target) })
	}
}

func as[T error](err error) bool { return errors.As(err, new(T)) }

// need is whether any of joined errors is something that a role cannot start without, and that does not answer, or is wrong.
func need(down bool) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(parts(err), func(e error) bool {
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
