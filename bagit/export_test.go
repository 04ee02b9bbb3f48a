package bagit

import (
	"errors"
	"io"
	"iter"
)

// InShares makes the Validator judge the bag in shares of this weight.
func (v *Validator) InShares(weight int64) { v.share = weight }

// ScanManifest yields the names in a manifest by their lines. Malformed lines are left out.
func ScanManifest(r io.Reader) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		for e := range scan(r, scanManifest) {
			if !yield(e.Line, e.Name) {
				return
			}
		}
	}
}

// ScanBagInfo yields the tags of bag-info.txt. Malformed lines are left out.
func ScanBagInfo(r io.Reader) iter.Seq[Tag] { return scan(r, scanBagInfo) }

// ScanFetch yields the entries of fetch.txt. Malformed lines are left out.
func ScanFetch(r io.Reader) iter.Seq[FetchEntry] { return scan(r, scanFetch) }

func scan[T any](r io.Reader, scanner func(io.Reader) iter.Seq2[T, error]) iter.Seq[T] {
	text, _, err := openText(r)
	if err != nil {
		panic(err)
	}
	return func(yield func(T) bool) {
		for entry, err := range scanner(text) {
			if malformed := (*lineError)(nil); errors.As(err, &malformed) {
				continue
			} else if err != nil {
				panic(err)
			}
			if !yield(entry) {
				return
			}
		}
	}
}
