// Package workers holds the worker of each stage, one file each. What several stages do, and what
// is long, stands in the packages below it; a worker says in which order.
//
// Each worker does one step of one item and may be killed at any instant. It writes only names of
// its own attempt (R0), keeps in the Registry what must not be made twice (R8), and tells content
// faults from system faults by the kind of its error (I8).
package workers

import (
	"cmp"
	"io"
	"time"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/clamd"
	"github.com/holdfast/holdfast/ezid"
	"github.com/holdfast/holdfast/format"
	"github.com/holdfast/holdfast/gate"
	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/interim"
	"github.com/holdfast/holdfast/noid"
	"github.com/holdfast/holdfast/ocfl"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source"
	"github.com/holdfast/holdfast/source/unpack"
	"github.com/holdfast/holdfast/staging"
	"github.com/holdfast/holdfast/storage"
	"github.com/holdfast/holdfast/workers/content"
	"github.com/holdfast/holdfast/workers/delivery"
	"github.com/holdfast/holdfast/workers/fixitycheck"
	"github.com/holdfast/holdfast/workers/identity"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/restore"
	"github.com/holdfast/holdfast/workers/room"
	"github.com/holdfast/holdfast/workers/scanning"
	"github.com/holdfast/holdfast/workers/tidy"
	"github.com/holdfast/holdfast/workers/version"
)

// Deps is what workers work with.
type Deps struct {
	Registry registry.ForWorkers
	Interim  interim.Store
	Source   func(collection string) source.Fetcher // for one step of an item of the collection; Sources.Of is one
	Staging  storage.Store
	Volume   string     // the staging volume's name, for reservations
	Objects  ocfl.Roots // under the names of the storages
	Template noid.Template
	EZID     *ezid.Client // of collections that keep their names there; nil: what needs it fails
	Random   io.Reader    // for minting
	Version  string       // of the program, for provenance

	// StagingFull and StagingFullUnestimated are the shares of the staging volume, 0 to 1, that may
	// be used and promised when a job of known, or unknown, size is to start.
	StagingFull, StagingFullUnestimated float64

	// UnknownSize is how many bytes a file may have whose size neither its source nor the depositor
	// tells; 0: any number.
	UnknownSize int64

	// Clamd looks for viruses; nil: items that are to be scanned fail.
	Clamd *clamd.Client

	// Identifier finds the formats of files; nil: their media type is all that is known.
	Identifier format.Identifier

	// Unpack are the limits on what one container may unpack to. The zero value has defaults.
	Unpack unpack.Limits

	// TempDir is the folder of temporary files, which large bags need; "": that of os.TempDir.
	TempDir string

	// Gate bounds the memory that containers are decompressed in, for all of this process; nil:
	// nothing does.
	Gate *gate.Gate

	// Sweep bounds the search for files that belong to no object. The zero value has defaults.
	Sweep tidy.SweepBounds

	// FixityBytes is how many bytes a second the checks of stored files read in this process; 0: as
	// many as they can.
	FixityBytes int64

	// Callbacks tells receivers how jobs ended.
	Callbacks *delivery.Callbacks

	// Mails tells people by mail.
	Mails *delivery.Mails

	// RestoreKeep is how long what was restored can be fetched; 0: a week.
	RestoreKeep time.Duration

	// Policy returns the configured policy of a stage.
	Policy func(s registry.Stage) base.Worker
}

const defaultRestoreKeep = 7 * 24 * time.Hour

// Spare is how many slots a worker of a stage has beside slots others, where it has to wait for
// sources: for every four one more that serves other collections, and where uploads wait for no
// source one more that serves these.
func Spare(s registry.Stage, slots int) int {
	step, _ := registry.StepOf(s)
	more := max(1, slots/4)
	switch step.Fetches {
	case registry.NamedSource:
		return 2 * more
	case registry.AnySource:
		return more
	case registry.NoSource:
	}
	return 0
}

// All returns the workers of all stages, each once.
func All(d *Deps) []base.Handler {
	policy := func(s registry.Stage) base.Worker {
		p := d.Policy(s)
		p.Extra = Spare(s, p.Concurrency())
		return p
	}
	arks := intake.ARKs{Template: d.Template, Objects: d.Registry}
	p := payload.Files{Sources: d.Source, Staging: d.Staging, Buffers: &staging.Buffers{}, UnknownSize: d.UnknownSize, ARKs: arks}
	s := scanning.Scanner{Clamd: d.Clamd, Staging: d.Staging}
	v := room.Volume{Registry: d.Registry, Staging: d.Staging, Name: d.Volume, Full: d.StagingFull}
	o := &content.Opener{Payloads: p, Volume: v, Limits: d.Unpack, Gate: d.Gate, TempDir: d.TempDir}
	return []base.Handler{
		&Expand{Worker: policy(registry.Expand), Registry: d.Registry, ARKs: arks, payloads: p},
		&Report{Worker: d.Policy(registry.Report), Registry: d.Registry, Staging: d.Staging, Interim: d.Interim},
		&Estimate{Worker: policy(registry.Estimate), payloads: p},
		&Provision{Worker: d.Policy(registry.Provision), volume: v, Unestimated: d.StagingFullUnestimated},
		&Download{Worker: policy(registry.Download), payloads: p, volume: v},
		&Scan{Worker: d.Policy(registry.Scan), scanner: s},
		&Process{
			Worker: policy(registry.Process), version: d.Version, opener: o, scanner: s,
			namer: &identity.Namer{Registry: d.Registry, Objects: d.Objects, Template: d.Template, Names: identity.Names{EZID: d.EZID}, Random: d.Random},
			maker: &version.Maker{Registry: d.Registry, Objects: d.Objects, ARKs: arks, Payloads: p, Opener: o, Identifier: d.Identifier},
		},
		&Replicate{Worker: d.Policy(registry.Replicate), Objects: d.Objects},
		&Record{
			Worker: d.Policy(registry.Record), Registry: d.Registry, Staging: d.Staging,
			Version: d.Version, Objects: d.Objects, Names: identity.Names{EZID: d.EZID},
		},
		&Notify{Worker: d.Policy(registry.Notify), Callbacks: d.Callbacks, Staging: d.Staging, Interim: d.Interim},
		&Apply{Worker: d.Policy(registry.Apply), Registry: d.Registry},
		&Delete{Worker: d.Policy(registry.Delete), Registry: d.Registry, Roots: d.Objects, Names: identity.Names{EZID: d.EZID}, Version: d.Version},
		&Cleanup{
			Worker: d.Policy(registry.Cleanup), Registry: d.Registry, Staging: d.Staging, Interim: d.Interim,
			orphans: tidy.Orphans{Registry: d.Registry, Staging: d.Staging, Interim: d.Interim, Objects: d.Objects, Bounds: d.Sweep},
		},
		&Fixity{
			Worker:  d.Policy(registry.Fixity),
			Checker: fixitycheck.Checker{Registry: d.Registry, Objects: d.Objects, Version: d.Version, Pace: fixitycheck.NewPace(d.FixityBytes)},
		},
		&Deliver{Worker: d.Policy(registry.Deliver), Callbacks: d.Callbacks, Mails: d.Mails},
		&Restore{
			Worker: d.Policy(registry.Restore), Registry: d.Registry, Staging: d.Staging, Interim: d.Interim, Version: d.Version, Keep: cmp.Or(d.RestoreKeep, defaultRestoreKeep),
			Restorer: restore.Restorer{Registry: d.Registry, Objects: d.Objects, Staging: d.Staging, Volume: v, Version: d.Version},
		},
	}
}
