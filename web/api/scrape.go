package api

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/signin"
	"github.com/holdfast/holdfast/web/wire"
)

// Limits on reading the metrics without the database. Prometheus gives a scrape 10 s by default.
const (
	scraperKeep   = 24 * time.Hour  // since the token was looked up
	scraperLookUp = 3 * time.Second // how long the look-up of a known token may take
	mostScrapers  = 100             // tokens
)

// scrapers knows the tokens that read the metrics of this process. While the database does not
// answer, they still may: otherwise no alert could tell a database that is down from a Registry
// that is. It is safe for concurrent use.
type scrapers struct {
	mu    sync.Mutex
	known map[string]scraper // by the hash of the token
}

type scraper struct {
	token registry.Token
	at    time.Time // when it was looked up
}

// note keeps a token that was looked up and may read the metrics.
func (s *scrapers) note(hash string, token registry.Token, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = map[string]scraper{}
	}
	if _, ok := s.known[hash]; !ok && len(s.known) >= mostScrapers {
		oldest := hash
		for h, k := range s.known {
			if oldest == hash || k.at.Before(s.known[oldest].at) {
				oldest = h
			}
		}
		delete(s.known, oldest)
	}
	s.known[hash] = scraper{token, now}
}

// forget drops a token that is not valid any more, or may not read the metrics.
func (s *scrapers) forget(hash string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, hash)
}

// knows reports whether a token may read the metrics of the process without being looked up.
func (s *scrapers) knows(hash string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.known[hash]
	return ok && now.Sub(k.at) < scraperKeep && k.token.Good(now)
}

// tellMetrics serves the metrics of the process, with those of the queue, which count items of all
// collections. If the caller's token cannot be looked up and is known, it serves those of the
// process alone.
func (s *server) tellMetrics(w http.ResponseWriter, r *http.Request) {
	ctx, hash := r.Context(), ""
	if secret, err := bearer(r.Header.Get("Authorization")); err == nil {
		hash = signin.Hash(secret)
	}
	known := s.scrapers.knows(hash, s.Now())
	if known {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, scraperLookUp)
		defer cancel()
	}
	token, session, err := s.authenticate(r.WithContext(ctx))
	if err == nil {
		r = r.WithContext(asCaller(r.Context(), token, session))
		err = s.access.PermitToken(token, access.Metrics)
	}
	var refused *wire.Problem
	switch {
	case err == nil && hash != "":
		s.scrapers.note(hash, token, s.Now())
	case errors.As(err, &refused):
		s.scrapers.forget(hash)
	case err != nil && known:
		s.Log.WarnContext(r.Context(), "the metrics of the queue are missing from a scrape", "err", err)
		s.metricsAlone.ServeHTTP(w, r)
		return
	}
	if err != nil {
		s.Fail(w, r, err)
		return
	}
	s.metrics.ServeHTTP(w, r)
}
