package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
)

//go:generate go test . -run ^TestGenerated -update

// why says of every change that neither seed document has what it is for. A change without an entry
// fails the test.
var why = map[registry.Act]string{
	registry.ActRetry:    "A system fault is tried again by itself, with backoff, until MAX_ATTEMPTS is used up; in Merritt every failure waits for a person.",
	registry.ActSnooze:   "A step that waits (for space, a lock, another object's version) gives its worker back; in Merritt it sleeps in a worker thread.",
	registry.ActRelease:  "A worker that is told to stop hands its items over at once, uncounted.",
	registry.ActSendBack: "What was spoilt in staging is fetched again without an admin (R6), and a version that lacks a replica is copied before it is recorded, MAX_ATTEMPTS times at most.",
	registry.ActLose:     "A worker that is gone loses its items within one lease; in Merritt a job stays in its state when its worker dies. Estimating goes on to Provisioning instead of failing.",
	registry.ActRequeue:  "What was cancelled by mistake can be taken up again. A failed item may start again at any stage up to the one it failed in, so that what failed is checked again: a job whose digest was wrong fetches its files anew and compares them anew, at whichever of these stages it starts.",
	registry.ActRetryNow: "What waits for its next try can have it at once, as when a server is back. The tries stay counted.",
	registry.ActPrepare:  "Items that depend on each other are made in one act, in the Console's words PREPARE, and are dispatched when the graph is whole.",
	registry.ActSeal:     "See prepare.",
	registry.ActCancel:   "A job that should not run, or not go on, can be stopped before it changes anything preserved, and taken up again by a requeue. It is refused once a version has been announced. A batch that waits for its jobs is not stopped itself: its open jobs are, and it reports them.",
	registry.ActAbort:    "The Console's abort: the item and all that waits for its success are given up for good; what it has in staging goes.",
	registry.ActDelete:   "The seeds delete what failed or is held. What was cancelled, aborted or never sealed can be deleted, too; what runs must be cancelled first.",
	registry.ActPurge:    "Merritt cleans up batches; the items that carry out bulk acts and tidy up can be cleaned up, too.",
	registry.ActPriority: "Merritt sets a priority once. Here it can be changed as long as the item may run again.",
	registry.ActHold:     "Merritt holds only what is Pending. Here a hold may be set at any stage and takes effect when the item would next start; a step that runs goes on.",
	registry.ActUnhold:   "See hold.",
	registry.ActGiveUp:   "A receiver that is gone for good keeps a job from completing although its object is preserved. An admin ends the tries: the job completes, and says who gave up and why. In Merritt such a job fails and is deleted.",
	registry.ActAbandon:  "A job that announced a version and can never store it would keep its object from everybody for ever, as when staging and source are both lost. One admin asks, another agrees; then a worker makes sure that no storage shows the version, removes what the job wrote of it, and takes the announcement back. The job is Failed again, and can be requeued or deleted.",
}

// absent are the changes of the seeds that this state machine does not have.
var absent = map[[2]registry.State]string{
	{registry.StateHeld, registry.StateEstimating}: "in two steps: Held -> Pending when the hold is released, then a claim; mrt-zk does the same",
	{registry.StateHeld, registry.StateProcessing}: "in two steps: Held -> Pending when the hold is released, then a claim",
}

// edge is one change of an item as people see it.
type edge struct {
	from, to registry.State // "" is a new item
	status   registry.Status
	stage    registry.Stage
	act      registry.Act
	by       string
	origin   string
}

// positions are the ways in which an item can stand in a stage with a status, as far as its state
// depends on them.
func positions(a registry.Action, stage registry.Stage, st registry.Status, isNew bool) []registry.Position {
	if st == "" {
		return []registry.Position{{Action: a, Stage: stage}}
	}
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
	add := func(t registry.Transition, from, to registry.Position) {
		e := edge{from: stateOf(from), to: stateOf(to), status: t.From, stage: from.Stage, act: t.Act, by: t.By}
		e.origin = origin(r.Action, t, e)
		if (from.Closing == to.Closing || from.Closing == 0 || to.Closing == 0) && !slices.Contains(out, e) {
			out = append(out, e)
		}
	}
	for _, step := range r.Steps {
		for _, t := range registry.Transitions() {
			if !happens(r, step, t) {
				continue
			}
			for _, fresh := range ways(r, step.Stage, t) {
				for _, from := range positions(r.Action, step.Stage, t.From, fresh) {
					if from.Held, from.OwnHold, from.Tells = t.Held || t.OwnHold, t.OwnHold, t.Tells; from.Open > 0 && t.Act == registry.ActClaim || from.Open == 0 && t.Open {
						continue // it waits for its jobs; it has none to wait for
					}
					for _, at := range targets(r, step.Stage, t) {
						for _, to := range positions(r.Action, at, t.To, fresh && t.Act != registry.ActClaim) {
							if to.Held = t.Act == registry.ActHold; still(t) && (to.Open != from.Open || to.Closing != from.Closing) {
								continue
							}
							add(t, from, to)
						}
					}
				}
			}
		}
	}
	return out
}

// still tells whether a transition leaves an item where it was, but for what holds it.
func still(t registry.Transition) bool {
	return t.From == t.To && t.From != "" && t.Move == registry.Stay
}

// happens tells whether a transition can be made of items in a step.
func happens(r registry.Route, step registry.Step, t registry.Transition) bool {
	next, more := r.Next(step.Stage)
	switch {
	case !concerns(t, r.Action) || t.Stages != nil && !slices.Contains(t.Stages, step.Stage):
		return false
	case t.From == registry.Completed:
		return !more
	case t.From == registry.Cancelled:
		return step.Stage != registry.Report
	case t.Act == registry.ActComplete:
		return !more
	case t.Move == registry.Next:
		return next != ""
	}
	return t.Act != registry.ActLose || t.To != registry.Failed || !step.NeverFails
}

// ways are whether an item that a transition is made of may be one that was never claimed; that
// stands in the first stage.
func ways(r registry.Route, at registry.Stage, t registry.Transition) (fresh []bool) {
	claimed, unclaimed := reachable(r.Action, t.From)
	if t.From == "" {
		claimed, unclaimed = false, true
	}
	if unclaimed && !t.Claimed && at == r.First() {
		fresh = append(fresh, true)
	}
	if claimed {
		fresh = append(fresh, false)
	}
	return fresh
}

// stateOf is what people see, also where there is no item.
func stateOf(p registry.Position) registry.State {
	if p.Status == "" {
		return ""
	}
	return registry.StateOf(p)
}

// origin says where a change comes from.
func origin(a registry.Action, t registry.Transition, e edge) string {
	pair := seedEdge{a, e.from, e.to}
	switch {
	case t.Ours:
		return "ours"
	case e.from == e.to || e.to == "" || slices.Contains(seedEdges(), pair):
		return "Merritt"
	case slices.Contains(builtEdges(), pair):
		return "mrt-zk"
	}
	return "ours"
}

func concerns(t registry.Transition, a registry.Action) bool {
	return t.Actions == nil || slices.Contains(t.Actions, a)
}

// reachable tells whether an item can get a status after a claim, and before any.
func reachable(a registry.Action, st registry.Status) (claimed, unclaimed bool) {
	for _, t := range registry.Transitions() {
		if t.To == st && concerns(t, a) {
			before := t.From == "" || t.From == registry.Prepare || t.From == registry.Pending && t.Act != registry.ActClaim
			claimed, unclaimed = claimed || !before || t.From == registry.Pending, unclaimed || before
		}
	}
	return claimed, unclaimed
}

// targets are the stages a transition leads to.
func targets(r registry.Route, at registry.Stage, t registry.Transition) []registry.Stage {
	switch t.Move {
	case registry.Next:
		return after(r, at)
	case registry.Back:
		return r.UpTo(at)
	case registry.ToProcess:
		return []registry.Stage{registry.Process}
	case registry.Stay:
	}
	return []registry.Stage{at}
}

// after are the stages that may come after one: every optional one up to the next that all items
// take.
func after(r registry.Route, at registry.Stage) (stages []registry.Stage) {
	for next, more := r.Next(at); more; next, more = r.Next(next) {
		stages = append(stages, next)
		if step, _ := r.Step(next); !step.Optional {
			break
		}
	}
	return stages
}

func statesDoc() string {
	var b strings.Builder
	b.WriteString(`# States

<!-- Made by go generate ./registry from registry.Transitions; do not edit. -->

An item's state is the name that people see. It is derived from the item's stage, its status and a few facts beside
them; only stage and status are stored. This page lists every change there is: what is not listed is refused with
"state change (A -> B) is not allowed". *Merritt* marks what its queue documents have, *mrt-zk* what only its code has, *ours*
what neither has. Who: an admin's acts are asked for by people; the others happen by themselves.

**Held** is derived, too: a pending item that a hold covers is Held, and has its other name back when the last hold on
it is released. A running step goes on. Failed items keep the stage they failed in; a requeue leads to that stage or an
earlier one, and its tries start anew.

**Waiting for a retry** is told beside the state: of an item whose step failed on a system fault and waits for its next try,
nothing runs, so people are not told the step's name but "Retry at 18:23, attempt 3 of 5" (` + "`next_try`" + ` in the API). Its
state stays that in which it goes on. When it is held, it is Held.

Four things the table does not show. **Past the point of no return**: a job that has announced a version of an object is
only rolled forward; cancel, abort and delete of it are refused. When it has failed and can never be carried on, two admins can abandon the
version, as long as no storage shows it. **Preserved**: once its version is recorded, the object stays whatever becomes
of the job, and its item says so (` + "`commitment`" + `). What is left of a preserved job that failed can be deleted; at ` + "`notify`" + ` its delivery can be given up,
and a requeue aims it at the callback that its collection has then. **Confirmation**: an abort, and a delete with consequences (a depositor who
is not told, staged bytes that go) is refused until they are confirmed. **Batches**: what is cancelled, aborted or deleted
as a batch happens to the batch at once and to its jobs by a bulk act. A batch that failed because of its jobs is not requeued: its failed jobs
are (` + "`item requeue --match 'batch:ID state:failed'`" + `), and update-report makes its report again. One that failed itself is.
`)
	for _, r := range registry.Routes() {
		fmt.Fprintf(&b, "\n## %s\n\nStages: ", r.Action)
		for i, s := range r.Steps {
			if i > 0 {
				b.WriteString(" -> ")
			}
			fmt.Fprintf(&b, "`%s` (%s)", s.Stage, s.State)
			if s.Optional {
				b.WriteString(", where the collection asks for it")
			}
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
			next = append(next, named(es[i].to, "(gone)"))
		}
		at := "-"
		if e.from != "" {
			at = fmt.Sprintf("`%s`, %s", e.stage, e.status)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", named(e.from, "(new)"), at, e.act, strings.Join(next, ", "), e.by, e.origin)
	}
}

func named(s registry.State, none string) string {
	if s == "" {
		return none
	}
	return string(s)
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

func seedEdges() []seedEdge {
	return edgesIn(map[registry.Action]string{
		registry.Batch: `-Pending Pending-Held Pending-Processing Held-Processing Processing-Reporting Processing-Failed Reporting-Completed
			Reporting-Failed Failed-UpdateReporting UpdateReporting-Failed UpdateReporting-Completed Failed-Deleted Held-Deleted`,
		registry.Ingest: `-Pending -Failed Pending-Held Pending-Estimating Held-Estimating Estimating-Provisioning Provisioning-Downloading
			Downloading-Processing Downloading-Failed Failed-Downloading Processing-Recording Processing-Failed Failed-Processing
			Recording-Notify Recording-Failed Failed-Recording Notify-Completed Notify-Failed Failed-Notify Failed-Deleted Held-Deleted`,
	})
}

// builtEdges are what the table of mrt-zk has beyond its documents.
func builtEdges() []seedEdge {
	return edgesIn(map[registry.Action]string{
		registry.Batch: `Held-Pending`,
		registry.Ingest: `Held-Pending Pending-Failed Estimating-Failed Provisioning-Failed Failed-Pending Failed-Estimating
			Failed-Provisioning`,
	})
}

func edgesIn(texts map[registry.Action]string) (all []seedEdge) {
	for action, text := range texts {
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
		if !slices.ContainsFunc(edges(route), func(e edge) bool { return e.from == s.from && e.to == s.to }) {
			out = append(out, s)
		}
	}
	return out
}

func TestGeneratedStates(t *testing.T) {
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
	generatedtest.File(t, "docs/states.md", statesDoc())
}
