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

// ReadDocument reads a profile, or a part of one, from a file, or from standard input for "-". It stops
// one byte above the size limit of a profile, so that the parser notices the excess.
func ReadDocument(file string, stdin io.Reader) (text []byte, err error) {
	in := stdin
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, exit.Cause(err))
		}
		defer func() { _ = f.Close() }() // nothing was written
		in = f
	}
	if text, err = io.ReadAll(io.LimitReader(in, profile.MaxSize+1)); err != nil {
		return nil, fmt.Errorf("read %s: %w", DocumentName(file), exit.Cause(err))
	}
	return text, nil
}

// DocumentName is how messages call the file that ReadDocument reads.
func DocumentName(file string) string {
	if file == "-" {
		return "standard input"
	}
	return file
}

// ReadTerms reads terms, in YAML or JSON, like ReadDocument. The service decides whether they are right.
func ReadTerms(file string, stdin io.Reader) (registry.Terms, error) {
	text, err := ReadDocument(file, stdin)
	if err != nil {
		return registry.Terms{}, err
	}
	terms, err := profile.ParseTerms(text)
	if faults := profile.Faults(nil); errors.As(err, &faults) {
		err = exit.Usagef("%s does not have terms; correct these faults:\n%v", DocumentName(file), faults)
	}
	return terms, err
}
