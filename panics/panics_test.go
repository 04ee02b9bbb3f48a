package panics_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/panics"
)

func TestGuard(t *testing.T) {
	if err := panics.Guard(func() error { return nil }); err != nil {
		t.Error(err)
	}
	own := errors.New("own")
	if err := panics.Guard(func() error { return own }); err != own { //nolint:errorlint // the very error
		t.Errorf("%v, want its own error", err)
	}
	var caught *panics.Error
	at := []int{}
	err := panics.Guard(func() error { at[len(at)] = 1; return nil })
	if !errors.As(err, &caught) || !strings.Contains(err.Error(), "out of range") || !strings.Contains(err.Error(), "panics_test.go") {
		t.Errorf("%v, want the panic and where it was", err)
	}
}
