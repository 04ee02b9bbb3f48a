package queue

import (
	"net/url"
	"slices"
	"strings"

	"github.com/holdfast/holdfast/registry"
)

// stageRow is a stage of the pipeline as a row of its table.
type stageRow struct {
	registry.StageQueue

	Bar     []segment
	Reasons []reasonCount
	// PerHour is how many of its steps end in an hour, by those of the last minutes; -1: not known.
	PerHour int64
	Silent  bool // items wait, and no worker serves the stage
}

// Busy is how many slots run steps.
func (s stageRow) Busy() int { return s.Capacity - s.Free }

// PerMinute is the rate in minutes.
func (s stageRow) PerMinute() int64 { return s.PerHour / 60 }

// MoreFailed says that more items failed than were counted.
func (s stageRow) MoreFailed() bool { return s.Failed >= registry.MostFailedCounted }

// reasonCount is how many items of a stage wait for something.
type reasonCount struct {
	Reason registry.Reason
	Count  int64
}

// segment is a part of a stage's bar, in its own units.
type segment struct {
	Class    string
	X, Width int64
}

// barWidth is the length of the longest bar.
const barWidth = 240

// stageRows returns the stages of deposits in the order of their route, and the other stages that
// something is in. rates are nil if they are not known.
func stageRows(q registry.QueueStatus, rates map[registry.Stage]int64) (deposits, others []stageRow) {
	most := int64(1)
	for _, s := range q.Stages {
		most = max(most, total(s))
	}
	for _, s := range q.Stages {
		row := stageRow{StageQueue: s, Bar: barOf(s, most), PerHour: -1, Silent: s.Ready > 0 && s.Capacity == 0}
		if rates != nil {
			row.PerHour = rates[s.Stage]
		}
		for _, r := range []registry.Reason{registry.ReasonNoSpace, registry.ReasonNotDue, registry.ReasonLocked, registry.ReasonBlocked} {
			if n := s.WaitsFor[r]; n > 0 {
				row.Reasons = append(row.Reasons, reasonCount{r, n})
			}
		}
		switch action, _ := registry.ActionOf(s.Stage); {
		case action == registry.Batch || action == registry.Ingest:
			if !optional(s.Stage) || total(s) > 0 || row.PerHour > 0 {
				deposits = append(deposits, row)
			}
		case total(s) > 0 || row.PerHour > 0:
			others = append(others, row)
		}
	}
	// The batch's report comes after its jobs.
	if i := slices.IndexFunc(deposits, func(s stageRow) bool { return s.Stage == registry.Report }); i >= 0 {
		report := deposits[i]
		deposits = append(slices.Delete(deposits, i, i+1), report)
	}
	return deposits, others
}

// optional reports whether jobs take a stage only if their collection's profile says so.
func optional(s registry.Stage) bool { return s == registry.Scan || s == registry.Replicate }

func total(s registry.StageQueue) int64 { return s.Running + s.Ready + s.Waiting + s.Held + s.Failed }

func barOf(s registry.StageQueue, most int64) (bar []segment) {
	x := int64(0)
	for _, part := range []struct {
		class string
		n     int64
	}{{"active", s.Running}, {"ready", s.Ready}, {"waiting", s.Waiting}, {"still", s.Held}, {"bad", s.Failed}} {
		if part.n == 0 {
			continue
		}
		width := max(3, part.n*barWidth/most) // a few among many are still to be seen
		bar = append(bar, segment{part.class, x, width})
		x += width + 1
	}
	return bar
}

// itemsURL is the address of the list of items that match some terms.
func itemsURL(terms ...string) string {
	return "/items?" + url.Values{"q": {strings.Join(terms, " ")}}.Encode()
}

// stageTerm is the term of the query language for a stage.
func stageTerm(s registry.Stage) string { return "stage:" + quoted(string(s)) }

// quoted quotes a value of the query language if it has to be.
func quoted(value string) string {
	if strings.ContainsAny(value, " \":,\\") {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(value) + `"`
	}
	return value
}
