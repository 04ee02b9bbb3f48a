package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func TestCodeOf(t *testing.T) {
	problem := func(status int, code wire.Code) error { return wire.NewProblem(status, code, "no") }
	for _, tt := range []struct {
		name string
		err  error
		want outcome
	}{
		{"nil", nil, exitOK},
		{"said", exitHeld, exitHeld},
		{"anything", errors.New("anything"), exitFailed},
		{"usage", usage("x"), exitUsage},
		{"environment", errors.Join(&config.UnknownError{Name: "HOLDFAST_X"}, &config.Fault{Name: "HOLDFAST_LEASE"}), exitUsage},
		{"interrupted", fmt.Errorf("ask: %w", context.Canceled), exitInterrupted},
		{"refused manifest", problem(http.StatusUnprocessableEntity, wire.CodeContentInvalid), exitContent},
		{"digest", problem(http.StatusUnprocessableEntity, wire.CodeDigestMismatch), exitContent},
		{"empty", problem(http.StatusUnprocessableEntity, wire.CodeEmptyUpload), exitContent},
		{"bad field", problem(http.StatusUnprocessableEntity, wire.CodeInvalid), exitUsage},
		{"no such", problem(http.StatusNotFound, wire.CodeNotFound), exitNotFound},
		{"no token", problem(http.StatusUnauthorized, wire.CodeUnauthenticated), exitRefused},
		{"role", problem(http.StatusForbidden, wire.CodeForbidden), exitRefused},
		{"transition", problem(http.StatusConflict, wire.CodeTransition), exitRefused},
		{"cycle", problem(http.StatusConflict, wire.CodeCycle), exitRefused},
		{"sealed graph", problem(http.StatusConflict, wire.CodeSealed), exitRefused},
		{"bad node", problem(http.StatusUnprocessableEntity, wire.CodeGraph), exitUsage},
		{"full", problem(http.StatusInsufficientStorage, wire.CodeNoSpace), exitNoSpace},
		{"larger than its quota", problem(http.StatusRequestEntityTooLarge, wire.CodeQuota), exitNoSpace},
		{"later", problem(http.StatusServiceUnavailable, wire.CodeUnavailable), exitTemporary},
		{"their fault", problem(http.StatusInternalServerError, wire.CodeInternal), exitFailed},
		{"damaged", problem(http.StatusInternalServerError, wire.CodeDamaged), exitFailed},
		{"not there", &client.ConnectError{URL: "http://x", Err: syscall.ECONNREFUSED}, exitTemporary},
		{"slow", fmt.Errorf("ask: %w", context.DeadlineExceeded), exitTemporary},
		{"folder in use", fmt.Errorf("start: %w", node.ErrInUse), exitTemporary},
		{"folder of others", fmt.Errorf("start: %w: %w", node.ErrFolder, &fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EACCES}), exitRefused},
		{"read-only disk", fmt.Errorf("start: %w: %w", node.ErrFolder, syscall.EROFS), exitRefused},
		{"no folder", fmt.Errorf("start: %w: %w", node.ErrFolder, syscall.ENOTDIR), exitFailed},
		{"port in use", fmt.Errorf("listen: %w", syscall.EADDRINUSE), exitTemporary},
		{"no file", &fs.PathError{Op: "open", Path: "x", Err: os.ErrNotExist}, exitNotFound},
		{"not ours", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, exitRefused},
		{"disk full", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, exitNoSpace},
		{"export damaged", fmt.Errorf("export: %w", replica.ErrDamaged), exitFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := codeOf(tt.err); got != int(tt.want) {
				t.Errorf("exit code of %v is %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestCodeOfProgress(t *testing.T) {
	for _, tt := range []struct {
		name string
		p    registry.BatchProgress
		want outcome
	}{
		{"all completed", registry.BatchProgress{State: registry.StateCompleted, Settled: true, Jobs: 3, Completed: 3}, exitOK},
		{"all failed on content", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 2, Content: 2}, exitContent},
		{"all failed on the system", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 2}, exitFailed},
		{"failed on both", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 2, Content: 1}, exitPartly},
		{"some completed", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 3, Completed: 2, Failed: 1, Content: 1}, exitPartly},
		{"manifest wrong", registry.BatchProgress{State: registry.StateFailed, Settled: true, Class: registry.ContentFault}, exitContent},
		{"manifest not fetched", registry.BatchProgress{State: registry.StateFailed, Settled: true, Class: registry.SystemFault}, exitFailed},
		{"not reported", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 1, Completed: 1, Class: registry.SystemFault}, exitPartly},
		{"content and cancelled", registry.BatchProgress{State: registry.StateFailed, Settled: true, Jobs: 2, Failed: 1, Content: 1}, exitPartly},
		{"cancelled", registry.BatchProgress{State: registry.StateCancelled, Settled: true, Jobs: 1}, exitFailed},
		{"held", registry.BatchProgress{State: registry.StateHeld, Held: true, Jobs: 1, Open: 1}, exitHeld},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := codeOfProgress(tt.p); got != tt.want {
				t.Errorf("exit code %d, want %d", got, tt.want)
			}
		})
	}
}

func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		codes []outcome
		want  outcome
	}{
		{nil, exitOK},
		{[]outcome{exitOK, exitOK}, exitOK},
		{[]outcome{exitContent, exitContent}, exitContent},
		{[]outcome{exitOK, exitContent}, exitPartly},
		{[]outcome{exitFailed, exitContent}, exitPartly},
		{[]outcome{exitOK, exitHeld, exitFailed}, exitHeld},
	} {
		if got := together(tt.codes); got != tt.want {
			t.Errorf("together %v is %d, want %d", tt.codes, got, tt.want)
		}
	}
}
