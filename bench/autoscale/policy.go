// Package autoscale models a fleet of workers that is scaled on backlog: a discrete-event simulation
// of the stages of a deposit, fed with measured service times, under the rules of Amazon ECS with
// CloudWatch, or of Kubernetes with KEDA. Its [Deployed] policy is the one declaration of how
// services are scaled; ecs/services.yaml and deploy/kubernetes are made from it.
//
// A run depends on its options and seed only: no clock, no network.
package autoscale

import (
	"time"

	"github.com/holdfast/holdfast/periodic/cloudwatch"
)

// Policy is how the workers of each stage are scaled.
type Policy struct {
	// Target is the backlog to hold: how many seconds of work may wait for each slot.
	Target time.Duration
	// OutCooldown is how long a scale-out counts as under way: until its workers work, the backlog
	// says nothing about them.
	OutCooldown time.Duration
	// InCooldown is the time from one scale-in to the next.
	InCooldown time.Duration
	// WakeCooldown is the time until a stage without live workers gets one more.
	WakeCooldown time.Duration
	// Publish is the interval at which CloudWatch gets figures, and WakePeriod that of the alarm
	// which starts a first worker.
	Publish, WakePeriod time.Duration
	// AtOnce: CloudWatch also gets figures when a deposit comes to idle stages.
	AtOnce bool
	// Asks: before it sends figures, the Registry has ECS start first workers; the alarm does so if that is
	// refused. Starts: a stage without workers has some load, so that tracking keeps the first one that starts.
	Asks, Starts bool
	// Busy: busy slots keep their workers. Together: the stages of a deposit get their first workers
	// at the same time ([registry.QueueStatus.Needed]).
	Busy, Together bool

	// Poll is the interval at which KEDA looks, IdleFor how long a stage is idle before it loses its
	// last worker, and Settle the time over which Kubernetes takes the largest number of workers
	// that was wanted.
	Poll, IdleFor, Settle time.Duration
}

// Deployed is the policy of ecs/services.yaml and deploy/kubernetes. docs/scale.md tells why it has
// these values.
func Deployed() Policy {
	return Policy{
		Target: 300 * time.Second, OutCooldown: 120 * time.Second, InCooldown: 300 * time.Second, WakeCooldown: 120 * time.Second,
		Publish: cloudwatch.Every, WakePeriod: 10 * time.Second, AtOnce: true, Asks: true, Starts: true, Busy: true, Together: true,
		Poll: 15 * time.Second, IdleFor: 300 * time.Second, Settle: 300 * time.Second,
	}
}

// Former is the policy before the model: figures each minute, one stage waking after the other, and
// busy workers ended when nothing waits.
func Former() Policy {
	p := Deployed()
	p.Target, p.OutCooldown = 120*time.Second, 60*time.Second
	p.Publish, p.WakePeriod, p.AtOnce, p.Asks, p.Starts, p.Busy, p.Together = time.Minute, time.Minute, false, false, false, false, false
	return p
}

// Platform says what scales the workers.
type Platform string

// The platforms.
const (
	ECS        Platform = "ecs"        // Fargate, CloudWatch and target tracking
	Kubernetes Platform = "kubernetes" // KEDA and the horizontal pod autoscaler
)

// Platforms returns all platforms.
func Platforms() []Platform { return []Platform{ECS, Kubernetes} }

// What AWS documents of target tracking: its alarms look at each minute, scale out after 3 minutes
// above the target, and scale in after 15 minutes below 90 % of it.
const (
	trackPeriod  = 60.0
	outDataPoint = 3
	inDataPoints = 15
	inShare      = 0.9
)

// What nobody documents to the second, in seconds. Change them with Options to see what depends on
// them.
const (
	alarmDelay  = 5.0  // from the end of a period to the act of its alarm
	askTime     = 2.0  // until ECS has taken the requests for first workers
	scrapeEvery = 15.0 // of Prometheus
	reconcile   = 10.0 // between two looks of ECS or Kubernetes at what runs
)

// What Kubernetes documents of the horizontal pod autoscaler.
const (
	hpaEvery     = 15.0
	hpaTolerance = 0.1
	hpaLeastStep = 4 // pods that it may add at once; more if it does not more than double them
)

// What Holdfast does, in seconds: cmd/node/protect.go, base, registry/work, periodic/cloudwatch.
const (
	publishTime = 1.0 // from the deposit until its figures are counted, see cloudwatch.Publisher
	protectIdle = 15.0
	mostProtect = 1800.0
	protectGap  = 60.0
	stopTime    = 3.0  // from SIGTERM until the items are released
	lease       = 30.0 // a worker that dies keeps its items so long
	sweepEvery  = lease / 8
	aliveFor    = 60.0 // a worker that died counts as live so long
	meanOver    = 200.0
	noteEvery   = 60.0 // mean times follow what was done
)
