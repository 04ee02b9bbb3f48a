package deposit

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/query"
	"github.com/holdfast/holdfast/web/ui/page"
)

// depositsShown is the number of deposits on a page. Each of them that still changes takes up to
// three reads.
const depositsShown = 25

// mostCounted bounds how many deposits are counted for the chips.
const mostCounted = 2000

// depositsPage is the content of the list of deposits.
type depositsPage struct {
	Rows   []standing
	First  []standing // of the last weeks: what their depositor must correct
	Chips  []chip
	Show   string // the chosen chip
	Query  string
	Words  string // the texts of the query, which may be titles of objects
	Wrong  string // the error of the query
	Fields []query.Field
	Own    bool // only the viewer's own; otherwise all that the viewer may see
	All    bool // the viewer may see those of others
	Toggle string
	Prev   string
	Next   string
	Empty  bool // there are none at all
	May    bool // the viewer may deposit
	Here   string
}

// chip narrows the list to some states.
type chip struct {
	Name, Address string
	Count         int64 // if More, there may be more
	Chosen, More  bool
}

// unresolved finds the deposits of which something failed that nobody corrects.
var unresolved = registry.Term{Field: "unresolved", Value: "yes"}

// statesOf are the states of batches that a chip stands for, if nothing of them is unresolved; none for
// the chips of all batches and of unresolved ones.
func statesOf(name string) []registry.State {
	switch name {
	case "done":
		return []registry.State{registry.StateCompleted, registry.StateFailed, registry.StateCancelled, registry.StateAborted, registry.StateDeleted}
	case "open":
		return []registry.State{
			registry.StatePrepare, registry.StatePending, registry.StateHeld,
			registry.StateEstimating, registry.StateProvisioning, registry.StateDownloading, registry.StateScanning, registry.StateProcessing,
			registry.StateReplicating, registry.StateRecording, registry.StateNotify, registry.StateReporting, registry.StateUpdateReport,
		}
	}
	return nil
}

// termsOf are the conditions of a chip. Each deposit meets those of one chip, beside all.
func termsOf(name string) []registry.Term {
	states := statesOf(name)
	if name == "needs" {
		return []registry.Term{unresolved}
	} else if len(states) == 0 {
		return nil
	}
	texts := make([]string, len(states))
	for i, s := range states {
		texts[i] = strings.ToLower(string(s))
	}
	return []registry.Term{{Field: "state", Value: strings.Join(texts, ",")}, {Field: unresolved.Field, Value: unresolved.Value, Not: true}}
}

func (p pages) list(r *http.Request) (page.Page, error) {
	ctx, asked := r.Context(), r.URL.Query()
	me, err := p.API.OwnToken(ctx)
	if err != nil {
		return page.Page{}, err
	}
	content := depositsPage{
		Query: strings.TrimSpace(asked.Get("q")), Show: asked.Get("show"), Own: asked.Get("of") != "all", All: true, Fields: query.Fields(),
		May: p.May(ctx, "submit-payload"), Here: r.URL.RequestURI(),
	}
	if me.Role == registry.RoleViewer { // who submits nothing
		content.Own, content.All = false, false
	}
	content.Toggle = page.With(r, "of", map[bool]string{true: "all"}[content.Own])
	match, err := query.Parse(content.Query)
	if wrong := (*registry.QueryError)(nil); errors.As(err, &wrong) {
		content.Wrong, match = wrong.Error(), registry.Query{}
	} else if err != nil {
		return page.Page{}, err
	}
	content.Words = match.Words()
	if content.Own {
		match.Terms = append(match.Terms, registry.Term{Field: "by", Value: me.Name})
	}
	counts, err := p.API.CountItems(ctx, registry.ItemQuery{Action: registry.Batch, Match: match, Most: mostCounted})
	open := map[registry.State]int64{} // of these, the unresolved ones
	if err == nil {
		both := registry.Query{Terms: append(slices.Clone(match.Terms), unresolved)}
		open, err = p.API.CountItems(ctx, registry.ItemQuery{Action: registry.Batch, Match: both, Most: mostCounted})
	}
	if refused, ok := page.Refusal(err); ok { // a search that would take too long
		content.Wrong = refused.Error()
		return p.listPage(r, content, false), nil
	} else if err != nil {
		return page.Page{}, err
	}
	content.Chips = chipsOf(r, content.Show, counts, open)
	content.Empty = content.Query == "" && content.Chips[0].Count == 0
	match.Terms = append(match.Terms, termsOf(content.Show)...)
	batches, err := p.API.Items(ctx, registry.ItemQuery{Action: registry.Batch, Match: match, After: asked.Get("after"), Before: asked.Get("before"), Limit: depositsShown})
	if err != nil {
		return page.Page{}, err
	}
	content.Prev, content.Next = page.Prev(r, batches.Prev), page.Next(r, batches.Next)
	content.Here = page.With(r, "after", "")
	for _, b := range batches.Rows {
		s, err := p.standingOf(ctx, b, me)
		if errors.Is(err, registry.ErrNotFound) {
			continue // removed meanwhile
		} else if err != nil {
			return page.Page{}, err
		}
		if s.Phase == phaseDone && s.Progress.Jobs == 1 {
			jobs, err := p.API.BatchJobs(ctx, b.ID, "", 1)
			if err != nil {
				return page.Page{}, err
			}
			s.Jobs = jobs.Rows
		}
		content.Rows = append(content.Rows, s)
	}
	newest := asked.Get("after") == "" && asked.Get("before") == ""
	if newest && content.Own && !page.Streaming(r) && content.Query == "" && content.Chips[0].Chosen && content.Chips[1].Count > 0 {
		if content.First, err = p.mustCorrect(ctx, me); err != nil {
			return page.Page{}, err
		}
	}
	return p.listPage(r, content, newest), nil
}

// firstShown is how many deposits that must be corrected stand above all others.
const firstShown = 3

// mustCorrect returns the newest deposits of the viewer of which something must be corrected, of the last
// 30 days: older ones were given up.
func (p pages) mustCorrect(ctx context.Context, me registry.Token) (first []standing, err error) {
	terms := []registry.Term{unresolved, {Field: "by", Value: me.Name}, {Field: "newer", Value: "30d"}}
	failed, err := p.API.Items(ctx, registry.ItemQuery{Action: registry.Batch, Match: registry.Query{Terms: terms}, Limit: 2 * firstShown})
	if err != nil {
		return nil, err
	}
	for _, b := range failed.Rows {
		s, err := p.standingOf(ctx, b, me)
		if errors.Is(err, registry.ErrNotFound) {
			continue // removed meanwhile
		} else if err != nil {
			return nil, err
		}
		if s.Phase == phaseMine && len(first) < firstShown {
			first = append(first, s)
		}
	}
	return first, nil
}

func (p pages) listPage(r *http.Request, content depositsPage, live bool) page.Page {
	return page.Page{Name: "deposits", Title: p.Texts(r).T("Deposits"), Section: "deposits", Live: live, Alike: !content.Own, Content: content}
}

// chipsOf returns the chips with the number of batches of each; the first stands for all. open are those
// of counts that are unresolved. If counting ended at mostCounted, each may have more.
func chipsOf(r *http.Request, chosen string, counts, open map[registry.State]int64) []chip {
	at := func(name string) string { return page.With(r, "show", name) }
	chips := []chip{{Name: "", Address: at(""), Chosen: len(termsOf(chosen)) == 0}}
	for _, n := range counts {
		chips[0].Count += n
	}
	chips[0].More = chips[0].Count >= mostCounted
	needs := chip{Name: "needs", Address: at("needs"), Chosen: chosen == "needs", More: chips[0].More}
	for _, n := range open {
		needs.Count += n
	}
	chips = append(chips, needs)
	for _, name := range []string{"open", "done"} {
		c := chip{Name: name, Address: at(name), Chosen: chosen == name}
		for _, s := range statesOf(name) {
			c.Count += max(0, counts[s]-open[s]) // each was counted at its time
		}
		c.More = chips[0].More
		chips = append(chips, c)
	}
	return chips
}
