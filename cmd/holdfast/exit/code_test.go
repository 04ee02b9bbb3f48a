package exit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/holdfast/holdfast/cmd/config"
	"github.com/holdfast/holdfast/cmd/node"
	"github.com/holdfast/holdfast/replica"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/wire"
)

func TestCodeOf(t *testing.T) {
	problem := func(status int, code wire.Code) error { return wire.NewProblem(status, code, "no") }
	for _, tt := range []struct {
		name string
		err  error
		want Code
	}{
		{"nil", nil, OK},
		{"said", Held, Held},
		{"anything", errors.New("anything"), Failed},
		{"usage", Usagef("x"), Usage},
		{"environment", errors.Join(&config.MissingError{Names: []string{"HOLDFAST_URL"}}, &config.Fault{Name: "HOLDFAST_LEASE"}), Usage},
		{"interrupted", fmt.Errorf("ask: %w", context.Canceled), Interrupted},
		{"refused manifest", problem(http.StatusUnprocessableEntity, wire.CodeContentInvalid), Content},
		{"digest", problem(http.StatusUnprocessableEntity, wire.CodeDigestMismatch), Content},
		{"empty", problem(http.StatusUnprocessableEntity, wire.CodeEmptyUpload), Content},
		{"bad field", problem(http.StatusUnprocessableEntity, wire.CodeInvalid), Usage},
		{"no such", problem(http.StatusNotFound, wire.CodeNotFound), NotFound},
		{"no token", problem(http.StatusUnauthorized, wire.CodeUnauthenticated), Refused},
		{"role", problem(http.StatusForbidden, wire.CodeForbidden), Refused},
		{"transition", problem(http.StatusConflict, wire.CodeTransition), Refused},
		{"cycle", problem(http.StatusConflict, wire.CodeCycle), Refused},
		{"sealed graph", problem(http.StatusConflict, wire.CodeSealed), Refused},
		{"bad node", problem(http.StatusUnprocessableEntity, wire.CodeGraph), Usage},
		{"full", problem(http.StatusInsufficientStorage, wire.CodeNoSpace), NoSpace},
		{"larger than its quota", problem(http.StatusRequestEntityTooLarge, wire.CodeQuota), NoSpace},
		{"later", problem(http.StatusServiceUnavailable, wire.CodeUnavailable), Temporary},
		{"their fault", problem(http.StatusInternalServerError, wire.CodeInternal), Failed},
		{"damaged", problem(http.StatusInternalServerError, wire.CodeDamaged), Failed},
		{"not there", &client.ConnectError{URL: "http://x", Err: syscall.ECONNREFUSED}, Temporary},
		{"slow", fmt.Errorf("ask: %w", context.DeadlineExceeded), Temporary},
		{"folder in use", fmt.Errorf("start: %w", node.ErrInUse), Temporary},
		{"folder of others", fmt.Errorf("start: %w: %w", node.ErrFolder, &fs.PathError{Op: "mkdir", Path: "x", Err: syscall.EACCES}), Refused},
		{"read-only disk", fmt.Errorf("start: %w: %w", node.ErrFolder, syscall.EROFS), Refused},
		{"no folder", fmt.Errorf("start: %w: %w", node.ErrFolder, syscall.ENOTDIR), Failed},
		{"port in use", fmt.Errorf("listen: %w", syscall.EADDRINUSE), Temporary},
		{"no file", &fs.PathError{Op: "open", Path: "x", Err: os.ErrNotExist}, NotFound},
		{"not ours", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, Refused},
		{"disk full", &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, NoSpace},
		{"file is there", &os.LinkError{Op: "link", Old: "x", New: "y", Err: syscall.EEXIST}, Failed},
		{"connection broken", &net.OpError{Op: "read", Err: syscall.ECONNRESET}, Temporary},
		{"export damaged", fmt.Errorf("export: %w", replica.ErrDamaged), Failed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := Of(tt.err); got != tt.want {
				t.Errorf("exit code of %v is %d, want %d", tt.err, got, tt.want)
			}
		})
	}
}

func TestTogether(t *testing.T) {
	for _, tt := range []struct {
		codes []Code
		want  Code
	}{
		{nil, OK},
		{[]Code{OK, OK}, OK},
		{[]Code{Content, Content}, Content},
		{[]Code{OK, Content}, Partly},
		{[]Code{Failed, Content}, Partly},
		{[]Code{OK, Held, Failed}, Held},
	} {
		if got := Together(tt.codes); got != tt.want {
			t.Errorf("together %v is %d, want %d", tt.codes, got, tt.want)
		}
	}
}
