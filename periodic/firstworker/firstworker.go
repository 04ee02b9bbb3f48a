// Package firstworker asks Amazon ECS to start the first worker of stages, whose services have the names of
// the stages. It is quicker than an alarm at CloudWatch. Everything else, also the end of the last worker,
// is the scaling's.
//
// It sets the count of a service to one, if that is zero. So any number of processes may ask at the same time,
// and an alarm may do the same: there is one worker afterwards. No scaling gets from zero beyond one within
// [timeout], so nothing is lowered either; only a count that a person sets within that time may be.
package firstworker

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/holdfast/holdfast/awschain"
	"github.com/holdfast/holdfast/metrics"
	"github.com/holdfast/holdfast/registry"
)

// timeout bounds the requests of one call of Start, with their repeats: what waits for it is not late, and
// what was read of a service is still so when its count is set.
const timeout = 5 * time.Second

// together is the most services that ECS describes in one request.
const together = 10

// active is the state of a service that is not being deleted.
const active = "ACTIVE"

// Services are the services of a cluster. Cluster and Log must be set. One goroutine may use it.
type Services struct {
	Cluster string
	// Most is the most workers that a stage may have; a stage that it does not name has no bound.
	Most map[registry.Stage]int
	Log  *slog.Logger

	client  *ecs.Client
	failing bool
}

// Start has ECS start a worker of each of these stages whose service has none and wants none, and returns the
// stages of which a worker is being started, by this call or otherwise. A service whose count is above zero is
// left alone. It may be called while services are deployed. Start logs the first of consecutive failures and
// the first success after them.
func (s *Services) Start(ctx context.Context, stages []registry.Stage) (started []registry.Stage) {
	stages = slices.DeleteFunc(slices.Clone(stages), func(stage registry.Stage) bool {
		most, bounded := s.Most[stage]
		return bounded && most < 1
	})
	if len(stages) == 0 {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	faults := map[registry.Stage]error{}
	for some := range slices.Chunk(stages, together) {
		maps.Copy(faults, s.start(asking, some))
	}
	var failed []registry.Stage
	for _, stage := range stages {
		if faults[stage] == nil {
			started = append(started, stage)
		} else {
			failed = append(failed, stage)
		}
	}
	switch {
	case ctx.Err() != nil:
		return started
	case len(failed) > 0 && !s.failing:
		s.Log.WarnContext(ctx, "ECS starts no first workers, so that stages wait for the alarm at CloudWatch; will retry",
			"cluster", s.Cluster, "stages", failed, "err", faults[failed[0]])
	case len(failed) == 0 && s.failing:
		s.Log.InfoContext(ctx, "ECS starts first workers again", "cluster", s.Cluster)
	}
	s.failing = len(failed) > 0
	return started
}

// start is Start for as many stages as ECS describes together. It returns the faults.
func (s *Services) start(ctx context.Context, stages []registry.Stage) map[registry.Stage]error {
	faults := map[registry.Stage]error{}
	counts, err := s.counts(ctx, stages)
	for _, stage := range stages {
		count, known := counts[stage]
		switch {
		case err != nil:
			faults[stage] = err
		case !known:
			faults[stage] = fmt.Errorf("there is no service %s", stage)
		case count > 0:
			continue
		default:
			_, faults[stage] = s.client.UpdateService(ctx, &ecs.UpdateServiceInput{Cluster: &s.Cluster, Service: aws.String(string(stage)), DesiredCount: aws.Int32(1)})
		}
		metrics.FirstWorkers.Add(1, metrics.Outcome(faults[stage]))
	}
	return faults
}

// counts returns how many workers the services of these stages shall have.
func (s *Services) counts(ctx context.Context, stages []registry.Stage) (map[registry.Stage]int32, error) {
	if s.client == nil {
		c, err := awschain.Load(ctx, s.Log)
		if err != nil {
			return nil, err
		}
		s.client = ecs.NewFromConfig(c)
	}
	var names []string
	for _, stage := range stages {
		names = append(names, string(stage))
	}
	got, err := s.client.DescribeServices(ctx, &ecs.DescribeServicesInput{Cluster: &s.Cluster, Services: names})
	if err != nil {
		return nil, err
	}
	counts := map[registry.Stage]int32{}
	for _, of := range got.Services {
		if aws.ToString(of.Status) == active {
			counts[registry.Stage(aws.ToString(of.ServiceName))] = of.DesiredCount
		}
	}
	return counts, nil
}
