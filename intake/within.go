package intake

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// smallWindow is what decompressing may hold of a payload that is judged within few bytes.
const smallWindow = 8 << 20

// judgeMemory is what a judgement holds beside what unpacking does: names, faults, buffers for
// digests.
const judgeMemory = 64 << 20

// Attempt is what JudgeWithin comes to.
type Attempt struct {
	// Done says that Verdict is there. Otherwise Judge has to find it, and may hold Memory bytes.
	Done    bool
	Verdict Report
	Memory  int64
}

// JudgeWithin is Judge for a payload of which no more than most bytes have to be read, unpacked
// ones included. On any other payload it gives up after that many.
func JudgeWithin(ctx context.Context, in unpack.Input, t registry.PayloadType, o Options, most int64) (Attempt, error) {
	head, err := headOf(ctx, in)
	if err != nil {
		return Attempt{}, err
	}
	more := Attempt{Memory: judgeMemory + o.Limits.Memory(head)}
	kind := t
	if t == registry.AutoType {
		kind = Recognise(head)
	}
	if in.Size > most && kind != registry.FileType {
		return more, nil
	}
	narrow := o
	narrow.Limits.Bytes, narrow.Limits.Window = atMost(o.Limits.Bytes, most), atMost(o.Limits.Window, smallWindow)
	v, err := Judge(ctx, in, t, narrow)
	if err != nil || v.limited {
		return more, err
	}
	return Attempt{Done: true, Verdict: v}, nil
}

// atMost is a limit, 0 for its default, that is lowered.
func atMost(limit, most int64) int64 {
	if limit <= 0 {
		return most
	}
	return min(limit, most)
}
