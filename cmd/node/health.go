package node

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/web/health"
	"github.com/holdfast/holdfast/web/wire"
)

// AskHealth requests /healthz of a process of any role. trust verifies its certificate; nil: the
// machine's authorities.
func AskHealth(ctx context.Context, address string, trust *tls.Config) (wire.Health, error) {
	var h wire.Health
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/healthz", nil)
	if err != nil {
		return h, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: trust}
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

// health serves /healthz, /readyz, and the metrics of the process. Callers are not authenticated.
func (n *Node) health(checks map[string]health.Check) *http.ServeMux {
	metrics.Build(n.Version)
	mux := http.NewServeMux()
	health.Server{Log: n.Log, Version: n.Version, Checks: checks}.Routes(mux)
	mux.Handle("GET /metrics", metrics.Handler())
	return mux
}
