package workers_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
)

// Each of several joined errors is asked whose fault it is, in any order and however wrapped. The
// collector of a job's faults and the judge of the step agree.
func TestJoinedFaultsAreOneVerdict(t *testing.T) {
	system, content := &source.Error{Kind: source.FaultDNS}, &unpack.Error{Fault: unpack.FaultDamaged}
	mismatch := &registry.IdentifierMismatch{LocalID: "a"}
	for name, tt := range map[string]struct {
		err  error
		want bool
	}{
		"system alone":              {system, false},
		"content alone":             {content, true},
		"content first":             {errors.Join(content, system), true},
		"system first":              {errors.Join(system, content), true},
		"deep":                      {fmt.Errorf("a: %w", errors.Join(system, fmt.Errorf("b: %w, %w", system, content))), true},
		"a mismatch behind system":  {errors.Join(system, mismatch), true},
		"system twice":              {errors.Join(system, system), false},
		"nothing":                   {nil, false},
		"a nil among what it wraps": {joined{nil, content}, true},
	} {
		if got := base.ContentFault(tt.err); got != tt.want {
			t.Errorf("%s: content fault %t, want %t", name, got, tt.want)
		}
	}
}

// joined wraps what it is given, nil, too.
type joined []error

func (j joined) Error() string   { return "several" }
func (j joined) Unwrap() []error { return j }
