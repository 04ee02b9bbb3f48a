package clamd_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"go.uber.org/goleak"

	"github.com/holdfast/holdfast/clamd"
	"github.com/holdfast/holdfast/clamd/clamdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestScan(t *testing.T) {
	t.Parallel()
	server := clamdtest.Start(t)
	for _, addr := range []string{server.Addr, server.Socket} {
		c := clamd.New(addr)
		if err := c.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if engine, err := c.Engine(t.Context()); err != nil || !strings.HasPrefix(engine, "ClamAV 1.") {
			t.Errorf("engine %q (%v)", engine, err)
		}
		var all sync.WaitGroup
		for _, tt := range []struct {
			name, content, found string
			err                  error
		}{
			{"clean", "hello", "", nil},
			{"empty", "", "", nil},
			{"virus", "a " + clamdtest.Virus + " b", clamdtest.Signature, nil},
			{"virus behind the first chunk", strings.Repeat("x", 200_000) + clamdtest.Virus, clamdtest.Signature, nil},
			{"just a chunk", strings.Repeat("x", 64<<10), "", nil},
			{"larger than a file may be", strings.Repeat("x", clamdtest.MaxFile+1), "", clamd.ErrTooLarge},
			{"longer than a stream may be", strings.Repeat("x", 3*clamdtest.MaxStream), "", clamd.ErrTooLarge},
		} {
			all.Go(func() {
				found, err := c.Scan(t.Context(), strings.NewReader(tt.content))
				if found != tt.found || !errors.Is(err, tt.err) || tt.err == nil && err != nil {
					t.Errorf("%s: found %q (%v), want %q (%v)", tt.name, found, err, tt.found, tt.err)
				}
			})
		}
		all.Wait()
	}
}

// A clamd that reports unscanned content as clean must not be used.
func TestEngineThatPassesWhatItDoesNotSee(t *testing.T) {
	t.Parallel()
	c := clamd.New(clamdtest.Start(t, "AlertExceedsMax no").Addr)
	var fault *clamd.Error
	if _, err := c.Engine(t.Context()); !errors.Is(err, clamd.ErrSilent) || !errors.As(err, &fault) || !strings.Contains(err.Error(), "AlertExceedsMax yes") {
		t.Errorf("error %v, want one that says what to set", err)
	}
}

func TestFaultsAreTheSystems(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nothing": "", "half": "stream: O", "error": "stream: Can't allocate memory ERROR\x00", "strange": "HTTP/1.1 400 Bad Request\x00",
		"found nothing": "stream:  FOUND\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var fault *clamd.Error
			if found, err := clamd.New(answerTimeout(t, answer)).Scan(t.Context(), strings.NewReader("x")); !errors.As(err, &fault) || found != "" {
				t.Errorf("found %q, error %v, want an *Error", found, err)
			}
		})
	}
	var fault *clamd.Error
	if err := clamd.New("/nowhere/clamd.ctl").Ping(t.Context()); !errors.As(err, &fault) || !strings.Contains(err.Error(), "HOLDFAST_CLAMD_ADDR") {
		t.Errorf("down: %v", err)
	}
	broken := errors.New("disk is broken")
	if _, err := clamd.New(answerTimeout(t, "stream: OK\x00")).Scan(t.Context(), iotest.ErrReader(broken)); !errors.Is(err, broken) || errors.As(err, &fault) {
		t.Errorf("error %v, want the reader's own", err)
	}
}

// answering is a server that reads one command and a short stream, and answers always the same.
func answerTimeout(t *testing.T, answer string) (addr string) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var done sync.WaitGroup
	t.Cleanup(done.Wait)
	t.Cleanup(func() { l.Close() })
	done.Go(func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if _, err := io.ReadFull(conn, make([]byte, len("zINSTREAM\x00"))); err != nil {
			return
		}
		if _, err := io.WriteString(conn, answer); err != nil {
			return
		}
		_ = conn.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, conn)
	})
	return l.Addr().String()
}
