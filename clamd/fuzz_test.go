package clamd_test

import (
	"bytes"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/holdfast/holdfast/clamd"
)

// Whatever a server in clamd's place answers, nothing counts as clean without the exact answer.
func FuzzScanAnswer(f *testing.F) {
	for _, answer := range []string{
		"stream: OK\x00", "stream: Eicar FOUND\x00", "stream: OK", "stream: OK\n\x00", "OK\x00", "", "\x00stream: OK\x00", "stream:  FOUND\x00",
		"INSTREAM size limit exceeded. ERROR\x00", "stream: Heuristics.Limits.Exceeded FOUND\x00", "stream: x ERROR\x00",
	} {
		f.Add([]byte(answer))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		f.Fatal(err)
	}
	var answer atomic.Pointer[[]byte]
	served := make(chan struct{})
	go func() {
		defer close(served)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			asked := make([]byte, len("zINSTREAM\x00")+4+1+4) // a stream of one byte
			if _, err := io.ReadFull(conn, asked); err == nil {
				_, _ = conn.Write(*answer.Load())
			}
			_ = conn.Close()
		}
	}()
	f.Cleanup(func() { _ = l.Close(); <-served })
	c := clamd.New(l.Addr().String())
	f.Fuzz(func(t *testing.T, data []byte) {
		answer.Store(&data)
		found, err := c.Scan(t.Context(), strings.NewReader("x"))
		said, _, whole := bytes.Cut(data, []byte{0})
		if clean := err == nil && found == ""; clean != (whole && string(said) == "stream: OK") {
			t.Errorf("%q: found %q, %v", data, found, err)
		}
		if err == nil && found != "" && string(said) != "stream: "+found+" FOUND" {
			t.Errorf("%q: found %q", data, found)
		}
	})
}
