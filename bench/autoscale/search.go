package autoscale

import (
	"cmp"
	"fmt"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// Choice is a policy that was tried, with what it came to in all scenarios together.
type Choice struct {
	Name     string `json:"name"`
	Deployed bool   `json:"deployed"`
	Slots    int    `json:"slots"`
	// WorkerHours are those of all scenarios. Wait is the longest time in which 95 % of the steps of
	// a scenario began, Drain the longest time to drain, FirstWork the longest wait of stages without
	// workers, all in seconds; -1: a scenario did not drain.
	WorkerHours float64 `json:"worker_hours"`
	Wait        float64 `json:"wait_p95_seconds"`
	Drain       float64 `json:"drain_seconds"`
	FirstWork   float64 `json:"first_work_seconds"`
	Overshoot   int     `json:"overshoot"`
	Flaps       int     `json:"flaps"`
	// Cost is the worker-hours, plus one for each minute of Wait and Drain and for each flap; 1000 if
	// a scenario did not drain.
	Cost float64 `json:"cost"`
}

// The values that a search tries. One parameter changes at a time.
var (
	triedTargets = []time.Duration{15 * time.Second, 30 * time.Second, 60 * time.Second, 120 * time.Second, 300 * time.Second, 600 * time.Second}
	triedOut     = []time.Duration{30 * time.Second, 60 * time.Second, 120 * time.Second, 180 * time.Second, 300 * time.Second}
	triedIn      = []time.Duration{60 * time.Second, 300 * time.Second, 600 * time.Second, 900 * time.Second}
	triedSlots   = []int{8, 16, 32, 64}
)

// notDrained is the cost of a policy under which work piles up.
const notDrained = 1000

// Search tries other values of each parameter of a policy, in all scenarios, each as often as seeds
// says, with other random numbers. tried is called after each.
func Search(o Options, scenarios []Scenario, seeds int, tried func(Choice) error) error {
	o.Slots = cmp.Or(o.Slots, registry.DefaultSlots)
	base := o.Policy
	try := func(name string, o Options) error {
		c := Choice{Name: name, Slots: o.Slots, Deployed: o.Policy == Deployed() && o.Slots == registry.DefaultSlots}
		for _, s := range scenarios {
			for seed := range seeds {
				run := o
				run.Scenario, run.Seed = s, o.Seed+uint64(seed)
				f := Run(run)
				c.WorkerHours += f.WorkerHours / float64(seeds)
				c.Wait = max(c.Wait, f.P95)
				if f.Drain < 0 {
					c.Drain = -1
				} else if c.Drain >= 0 {
					c.Drain = max(c.Drain, f.Drain)
				}
				c.FirstWork = max(c.FirstWork, f.FirstWork)
				c.Overshoot = max(c.Overshoot, f.Overshoot)
				c.Flaps += f.Flaps
			}
		}
		if c.Drain < 0 {
			c.Cost = notDrained
		} else {
			c.Cost = c.WorkerHours + (c.Wait+c.Drain)/60 + float64(c.Flaps)/float64(seeds)
		}
		return tried(c)
	}
	for _, v := range triedTargets {
		o.Policy = base
		o.Policy.Target = v
		if err := try(fmt.Sprintf("target %s", v), o); err != nil {
			return err
		}
	}
	if o.Platform != Kubernetes {
		for _, v := range triedOut {
			o.Policy = base
			o.Policy.OutCooldown = v
			if err := try(fmt.Sprintf("scale-out cooldown %s", v), o); err != nil {
				return err
			}
		}
		for _, v := range triedIn {
			o.Policy = base
			o.Policy.InCooldown = v
			if err := try(fmt.Sprintf("scale-in cooldown %s", v), o); err != nil {
				return err
			}
		}
	} else {
		for _, v := range triedIn {
			o.Policy = base
			o.Policy.Settle, o.Policy.IdleFor = v, v
			if err := try(fmt.Sprintf("scale-down after %s", v), o); err != nil {
				return err
			}
		}
	}
	o.Policy = base
	for _, n := range triedSlots {
		o.Slots = n
		if err := try(fmt.Sprintf("%d slots", n), o); err != nil {
			return err
		}
	}
	return nil
}
