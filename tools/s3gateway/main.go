// Command s3gateway serves S3 from a folder, for tests: `s3gateway DIR`. Every folder in DIR is a
// bucket. It prints its address once it answers, and ends when its standard input does, so that it
// outlives no test.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// What the tests sign with; the gateway knows nobody else.
const (
	access = "test"
	secret = "test-secret" // it opens nothing but a test's own folder
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	if err := run(ctx, os.Args[1:]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "s3gateway:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: s3gateway DIR")
	}
	// In files of their own, which the gateway offers too, attributes outlive objects that are
	// deleted and made again at the same time, and conditional writes are then refused for no
	// reason.
	if err := (meta.XattrMeta{}).Test(args[0]); err != nil {
		return fmt.Errorf("%s: %w (set TMPDIR to a folder that has them)", args[0], err)
	}
	backend, err := posix.New(args[0], meta.XattrMeta{}, posix.PosixOpts{CopyObjectThreshold: 5 << 30, ValidateBucketNames: true})
	if err != nil {
		return err
	}
	addr, err := freeAddress()
	if err != nil {
		return err
	}
	failed := make(chan error, 1)
	go func() {
		failed <- embedgw.RunVersityGW(ctx, backend, &embedgw.Config{
			RootUserAccess: access, RootUserSecret: secret, Ports: []string{addr}, Quiet: true, KeepAlive: true,
			MaxConnections: 1024, MaxRequests: 512, MultipartMaxParts: 10_000, HealthPath: "/healthz",
		})
	}()
	if err := ready(ctx, addr, failed); err != nil {
		return err
	}
	fmt.Println("listening on", addr)
	return <-failed
}

// freeAddress is one that nobody listened on a moment ago: the gateway does not tell which one it
// got.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}

// ready waits until the gateway answers or has failed.
func ready(ctx context.Context, addr string, failed <-chan error) error {
	for {
		r, err := http.Get("http://" + addr + "/healthz")
		if err == nil {
			_ = r.Body.Close()
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-failed:
			return err
		case <-time.After(10 * time.Millisecond):
		}
	}
}
