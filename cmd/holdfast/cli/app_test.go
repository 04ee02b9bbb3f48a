package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
)

func TestComplain(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"joined", errors.Join(one, errors.Join(two, nil)), "holdfast: one\nholdfast: two\n"},
		{"in a sentence", fmt.Errorf("start %w, then %w", one, two), "holdfast: start one, then two\n"},
		{"joined in a sentence", fmt.Errorf("read: %w", errors.Join(one, two)), "holdfast: read: one\n  two\n"},
		{"with a fix", exit.Fix(one, "do that"), "holdfast: one; do that\n"},
		{"from the table", fmt.Errorf("open x: %w", os.ErrNotExist), "holdfast: open x: file does not exist; check the path\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var errs bytes.Buffer
			(&App{Err: &errs}).Complain(tt.err)
			if errs.String() != tt.want {
				t.Errorf("said %q, want %q", errs.String(), tt.want)
			}
		})
	}
}

func TestOutcomeIsSilent(t *testing.T) {
	var errs bytes.Buffer
	a := &App{Err: &errs}
	a.Complain(errors.Join(exit.Partly, nil))
	if errs.Len() > 0 {
		t.Errorf("said %q about what has been said", errs.String())
	}
}
