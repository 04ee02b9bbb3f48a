package registry

import (
	"slices"
	"strings"
)

// Stage says where on its route an item is. Workers have the names of the stages that they serve.
type Stage string

// The stages of all routes. To add one: a constant here, a step in a route below, a worker of that
// name in workers.All, and `go generate ./...` (docs/contributing.md).
const (
	Expand    Stage = "expand"
	Report    Stage = "report"
	Estimate  Stage = "estimate"
	Provision Stage = "provision"
	Download  Stage = "download"
	Scan      Stage = "scan"
	Process   Stage = "process"
	Replicate Stage = "replicate"
	Record    Stage = "record"
	Notify    Stage = "notify"
	Apply     Stage = "apply"
	Cleanup   Stage = "cleanup"
	Delete    Stage = "delete"
	Fixity    Stage = "fixity"
	Restore   Stage = "restore"
	Copy      Stage = "copy"
	Deliver   Stage = "deliver"
	// Run is the stage of tasks. Each function is a stage of its own within it, see [Stage.Of].
	Run Stage = "run"
	// ProcessStep is the stage of the steps of processes. Each namespace is a stage of its own within
	// it: step:curation.
	ProcessStep Stage = "step"
)

// Of returns the stage of a function: run:link-check. Every function has its own slots, turns, holds
// and counts, as every stage has.
func (s Stage) Of(function string) Stage { return s + functionMark + Stage(function) }

// functionMark stands between a stage and the name of a function.
const functionMark = ":"

// Function returns the name of the function that is the stage; "" for any other stage.
func (s Stage) Function() string {
	_, name, _ := strings.Cut(string(s), functionMark)
	return name
}

// Family returns the stage as routes declare it: run for run:link-check, and s for any other stage.
func (s Stage) Family() Stage {
	family, _, _ := strings.Cut(string(s), functionMark)
	return Stage(family)
}

// Action is the kind of an item, which decides its route.
type Action string

// The actions that have a route.
const (
	Ingest Action = "ingest" // a job (as in Merritt): one version of one object
	Batch  Action = "batch"  // a batch (as in Merritt): one submission, the parent of its jobs
	Bulk   Action = "bulk"   // an act on every item that matched a query
	Tidy   Action = "tidy"   // cleans up staging after an aborted or deleted item or a withdrawn attempt, and searches for orphaned data
	// FixityCheck checks whether one stored file of an object is unchanged.
	FixityCheck Action = "fixity"
	// DeliverMessage delivers a job's outcome to a receiver, with retries for days.
	DeliverMessage Action = "deliver"
	// Task is a call of a function, which a program outside Holdfast serves.
	Task Action = "task"
	// StepProcess is a step of a process, see [Processing].
	StepProcess Action = "process"
)

// Actions about preserved objects.
const (
	DeleteObject  Action = "delete"  // created only by the approval of the deletion
	RestoreObject Action = "restore" // makes a version available for download
	CopyObject    Action = "copy"    // copies an object to storages where it belongs; created only by [Aligning.Align]
)

// Step is one stage of a route.
type Step struct {
	Stage Stage
	State State // state that people see while an item is pending again or running here

	// Optional: only some items take the step, see [Profile.Optional].
	Optional bool
	// NeverFails: an item without tries left goes on instead of failing.
	NeverFails bool
	// Gated: the item may not start here before every requirement is satisfied. Requirements do not
	// matter in stages before the first gated one: a batch is expanded while its jobs run.
	Gated bool
	// Locked: the item may not start here while an earlier submission holds, or stands in line for,
	// a lock that it needs (R1).
	Locked bool
	// Writes is the kind of volume that the step writes to. A hold on the volume covers it.
	Writes VolumeKind
	// Fetches is what the step waits for outside, so that slow sources cannot take every slot.
	Fetches SourceKind
}

// SourceKind says which sources a step may wait for.
type SourceKind string

// The kinds of sources.
const (
	NoSource    SourceKind = ""
	NamedSource SourceKind = "named" // sources in the item's spec, but not uploads, see [Spec.Own]
	AnySource   SourceKind = "any"   // also sources that a payload names, as a bag's fetch.txt does
)

// VolumeKind is the purpose of a volume.
type VolumeKind string

// The kinds of volumes.
const (
	NoVolume      VolumeKind = ""
	StagingVolume VolumeKind = "staging"
	StorageVolume VolumeKind = "storage"  // the first of the item's storages
	OtherStorages VolumeKind = "storages" // all except the first
	AllStorages   VolumeKind = "all"      // all
)

// Route is the ordered stages of an action.
type Route struct {
	Action  Action
	Version int  // stored in an item's spec on submission, so that a changed route never affects it (R27)
	Object  bool // its items are about preserved objects: their spec is an [ObjectSpec]
	// Deposit: its items ingest deposits. Holds on the queue, on a collection and on a batch cover
	// only these. Other items are held by their stage, the volume they write to, or themselves.
	Deposit bool
	// Functions: each item stands in the stage of its function, see [Stage.Of]. Programs outside
	// Holdfast serve them. They ask the Registry for work, so they get no messages.
	Functions bool
	Steps     []Step
}

// Routes returns all routes in a fixed order. The caller may change the slices.
func Routes() []Route {
	out := slices.Clone(routes)
	for i := range out {
		out[i].Steps = slices.Clone(out[i].Steps)
	}
	return out
}

// routes is a variable because it is used for every row that is read and every act that is checked.
var routes = []Route{
	{Action: Batch, Version: 1, Deposit: true, Steps: []Step{
		{Stage: Expand, State: StateProcessing, Fetches: NamedSource},
		{Stage: Report, State: StateReporting, Gated: true},
	}},
	{Action: Ingest, Version: 2, Deposit: true, Steps: []Step{
		{Stage: Estimate, State: StateEstimating, NeverFails: true, Gated: true, Fetches: NamedSource},
		{Stage: Provision, State: StateProvisioning, Gated: true, Writes: StagingVolume},
		{Stage: Download, State: StateDownloading, Gated: true, Writes: StagingVolume, Fetches: NamedSource},
		{Stage: Scan, State: StateScanning, Optional: true, Gated: true},
		{Stage: Process, State: StateProcessing, Gated: true, Locked: true, Writes: StorageVolume, Fetches: AnySource},
		{Stage: Replicate, State: StateReplicating, Optional: true, Gated: true, Locked: true, Writes: OtherStorages},
		{Stage: Record, State: StateRecording, Gated: true, Locked: true},
		{Stage: Notify, State: StateNotify, Gated: true, Locked: true},
	}},
	{Action: Bulk, Version: 1, Steps: []Step{{Stage: Apply, State: StateProcessing}}},
	{Action: Tidy, Version: 1, Steps: []Step{{Stage: Cleanup, State: StateProcessing}}},
	{Action: DeleteObject, Version: 1, Object: true, Steps: []Step{{Stage: Delete, State: StateProcessing, Locked: true, Writes: StorageVolume}}},
	{Action: DeliverMessage, Version: 1, Steps: []Step{{Stage: Deliver, State: StateProcessing}}},
	{Action: FixityCheck, Version: 1, Object: true, Steps: []Step{
		// It takes the object's lock only when it has something to mend, and stands in no line
		// before that.
		{Stage: Fixity, State: StateProcessing, Locked: true, Writes: AllStorages},
	}},
	// A version never changes, so restoring needs no lock. A deletion meanwhile removes the result.
	{Action: RestoreObject, Version: 1, Object: true, Steps: []Step{{Stage: Restore, State: StateProcessing, Writes: StagingVolume}}},
	// Its storages are those that it copies to. It takes the object's lock when it begins.
	{Action: CopyObject, Version: 1, Object: true, Steps: []Step{{Stage: Copy, State: StateReplicating, Locked: true, Writes: AllStorages}}},
	{Action: Task, Version: 1, Functions: true, Steps: []Step{{Stage: Run, State: StateProcessing}}},
	{Action: StepProcess, Version: 1, Functions: true, Steps: []Step{{Stage: ProcessStep, State: StateProcessing}}},
}

// RouteOf returns the route of an action with all optional steps. The caller must not change its
// steps. ok is false for an unknown action.
func RouteOf(a Action) (r Route, ok bool) {
	i := slices.IndexFunc(routes, func(r Route) bool { return r.Action == a })
	if i < 0 {
		return Route{}, false
	}
	return routes[i], true
}

// Actions returns the actions that have a route.
func Actions() []Action {
	out := make([]Action, len(routes))
	for i, r := range routes {
		out[i] = r.Action
	}
	return out
}

// Stages returns the stages that Holdfast's own workers serve, each once, in route order.
func Stages() []Stage { return stagesOf(false) }

// Families returns the stages whose functions programs outside Holdfast serve.
func Families() []Stage { return stagesOf(true) }

// AllStages returns the stages of all routes: those of [Stages], then those of [Families]. A family
// stands for the stages of its functions.
func AllStages() []Stage { return slices.Concat(Stages(), Families()) }

func stagesOf(functions bool) []Stage {
	var out []Stage
	for _, r := range routes {
		if r.Functions != functions {
			continue
		}
		for _, s := range r.Steps {
			if !slices.Contains(out, s.Stage) {
				out = append(out, s.Stage)
			}
		}
	}
	return out
}

// IsStage reports whether an item can stand in a stage: one that Holdfast's workers serve, or that
// of any function, known or not.
func IsStage(s Stage) bool {
	a, ok := ActionOf(s)
	if !ok {
		return false
	}
	if r, _ := RouteOf(a); r.Functions {
		return CheckFunctionName(s.Function()) == nil
	}
	return s.Function() == ""
}

// ActionOf returns the action whose route contains a stage; ok is false for an unknown stage.
func ActionOf(s Stage) (a Action, ok bool) {
	for _, r := range routes {
		if _, found := r.Step(s); found {
			return r.Action, true
		}
	}
	return "", false
}

// StepOf returns the step of a stage; ok is false for an unknown stage.
func StepOf(s Stage) (step Step, ok bool) {
	for _, r := range routes {
		if step, ok = r.Step(s); ok {
			return step, true
		}
	}
	return Step{}, false
}

// DepositStages returns the stages of routes that ingest deposits, in route order.
func DepositStages() []Stage {
	return slices.DeleteFunc(Stages(), func(s Stage) bool { return !takesIn(s) })
}

// takesIn reports whether a stage belongs to the ingest of deposits.
func takesIn(s Stage) bool {
	for _, r := range routes {
		if _, ok := r.Step(s); ok {
			return r.Deposit
		}
	}
	return false
}

// writes returns the kind of volume that a stage writes to.
func writes(s Stage) VolumeKind {
	step, _ := StepOf(s)
	return step.Writes
}

// With returns the route with only these of its optional steps, as [WorkItem.Route] does for an
// item. A route without optional steps is returned unchanged.
func (r Route) With(optional []Stage) Route {
	left := func(s Step) bool { return s.Optional && !slices.Contains(optional, s.Stage) }
	if slices.ContainsFunc(r.Steps, left) {
		r.Steps = slices.DeleteFunc(slices.Clone(r.Steps), left)
	}
	return r
}

// First returns the first stage, which is never optional.
func (r Route) First() Stage { return r.Steps[0].Stage }

// Step returns the step of a stage; ok is false if the stage is not on the route.
func (r Route) Step(s Stage) (step Step, ok bool) {
	i := r.index(s)
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// Next returns the stage after s; ok is false if s is the last stage or not on the route. For one
// item, call it on the route [With] the item's optional steps.
func (r Route) Next(s Stage) (next Stage, ok bool) {
	i := r.index(s)
	if i < 0 || i+1 == len(r.Steps) {
		return "", false
	}
	return r.Steps[i+1].Stage, true
}

// UpTo returns the stages from which an item in s can be restarted, s itself last.
func (r Route) UpTo(s Stage) []Stage {
	if r.Functions {
		return []Stage{s}
	}
	var out []Stage
	for _, step := range r.Steps[:r.index(s)+1] {
		out = append(out, step.Stage)
	}
	return out
}

func (r Route) index(s Stage) int {
	if r.Functions {
		s = s.Family()
	}
	return slices.IndexFunc(r.Steps, func(step Step) bool { return step.Stage == s })
}
