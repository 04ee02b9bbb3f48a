package intake

import (
	"context"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// smallWindow bounds the decompression window in JudgeWithin.
const smallWindow = 8 << 20

// judgeMemory is the memory of a check beside that of unpacking: names, faults, buffers for
// digests.
const judgeMemory = 64 << 20

// Attempt is the result of JudgeWithin.
type Attempt struct {
	// Done says that Verdict is set. Otherwise call Judge, which may need Memory bytes.
	Done    bool
	Verdict Report
	Memory  int64
}

// JudgeWithin does what Judge does if that needs at most most bytes of reading and unpacking.
// Otherwise it stops there.
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

// atMost lowers a limit; 0 means its default.
func atMost(limit, most int64) int64 {
	if limit <= 0 {
		return most
	}
	return min(limit, most)
}
