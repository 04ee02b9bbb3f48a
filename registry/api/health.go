package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/registry/wire"
	"github.com/holdfast/holdfast/storage"
)

// healthz says that the process answers. It asks nobody else, so that a slow disk does not get it killed.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, wire.Health{Status: "ok", Version: s.version})
}

// readyz says whether requests can be served: the Registry and both stores answer.
func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), 5*time.Second)
	defer cancel()
	health := wire.Health{Status: "ok", Version: s.version, Checks: map[string]string{}}
	status := http.StatusOK
	for name, check := range map[string]func(context.Context) error{
		"registry": s.registry.Ping, "staging": answers(s.staging), "storage": answers(s.objects.Store()),
	} {
		health.Checks[name] = "ok"
		if err := check(ctx); err != nil {
			// Who asks is not known, so the reason goes to the log alone.
			s.log.ErrorContext(ctx, "not ready", "part", name, "err", err)
			health.Checks[name], health.Status, status = "failing; the log says why", "failing", http.StatusServiceUnavailable
		}
	}
	writeHealth(w, status, health)
}

func answers(store storage.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		if _, err := store.Space(ctx); err != nil && !errors.Is(err, storage.ErrUnlimited) {
			return err
		}
		return nil
	}
}

func writeHealth(w http.ResponseWriter, status int, h wire.Health) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(h) // the asker has gone if this fails
}
