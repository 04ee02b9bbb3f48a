// Package cloudwatch sends each stage's backlog, the utilization of its slots, whether it is needed and
// the number of its workers to Amazon CloudWatch, where services on Amazon ECS scale by them. Before that it
// has the first workers started.
//
// Every Registry process does the same, so that no process has to be chosen and none is missed when it
// ends. Read the figures with the statistic Maximum; a sum would count each process.
package cloudwatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/holdfast/holdfast/awschain"
	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// Names of the metrics and of their dimension, whose value is the stage.
const (
	BacklogSeconds  = "BacklogSeconds"  // seconds of work that wait for each slot of live workers, see registry.StageQueue.Backlog
	SlotUtilization = "SlotUtilization" // percent of these slots that are busy, see registry.StageQueue.Utilization
	Needed          = "Needed"          // 1: the stage needs a worker, see registry.QueueStatus.Needed
	LiveWorkers     = "LiveWorkers"     // live workers that are not stopping; 1 while the first one is started
	Stage           = "Stage"
)

// Every is the interval of requests: the alarm that starts a stage's first worker, where nobody else
// does, looks as often.
// resolution makes CloudWatch keep figures of single seconds, as alarms below a minute need.
const (
	Every      = 10 * time.Second
	resolution = 1
)

// atOnce is the least time between two looks for work in idle stages, and so between two requests.
const atOnce = time.Second

// sendTimeout bounds one request with its retries, so that figures are never older.
const sendTimeout = 20 * time.Second

// Publisher sends the figures. Registry, Namespace and Log must be set.
type Publisher struct {
	Registry interface {
		QueueStatus(ctx context.Context) (registry.QueueStatus, error)
		FeedEnd(ctx context.Context) (int64, error)
		AwaitFeed(ctx context.Context, after int64) error
	}
	Namespace string
	// Start has the first worker of each of these stages started, and returns those of which one is being
	// started. It may be called again before that lives. nil: the alarm has to do it, as for the others.
	Start func(ctx context.Context, stages []registry.Stage) (started []registry.Stage)
	Log   *slog.Logger
	Every time.Duration // 0: the constant Every

	client *cloudwatch.Client
	rest   time.Time // counting a large queue begins again only then
}

// Run has first workers started and sends, at once and then at each interval until ctx ends. While no deposit
// is on its way, it also does so within a second or so when a stage gets work: what follows a deposit has its
// turn. It logs
// the first of consecutive failures and the first success after them.
func (p *Publisher) Run(ctx context.Context) {
	periodic.Job{
		Do: p.round, Every: p.every(), Log: p.Log,
		Fails: "sending the backlog to CloudWatch failed, so that nothing scales by it; will retry", Works: "the backlog is sent to CloudWatch again",
	}.Run(ctx)
}

func (p *Publisher) every() time.Duration { return cmp.Or(p.Every, Every) }

// round has first workers started and sends the figures. While the stages of deposits are idle, it goes on
// until the next round begins, and does so again when an idle stage gets work.
func (p *Publisher) round(ctx context.Context) error {
	until := time.Now().Add(p.every())
	var sent *registry.QueueStatus
	for {
		end, err := p.Registry.FeedEnd(ctx) // before counting, so that no work is missed
		if err != nil {
			return err
		}
		q, err := p.count(ctx)
		if err != nil {
			return err
		}
		if sent == nil || woke(*sent, q) {
			if err := p.send(ctx, q, p.start(ctx, q)); err != nil {
				return err
			}
			sent = &q
		}
		if q.Needed(registry.Expand) {
			return nil
		}
		if err := p.await(ctx, end, until); err != nil {
			return err
		}
		if !time.Now().Before(until) {
			return nil
		}
	}
}

// await returns when an event came after a cursor, but not before atOnce, or at a time.
func (p *Publisher) await(ctx context.Context, after int64, until time.Time) error {
	waiting, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	select {
	case <-time.After(atOnce):
	case <-waiting.Done():
	}
	if err := p.Registry.AwaitFeed(waiting, after); err != nil && waiting.Err() == nil {
		return err
	}
	return ctx.Err()
}

// woke reports whether a stage that was idle got work, or may begin with it.
func woke(before, now registry.QueueStatus) bool {
	return slices.ContainsFunc(registry.Stages(), func(s registry.Stage) bool {
		return now.Needed(s) && !before.Needed(s) || now.Wakes(s) && !before.Wakes(s)
	})
}

// start has first workers started, and returns the stages of which one is being started.
func (p *Publisher) start(ctx context.Context, q registry.QueueStatus) []registry.Stage {
	stages := slices.DeleteFunc(registry.Stages(), func(s registry.Stage) bool { return !q.Wakes(s) })
	if p.Start == nil || len(stages) == 0 {
		return nil
	}
	return p.Start(ctx, stages)
}

// mostShare bounds how much of the time counting takes: that of a queue of millions of items takes
// seconds.
const mostShare = 0.2

// count counts the queue, when it has rested from counting.
func (p *Publisher) count(ctx context.Context) (registry.QueueStatus, error) {
	select {
	case <-time.After(time.Until(p.rest)):
	case <-ctx.Done():
		return registry.QueueStatus{}, ctx.Err()
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	q, err := p.Registry.QueueStatus(ctx)
	p.rest = begun.Add(time.Duration(float64(time.Since(begun)) / mostShare))
	return q, err
}

// send sends the metrics of all stages in one request. started are the stages whose first worker is being
// started.
func (p *Publisher) send(ctx context.Context, q registry.QueueStatus, started []registry.Stage) error {
	counted := time.Now()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if p.client == nil {
		c, err := awschain.Load(ctx, p.Log)
		if err != nil {
			return err
		}
		p.client = cloudwatch.NewFromConfig(c)
	}
	_, err := p.client.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: &p.Namespace, MetricData: figures(q, started, counted)})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", p.Namespace, err)
	}
	return nil
}

// figures returns the metrics of the pipeline's stages. Functions are served by programs outside
// Holdfast, and their names have no bound.
func figures(q registry.QueueStatus, started []registry.Stage, at time.Time) (out []types.MetricDatum) {
	for _, of := range q.Stages {
		if !slices.Contains(registry.Stages(), of.Stage) {
			continue
		}
		needed, workers := 0.0, of.Workers
		if q.Needed(of.Stage) {
			needed = 1
		}
		if slices.Contains(started, of.Stage) {
			workers = max(1, workers)
		}
		dimensions := []types.Dimension{{Name: aws.String(Stage), Value: aws.String(string(of.Stage))}}
		for _, figure := range []struct {
			name  string
			unit  types.StandardUnit
			value float64
		}{
			{BacklogSeconds, types.StandardUnitSeconds, of.Backlog().Seconds()},
			{SlotUtilization, types.StandardUnitPercent, 100 * of.Utilization()},
			{Needed, types.StandardUnitNone, needed},
			{LiveWorkers, types.StandardUnitCount, float64(workers)},
		} {
			out = append(out, types.MetricDatum{
				MetricName: &figure.name, Dimensions: dimensions, Timestamp: &at, Unit: figure.unit, Value: &figure.value, StorageResolution: aws.Int32(resolution),
			})
		}
	}
	return out
}
