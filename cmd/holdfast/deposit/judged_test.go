package deposit

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/web/wire"
)

// A payload that is still being judged is asked for again until there is a verdict, with one
// message. Any other answer counts at once.
func TestJudged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var errs bytes.Buffer
		a, asked, other := &cli.App{Err: &errs}, 0, errors.New("refused")
		judging := wire.NewProblem(503, wire.CodeJudging, "still being judged")
		err := judged(t.Context(), a, func() error {
			if asked++; asked < 4 {
				return judging
			}
			return other
		})
		if !errors.Is(err, other) || asked != 4 || strings.Count(errs.String(), "is judging the payload") != 1 {
			t.Errorf("%v after %d, told %q", err, asked, errs.String())
		}
		ctx, cancel := context.WithCancel(t.Context())
		err = judged(ctx, a, func() error { cancel(); return judging })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the end of who waits", err)
		}
	})
}
