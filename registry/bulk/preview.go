package bulk

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
	"github.com/holdfast/holdfast/registry/work"
)

// fact is an SQL condition of row i that decides, beside stage and status, which acts are allowed.
type fact struct {
	cond    string
	set     func(*registry.Position)
	decides func(registry.Transition) bool
	state   bool // it also decides the state of unsettled items, which is always shown
}

var facts = []fact{
	{"i.attempt > 0", func(p *registry.Position) { p.Attempt = 1 }, func(t registry.Transition) bool { return t.Claimed }, true},
	{"i.blocker_count > 0", func(p *registry.Position) { p.Open = 1 }, func(t registry.Transition) bool { return t.Open }, true},
	{"i.closing > 1", func(p *registry.Position) { p.Closing = 2 }, func(registry.Transition) bool { return false }, true},
	{"(i.status = 'pending' AND " + work.HeldBy + ")", func(p *registry.Position) { p.Held = true }, func(t registry.Transition) bool { return t.Held }, true},
	{work.Delayed, func(p *registry.Position) { p.Delayed = true }, func(t registry.Transition) bool { return t.Delayed }, false},
	{work.OwnHold, func(p *registry.Position) { p.OwnHold = true }, func(t registry.Transition) bool { return t.OwnHold }, false},
	{work.Unsealed, func(p *registry.Position) { p.Unsealed = true }, func(t registry.Transition) bool { return t.Sealed }, false},
	{work.JobsLeft, func(p *registry.Position) { p.JobsLeft = true }, func(t registry.Transition) bool { return t.JobsDone }, false},
	{"(i.status = 'failed' AND i.error_class = 'jobs')", func(p *registry.Position) { p.JobsFailed = true }, func(t registry.Transition) bool { return t.OwnFault }, false},
	{"(i.commitment = 'announced')", func(p *registry.Position) { p.Commitment = registry.Announced }, commits, false},
	{"(i.commitment = 'preserved')", func(p *registry.Position) { p.Commitment = registry.Preserved }, commits, false},
}

func commits(t registry.Transition) bool { return t.Commitments != nil }

// asked returns the facts that matter to an act on an item of a status. They are those that decide
// its state, and those that decide a transition of the act, if one from this status asks for them, too:
// that may be another act's, which gives the reason of a refusal. None matters to a completed item.
func asked(act registry.Act, status registry.Status) (bits int) {
	all := registry.Transitions()
	for i, f := range facts {
		of := func(is func(registry.Transition) bool) bool {
			return slices.ContainsFunc(all, func(t registry.Transition) bool { return is(t) && f.decides(t) })
		}
		ofAct := f.state || of(func(t registry.Transition) bool { return t.Act == act })
		ofStatus := f.state && !status.Settled() || of(func(t registry.Transition) bool { return t.From == status })
		if ofAct && ofStatus {
			bits |= 1 << i
		}
	}
	return bits
}

// positionCode is an SQL expression: the place of row i and the facts that matter, as one number. A
// database sorts the rows that it groups, which takes a third longer with several columns of text.
// Most items are completed jobs, so it asks for these first.
func positionCode(act registry.Act) string {
	stage, action := "CASE i.stage", "CASE i.action"
	for _, s := range append([]registry.Stage{registry.Notify}, registry.AllStages()...) {
		i := slices.Index(registry.AllStages(), s)
		if slices.Contains(registry.Families(), s) { // of many functions, each with a stage of its own
			a, _ := registry.ActionOf(s)
			action += fmt.Sprintf(" WHEN '%s' THEN %d", a, i)
		} else {
			stage += fmt.Sprintf(" WHEN '%s' THEN %d", s, i)
		}
	}
	status := "CASE i.status"
	for _, s := range append([]registry.Status{registry.Completed}, registry.Statuses()...) {
		status += fmt.Sprintf(" WHEN '%s' THEN %d", s, slices.Index(registry.Statuses(), s)<<len(facts))
		bits := asked(act, s)
		for i, f := range facts {
			if bits&(1<<i) != 0 {
				status += fmt.Sprintf(" + CASE WHEN %s THEN %d ELSE 0 END", f.cond, 1<<i)
			}
		}
	}
	return fmt.Sprintf("COALESCE((%s ELSE %s END END) * %d + %s END, -1)", stage, action, len(registry.Statuses())<<len(facts), status)
}

// positionAt is the position of a positionCode. A place that this program does not know allows no act.
func positionAt(code int) (at registry.Position) {
	if code < 0 {
		return at
	}
	for i, f := range facts {
		if code&(1<<i) != 0 {
			f.set(&at)
		}
	}
	place := code >> len(facts)
	at.Status = registry.Statuses()[place%len(registry.Statuses())]
	at.Stage = registry.AllStages()[place/len(registry.Statuses())]
	at.Action, _ = registry.ActionOf(at.Stage)
	return at
}

// PreviewBulk implements registry.Commanding. One statement groups the items by what the state
// machine decides from.
func (s *Acts) PreviewBulk(ctx context.Context, b registry.BulkRequest) (registry.BulkPreview, error) {
	p, err := s.preview(ctx, b)
	if err != nil {
		return p, fmt.Errorf("preview %s in bulk: %w", b.Act, err)
	}
	return p, nil
}

func (s *Acts) preview(ctx context.Context, b registry.BulkRequest) (p registry.BulkPreview, err error) {
	spec, err := bulkSpec(b)
	if err != nil {
		return p, err
	}
	spec.AskedAt = s.db.Now()
	w, err := s.matches(ctx, spec)
	if err != nil {
		return p, err
	}
	counts := map[registry.BulkPart]int64{}
	err = sqldb.Each(s.db.Read.Ask(ctx, `SELECT code, COUNT(*) FROM (SELECT `+positionCode(b.Act)+` AS code FROM work_item i`+w.String()+
		s.db.Dialect.Apart()+`) c GROUP BY 1`, w.Args...), "group the matching items", func(row sqldb.Scanner) error {
		var code int
		var n int64
		if err := row.Scan(&code, &n); err != nil {
			return err
		}
		at := positionAt(code)
		counts[registry.BulkPart{State: registry.StateOf(at), Skipped: whyNot(at, spec)}] += n
		return nil
	})
	if err != nil {
		return p, err
	}
	for part, n := range counts {
		part.Count = n
		p.Matched += n
		if part.Skipped == "" {
			p.Applies += n
		}
		p.Parts = append(p.Parts, part)
	}
	slices.SortFunc(p.Parts, func(a, b registry.BulkPart) int {
		return cmp.Or(cmp.Compare(sqldb.Bit(a.Skipped != ""), sqldb.Bit(b.Skipped != "")), cmp.Compare(b.Count, a.Count),
			cmp.Compare(a.State, b.State), cmp.Compare(a.Skipped, b.Skipped))
	})
	return p, nil
}

// whyNot says why a bulk act skips an item at a position; "" if it applies.
func whyNot(at registry.Position, spec registry.BulkSpec) string {
	at.Notifies = true // only the item's profile knows
	if why := registry.WhyNot(at, spec.Act); why != "" {
		return why
	}
	// Which optional steps an item takes is known when the act runs.
	if route, ok := registry.RouteOf(at.Action); ok && spec.From != "" && !slices.Contains(route.With(registry.AllStages()).UpTo(at.Stage), spec.From) {
		return fmt.Sprintf("it has not been in stage %s", spec.From)
	}
	return ""
}
