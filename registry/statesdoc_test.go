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

// why gives the reason for each act that neither seed document has. TestGeneratedStates fails for an
// act without an entry.
var why = map[registry.Act]string{
	registry.ActRetry:    "A step that failed on a system fault is retried with backoff, up to MAX_ATTEMPTS. In Merritt every failure waits for a person.",
	registry.ActSnooze:   "A step that waits (for room, a lock, another object's version) frees its worker. In Merritt it sleeps in a worker thread.",
	registry.ActRelease:  "A worker that stops returns its items at once, uncounted.",
	registry.ActSendBack: "Files damaged in staging are fetched again without an admin (R6), and a version that lacks a replica is copied before it is recorded. This happens MAX_ATTEMPTS times at most.",
	registry.ActLose:     "A dead worker's items are taken away within one lease. In Merritt a job stays in its state when its worker dies. Estimating goes on to Provisioning instead of failing.",
	registry.ActRequeue:  "A job cancelled by mistake can start again. A failed job can start again at its stage or an earlier one, and repeats the checks from there. A job with a wrong digest fetches and compares its files anew, wherever it starts.",
	registry.ActRetryNow: "An item that waits for its next try can have it at once, for instance when a server is back. The tries stay counted.",
	registry.ActPrepare:  "Items that depend on each other are made in one act (PREPARE in the Console's words) and start when the graph is whole.",
	registry.ActSeal:     "See prepare.",
	registry.ActCancel:   "A job can be stopped before it changes anything preserved, and started again by a requeue. Once it has announced a version, the cancel is refused. A batch that waits for its jobs is not stopped itself: its open jobs are, and it reports them.",
	registry.ActAbort:    "The Console's abort gives up the item and all items that wait for its success, for good. Their staged data is removed.",
	registry.ActDelete:   "Merritt deletes failed and held items. Cancelled, aborted and unsealed items can be deleted, too. Cancel a running item first.",
	registry.ActPurge:    "Merritt cleans up batches. The items of bulk acts and of tidying up can be cleaned up, too.",
	registry.ActPriority: "Merritt sets a priority once. Here it can be changed as long as the item may run again.",
	registry.ActHold:     "Merritt holds Pending items only. Here a hold may be set at any stage. It takes effect when the item would next start; a running step finishes.",
	registry.ActUnhold:   "See hold.",
	registry.ActGiveUp:   "A receiver that is gone for good would keep a job from completing although its object is preserved. An admin ends the tries: the job completes, and records who gave up and why. In Merritt such a job fails and is deleted.",
	registry.ActAbandon:  "A job that announced a version and can never store it, for instance because staging and source are lost, would block its object for ever. One admin requests the abandonment, another approves it. A worker then makes sure that no storage shows the version, removes what the job wrote of it, and withdraws the announcement. The job is Failed again, and can be requeued or deleted.",
	registry.ActAdopt:    "After a restore from an older backup a job may wait whose version the storages have already. `holdfast reconcile` takes that version over, and the job goes on behind it instead of storing it twice.",
}

// absent gives the reason for each change of the seeds that this state machine lacks.
var absent = map[[2]registry.State]string{
	{registry.StateHeld, registry.StateEstimating}: "takes two steps: Held -> Pending when the hold is released, then a claim, as in mrt-zk",
	{registry.StateHeld, registry.StateProcessing}: "takes two steps: Held -> Pending when the hold is released, then a claim",
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

// positions returns every position of an item in a stage with a status that its state depends on.
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

// edges returns all changes on an action's route, in the order of stages and transitions.
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
					if from.Held, from.OwnHold, from.Notifies = t.Held || t.OwnHold, t.OwnHold, t.Notifies; from.Open > 0 && t.Act == registry.ActClaim || from.Open == 0 && t.Open {
						continue // claimed while it waits for jobs, or waiting without jobs
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

// still reports whether a transition changes nothing except the item's holds.
func still(t registry.Transition) bool {
	return t.From == t.To && t.From != "" && t.Move == registry.Stay
}

// happens reports whether a transition applies to items in a step.
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

// ways returns the values of "never claimed" that an item may have before a transition. Only an item
// in the first stage can be unclaimed.
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

// stateOf returns the state that people see; "" if there is no item.
func stateOf(p registry.Position) registry.State {
	if p.Status == "" {
		return ""
	}
	return registry.StateOf(p)
}

// origin returns the system that has a change: Merritt, mrt-zk, or ours alone.
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

// reachable reports whether an item can get a status after a claim, and before any claim.
func reachable(a registry.Action, st registry.Status) (claimed, unclaimed bool) {
	for _, t := range registry.Transitions() {
		if t.To == st && concerns(t, a) {
			before := t.From == "" || t.From == registry.Prepare || t.From == registry.Pending && t.Act != registry.ActClaim
			claimed, unclaimed = claimed || !before || t.From == registry.Pending, unclaimed || before
		}
	}
	return claimed, unclaimed
}

// targets returns the stages that a transition leads to.
func targets(r registry.Route, at registry.Stage, t registry.Transition) []registry.Stage {
	switch t.Move {
	case registry.Next:
		return after(r, at)
	case registry.Back:
		return r.UpTo(at)
	case registry.ToProcess:
		return []registry.Stage{registry.Process}
	case registry.ToNotify:
		return []registry.Stage{registry.Notify}
	case registry.Stay:
	}
	return []registry.Stage{at}
}

// after returns the stages that may follow a stage: the optional ones and the next obligatory one.
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

An item's state is the name that people see. Holdfast derives it from the item's stage, its status
and a few facts; it stores stage and status only. This page lists every change of state. Holdfast
refuses all others with "state change (A -> B) is not allowed".

*Merritt* marks changes that Merritt's queue documents have, *mrt-zk* those that only its code has,
and *ours* the rest. People request the acts of an admin or depositor; workers and the Registry do
theirs without being asked.

- **Held** is derived, too. A pending item is Held while a hold covers it. A running step finishes.
- **Failed** items keep the stage in which they failed. A requeue leads to that stage or an earlier
  one, and the tries start anew.
- **Waiting for a retry** is shown beside the state. While a step waits for its next try after a
  system fault, people see "Retry at 18:23:05, attempt 3 of 5" (` + "`next_try`" + ` in the API) instead of the step's
  name. The item's state stays the one in which it continues. A held item is Held.

The tables do not show four rules:

- **Point of no return**: a job that has announced a version of an object is only rolled forward.
  Cancel, abort and delete are refused. If it failed and can never continue, two admins can abandon
  the version, as long as no storage shows it.
- **Preserved**: once its version is recorded, the object stays whatever becomes of the job, and the
  item says so (` + "`commitment`" + `). A preserved job that failed can be deleted. At ` + "`notify`" + ` an admin can
  give its delivery up, or requeue it to the collection's present callback.
- **Confirmation**: an abort is refused until it is confirmed. So is a delete with consequences,
  such as a depositor who is not notified, or staged bytes that are removed.
- **Batches**: cancel, abort and delete of a batch affect the batch at once, and its jobs by a bulk
  act. A batch that failed because of its jobs is not requeued: requeue its failed jobs
  (` + "`item requeue --match 'batch:ID state:failed'`" + `), and update-report makes its report again. A
  batch that failed itself is requeued.
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
	b.WriteString("\n## Changes beyond Merritt, and why\n\n")
	for _, act := range oursActs() {
		fmt.Fprintf(&b, "- **%s**: %s\n", act, why[act])
	}
	b.WriteString("\n## Merritt's changes that Holdfast lacks\n\n")
	for _, s := range missing() {
		fmt.Fprintf(&b, "- %s -> %s (%s): %s\n", s.from, s.to, s.action, absent[[2]registry.State{s.from, s.to}])
	}
	return b.String()
}

// writeEdges writes one line for each change, with all its next states.
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

// seedEdge is a change in the seed documents' diagrams.
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

// builtEdges returns the changes that mrt-zk's table has beyond its documents.
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

// missing returns the seeds' changes that this state machine lacks.
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
	generatedtest.File(t, "docs/states.md", generatedtest.Wrap(statesDoc()))
}
