package payload

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/holdfast/holdfast/cmd/holdfast/exit"
	"github.com/holdfast/holdfast/profile"
	"github.com/holdfast/holdfast/registry"
)

// ReadTerms reads terms, in YAML or JSON, from a file, or from standard input for "-". The service
// decides whether they are right.
func ReadTerms(file string, stdin io.Reader) (terms registry.Terms, err error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return terms, fmt.Errorf("%s: %w", file, exit.Cause(err))
		}
		defer func() { _ = f.Close() }() // nothing was written
		in = f
	}
	text, err := io.ReadAll(io.LimitReader(in, profile.MaxSize+1))
	if err != nil {
		return terms, fmt.Errorf("read %s: %w", file, exit.Cause(err))
	}
	terms, err = profile.ParseTerms(text)
	if faults := profile.Faults(nil); errors.As(err, &faults) {
		err = exit.Usagef("%s does not have terms; correct these faults:\n%v", file, faults)
	}
	return terms, err
}
