package api_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/protocol"
)

// request begins a request with a token, and returns its status when it is answered before ctx
// ends.
func (b *bench) request(ctx context.Context, secret, method, path string, body io.Reader, size int64) (int, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.server.URL+"/api/v1"+path, body)
	if err != nil {
		return 0, err
	}
	r.ContentLength = size
	r.Header.Set("Authorization", "Bearer "+secret)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// TestShare_Bodies checks that one token's unfinished bodies, at most 64 MiB, delay only that
// token's requests.
func TestShare_Bodies(t *testing.T) {
	b := newBench(t)
	leaked, other := b.serving(t, "leaked", registry.Expand), b.serving(t, "other", registry.Expand)
	small := func(secret string) (int, error) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		return b.request(ctx, secret, http.MethodPost, protocol.Path+"ping", strings.NewReader("{}"), 2)
	}
	holding, release := context.WithCancel(t.Context())
	ended := make(chan error, 10)
	for range cap(ended) {
		body, end := io.Pipe() // of which nothing ever comes
		context.AfterFunc(holding, func() { _ = end.CloseWithError(context.Canceled) })
		go func() {
			_, err := b.request(holding, leaked, http.MethodPost, protocol.Path+"save-result", body, protocol.MaxBody)
			ended <- err
		}()
	}
	full := func() bool { _, err := small(leaked); return errors.Is(err, context.DeadlineExceeded) }
	for begun := time.Now(); !full(); {
		if time.Since(begun) > 20*time.Second {
			t.Fatalf("the token that holds %d bodies of %d bytes back is still answered", cap(ended), protocol.MaxBody)
		}
	}
	patient, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if status, err := b.request(patient, other, http.MethodPost, protocol.Path+"ping", strings.NewReader("{}"), 2); status != http.StatusOK {
		t.Errorf("another token: %d %v", status, err)
	}
	release()
	for range cap(ended) {
		<-ended
	}
	if status, err := b.request(patient, leaked, http.MethodPost, protocol.Path+"ping", strings.NewReader("{}"), 2); status != http.StatusOK {
		t.Errorf("the token itself, when it holds none: %d %v", status, err)
	}
}

// TestShare_Streams checks that a token can have at most 100 streams.
func TestShare_Streams(t *testing.T) {
	b := newBench(t)
	admin := tokenText(registry.RoleAdmin)
	const most = 100
	for range most {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.server.URL+"/api/v1/events", nil)
		must(t, err)
		r.Header.Set("Authorization", "Bearer "+admin)
		answer, err := http.DefaultClient.Do(r)
		must(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("status %d", answer.StatusCode)
		}
	}
	answer, text := b.send(t, http.MethodGet, "/api/v1/events", "")
	if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(text, fmt.Sprint(most)) {
		t.Errorf("one more: %d %s", answer.StatusCode, text)
	}
	if answer, text := b.send(t, http.MethodGet, "/api/v1/events?after=x", "", "Authorization", "Bearer "+tokenText(registry.RoleOperator)); answer.StatusCode == http.StatusServiceUnavailable {
		t.Errorf("another token: %d %s", answer.StatusCode, text)
	}
}
