package workers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/repeat"
	"github.com/holdfast/holdfast/workers/payload"
)

// repeatsKept is how many repeated rows the event about them names.
const repeatsKept = 10

// repeatedRows collects the rows of a batch manifest that repeat earlier rows. Each attempt
// collects them anew, with the same result.
type repeatedRows struct {
	finder *repeat.Finder[registry.RowPlace]
	count  int64
	first  []string
}

// findRepeats returns the collector of repeated rows. For a manifest with very many rows it first
// reads the manifest once more.
func (w *Expand) findRepeats(ctx context.Context, item *base.Item, m payload.Manifest, e expansion) (*repeatedRows, error) {
	s := &repeatedRows{finder: repeat.New[registry.RowPlace](e.rows, repeat.Kept)}
	if !s.finder.TwoPasses() {
		return s, nil
	}
	progress := item.Progress("rows compared", "rows")
	progress.SetEnd(e.rows)
	var n int64
	return s, w.payloads.Rows(ctx, m, e.spec.Type, func(row checkm.Row, faults []checkm.Fault) error {
		n++
		if j := e.job(item, n, row, faults); j.Fault == "" {
			s.finder.Note(sumOf(j.Spec))
		}
		progress.Add(1)
		return nil
	})
}

// mark records in a job which earlier row its row repeats. A refused row stores nothing, so it
// repeats nothing.
func (s *repeatedRows) mark(j *registry.NewJob) {
	if j.Fault != "" {
		return
	}
	at := registry.RowPlace{Row: j.Row, Line: j.Line}
	first, ok := s.finder.First(sumOf(j.Spec), at)
	if !ok {
		return
	}
	j.Spec.Repeats = &first
	if s.count++; s.count <= repeatsKept {
		s.first = append(s.first, fmt.Sprintf("%v repeats %v", at, first))
	}
}

// recordEvent records in the batch's history, once, how many rows repeat an earlier one, and names
// the first of them.
func (s *repeatedRows) recordEvent(item *base.Item) error {
	if s.count == 0 && !s.finder.Incomplete() {
		return nil
	}
	if told, err := item.Result(registry.ResultRepeats, nil); told || err != nil {
		return err
	}
	data := map[string]any{"count": s.count, "first": s.first}
	if s.finder.Incomplete() {
		data["incomplete"] = fmt.Sprintf("there may be more: each row is compared with at most %d others", repeat.Kept)
	}
	if err := item.Event(registry.EventRowsRepeated, data); err != nil {
		return err
	}
	return item.SetResult(registry.ResultRepeats, true)
}

// sumOf returns a digest of everything in a row that affects what is stored. The size does not: it
// is only compared.
func sumOf(s registry.Spec) repeat.Sum {
	var digest registry.Digest
	if s.Digest != nil {
		digest = *s.Digest
	}
	modified := ""
	if !s.Modified.IsZero() {
		modified = s.Modified.UTC().Format(time.RFC3339Nano)
	}
	ids := slices.Sorted(slices.Values(s.LocalIDs))
	return repeat.SumOf(append(ids, modified, s.URL, s.Filename, digest.Algorithm, strings.ToLower(digest.Value), s.PrimaryID, s.Title, s.Creator, s.Date)...)
}
