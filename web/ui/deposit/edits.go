package deposit

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/ui/page"
)

// The rows of other pages are carried in hidden fields of the form. The server keeps nothing of them, so
// there is nothing to expire, to share between processes or to lose when one ends. Both bounds keep the
// form below the size that the server reads, and the page light; a turn of the page beyond them is refused.
const (
	mostEdits     = registry.MostLineRanges - rowsShown // rows apart from each other that can be submitted, less those of a page
	mostEditBytes = 160 << 10                           // of hidden fields
	idsAsked      = 50                                  // in a query, which is short
)

// edit is what somebody did to a failed row.
type edit struct {
	Cells map[string]string // what was typed over, by the names of the columns
	Out   bool              // it is not to be submitted
	AsIs  bool              // it is to be submitted even if nothing was typed over
}

// submitted reports whether it is among the rows that were changed.
func (e edit) submitted() bool { return !e.Out && (e.AsIs || len(e.Cells) > 0) }

// The names in the text of an edit that are no columns.
const (
	editRow  = "row"
	editOut  = "out"
	editAsIs = "as_is"
)

// edits are those of all pages, by the ids of the rows.
type edits map[string]edit

// readEdits reads those that the form carries.
func readEdits(form url.Values) (edits, error) {
	all, texts := edits{}, form["kept"]
	if len(texts) > registry.MostLineRanges {
		return nil, page.Invalid("the form could not be read")
	}
	for _, text := range texts {
		v, err := url.ParseQuery(text)
		if err != nil {
			return nil, page.Invalid("the form could not be read")
		}
		e := edit{Out: v.Has(editOut), AsIs: v.Has(editAsIs), Cells: map[string]string{}}
		for name := range v {
			if name != editRow && name != editOut && name != editAsIs {
				e.Cells[name] = v.Get(name)
			}
		}
		all[v.Get(editRow)] = e
	}
	return all, nil
}

// note keeps what was done to a row.
func (all edits) note(r rowForm) {
	e := edit{Out: r.Out, AsIs: r.AsIs, Cells: map[string]string{}}
	for _, c := range r.Cells {
		if c.Value != c.Was {
			e.Cells[c.Name] = c.Value
		}
	}
	if e.Out || e.AsIs || len(e.Cells) > 0 {
		all[r.ID] = e
	} else {
		delete(all, r.ID)
	}
}

// apply does to a row again what was done to it.
func (all edits) apply(r *rowForm) {
	e := all[r.ID]
	r.Out, r.AsIs = e.Out, e.AsIs
	for i := range r.Cells {
		if text, ok := e.Cells[r.Cells[i].Name]; ok {
			r.Cells[i].Value = text
		}
	}
}

// kept returns the texts of those that are not of rows, for the form to carry.
func (all edits) kept(rows []rowForm) (texts []string) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if slices.ContainsFunc(rows, func(r rowForm) bool { return r.ID == id }) {
			continue
		}
		e := all[id]
		v := url.Values{editRow: {id}}
		if e.Out {
			v.Set(editOut, "1")
		}
		if e.AsIs {
			v.Set(editAsIs, "1")
		}
		for name, text := range e.Cells {
			v.Set(name, text)
		}
		texts = append(texts, v.Encode())
	}
	return texts
}

// tooMany reports whether the form cannot carry so many.
func tooMany(texts []string) bool {
	return len(texts) > mostEdits || len(strings.Join(texts, "")) > mostEditBytes
}

// rowsByID reads failed rows of a batch, in the order of its manifest. It leaves out ids of anything else.
func (p pages) rowsByID(ctx context.Context, c rowsPage, kind checkm.Kind, ids []string) (rows []rowForm, err error) {
	for some := range slices.Chunk(ids, idsAsked) {
		jobs, err := p.failedRows(ctx, c.Batch.ID, "", "", len(some), registry.Term{Field: "id", Value: strings.Join(some, ",")})
		if err != nil {
			return nil, err
		}
		for _, job := range jobs.Rows {
			rows = append(rows, rowOf(job, kind, c.columns))
		}
	}
	slices.SortFunc(rows, func(a, b rowForm) int { return cmp.Compare(a.At, b.At) })
	return rows, nil
}
