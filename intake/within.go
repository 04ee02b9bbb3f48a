package intake

import (
	"context"
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// smallWindow is what decompressing may hold of a payload that is judged within few bytes.
const smallWindow = 8 << 20

// judgeMemory is what a judgement holds beside what unpacking does: names, faults, buffers for digests.
const judgeMemory = 64 << 20

// JudgeWithin is Judge for a payload of which no more than most bytes have to be read, unpacked ones
// included. For any other payload it gives up after that many, and memory says how many bytes Judge
// may hold of it; memory is 0 when v is the verdict.
func JudgeWithin(ctx context.Context, in unpack.Input, t registry.PayloadType, o Options, most int64) (v Report, memory int64, err error) {
	head, err := headOf(ctx, in)
	if err != nil {
		return Report{}, 0, err
	}
	memory = judgeMemory + o.Limits.Memory(head)
	kind := t
	if t == registry.AutoType {
		kind = Recognise(head)
	}
	if in.Size > most && kind != registry.FileType {
		return Report{}, memory, nil
	}
	narrow := o
	narrow.Limits.Bytes, narrow.Limits.Window = atMost(o.Limits.Bytes, most), atMost(o.Limits.Window, smallWindow)
	v, err = Judge(ctx, in, t, narrow)
	if err != nil || v.broke(containerRule(unpack.FaultLimit)) {
		return Report{}, memory, err
	}
	return v, 0, nil
}

// atMost is a limit, 0 for its default, that is lowered.
func atMost(limit, most int64) int64 {
	if limit <= 0 {
		return most
	}
	return min(limit, most)
}

// broke says whether a rule is among those of the listed faults.
func (v Report) broke(rule string) bool {
	for _, f := range v.Faults {
		if f.Rule == rule {
			return true
		}
	}
	return false
}

func containerRule(f unpack.Fault) string { return fmt.Sprintf("container-%s", f) }
