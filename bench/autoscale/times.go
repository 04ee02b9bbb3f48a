package autoscale

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// Times are measured service times.
type Times struct {
	Measured string       `json:"measured"` // when, where and how
	Stages   []StageTimes `json:"stages"`
}

// StageTimes are the steps of one stage that were done.
type StageTimes struct {
	Stage   registry.Stage `json:"stage"`
	Steps   int64          `json:"steps"`
	Seconds float64        `json:"seconds"` // all together
	// CPUSeconds is the processor time of all steps together; 0: not measured.
	CPUSeconds float64 `json:"cpu_seconds,omitempty"`
	Bytes      int64   `json:"bytes,omitempty"` // read, written or sent, all together
	// Buckets is the distribution: how many steps took at most so long, and longer than the bucket
	// before.
	Buckets []Bucket `json:"buckets"`
}

// Bucket counts steps.
type Bucket struct {
	Most  float64 `json:"most"` // seconds
	Steps int64   `json:"steps"`
}

// Mean returns the mean time of a step in seconds.
func (s StageTimes) Mean() float64 { return s.Seconds / float64(max(1, s.Steps)) }

// Share returns which part of a step's time it uses a processor: 0 to 1.
func (s StageTimes) Share() float64 {
	if s.Seconds <= 0 {
		return 0
	}
	return min(1, s.CPUSeconds/s.Seconds)
}

// Of returns the times of a stage; ok is false if it was not measured.
func (t Times) Of(stage registry.Stage) (s StageTimes, ok bool) {
	i := slices.IndexFunc(t.Stages, func(s StageTimes) bool { return s.Stage == stage })
	if i < 0 {
		return s, false
	}
	return t.Stages[i], true
}

// ParseTimes reads service times. An error says what is missing.
func ParseTimes(text []byte) (t Times, err error) {
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("service times: %w", err)
	}
	for _, stage := range stages(nil) {
		s, ok := t.Of(stage)
		var n int64
		for _, b := range s.Buckets {
			n += b.Steps
		}
		switch {
		case !ok || s.Steps <= 0 || s.Seconds <= 0:
			return t, fmt.Errorf("service times: no step of %s was measured", stage)
		case n != s.Steps:
			return t, fmt.Errorf("service times: the buckets of %s have %d steps, not %d", stage, n, s.Steps)
		}
	}
	return t, nil
}

//go:embed measured/*.json
var measured embed.FS

// ErrNoSet means that there is no set of service times of that name.
var ErrNoSet = errors.New("no such set of service times")

// Sets returns the names of the service times that come with the program.
func Sets() (names []string) {
	files, _ := fs.Glob(measured, "measured/*.json") // the pattern is valid
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "measured/"), ".json"))
	}
	return names
}

// Set returns service times that come with the program. ErrNoSet: see [Sets].
func Set(name string) (Times, error) {
	text, err := measured.ReadFile("measured/" + name + ".json")
	if err != nil {
		return Times{}, fmt.Errorf("%w: %s; there are %s", ErrNoSet, name, strings.Join(Sets(), ", "))
	}
	return ParseTimes(text)
}

// route returns the stages of an action, with only these of its optional ones.
func route(a registry.Action, optional []registry.Stage) (all []registry.Stage) {
	r, _ := registry.RouteOf(a)
	for _, step := range r.With(optional).Steps {
		all = append(all, step.Stage)
	}
	return all
}

// stages returns the stages that a deposit and its jobs pass.
func stages(optional []registry.Stage) []registry.Stage {
	return slices.Concat(route(registry.Batch, optional), route(registry.Ingest, optional))
}

// Optional returns the stages that only some deposits pass.
func Optional() []registry.Stage {
	return slices.DeleteFunc(registry.DepositStages(), func(s registry.Stage) bool { return slices.Contains(stages(nil), s) })
}

// scanRate is how many bytes a virus scanner is assumed to read in a second.
const scanRate = 40 << 20

// WithStated adds times of optional stages that were not measured: a scanner reads each downloaded byte
// at 40 MiB a second, and a replica is written as the version was. stated are the stages that got them. An
// error says which stage has neither.
func (t Times) WithStated(optional []registry.Stage) (out Times, stated []registry.Stage, err error) {
	out = Times{Measured: t.Measured, Stages: slices.Clone(t.Stages)}
	for _, stage := range optional {
		if _, ok := t.Of(stage); ok {
			continue
		}
		var s StageTimes
		switch stage {
		case registry.Scan:
			d, _ := t.Of(registry.Download)
			mean := float64(d.Bytes) / scanRate / float64(max(1, d.Steps))
			s = StageTimes{Steps: 1, Seconds: mean, Bytes: d.Bytes / max(1, d.Steps), Buckets: []Bucket{{Most: mean, Steps: 1}}}
		case registry.Replicate:
			s, _ = t.Of(registry.Process)
		default:
			return t, nil, fmt.Errorf("service times: no step of %s was measured", stage)
		}
		s.Stage = stage
		out.Stages, stated = append(out.Stages, s), append(stated, stage)
	}
	return out, stated, nil
}

// ofDeposit returns the times of a stage of deposits with so many jobs. It is stated, since the measured
// deposits are few and large: a step takes as long as the last one of a job, which does little, and
// besides its part of the measured time for each job.
func (t Times) ofDeposit(stage registry.Stage, jobs int) StageTimes {
	ofJob := route(registry.Ingest, nil)
	first, _ := t.Of(ofJob[0])
	last, _ := t.Of(ofJob[len(ofJob)-1])
	measured, _ := t.Of(stage)
	each := float64(jobs) / float64(first.Steps)
	more := each * measured.Seconds / last.Mean()
	cpu := last.CPUSeconds + float64(last.Steps)*each*measured.CPUSeconds
	last = last.times(1 + more)
	last.Stage, last.CPUSeconds = stage, cpu
	return last
}

// sampler draws service times of a stage.
type sampler struct {
	until []int64 // steps up to and with each bucket
	of    []Bucket
	scale float64 // so that the mean is that of the steps
}

func newSampler(s StageTimes) sampler {
	out := sampler{scale: 1}
	var n int64
	sum := 0.0
	for i, b := range s.Buckets {
		n += b.Steps
		out.until, out.of = append(out.until, n), append(out.of, b)
		low := b.Most / 4
		if i > 0 {
			low = s.Buckets[i-1].Most
		}
		sum += float64(b.Steps) * (low + b.Most) / 2
	}
	if sum > 0 {
		out.scale = s.Seconds / sum
	}
	return out
}

func (s sampler) draw(r *rand.Rand) float64 {
	n := r.Int64N(s.until[len(s.until)-1]) + 1
	i, _ := slices.BinarySearch(s.until, n)
	low := s.of[i].Most / 4
	if i > 0 {
		low = s.of[i-1].Most
	}
	return s.scale * (low + r.Float64()*(s.of[i].Most-low))
}

// times returns the times of steps that take more times as long.
func (s StageTimes) times(more float64) StageTimes {
	s.Seconds, s.CPUSeconds, s.Buckets = s.Seconds*more, s.CPUSeconds*more, slices.Clone(s.Buckets)
	for i := range s.Buckets {
		s.Buckets[i].Most *= more
	}
	return s
}

// Sized returns the times of steps as for objects of a size: the time of stages that move the bytes of
// objects is proportional to these. 0: as measured.
func (t Times) Sized(size int64) Times {
	out := Times{Measured: t.Measured}
	for _, s := range t.Stages {
		if step, _ := registry.StepOf(s.Stage); size > 0 && s.Bytes > 0 && (step.Writes != registry.NoVolume || s.Stage == registry.Scan) {
			by := float64(size) * float64(s.Steps) / float64(s.Bytes)
			s = s.times(by)
			s.Bytes = size * s.Steps
		}
		out.Stages = append(out.Stages, s)
	}
	return out
}
