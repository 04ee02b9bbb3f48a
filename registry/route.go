package registry

import "slices"

// Stage says where on its route an item stands. Stages are also the names of the workers that serve
// them.
type Stage string

// The stages of all routes. Adding one means a constant here, a step in a route below, a worker of
// that name in workers.All, and `go generate ./...` (docs/contributing.md).
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
	Deliver   Stage = "deliver"
)

// Action says what is to be done with an item's subject, and so which route the item takes.
type Action string

// The actions that have a route.
const (
	Ingest Action = "ingest" // a Merritt job: one object, or one version of it
	Batch  Action = "batch"  // a Merritt batch: one submission, the parent of its jobs
	Bulk   Action = "bulk"   // an admin act on every item that matched a query
	Tidy   Action = "tidy"   // what an item that was given up, or a worker that it was taken from, has left in staging; and what is nobody's
	// FixityCheck asks whether one stored file of an object is still what was stored.
	FixityCheck Action = "fixity"
	// DeliverMessage tells a receiver what became of a job, for as long as it takes.
	DeliverMessage Action = "deliver"
)

// Actions about preserved objects.
const (
	DeleteObject  Action = "delete"  // made by the approval of its deletion alone
	RestoreObject Action = "restore" // brings a version to where its depositors fetch it
)

// Step is one stage of a route.
type Step struct {
	Stage Stage
	State State // the name people see while an item is pending again or running here

	// Optional: only items of which it is said take the step, see [Profile.Optional].
	Optional bool
	// NeverFails: with its tries used up the item goes on instead of failing.
	NeverFails bool
	// Gated: the item may not start here before every prerequisite is satisfied. Stages before the
	// first gated one run without regard to prerequisites: a batch is expanded while its jobs are
	// already running.
	Gated bool
	// Locked: the item may not start here while an item that was submitted earlier has, or stands
	// in line for, a lock that it needs (R1).
	Locked bool
	// Writes says to which kind of volume the step writes, so that a hold on the volume covers it.
	Writes VolumeKind
	// Fetches says what the step waits for of others, whose slowness shall not keep every slot
	// taken.
	Fetches SourceKind
}

// SourceKind tells steps apart by whom they may have to wait for.
type SourceKind string

// The kinds of sources.
const (
	NoSource    SourceKind = ""
	NamedSource SourceKind = "named" // what the item's spec names: all but uploads, see [Spec.Own]
	AnySource   SourceKind = "any"   // what a payload names, too, as a bag's fetch.txt does
)

// VolumeKind tells the volumes of a Holdfast apart by what they are for.
type VolumeKind string

// The kinds of volumes.
const (
	NoVolume      VolumeKind = ""
	StagingVolume VolumeKind = "staging"
	StorageVolume VolumeKind = "storage"  // the first of the item's storages
	OtherStorages VolumeKind = "storages" // all the others
	AllStorages   VolumeKind = "all"      // whichever of them
)

// Route is the ordered stages of an action.
type Route struct {
	Action  Action
	Version int  // frozen into an item's spec at submit, so that a changed route never moves an item under way (R27)
	Object  bool // its items are about a preserved object: their spec is an [ObjectSpec]
	// Deposit: its items take deposits in, and holds on the queue, on a collection and on a batch
	// are about these alone. Acts of admins, messages and housekeeping are held by what names them:
	// their stage, the volume they write to, or the item.
	Deposit bool
	Steps   []Step
}

// Routes returns every route, in a fixed order. The slices are the caller's own.
func Routes() []Route {
	out := slices.Clone(routes)
	for i := range out {
		out[i].Steps = slices.Clone(out[i].Steps)
	}
	return out
}

// routes are asked of for every row that is read and every act that is checked.
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
		// It asks for the object's lock only where it may have to mend something, and stands in no
		// line before that.
		{Stage: Fixity, State: StateProcessing, Locked: true, Writes: AllStorages},
	}},
	// What a version is does not change: it needs no lock, and a deletion that comes in between
	// takes away what it brought.
	{Action: RestoreObject, Version: 1, Object: true, Steps: []Step{{Stage: Restore, State: StateProcessing, Writes: StagingVolume}}},
}

// RouteOf returns the route of an action with every optional step, whose steps are not to be
// changed; ok is false for an unknown one.
func RouteOf(a Action) (r Route, ok bool) {
	i := slices.IndexFunc(routes, func(r Route) bool { return r.Action == a })
	if i < 0 {
		return Route{}, false
	}
	return routes[i], true
}

// Stages returns every stage of every route, each once, in route order.
func Stages() []Stage {
	var out []Stage
	for _, r := range routes {
		for _, s := range r.Steps {
			if !slices.Contains(out, s.Stage) {
				out = append(out, s.Stage)
			}
		}
	}
	return out
}

// ActionOf returns the action on whose route a stage lies; ok is false for an unknown stage.
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

// DepositStages returns the stages of the routes that take deposits in, in route order.
func DepositStages() []Stage {
	return slices.DeleteFunc(Stages(), func(s Stage) bool { return !takesIn(s) })
}

// takesIn says that the step of a stage belongs to the taking in of a deposit.
func takesIn(s Stage) bool {
	for _, r := range routes {
		if _, ok := r.Step(s); ok {
			return r.Deposit
		}
	}
	return false
}

// writes says to which kind of volume the step of a stage writes.
func writes(s Stage) VolumeKind {
	step, _ := StepOf(s)
	return step.Writes
}

// With returns the route of an item that takes these optional steps, and of the others none. It is
// that of [WorkItem.Route]; a route without optional steps is returned as it is.
func (r Route) With(optional []Stage) Route {
	left := func(s Step) bool { return s.Optional && !slices.Contains(optional, s.Stage) }
	if slices.ContainsFunc(r.Steps, left) {
		r.Steps = slices.DeleteFunc(slices.Clone(r.Steps), left)
	}
	return r
}

// First returns the stage an item starts in. It is never optional.
func (r Route) First() Stage { return r.Steps[0].Stage }

// Step returns the step of a stage; ok is false when the stage is not on the route.
func (r Route) Step(s Stage) (step Step, ok bool) {
	i := r.index(s)
	if i < 0 {
		return Step{}, false
	}
	return r.Steps[i], true
}

// Next returns the stage after s; ok is false when s is the last one or not on the route. It asks
// no item: what comes next for one is told by the route [With] its optional steps.
func (r Route) Next(s Stage) (next Stage, ok bool) {
	i := r.index(s)
	if i < 0 || i+1 == len(r.Steps) {
		return "", false
	}
	return r.Steps[i+1].Stage, true
}

// UpTo returns the stages an item that stands in s may be sent back to, s itself last.
func (r Route) UpTo(s Stage) []Stage {
	var out []Stage
	for _, step := range r.Steps[:r.index(s)+1] {
		out = append(out, step.Stage)
	}
	return out
}

func (r Route) index(s Stage) int {
	return slices.IndexFunc(r.Steps, func(step Step) bool { return step.Stage == s })
}
