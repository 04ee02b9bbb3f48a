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

const (
	// eventRepeats is the event that tells of rows of a batch manifest that repeat an earlier row.
	eventRepeats = "rows-repeated"
	// repeatsKept is how many of them it names.
	repeatsKept = 10
)

// said is what the rows of a batch manifest have said so far. It is found anew by each attempt, and
// is the same each time.
type said struct {
	finder *repeat.Finder[registry.RowPlace]
	count  int64
	first  []string
}

// survey begins to look for rows that say the same. A manifest with very many rows is read once
// more for that.
func (w *Expand) survey(ctx context.Context, item *base.Item, m payload.Manifest, e expansion) (*said, error) {
	s := &said{finder: repeat.New[registry.RowPlace](e.rows, repeat.Kept)}
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

// look notes in a job which earlier row its row repeats. What was refused stores nothing, and
// repeats nothing.
func (s *said) look(j *registry.NewJob) {
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

// tell notes in the batch's history, once, how many rows repeat an earlier one, and the first of
// them.
func (s *said) tell(item *base.Item) error {
	if s.count == 0 && !s.finder.Incomplete() {
		return nil
	}
	if told, err := item.Result(registry.ResultRepeats, nil); told || err != nil {
		return err
	}
	data := map[string]any{"count": s.count, "first": s.first}
	if s.finder.Incomplete() {
		data["incomplete"] = fmt.Sprintf("there may be more: rows are compared with at most %d others", repeat.Kept)
	}
	if err := item.Event(eventRepeats, data); err != nil {
		return err
	}
	return item.SetResult(registry.ResultRepeats, true)
}

// sumOf stands for all of a row that matters to what is stored. The size does not: it is compared,
// and part of nothing.
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
