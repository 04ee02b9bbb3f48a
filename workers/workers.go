// Package workers has the worker of each stage, one file each. The packages below it have the work
// that several stages share, and everything long; a worker calls them in order.
//
// Each worker does one step of one item and may be killed at any instant. It writes only names of
// its own attempt (R0), and keeps in the Registry what must not be made twice (R8). The kind of its
// error distinguishes content faults from system faults (I8). Workers do not know how items are
// claimed, renewed and settled: that is package base.
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
	"github.com/holdfast/holdfast/workers/pace"
	"github.com/holdfast/holdfast/workers/payload"
	"github.com/holdfast/holdfast/workers/restore"
	"github.com/holdfast/holdfast/workers/room"
	"github.com/holdfast/holdfast/workers/scanning"
	"github.com/holdfast/holdfast/workers/tidy"
	"github.com/holdfast/holdfast/workers/version"
)

// Deps are the dependencies and settings of the workers.
type Deps struct {
	Registry registry.ForWorkers
	Interim  interim.Store
	Source   func(collection string) source.Fetcher // for one step of an item of the collection; for instance Sources.Of
	Staging  storage.Store
	Volume   string     // the staging volume's name, for reservations
	Objects  ocfl.Roots // by storage name
	Template noid.Template
	EZID     *ezid.Client // for collections with names at EZID; nil: their items fail
	Random   io.Reader    // for minting
	Version  string       // of the program, for provenance

	// StagingFull and StagingFullUnestimated are shares of the staging volume, 0 to 1. A job of
	// known or unknown size starts only if used and reserved bytes stay below them.
	StagingFull, StagingFullUnestimated float64

	// UnknownSize limits the bytes of a file of unknown size; 0: no limit.
	UnknownSize int64

	// Clamd scans for viruses; nil: items that must be scanned fail.
	Clamd *clamd.Client

	// Identifier identifies the formats of files; nil: only their media types are known.
	Identifier format.Identifier

	// Unpack limits what one container may unpack to. The zero value has defaults.
	Unpack unpack.Limits

	// TempDir is the folder of temporary files, which large bags need; "": that of os.TempDir.
	TempDir string

	// Gate limits the memory for decompressing containers in this process; nil: no limit.
	Gate *gate.Gate

	// Sweep limits the search for orphaned data. The zero value has defaults.
	Sweep tidy.SweepBounds

	// FixityBytes limits how many bytes a second fixity checks read in this process; 0: no limit.
	FixityBytes int64

	// CopyBytes limits how many bytes a second copies to other storages read in this process; 0: no
	// limit.
	CopyBytes int64

	// Callbacks sends the callbacks about jobs.
	Callbacks *delivery.Callbacks

	// Mails sends the mails.
	Mails *delivery.Mails

	// RestoreKeep is how long a restored version can be downloaded; 0: a week.
	RestoreKeep time.Duration

	// Policy returns the configured policy of a stage.
	Policy func(s registry.Stage) base.Worker
}

const defaultRestoreKeep = 7 * 24 * time.Hour

// Spare returns how many additional slots a stage's worker has beside slots others. A stage that
// waits for sources has one for every four, for other collections. If uploads wait for no source
// there, it has as many again for them.
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
			Checker: fixitycheck.Checker{Registry: d.Registry, Objects: d.Objects, Version: d.Version, Limiter: pace.NewLimiter(d.FixityBytes)},
		},
		&Copy{Worker: d.Policy(registry.Copy), Registry: d.Registry, Objects: d.Objects, Version: d.Version, Limiter: pace.NewLimiter(d.CopyBytes)},
		&Deliver{Worker: d.Policy(registry.Deliver), Callbacks: d.Callbacks, Mails: d.Mails},
		&Restore{
			Worker: d.Policy(registry.Restore), Registry: d.Registry, Staging: d.Staging, Interim: d.Interim, Version: d.Version, Keep: cmp.Or(d.RestoreKeep, defaultRestoreKeep),
			Restorer: restore.Restorer{Registry: d.Registry, Objects: d.Objects, Staging: d.Staging, Volume: v, Version: d.Version},
		},
	}
}
