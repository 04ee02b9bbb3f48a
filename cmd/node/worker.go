package node

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/holdfast/holdfast/interim/redis"
	"github.com/holdfast/holdfast/queue"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/client"
	"github.com/holdfast/holdfast/web/health"
	"github.com/holdfast/holdfast/web/protocol"
	"github.com/holdfast/holdfast/web/wire"
)

// WorkerOptions has the options of Worker. All must be set, except the pools of authorities and one
// of the fields of NSQ.
type WorkerOptions struct {
	Common
	Work
	Places
	NSQ
	Stages   []registry.Stage
	Registry string         // the address of the API
	Token    string         // of role worker
	Roots    *x509.CertPool // authorities of the Registry's certificate; nil: the machine's
	Redis    string         // for interim data
	// RedisRoots are authorities of Redis's certificate; nil: the machine's.
	RedisRoots *x509.CertPool
}

// Worker serves stages until it is closed or EC2 announces that it takes the machine
// ([Node.Leaving]). The error joins a *[NeedError] for each need that is wrong or does not answer.
func Worker(ctx context.Context, o WorkerOptions) (*Node, error) {
	return start(ctx, o.Common, func(n *Node) error { return n.work(ctx, o) })
}

func (n *Node) work(ctx context.Context, o WorkerOptions) error {
	var listener net.Listener
	var kept *redis.Store
	c := &workerPool{
		Work: o.Work, gate: o.gate(), buckets: o.buckets(),
		queue: o.consumer(),
	}
	store := protocol.NewClient(client.New(o.Registry, o.Token, client.Options{UserAgent: "holdfast/" + n.Version, Roots: o.Roots})) //nolint:contextcheck // it lives until it is closed
	n.onClose(store.Close)
	c.registry = store
	needs := []need{n.listening(&listener, n.listen), {
		"HOLDFAST_URL", o.Registry, "the Registry at " + o.Registry, "start it, or correct the address",
		func(ctx context.Context) error { return n.checkRegistry(ctx, o, store) },
	}, {
		"HOLDFAST_REDIS_URL", o.Redis, "Redis at " + redacted(o.Redis), "start it, or correct the address",
		func(ctx context.Context) (err error) {
			if kept == nil { // no earlier try opened it
				if kept, err = redis.Open(o.Redis, o.RedisRoots); err != nil {
					return err
				}
				n.onClose(kept.Close)
				c.interim = kept
			}
			return n.checkRedis(ctx, kept)
		},
	}}
	var found foundRoots
	needs = append(needs, o.Places.needs(n, &c.staging, o.StagingReserve, &found)...)
	needs = append(needs, o.NSQ.needs(n, limits{msgTimeout: queue.DefaultMsgTimeout, ready: o.mostSlots(o.Stages)})...)
	if err := n.meet(ctx, needs); err != nil {
		return err
	}
	var err error
	if c.objects, err = found.complete(ctx, n, o.TempDir, store.HasReplicas); err != nil {
		return err
	}
	listening, err := n.runWorkers(c, o.Stages)
	if err != nil {
		return err
	}
	if listener != nil {
		checks := health.RootChecks(c.objects)
		checks["registry"], checks["interim"], checks["queue"] = health.Answers(store.Ping), health.Answers(redisAnswers(kept)), health.Answers(listening)
		checks["staging"] = health.StagingCheck(c.staging, cmp.Or(c.StagingFull, 1))
		n.serve(listener, n.health(checks))
	}
	n.run(func(ctx context.Context) {
		if watchSpot(ctx, n.Log) {
			close(n.leaving)
		}
	})
	return nil
}

const settingToken = "HOLDFAST_TOKEN"

// checkRegistry checks that the Registry answers and that the token may serve these stages.
func (n *Node) checkRegistry(ctx context.Context, o WorkerOptions, s *protocol.Client) error {
	health, err := AskHealth(ctx, o.Registry, &tls.Config{RootCAs: o.Roots})
	if err != nil {
		return err
	}
	remedy := "make one by holdfast token create --role worker --stage " + stageList(o.Stages)
	var refused *wire.Problem
	switch err := s.Ping(ctx); {
	case errors.As(err, &refused) && refused.Code == wire.CodeProtocol:
		return &NeedError{
			Setting: "HOLDFAST_URL", What: "the Registry at " + o.Registry, Fix: "until then this worker waits", Down: true, Err: err,
		}
	case errors.As(err, &refused) && !IsDown(err):
		return &NeedError{Setting: settingToken, What: "refused by the Registry at " + o.Registry, Fix: remedy, Err: err}
	case err != nil:
		return err
	}
	c := client.New(o.Registry, o.Token, client.Options{UserAgent: "holdfast/" + n.Version, Roots: o.Roots})
	defer c.Close()
	token, err := c.OwnToken(ctx)
	switch {
	case errors.As(err, &refused) && refused.Status == http.StatusNotFound: // an older Registry, whose tokens have no stages
	case err != nil:
		return err
	case token.Role == registry.RoleWorker:
		for _, stage := range o.Stages {
			if !token.Serves([]registry.Stage{stage}) {
				return &NeedError{
					Setting: settingToken, What: "its stages", Fix: remedy,
					Err: fmt.Errorf("it is valid for %s, not for %s", stageList(token.Stages), stage),
				}
			}
		}
		if len(token.Stages) == 0 {
			n.Log.WarnContext(ctx, "HOLDFAST_TOKEN has no stages, so it is valid for every stage: replace it by one for this worker's stages",
				"token", token.Name, "fix", remedy+", and revoke this one")
		}
	}
	n.Log.InfoContext(ctx, "registry answers", "url", o.Registry, "registry_version", health.Version, "version", n.Version)
	return nil
}

// stageList formats stages as command-line arguments.
func stageList(stages []registry.Stage) string {
	words := make([]string, len(stages))
	for i, s := range stages {
		words[i] = string(s)
	}
	return strings.Join(words, ",")
}

// checkRedis checks that Redis answers. It warns if Redis may forget data.
func (n *Node) checkRedis(ctx context.Context, s *redis.Store) error {
	err := s.Check(ctx)
	if errors.As(err, new(*redis.Warning)) {
		n.Log.WarnContext(ctx, "Redis may lose interim data; the work is then repeated", "err", err)
		return nil
	}
	return err
}

func redisAnswers(s *redis.Store) func(context.Context) error {
	return func(ctx context.Context) error {
		if err := s.Check(ctx); !errors.As(err, new(*redis.Warning)) {
			return err
		}
		return nil
	}
}

func redacted(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "its address"
	}
	return u.Redacted()
}
