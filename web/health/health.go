// Package health serves /healthz and /readyz for a process of any role: whether it is alive, and
// whether the parts that it needs work.
//
// The caller is not authenticated, so an answer names the parts but not the reasons. The log has
// the reasons.
package health

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/web/wire"
)

// readyTimeout bounds all checks of one /readyz.
const readyTimeout = 5 * time.Second

// Check checks a part that a process needs. Remarks are warnings about a part that works; there are
// none with an error.
type Check func(ctx context.Context) (remarks []string, err error)

// Answers returns the Check of a part that either answers or does not.
func Answers(ask func(context.Context) error) Check {
	return func(ctx context.Context) ([]string, error) { return nil, ask(ctx) }
}

// RootChecks returns the checks of storages: "storage" for the default one, and "storage NAME" for
// each other.
func RootChecks(roots ocfl.Roots) map[string]Check {
	checks := map[string]Check{}
	for _, r := range roots {
		name := registry.DefaultStorage
		if r.Name != name {
			name += " " + r.Name
		}
		checks[name] = StoreCheck(r.Store())
	}
	return checks
}

// StoreCheck returns the Check of a store: its own readiness check if it has one, or else whether
// it can measure its room.
func StoreCheck(s storage.Store) Check {
	if s, ok := s.(interface {
		Ready(ctx context.Context) (remarks []string, err error)
	}); ok {
		return s.Ready
	}
	return Answers(func(ctx context.Context) error {
		if _, err := s.Space(ctx); err != nil && !errors.Is(err, storage.ErrUnlimited) {
			return err
		}
		return nil
	})
}

// limited describes a part that works partly, in words for the unauthenticated caller.
type limited string

// Error implements error.
func (e limited) Error() string { return string(e) }

// StagingCheck returns the Check of the staging volume: that of StoreCheck, and whether there is
// room. full is the share, 0 to 1, that uploads and downloads may fill. A full volume does not stop
// other work.
func StagingCheck(s storage.Store, full float64) Check {
	ask := StoreCheck(s)
	return func(ctx context.Context) ([]string, error) {
		remarks, err := ask(ctx)
		if err != nil {
			return remarks, err
		}
		space, err := s.Space(ctx)
		if errors.Is(err, storage.ErrUnlimited) {
			return remarks, nil
		} else if err != nil {
			return remarks, err
		}
		if float64(space.Used) >= full*float64(space.Total) {
			return remarks, limited("full: uploads are refused and downloads wait until there is room; other work goes on")
		}
		return remarks, nil
	}
}

// Server answers health checks.
type Server struct {
	Log      *slog.Logger
	Version  string
	Registry string           // the Registry's permanent identifier; "" for other processes
	Checks   map[string]Check // by part
}

// Routes adds both paths to a mux.
func (s Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", s.alive)
	mux.HandleFunc("GET /readyz", s.ready)
}

// alive answers that the process is alive. It checks nothing else, so that a slow disk does not get
// the process killed.
func (s Server) alive(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, wire.Health{Status: "ok", Version: s.Version, Registry: s.Registry})
}

// ready answers whether the parts that the process needs work. The reasons go to the log only,
// because the caller is not authenticated.
func (s Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	health, status := wire.Health{Status: "ok", Version: s.Version, Registry: s.Registry, Checks: map[string]string{}}, http.StatusOK
	for part, check := range s.Checks {
		remarks, err := check(ctx)
		short, isShort := errors.AsType[limited](err)
		switch {
		case isShort: // the API remains useful
			health.Checks[part] = short.Error()
			if status == http.StatusOK {
				health.Status = "limited"
			}
		case err != nil:
			s.Log.ErrorContext(ctx, "not ready", "part", part, "err", err)
			health.Checks[part], health.Status, status = "failing; see the log", "failing", http.StatusServiceUnavailable
		case len(remarks) > 0: // the remarks were logged when the part was opened
			health.Checks[part] = "ok, with warnings; see the log"
		default:
			health.Checks[part] = "ok"
		}
	}
	writeHealth(w, status, health)
}

func writeHealth(w http.ResponseWriter, status int, h wire.Health) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(h) // a failure means that the client has disconnected
}
