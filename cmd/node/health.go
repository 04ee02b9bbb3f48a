package node

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/registry/wire"
)

// AskHealth asks /healthz of a process of any role.
func AskHealth(ctx context.Context, address string) (wire.Health, error) {
	var h wire.Health
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/healthz", nil)
	if err != nil {
		return h, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return h, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return h, fmt.Errorf("it answered %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&h); err != nil {
		return h, fmt.Errorf("read its answer: %w", err)
	}
	return h, nil
}

// checks are what a process says of what it needs, by its parts.
type checks map[string]func(context.Context) error

// healthHandler serves /healthz, which asks nobody, so that a slow service does not get the process killed, and /readyz,
// which asks whether what it needs answers.
func (n *Node) healthHandler(c checks) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) {
		writeHealth(w, http.StatusOK, wire.Health{Status: "ok", Version: n.Version})
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), needTimeout)
		defer cancel()
		health, status := wire.Health{Status: "ok", Version: n.Version, Checks: map[string]string{}}, http.StatusOK
		for part, check := range c {
			health.Checks[part] = "ok"
			if err := check(ctx); err != nil {
				// Who asks is not known, so the reason goes to the log alone.
				n.Log.WarnContext(ctx, "not ready", "part", part, "err", err)
				health.Checks[part], health.Status, status = "failing; the log says why", "failing", http.StatusServiceUnavailable
			}
		}
		writeHealth(w, status, health)
	})
	return mux
}

func writeHealth(w http.ResponseWriter, status int, h wire.Health) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(h) // the asker has gone if this fails
}
