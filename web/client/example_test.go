package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
)

// Example shows that a refusal has the server's text, and that errors.Is finds the Registry's
// errors in it.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/items/1" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"id": "1", "action": "ingest", "state": "Downloading"}`))
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"status": 404, "code": "not-found", "detail": "there is no item 2"}`))
	}))
	defer server.Close()

	c := client.New(server.URL, "the token", client.Options{})
	defer c.Close()
	item, err := c.Item(context.Background(), "1")
	fmt.Println(item.State, err)
	_, err = c.Item(context.Background(), "2")
	fmt.Println(errors.Is(err, registry.ErrNotFound))
	// Output:
	// Downloading <nil>
	// true
}
