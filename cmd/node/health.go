package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/web/health"
	"github.com/holdfast/holdfast/web/wire"
)

// HealthPath is where a process of any role tells its health.
const HealthPath = "/healthz"

// AskHealth requests /healthz of a process of any role. trust verifies its certificate; nil: the
// machine's authorities. It follows no redirect, and returns a *Redirected for one.
func AskHealth(ctx context.Context, address string, trust *tls.Config) (wire.Health, error) {
	var h wire.Health
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+HealthPath, nil)
	if err != nil {
		return h, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: trust}
	answer, err := transport.RoundTrip(r)
	if err != nil {
		return h, err
	}
	defer answer.Body.Close()
	if to, err := answer.Location(); err == nil {
		return h, &Redirected{To: to.String()}
	}
	if answer.StatusCode != http.StatusOK {
		return h, fmt.Errorf("it answered %s", answer.Status)
	}
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<20)).Decode(&h); err != nil {
		return h, fmt.Errorf("something else than Holdfast answers there: %w", err)
	}
	if h.Status == "" {
		return h, errors.New("something else than Holdfast answers there")
	}
	return h, nil
}

// Redirected is the error of an address that leads to another.
type Redirected struct{ To string }

// Error implements error.
func (r *Redirected) Error() string { return "it leads on to " + r.To }

// health serves /healthz, /readyz, and the metrics of the process. Callers are not authenticated.
func (n *Node) health(checks map[string]health.Check) *http.ServeMux {
	metrics.Build(n.Version)
	mux := http.NewServeMux()
	health.Server{Log: n.Log, Version: n.Version, Checks: checks}.Routes(mux)
	mux.Handle("GET /metrics", metrics.Handler())
	return mux
}
