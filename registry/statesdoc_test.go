package registry_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast/holdfast/registry"
)

var update = flag.Bool("update", false, "write docs/states.md")

// why says of every change that neither seed document has what it is for. A change without an entry fails the test.
var why = map[registry.Act]string{
	registry.ActRetry:   "A system fault is tried again by itself, with backoff, until MAX_ATTEMPTS is used up; in Merritt every failure waits for a person.",
	registry.ActSnooze:  "A step that waits (for space, a lock, another object's version) gives its worker back; in Merritt it sleeps in a worker thread.",
	registry.ActRelease: "A worker that is told to stop hands its items over at once, uncounted.",
	registry.ActLose:    "A worker that is gone loses its items within one lease; in Merritt a job stays in its state when its worker dies. Estimating goes on to Provisioning instead of failing.",
	registry.ActRequeue: "What was cancelled by mistake can be taken up again.",
	registry.ActCancel:  "A job that should not run can be stopped before it changes anything preserved. It is refused once a version has been announced.",
}

// absent are the changes of the seeds that this state machine does not have.
var absent = map[[2]registry.State]string{
	{registry.StateHeld, registry.StateEstimating}: "in two steps: Held -> Pending when the hold is released, then a claim; mrt-zk does the same",
	{registry.StateHeld, registry.StateProcessing}: "in two steps: Held -> Pending when the hold is released, then a claim",
	{registry.StateFailed, registry.StateDeleted}:  "there is no delete yet",
	{registry.StateHeld, registry.StateDeleted}:    "there is no delete yet",
}

// edge is one change of an item as people see it.
type edge struct {
	from, to registry.State // "" is a new item
	status   registry.Status
	stage    registry.Stage
	act      registry.Act
	by       string
	ours     bool
}

// positions are the ways in which an item can stand in a stage with a status, as far as its state depends on them.
func positions(a registry.Action, stage registry.Stage, st registry.Status, isNew bool) []registry.Position {
	p := registry.Position{Action: a, Stage: stage, Status: st, Attempt: 1}
	if isNew {
		p.Attempt = 0
	}
	if stage != registry.Report || (st != registry.Pending && st != registry.Running) {
		return []registry.Position{p}
	}
	first, again, open := p, p, p
	first.Closing, again.Closing, open.Open = 1, 2, 1
	if st == registry.Running {
		return []registry.Position{first, again}
	}
	return []registry.Position{open, first, again}
}

// edges lists all changes on an action's route, in the order of stages and transitions.
func edges(r registry.Route) []edge {
	var out []edge
	add := func(t registry.Transition, from, to registry.Position, isNew bool) {
		e := edge{to: registry.StateOf(to), status: t.From, stage: from.Stage, act: t.Act, by: t.By, ours: t.Ours}
		if !isNew {
			e.from = registry.StateOf(from)
		}
		if from.Closing == to.Closing || from.Closing == 0 || to.Closing == 0 {
			if !slices.Contains(out, e) {
				out = append(out, e)
			}
		}
	}
	for _, step := range r.Steps {
		for _, t := range registry.Transitions() {
			isNew := t.From == ""
			if !concerns(t, r.Action) || isNew && step.Stage != r.First() {
				continue
			}
			claimed, unclaimed := reachable(r.Action, t.From)
			if !isNew && !claimed && !unclaimed {
				continue
			}
			if t.Act == registry.ActLose && t.To == registry.Failed && step.NeverFails {
				continue
			}
			if t.Act == registry.ActUpdateReport && step.Stage != registry.Report {
				continue
			}
			if next, more := r.Next(step.Stage); t.Act == registry.ActComplete && more || t.Move == registry.Next && next == "" {
				continue
			}
			// An item that was never claimed stands in the first stage.
			ways := []bool{isNew}
			if !isNew && unclaimed && step.Stage == r.First() {
				ways = []bool{true, false}
			}
			for _, fresh := range ways {
				for _, from := range positions(r.Action, step.Stage, t.From, fresh) {
					if from.Open > 0 && t.Act == registry.ActClaim {
						continue // it waits for its jobs
					}
					for _, to := range targets(r, step.Stage, t) {
						for _, p := range positions(r.Action, to, t.To, fresh && t.Act != registry.ActClaim) {
							add(t, from, p, isNew)
						}
					}
				}
			}
		}
	}
	return out
}

func concerns(t registry.Transition, a registry.Action) bool {
	return t.Actions == nil || slices.Contains(t.Actions, a)
}

// reachable tells whether an item can get a status after a claim, and before any.
func reachable(a registry.Action, st registry.Status) (claimed, unclaimed bool) {
	for _, t := range registry.Transitions() {
		if t.To == st && concerns(t, a) {
			before := t.From == "" || t.From == registry.Pending && t.Act != registry.ActClaim
			claimed, unclaimed = claimed || !before, unclaimed || before
		}
	}
	return claimed, unclaimed
}

// targets are the stages a transition leads to.
func targets(r registry.Route, at registry.Stage, t registry.Transition) []registry.Stage {
	switch t.Move {
	case registry.Next:
		next, _ := r.Next(at)
		return []registry.Stage{next}
	case registry.Back:
		return r.UpTo(at)
	case registry.Stay:
	}
	return []registry.Stage{at}
}

func statesDoc() string {
	var b strings.Builder
	b.WriteString(`# States

<!-- Made by "go test ./registry -run TestStatesDoc -update" from registry.Transitions; do not edit. -->

An item's state is the name that people see. It is derived from the item's stage, its status and a few facts beside
them; only stage and status are stored. This page lists every change there is: what is not listed is refused with
"state change (A -> B) is not allowed". *Merritt* marks what its queue documents or its code have, *ours* what they have not.

**Held** is derived, too: a pending item that a hold covers is Held, and has its other name back when the last hold on
it is released. A running step goes on. Failed items keep the stage they failed in; a requeue leads to that stage or an
earlier one, and its tries start anew.
`)
	for _, r := range registry.Routes() {
		fmt.Fprintf(&b, "\n## %s\n\nStages: ", r.Action)
		for i, s := range r.Steps {
			if i > 0 {
				b.WriteString(" -> ")
			}
			fmt.Fprintf(&b, "`%s` (%s)", s.Stage, s.State)
		}
		b.WriteString("\n\n| state | stage, status | act | next state | who | |\n|---|---|---|---|---|---|\n")
		writeEdges(&b, edges(r))
	}
	b.WriteString("\n## What we allow beyond the seeds, and why\n\n")
	for _, act := range oursActs() {
		fmt.Fprintf(&b, "- **%s**: %s\n", act, why[act])
	}
	b.WriteString("\n## What the seeds have and this table has not\n\n")
	for _, s := range missing() {
		fmt.Fprintf(&b, "- %s -> %s (%s): %s\n", s.from, s.to, s.action, absent[[2]registry.State{s.from, s.to}])
	}
	return b.String()
}

// writeEdges writes one line for all next states of one change.
func writeEdges(b *strings.Builder, es []edge) {
	for i := 0; i < len(es); {
		e, next := es[i], []string{}
		for ; i < len(es); i++ {
			same := es[i]
			same.to = e.to
			if same != e {
				break
			}
			next = append(next, string(es[i].to))
		}
		from, at, origin := string(e.from), fmt.Sprintf("`%s`, %s", e.stage, e.status), "Merritt"
		if e.from == "" {
			from, at = "(new)", "-"
		}
		if e.ours {
			origin = "ours"
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", from, at, e.act, strings.Join(next, ", "), e.by, origin)
	}
}

func oursActs() (acts []registry.Act) {
	for _, t := range registry.Transitions() {
		if t.Ours && !slices.Contains(acts, t.Act) {
			acts = append(acts, t.Act)
		}
	}
	return acts
}

// seedEdge is a change that the seed documents draw.
type seedEdge struct {
	action   registry.Action
	from, to registry.State
}

func seedEdges() (all []seedEdge) {
	for action, text := range map[registry.Action]string{
		registry.Batch: `-Pending Pending-Held Pending-Processing Held-Processing Processing-Reporting Processing-Failed Reporting-Completed
			Reporting-Failed Failed-UpdateReporting UpdateReporting-Failed UpdateReporting-Completed Failed-Deleted Held-Deleted`,
		registry.Ingest: `-Pending -Failed Pending-Held Pending-Estimating Held-Estimating Estimating-Provisioning Provisioning-Downloading
			Downloading-Processing Downloading-Failed Failed-Downloading Processing-Recording Processing-Failed Failed-Processing
			Recording-Notify Recording-Failed Failed-Recording Notify-Completed Notify-Failed Failed-Notify Failed-Deleted Held-Deleted`,
	} {
		for _, pair := range strings.Fields(text) {
			from, to, _ := strings.Cut(pair, "-")
			all = append(all, seedEdge{action, registry.State(from), registry.State(to)})
		}
	}
	slices.SortFunc(all, func(a, b seedEdge) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// missing are the seeds' changes that ours has not.
func missing() (out []seedEdge) {
	for _, s := range seedEdges() {
		route, _ := registry.RouteOf(s.action)
		held := s.from == registry.StatePending && s.to == registry.StateHeld
		if !held && !slices.ContainsFunc(edges(route), func(e edge) bool { return e.from == s.from && e.to == s.to }) {
			out = append(out, s)
		}
	}
	return out
}

func TestStatesDoc(t *testing.T) {
	for _, act := range oursActs() {
		if why[act] == "" {
			t.Errorf("nothing says why %s is allowed", act)
		}
	}
	for _, s := range missing() {
		if absent[[2]registry.State{s.from, s.to}] == "" {
			t.Errorf("the seeds allow %s of %s -> %s, and nothing says why it is missing", s.action, s.from, s.to)
		}
	}
	path := filepath.Join("..", "docs", "states.md")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(statesDoc()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(statesDoc(), string(got)); diff != "" {
		t.Errorf("docs/states.md is not what the table says; run go test ./registry -run TestStatesDoc -update (-want +got):\n%s", diff)
	}
}
