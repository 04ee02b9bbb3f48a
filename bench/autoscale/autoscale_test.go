package autoscale_test

import (
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/bench/autoscale"
	"github.com/holdfast/holdfast/registry"
)

// options are those of `holdfast bench autoscale`.
func options(t *testing.T) autoscale.Options {
	t.Helper()
	times, err := autoscale.Set("large")
	if err != nil {
		t.Fatal(err)
	}
	return autoscale.Options{Policy: autoscale.Deployed(), Times: times.Sized(1 << 30), Seed: 1}
}

const rate = 0.1

func run(t *testing.T, o autoscale.Options, scenario string) autoscale.Figures {
	t.Helper()
	var err error
	if o.Scenario, err = autoscale.ScenarioOf(scenario, rate); err != nil {
		t.Fatal(err)
	}
	return autoscale.Run(o)
}

// TestRun_Repeats: the same options give the same run, another seed gives another one.
func TestRun_Repeats(t *testing.T) {
	o := options(t)
	first := run(t, o, "burst")
	if again := run(t, o, "burst"); !reflect.DeepEqual(first, again) {
		t.Errorf("%+v, then %+v", first, again)
	}
	o.Seed = 2
	if other := run(t, o, "burst"); reflect.DeepEqual(first, other) {
		t.Error("another seed gave the same run")
	}
}

// TestRun_FromZero: stages without work come to no worker, and the first deposit that comes then begins
// within a minute, on both platforms: on ECS after at most 1 s until it is counted, 2 s of requests and 50 s to
// start. If ECS refuses the requests, 10 s of the alarm's period and 7 s to its act come instead of them, and
// more if figures were sent at intervals only. With the former policy each stage would wake after the one
// before.
func TestRun_FromZero(t *testing.T) {
	for _, platform := range autoscale.Platforms() {
		o := options(t)
		o.Platform = platform
		for o.Seed = 3; o.Seed > 1; o.Seed-- { // docs/scale.md has twelve
			f := run(t, o, "idle")
			if f.Jobs < 10 || f.Left != 0 || f.Zero < f.Jobs-1 || f.FirstWork > 53 || f.FirstDone > 150 {
				t.Errorf("%s, seed %d: %d jobs, %d left, %d times at zero, first work after %.0f s, at most %.0f s, done after %.0f s", platform, o.Seed, f.Jobs, f.Left, f.Zero, f.FirstWorkP50, f.FirstWork, f.FirstDone)
			}
		}
		f := run(t, o, "idle")
		o.Refused = true
		refused := run(t, o, "idle")
		if most := map[autoscale.Platform]float64{autoscale.ECS: 68, autoscale.Kubernetes: f.FirstWork}[platform]; refused.FirstWork > most || platform == autoscale.ECS && refused.FirstWorkP50 <= f.FirstWorkP50 {
			t.Errorf("%s: where ECS refuses, the first work came after %.0f s, at most %.0f s; otherwise after %.0f s", platform, refused.FirstWorkP50, refused.FirstWork, f.FirstWorkP50)
		}
		o.Policy.AtOnce = false
		if late := run(t, o, "idle"); platform == autoscale.ECS && late.FirstWorkP50 <= refused.FirstWorkP50 {
			t.Errorf("%s: with figures at intervals only, the first work came after %.0f s, otherwise after %.0f s", platform, late.FirstWorkP50, refused.FirstWorkP50)
		}
		o.Policy = autoscale.Former()
		if former := run(t, o, "idle"); former.FirstDone < 1.5*f.FirstDone {
			t.Errorf("%s: the former policy took %.0f s to the end of a first job, the present one %.0f s", platform, former.FirstDone, f.FirstDone)
		}
	}
}

// TestRun_Starts: a first worker that starts while tracking's last figures say that nothing was needed stays,
// since a stage without workers has some load. Otherwise some are ended before they live, and asked for again.
func TestRun_Starts(t *testing.T) {
	o := options(t)
	o.Seed = 12 // it has such a deposit
	kept := run(t, o, "idle")
	o.Policy.Starts = false
	if ended := run(t, o, "idle"); ended.FirstWork <= kept.FirstWork {
		t.Errorf("without the load of a stage without workers, the first work came after %.0f s at most, otherwise after %.0f s", ended.FirstWork, kept.FirstWork)
	}
}

// TestRun_NothingLost: whatever is reclaimed or killed, each job that came is done or still on its way,
// and the fleet drains.
func TestRun_NothingLost(t *testing.T) {
	for _, platform := range autoscale.Platforms() {
		for _, scenario := range []string{"burst", "spot", "slow"} {
			o := options(t)
			o.Platform = platform
			f := run(t, o, scenario)
			if f.Jobs == 0 || f.Drain < 0 || f.Left > f.Jobs/10 {
				t.Errorf("%s, %s: %d jobs, %d left, drained after %.0f s", platform, scenario, f.Jobs, f.Left, f.Drain)
			}
			if scenario == "spot" && (f.Reclaimed == 0 || f.Interrupted == 0) {
				t.Errorf("%s: nothing was reclaimed: %+v", platform, f)
			}
		}
	}
}

// TestRun_Stages: a deposit passes the stages of the routes, and no others. Its optional ones cost workers
// and time, which is stated if none was measured; its jobs have one report.
func TestRun_Stages(t *testing.T) {
	o := options(t)
	of := func(f autoscale.Figures) (stages []registry.Stage) {
		for _, p := range f.Series {
			if s := registry.Stage(p.Stage); !slices.Contains(stages, s) {
				stages = append(stages, s)
			}
		}
		return stages
	}
	usual := run(t, o, "idle")
	required := slices.DeleteFunc(registry.DepositStages(), func(s registry.Stage) bool { return slices.Contains(autoscale.Optional(), s) })
	if got := of(usual); !slices.Equal(got, required) {
		t.Errorf("a deposit passes %v, want %v", got, required)
	}
	o.Optional = autoscale.Optional()
	var stated []registry.Stage
	var err error
	if o.Times, stated, err = o.Times.WithStated(o.Optional); err != nil || !slices.Equal(stated, o.Optional) {
		t.Errorf("times of %v are stated, want those of %v, which no set has: %v", stated, o.Optional, err)
	}
	all := run(t, o, "idle")
	if got := of(all); !slices.Equal(got, registry.DepositStages()) || all.FirstDone <= usual.FirstDone || all.WorkerHours <= usual.WorkerHours || all.Left != 0 {
		t.Errorf("with %v a deposit passes %v and is done after %.0f s, %.1f worker-hours; without after %.0f s, %.1f", o.Optional, got, all.FirstDone, all.WorkerHours, usual.FirstDone, usual.WorkerHours)
	}
	if _, again, err := o.Times.WithStated(o.Optional); err != nil || len(again) > 0 {
		t.Errorf("what has times gets others for %v, %v", again, err)
	}
	o.Rows = 100
	if f := run(t, o, "idle"); f.Jobs != 100*usual.Jobs || f.Left != 0 || f.Zero < usual.Jobs-1 {
		t.Errorf("deposits of 100 jobs: %d jobs, %d left, %d times at zero", f.Jobs, f.Left, f.Zero)
	}
}

// TestDeployed_IsChosen: no other value of one parameter costs a tenth less than the deployed policy.
func TestDeployed_IsChosen(t *testing.T) {
	for _, platform := range autoscale.Platforms() {
		o := options(t)
		o.Platform = platform
		var scenarios []autoscale.Scenario
		for _, s := range autoscale.Scenarios(rate) {
			if s.Name == "burst" || s.Name == "spot" || s.Name == "idle" { // the others differ less
				scenarios = append(scenarios, s)
			}
		}
		deployed, least := math.MaxFloat64, autoscale.Choice{Cost: math.MaxFloat64}
		err := autoscale.Search(o, scenarios, 1, func(c autoscale.Choice) error {
			if c.Deployed {
				deployed = c.Cost
			}
			if c.Cost < least.Cost {
				least = c
			}
			return nil
		})
		if err != nil || deployed*0.9 > least.Cost {
			t.Errorf("%s: the deployed policy costs %.0f, and %s %.0f (%v): change Deployed, and docs/scale.md", platform, deployed, least.Name, least.Cost, err)
		}
	}
}

// TestMeasure: histograms of several processes are added up; processor times come from processes that
// serve one stage.
func TestMeasure(t *testing.T) {
	const registryText = `
# TYPE holdfast_attempt_duration_seconds histogram
holdfast_attempt_duration_seconds_bucket{stage="download",outcome="done",le="1"} 2
holdfast_attempt_duration_seconds_bucket{stage="download",outcome="done",le="4"} 5
holdfast_attempt_duration_seconds_bucket{stage="download",outcome="done",le="+Inf"} 6
holdfast_attempt_duration_seconds_sum{stage="download",outcome="done"} 20
holdfast_attempt_duration_seconds_count{stage="download",outcome="done"} 6
holdfast_attempt_duration_seconds_bucket{stage="download",outcome="failed",le="+Inf"} 9
holdfast_attempt_duration_seconds_sum{stage="download",outcome="failed"} 90
holdfast_attempt_duration_seconds_count{stage="download",outcome="failed"} 9
`
	const workerText = `
# TYPE holdfast_step_duration_seconds histogram
holdfast_step_duration_seconds_bucket{stage="download",le="+Inf"} 6
holdfast_step_duration_seconds_sum{stage="download"} 19
holdfast_step_duration_seconds_count{stage="download"} 6
# TYPE holdfast_step_bytes_total counter
holdfast_step_bytes_total{stage="download"} 600
# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 2.5
`
	got, err := autoscale.Measure(strings.NewReader(registryText), strings.NewReader(registryText), strings.NewReader(workerText))
	want := autoscale.StageTimes{
		Stage: registry.Download, Steps: 12, Seconds: 40, CPUSeconds: 2.5, Bytes: 600,
		Buckets: []autoscale.Bucket{{Most: 1, Steps: 4}, {Most: 4, Steps: 6}, {Most: 16, Steps: 2}},
	}
	if err != nil || len(got.Stages) != 1 || !reflect.DeepEqual(got.Stages[0], want) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
	if _, err := autoscale.Measure(strings.NewReader(workerText)); err == nil {
		t.Error("a worker's metrics alone gave times")
	}
}

// TestSets: the service times that come with the program have all stages of a deposit.
func TestSets(t *testing.T) {
	if len(autoscale.Sets()) < 2 {
		t.Errorf("there are only %v", autoscale.Sets())
	}
	for _, name := range autoscale.Sets() {
		times, err := autoscale.Set(name)
		if err != nil || times.Measured == "" {
			t.Errorf("%s: %v, measured %q", name, err, times.Measured)
		}
	}
	text, err := os.ReadFile("measured/large.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := autoscale.ParseTimes([]byte(strings.Replace(string(text), `"process"`, `"other"`, 1))); err == nil {
		t.Error("times without a stage are taken")
	}
}
