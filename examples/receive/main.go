// Command receive takes callbacks of Holdfast, and prints each outcome once. Needs CALLBACK_KEY, the
// signing key (whsec_...); prints its address, whose port is its argument. docs/callbacks.md explains it.
package main

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	err := serve(ctx, os.Args[1], os.Getenv("CALLBACK_KEY"), os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "receive:", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func serve(ctx context.Context, port, key string, out io.Writer) error {
	text, ok := strings.CutPrefix(key, "whsec_")
	secret, err := base64.StdEncoding.DecodeString(text)
	if !ok || err != nil {
		return errors.New("CALLBACK_KEY is not whsec_ and base64")
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", l.Addr()); err != nil {
		return err
	}
	s := http.Server{Handler: &receiver{secret: secret, out: out, seen: map[string]bool{}}, ReadTimeout: time.Minute}
	failed := make(chan error, 1)
	go func() { failed <- s.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return s.Shutdown(context.WithoutCancel(ctx)) // what has begun is answered
	}
}

// receiver answers within milliseconds: whatever takes longer belongs after the answer, by a queue of
// your own, since Holdfast waits a minute and then sends the message again.
type receiver struct {
	secret []byte
	out    io.Writer

	mu   sync.Mutex
	seen map[string]bool // ids of messages; a real receiver keeps them in its database, with what it did
}

// ServeHTTP answers 204 to a message and to its repeats, and 403 to what Holdfast did not sign.
func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, q.Body, 1<<20))
	id := q.Header.Get("Webhook-Id")
	if err != nil || !r.signed(id, q.Header.Get("Webhook-Timestamp"), q.Header.Get("Webhook-Signature"), body) {
		http.Error(w, "not signed", http.StatusForbidden)
		return
	}
	var m struct {
		JobStatus   string `json:"jobStatus"`
		PrimaryID   string `json:"primaryID"`
		PackageName string `json:"packageName"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		http.Error(w, "no JSON", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.seen[id] {
		if _, err := fmt.Fprintln(r.out, m.JobStatus, m.PrimaryID, m.PackageName); err != nil {
			http.Error(w, "not kept", http.StatusInternalServerError) // Holdfast sends it again
			return
		}
		r.seen[id] = true
	}
	w.WriteHeader(http.StatusNoContent)
}

// signed reports whether one of the signatures is right and the message is no replay of an old one.
func (r *receiver) signed(id, timestamp, signatures string, body []byte) bool {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || time.Since(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	h := hmac.New(sha256.New, r.secret)
	h.Write(fmt.Appendf(nil, "%s.%s.%s", id, timestamp, body)) // writing to a hash never fails
	want := "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
	for have := range strings.FieldsSeq(signatures) {
		if hmac.Equal([]byte(have), []byte(want)) {
			return true
		}
	}
	return false
}
