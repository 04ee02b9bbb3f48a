// Package health serves /healthz and /readyz of a process of any role: whether it answers, and
// whether what it needs can be worked with.
//
// Who asks is not known, so an answer names parts and no reasons; the log has those.
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

// Check asks whether a part of what a process needs can be worked with. Remarks are what an
// operator should know of one that can; there are none otherwise.
type Check func(ctx context.Context) (remarks []string, err error)

// Answers is the Check of what either answers or does not.
func Answers(ask func(context.Context) error) Check {
	return func(ctx context.Context) ([]string, error) { return nil, ask(ctx) }
}

// RootChecks are the checks of storages: "storage" of the default one, and "storage NAME" of each
// other.
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

// StoreCheck asks a store: whether it is ready, where it can tell that, else for its room.
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

// limited says what is wrong with a part that can be worked with in part, in words for whoever
// asks.
type limited string

// Error implements error.
func (e limited) Error() string { return string(e) }

// StagingCheck asks the staging volume, as StoreCheck does, and whether it has room: full is the
// share that uploads and downloads fill it to at most. A full one keeps nothing else from going on.
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
			return remarks, limited("full: uploads are refused and downloads wait until there is room again; all else goes on")
		}
		return remarks, nil
	}
}

// Server answers whoever asks.
type Server struct {
	Log     *slog.Logger
	Version string
	Checks  map[string]Check // by part
}

// Routes adds the two to a mux.
func (s Server) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /healthz", s.alive)
	mux.HandleFunc("GET /readyz", s.ready)
}

// alive says that the process answers. It asks nobody else, so that a slow disk does not get it
// killed.
func (s Server) alive(w http.ResponseWriter, _ *http.Request) {
	writeHealth(w, http.StatusOK, wire.Health{Status: "ok", Version: s.Version})
}

// ready says whether what the process needs can be worked with. Who asks is not known, so the
// reasons go to the log alone.
func (s Server) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	health, status := wire.Health{Status: "ok", Version: s.Version, Checks: map[string]string{}}, http.StatusOK
	for part, check := range s.Checks {
		remarks, err := check(ctx)
		short, isShort := errors.AsType[limited](err)
		switch {
		case isShort: // which is no reason to take the API away from people
			health.Checks[part] = short.Error()
			if status == http.StatusOK {
				health.Status = "limited"
			}
		case err != nil:
			s.Log.ErrorContext(ctx, "not ready", "part", part, "err", err)
			health.Checks[part], health.Status, status = "failing; the log says why", "failing", http.StatusServiceUnavailable
		case len(remarks) > 0: // which were logged when it was opened
			health.Checks[part] = "ok, but it promises less than it should; the log says what"
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
	_ = json.NewEncoder(w).Encode(h) // the asker has gone if this fails
}
