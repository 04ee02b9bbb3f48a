// Package cloudwatch sends each stage's backlog, the utilization of its slots, whether it is needed and
// the number of its workers to Amazon CloudWatch, where services on Amazon ECS scale by them.
//
// Every Registry process sends the same figures, so that no process has to be chosen and none is
// missed when it ends. Read them with the statistic Maximum; a sum would count each process.
package cloudwatch

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/holdfast/holdfast/periodic"
	"github.com/holdfast/holdfast/registry"
)

// Names of the metrics and of their dimension, whose value is the stage.
const (
	BacklogSeconds  = "BacklogSeconds"  // seconds of work that wait for each slot of live workers, see registry.StageQueue.Backlog
	SlotUtilization = "SlotUtilization" // percent of these slots that are busy, see registry.StageQueue.Utilization
	Needed          = "Needed"          // 1: the stage needs a worker, see registry.QueueStatus.Needed
	LiveWorkers     = "LiveWorkers"     // live workers that are not stopping
	Stage           = "Stage"
)

// Every is the interval of requests: the alarm that starts a stage's first worker looks as often.
// resolution makes CloudWatch keep figures of single seconds, as alarms below a minute need.
const (
	Every      = 10 * time.Second
	resolution = 1
)

// sendTimeout bounds one request with its retries, so that figures are never older.
const sendTimeout = 20 * time.Second

// Publisher sends the figures. Registry, Namespace and Log must be set.
type Publisher struct {
	Registry interface {
		QueueStatus(ctx context.Context) (registry.QueueStatus, error)
	}
	Namespace string
	Log       *slog.Logger
	Every     time.Duration // 0: the constant Every

	client *cloudwatch.Client
	rest   time.Time // counting a large queue begins again only then
}

// Run sends at once and then at each interval until ctx ends. It logs the first of consecutive failures
// and the first success after them.
func (p *Publisher) Run(ctx context.Context) {
	periodic.Job{
		Do: p.send, Every: cmp.Or(p.Every, Every), Log: p.Log,
		Fails: "sending the backlog to CloudWatch failed, so that nothing scales by it; will retry", Works: "the backlog is sent to CloudWatch again",
	}.Run(ctx)
}

// mostShare bounds how much of the time counting takes: that of a queue of millions of items takes
// seconds.
const mostShare = 0.2

// send sends the metrics of all stages in one request.
func (p *Publisher) send(ctx context.Context) error {
	select {
	case <-time.After(time.Until(p.rest)):
	case <-ctx.Done():
		return ctx.Err()
	}
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if p.client == nil {
		c, err := awsconfig.LoadDefaultConfig(ctx)
		if err != nil {
			return err
		}
		p.client = cloudwatch.NewFromConfig(c)
	}
	q, err := p.Registry.QueueStatus(ctx)
	if err != nil {
		return err
	}
	counted := time.Now()
	p.rest = begun.Add(time.Duration(float64(counted.Sub(begun)) / mostShare))
	_, err = p.client.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: &p.Namespace, MetricData: figures(q, counted)})
	if err != nil {
		return fmt.Errorf("namespace %s: %w", p.Namespace, err)
	}
	return nil
}

// figures returns the metrics of the pipeline's stages. Functions are served by programs outside
// Holdfast, and their names have no bound.
func figures(q registry.QueueStatus, at time.Time) (out []types.MetricDatum) {
	for _, of := range q.Stages {
		if !slices.Contains(registry.Stages(), of.Stage) {
			continue
		}
		dimensions := []types.Dimension{{Name: aws.String(Stage), Value: aws.String(string(of.Stage))}}
		needed := 0.0
		if q.Needed(of.Stage) {
			needed = 1
		}
		for _, figure := range []struct {
			name  string
			unit  types.StandardUnit
			value float64
		}{
			{BacklogSeconds, types.StandardUnitSeconds, of.Backlog().Seconds()},
			{SlotUtilization, types.StandardUnitPercent, 100 * of.Utilization()},
			{Needed, types.StandardUnitNone, needed},
			{LiveWorkers, types.StandardUnitCount, float64(of.Workers)},
		} {
			out = append(out, types.MetricDatum{
				MetricName: &figure.name, Dimensions: dimensions, Timestamp: &at, Unit: figure.unit, Value: &figure.value, StorageResolution: aws.Int32(resolution),
			})
		}
	}
	return out
}
