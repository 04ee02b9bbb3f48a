package bounds

import (
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/registry"
)

// TestEveryField finds numbers, texts and lists in the arguments of registry.ForWorkers that lack a
// bound, and bounds without a field.
func TestEveryField(t *testing.T) {
	unused := maps.Clone(bounds)
	seen := map[reflect.Type]bool{reflect.TypeFor[time.Time](): true}
	var walk func(reflect.Type)
	walk = func(of reflect.Type) {
		switch of.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			walk(of.Elem())
		case reflect.Struct:
			if seen[of] {
				return
			}
			seen[of] = true
			for i := range of.NumField() {
				f := of.Field(i)
				key := of.Name() + "." + f.Name
				b, ok := bounds[key]
				delete(unused, key)
				if !ok && !bearsFields(f.Type) && f.Type.Kind() != reflect.Bool && f.Type != reflect.TypeFor[time.Time]() && f.Tag.Get("json") != "-" {
					t.Errorf("%s (%s) has no bound: whoever has a worker's secret says what it likes there", key, f.Type)
				}
				if !ok || b.judged {
					walk(f.Type)
				}
			}
		}
	}
	asked := reflect.TypeFor[registry.ForWorkers]()
	for i := range asked.NumMethod() {
		method := asked.Method(i)
		for n := 1; n < method.Type.NumIn(); n++ {
			of := method.Type.In(n)
			if _, ok := ofList[of]; !ok && of.Kind() == reflect.Slice && of.Elem().Kind() != reflect.Uint8 {
				t.Errorf("the list %s of %s has no bound", of, method.Name)
			}
			walk(of)
		}
	}
	if len(unused) > 0 {
		t.Errorf("bounds of what there is not: %v", slices.Sorted(maps.Keys(unused)))
	}
}

func TestCheck(t *testing.T) {
	less := func(n int64) *int64 { return &n }
	for names, of := range map[string]any{
		"":                             registry.Settlement{Delay: mostDelay, SizeBytes: less(-1), PriorityAdd: mostLater, Error: strings.Repeat("x", mostText)},
		"Settlement.Delay is -1ns":     registry.Settlement{Delay: -1},
		"Settlement.SizeBytes is -2":   registry.Settlement{SizeBytes: less(-2)},
		"Settlement.PriorityAdd":       registry.Settlement{PriorityAdd: -1},
		"Settlement.Error has 4 MiB":   registry.Settlement{Error: strings.Repeat("x", mostText+1)},
		"Settlement.Events has 101":    registry.Settlement{Events: make([]registry.NewEvent, mostTold+1)},
		"NewEvent.Type":                registry.Settlement{Events: []registry.NewEvent{{Type: strings.Repeat("x", mostName+1)}}},
		"WorkerInfo.Spare is 2001":     registry.RenewRequest{Worker: registry.WorkerInfo{Spare: map[registry.Stage]int{registry.Scan: 2001}}},
		"Beat.DoneBytes":               registry.RenewRequest{Beats: []registry.Beat{{DoneBytes: math.MaxInt64}}},
		"Reservation.Threshold is NaN": registry.Reservation{Threshold: math.NaN()},
		"NewJob has 501 entries":       make([]registry.NewJob, mostJobs+1),
		"NewJob.Line is 0":             []registry.NewJob{{}},
		"Progress.Title":               registry.RenewRequest{Beats: []registry.Beat{{Progress: []registry.Progress{{Title: strings.Repeat("x", mostName+1)}}}}},
		"WorkerInfo.Version":           registry.RenewRequest{Worker: registry.WorkerInfo{Version: strings.Repeat("x", mostName+1)}},
		"Intent.Plan":                  registry.Intent{Plan: make([]byte, registry.MostResult+1)},
		"RestorationRecord.Keep":       registry.RestorationRecord{Keep: math.MaxInt64},
	} {
		err := Check(registry.Lease{}, of)
		if names == "" && err != nil || names != "" && (!errors.Is(err, registry.ErrInvalid) || !strings.Contains(err.Error(), names)) {
			t.Errorf("error %v, want %q", err, names)
		}
	}
	// What the Registry replaces is not judged.
	if err := Check([]registry.NewJob{{Line: 1, Spec: registry.Spec{Submitter: strings.Repeat("x", mostText+1), Profile: registry.Profile{UploadBytes: less(-5)}}}}); err != nil {
		t.Error(err)
	}
}
