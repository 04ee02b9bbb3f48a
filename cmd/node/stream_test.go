package node_test

import (
	"bufio"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/holdfast/holdfast/cmd/node"
)

// Closing a node ends its event streams properly, before the grace period is over.
func TestClose_EndsStreams(t *testing.T) {
	n, err := node.Up(t.Context(), options(t, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, n.URL()+"/api/v1/events", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+n.Token())
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	answer, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	lines := bufio.NewScanner(answer.Body)
	if !lines.Scan() || answer.StatusCode != http.StatusOK {
		t.Fatalf("stream: %d %q %v", answer.StatusCode, lines.Text(), lines.Err())
	}
	closed := make(chan error, 1)
	go func() { closed <- n.Close() }()
	for lines.Scan() { // to the end
	}
	if err := lines.Err(); err != nil {
		t.Errorf("the stream was broken off: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}

// After the client file was lost, the next start makes another token although the name is taken.
func TestUp_LostClientFile(t *testing.T) {
	dir := t.TempDir()
	for range 3 {
		n, err := node.Up(t.Context(), options(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if err := os.Remove(filepath.Join(dir, node.ClientFile)); err != nil {
			t.Fatal(err)
		}
	}
}
