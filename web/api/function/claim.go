package function

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/api/access"
	"github.com/holdfast/holdfast/web/wire"
)

// Waits after claims that got nothing although a task was ready: another worker was faster, or a
// hold covers this one.
const (
	refusedFirst = 10 * time.Millisecond
	refusedMost  = time.Second
)

// leastWait is long enough to look for a ready task once, also while the database is busy.
const leastWait = time.Second

// claimTime bounds a claim, and its return.
const claimTime = 10 * time.Second

type claimInput struct {
	Body wire.TaskClaim
}

type claimOutput struct {
	Status int
	Body   *wire.TaskRun
}

// claim answers an attempt, or 204 if no task became ready in time. If the caller disconnects
// first, the task goes back to pending at once, uncounted. If only the answer is lost, a repeat with
// the request id gets the attempt again, and without a repeat the lease runs out.
func (s *Service) claim(ctx context.Context, in *claimInput) (*claimOutput, error) {
	c := in.Body
	policies := map[registry.Stage]registry.FunctionPolicy{}
	var stages []registry.Stage
	for i, name := range c.Functions {
		if err := mayServe(ctx, fmt.Sprintf("body.functions[%d]", i), name); err != nil {
			return nil, err
		}
		f, err := s.Registry.Function(ctx, name)
		if err != nil {
			return nil, err
		}
		if _, twice := policies[f.Stage()]; !twice {
			stages = append(stages, f.Stage())
		}
		policies[f.Stage()] = f.Policy
	}
	// The first ready stage gets the claim: no function may come first always.
	rand.Shuffle(len(stages), func(i, j int) { stages[i], stages[j] = stages[j], stages[i] })
	if err := s.show(ctx, c.Worker, c.Version, orElse(seconds(c.LeaseSeconds), defaultLease), stages); err != nil {
		return nil, err
	}
	request := registry.ClaimRequest{
		RequestID: c.RequestID, Worker: c.Worker, Version: c.Version, Lease: orElse(seconds(c.LeaseSeconds), defaultLease),
		StuckAfter: orElse(seconds(c.StuckSeconds), defaultStuck), Token: access.Of(ctx).Token.ID,
	}
	repeated := request.RequestID != ""
	if !repeated {
		request.RequestID = uuid.NewString()
	}
	claim, err := s.await(ctx, request, policies, stages, seconds(c.WaitSeconds), repeated)
	if err != nil {
		return nil, err
	}
	if claim == nil {
		return &claimOutput{Status: http.StatusNoContent}, nil
	}
	claim.Lease.Token = request.Token
	run, err := s.run(ctx, *claim, policies[claim.Item.Stage])
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx) // nobody reads the answer
	}
	if err != nil {
		s.giveBack(ctx, claim.Lease)
		return nil, lost(Attempt{claim.Lease.ItemID, claim.Lease.N}, err)
	}
	run.LeaseSeconds = int(request.Lease / time.Second)
	return &claimOutput{Status: http.StatusOK, Body: &run}, nil
}

// show records a worker that is ready for a task, so that people see it and its functions.
func (s *Service) show(ctx context.Context, worker, version string, lease time.Duration, stages []registry.Stage) error {
	info := registry.WorkerInfo{ID: worker, Version: version, Capacity: map[registry.Stage]int{}, Free: map[registry.Stage]int{}}
	for _, stage := range stages {
		info.Capacity[stage], info.Free[stage] = 1, 1
	}
	_, err := s.Registry.Renew(ctx, registry.RenewRequest{Worker: info, Lease: lease, Token: access.Of(ctx).Token.ID})
	return err
}

// await claims a task of the stages as soon as one is ready. It returns nil if none was in time. For
// a request that may be a repeat it asks for each stage first: any of them may have answered it.
func (s *Service) await(
	ctx context.Context, r registry.ClaimRequest, policies map[registry.Stage]registry.FunctionPolicy, stages []registry.Stage, wait time.Duration, repeated bool,
) (*registry.Claim, error) {
	ctx, cancel := s.Until(ctx, max(wait, leastWait))
	defer cancel()
	asked := stages
	for pause := refusedFirst; ; {
		if !repeated {
			stage, err := s.Registry.AwaitReady(ctx, stages)
			if stage == "" || err != nil {
				return nil, err
			}
			asked = []registry.Stage{stage}
		}
		var err error
		for _, stage := range asked {
			r.Stage, r.MaxAttempts = stage, policies[stage].Attempts()
			var c registry.Claim
			if c, err = s.claimOnce(ctx, r); err == nil {
				return &c, nil
			}
			var none *registry.NotClaimable
			switch {
			case errors.As(err, &none), len(asked) > 1 && errors.Is(err, registry.ErrInvalid): // the claim of another stage had this request id
				err = nil
			default:
				return nil, err
			}
		}
		if repeated {
			repeated = false
			continue
		}
		select {
		case <-ctx.Done():
			return nil, nil //nolint:nilnil // no task in time
		case <-time.After(pause):
		}
		pause = min(2*pause, refusedMost)
	}
}

// claimOnce claims a task, also if the caller disconnects meanwhile: so the claim is known, and can
// be given back.
func (s *Service) claimOnce(ctx context.Context, r registry.ClaimRequest) (registry.Claim, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	return s.Registry.Claim(ctx, r)
}

// giveBack releases an attempt that nobody will work on. If that fails, its lease runs out.
func (s *Service) giveBack(ctx context.Context, l registry.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTime)
	defer cancel()
	_, err := s.Registry.Settle(ctx, registry.Settlement{Lease: l, Outcome: registry.OutcomeReleased, Error: "the program disconnected before it got the task"})
	if err != nil && !errors.Is(err, registry.ErrClaimLost) {
		s.Log.WarnContext(ctx, "a task was not given back; its lease will expire", "item", l.ItemID, "err", err)
	}
}

// run describes an attempt to its worker.
func (s *Service) run(ctx context.Context, c registry.Claim, policy registry.FunctionPolicy) (wire.TaskRun, error) {
	it := c.Item
	var spec registry.TaskSpec
	if err := json.Unmarshal(it.Spec, &spec); err != nil {
		return wire.TaskRun{}, fmt.Errorf("decode the input of task %s: %w", it.ID, err)
	}
	parents, err := s.Registry.Parents(ctx, c.Lease)
	if err != nil {
		return wire.TaskRun{}, err
	}
	values := map[string]json.RawMessage{}
	for name, value := range it.Results {
		if name, ok := strings.CutPrefix(name, registry.OncePrefix); ok {
			values[name] = value
		}
	}
	return wire.TaskRun{
		ID: it.ID, Attempt: c.Lease.N, Function: spec.Function, Args: spec.Args, Title: it.Name, Subject: spec.Subject, Cause: spec.Cause, Actor: it.CreatedBy,
		Collection: it.Collection, Failures: it.Tries, MaxAttempts: policy.Attempts(), Parents: append([]registry.Parent{}, parents...), Values: values,
	}, nil
}
