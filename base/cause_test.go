package base_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"syscall"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
)

// TestVerdict_Cause: the settlement has the code and host of errors, also of wrapped and joined
// ones.
func TestVerdict_Cause(t *testing.T) {
	answer := func(host string, status int) error {
		return &source.Error{Op: "open", URL: "https://" + host + "/x", Status: status, Kind: source.FaultStatus}
	}
	for _, tt := range []struct {
		name       string
		err        error
		code, host string
	}{
		{"an answer", fmt.Errorf("fetch: %w", answer("h:8080", http.StatusServiceUnavailable)), "http-503", "h:8080"},
		{"no answer", &source.Error{URL: "https://h/x", Kind: source.FaultTimeout, Err: context.DeadlineExceeded}, "timeout", "h"},
		{"refused", &source.Error{URL: "https://h/x", Kind: source.FaultConnection, Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, "connection-refused", "h"},
		{"several of a host", errors.Join(answer("h", 503), answer("h", 503)), "http-503", "h"},
		{"several answers of a host, in any order", errors.Join(answer("h", 503), answer("h", 500)), "http-500", "h"},
		{"several hosts", fmt.Errorf("%w\nand 3 more", errors.Join(answer("h", 503), answer("i", 503))), "http-503", ""},
		{"another digest", &staging.MismatchError{URL: "https://h/x", What: "sha256"}, "digest-mismatch", "h"},
		{"another size of an upload", &staging.MismatchError{URL: "upload:1", What: "size"}, "size-mismatch", ""},
		{"a digest nobody has", &staging.UnsupportedDigest{Algorithm: "x", Err: errors.New("unknown")}, "digest-unsupported", ""},
		{"S3", fmt.Errorf("commit: %w", &smithy.GenericAPIError{Code: "AccessDenied"}), "AccessDenied", ""},
		{"EZID", base.Fatal(&ezid.Error{Kind: ezid.Denied, Host: "ezid.test"}), "ezid-denied", "ezid.test"},
		{"a rule", &intake.Refusal{Report: intake.Report{Faults: []intake.Fault{{Severity: intake.Warning, Rule: "odd"}, {Severity: intake.Error, Rule: "digest-length"}}}}, "digest-length", ""},
		{"a container", &unpack.Faults{List: []*unpack.Error{{Fault: unpack.FaultType}, {Fault: unpack.FaultName}}}, "unpack-name", ""},
		{"a container that was not read", &unpack.Error{Fault: unpack.FaultInput, Err: syscall.EIO}, "io-error", ""},
		{"identifiers", &registry.IdentifierMismatch{}, "identifier-mismatch", ""},
		{"no object", base.Content(&registry.NoObject{}), "no-object", ""},
		{"another owner", base.Content(&registry.OwnerMismatch{}), "owner-mismatch", ""},
		{"a file", fmt.Errorf("read: %w", &fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}), "permission", ""},
		{"a full disk", base.Fatal(fmt.Errorf("write: %w", storage.ErrNoSpace)), "no-space", ""},
		{"nothing but a text", errors.New("out of cheese"), "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fake := newFake()
			w := &worker{work: func(context.Context, *base.Item) error { return tt.err }}
			_, _ = (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i") // what came of it was settled
			got := fake.settled()
			if len(got) != 1 || got[0].Code != tt.code || got[0].Host != tt.host {
				t.Errorf("settlements %+v, want one with code=%q host=%q", got, tt.code, tt.host)
			}
		})
	}
	fake := newFake()
	w := &worker{work: func(context.Context, *base.Item) error { panic("oh") }}
	_, _ = (&base.Runner{Registry: fake, Interim: newFakeInterim()}).RunOne(t.Context(), w, "i")
	if got := fake.settled(); len(got) != 1 || got[0].Code != "panic" {
		t.Errorf("a panic: %+v", got)
	}
}
