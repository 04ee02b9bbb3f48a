package node

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/holdfast/holdfast/base"
)

// Times of the protection of a task at Amazon ECS.
const (
	protectFor = 10 * time.Minute // asked for each time, so that a hanging worker is not protected for long
	renewAfter = protectFor / 2
	idleAfter  = 15 * time.Second // without steps, before protection is removed: most pauses are shorter
	// mostProtected and lapse make room for scaling and deployments where steps never pause: a worker
	// that ECS ends saves the progress of its steps, and others resume them.
	mostProtected  = 30 * time.Minute
	lapse          = time.Minute
	protectRetry   = 30 * time.Second
	protectTimeout = 5 * time.Second
)

// taskProtection protects the task of this process at Amazon ECS while steps run, so that a service
// which shrinks ends idle workers first. It delays no step and no stop.
type taskProtection struct {
	agent  string // the address of ECS's agent
	client *http.Client
	log    *slog.Logger

	steps   atomic.Int64
	changed chan struct{} // steps begin or have ended
}

// protectTask returns the protection of this process's task; nil if it does not run on ECS.
func protectTask(log *slog.Logger) *taskProtection {
	agent := os.Getenv("ECS_AGENT_URI")
	if agent == "" {
		return nil
	}
	transport := &http.Transport{} // without a proxy
	return newTaskProtection(agent, &http.Client{Timeout: protectTimeout, Transport: transport}, log)
}

func newTaskProtection(agent string, client *http.Client, log *slog.Logger) *taskProtection {
	return &taskProtection{agent: strings.TrimSuffix(agent, "/"), client: client, log: log, changed: make(chan struct{}, 1)}
}

// protecting is a worker whose steps protect the task.
type protecting struct {
	base.Handler
	task *taskProtection
}

// Work implements base.Handler.
func (h protecting) Work(ctx context.Context, item *base.Item) error {
	defer h.task.step()()
	return h.Handler.Work(ctx, item)
}

// step counts a step that begins, and returns what to call at its end.
func (p *taskProtection) step() (ended func()) {
	if p.steps.Add(1) == 1 {
		p.notify()
	}
	return func() {
		if p.steps.Add(-1) == 0 {
			p.notify()
		}
	}
}

func (p *taskProtection) notify() {
	select {
	case p.changed <- struct{}{}:
	default: // run has not looked since the last change, and will
	}
}

// run asks for protection, renews and removes it until ctx ends. It logs the first of consecutive
// failures.
func (p *taskProtection) run(ctx context.Context) {
	defer p.client.CloseIdleConnections()
	var (
		since     time.Time // since when the task is protected; zero: it is not
		idleSince time.Time // since when no step runs, while the task is protected; zero: steps run
		failing   bool
	)
	next := time.NewTimer(0) // when to look again, besides changes
	defer next.Stop()
	set := func(on bool) (ok bool) {
		err := p.put(ctx, on)
		switch {
		case ctx.Err() != nil:
			return false
		case err != nil && !failing:
			p.log.WarnContext(ctx, "ECS does not protect this task while it works, so that scaling in may interrupt steps; will retry", "err", err)
		case err == nil && failing:
			p.log.InfoContext(ctx, "ECS protects this task again while it works")
		}
		failing = err != nil
		return err == nil
	}
	var renewAt, notBefore time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.changed:
		case <-next.C:
		}
		now := time.Now()
		working := p.steps.Load() > 0
		if working {
			idleSince = time.Time{}
		} else if idleSince.IsZero() {
			idleSince = now
		}
		protected := !since.IsZero()
		var at time.Time // zero: only a change matters
		switch {
		case now.Before(notBefore):
			at = notBefore
		case protected && (!working && now.Sub(idleSince) >= idleAfter || now.Sub(since) >= mostProtected):
			if set(false) {
				since, notBefore = time.Time{}, now
				if working {
					notBefore = now.Add(lapse)
					at = notBefore
				}
			} else {
				notBefore = now.Add(protectRetry)
				at = notBefore
			}
		case working && (!protected || !now.Before(renewAt)):
			if set(true) {
				if !protected {
					since = now
				}
				renewAt = now.Add(renewAfter)
				at = renewAt
			} else {
				notBefore = now.Add(protectRetry)
				at = notBefore
			}
		case working:
			at = renewAt
		case protected:
			at = idleSince.Add(idleAfter)
		}
		if at.IsZero() {
			next.Stop()
		} else {
			next.Reset(time.Until(at))
		}
	}
}

// put sets whether the task is protected.
func (p *taskProtection) put(ctx context.Context, on bool) error {
	request := map[string]any{"ProtectionEnabled": on}
	if on {
		request["ExpiresInMinutes"] = int(protectFor.Minutes())
	}
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, p.agent+"/task-protection/v1/state", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	answer, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return err
	}
	var state struct {
		Protection *struct{ ProtectionEnabled bool } `json:"protection"`
	}
	// The agent also answers 200 with a "failure", as for a task that no service has.
	if err := json.Unmarshal(text, &state); err != nil || answer.StatusCode != http.StatusOK || state.Protection == nil || state.Protection.ProtectionEnabled != on {
		return fmt.Errorf("the agent of ECS answered %s: %s", answer.Status, bytes.TrimSpace(text))
	}
	return nil
}
