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
	for _, stage := range route() {
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

// route returns the stages that each deposit passes after it was expanded.
func route() (stages []registry.Stage) {
	r, _ := registry.RouteOf(registry.Ingest)
	for _, step := range r.With(nil).Steps {
		stages = append(stages, step.Stage)
	}
	return stages
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

// Sized returns the times of steps as for objects of a size: the time of stages that move the bytes of
// objects is proportional to these. 0: as measured.
func (t Times) Sized(size int64) Times {
	out := Times{Measured: t.Measured}
	for _, s := range t.Stages {
		if step, _ := registry.StepOf(s.Stage); size > 0 && s.Bytes > 0 && step.Writes != registry.NoVolume {
			by := float64(size) * float64(s.Steps) / float64(s.Bytes)
			s.Seconds, s.CPUSeconds, s.Bytes = s.Seconds*by, s.CPUSeconds*by, size*s.Steps
			s.Buckets = slices.Clone(s.Buckets)
			for i := range s.Buckets {
				s.Buckets[i].Most *= by
			}
		}
		out.Stages = append(out.Stages, s)
	}
	return out
}
