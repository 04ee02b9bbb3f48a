package intake_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/intake"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/source/unpack"
)

// TestJudgeWithin checks that a payload that fits within the limit is judged as Judge would, and
// that for any other the memory needed is returned.
func TestJudgeWithin(t *testing.T) {
	t.Parallel()
	const most = 64 << 10
	small := tree{"a.txt": "alpha"}.tar(t)
	bomb := gzipOf(t, tree{"zeros": strings.Repeat("\x00", 2*most)}.tar(t))
	bad := tree{"~zeros": strings.Repeat("\x00", 2*most)} // behind the names that are no good
	for i := range 200 {
		bad[fmt.Sprintf("../%d", i)] = ""
	}
	noContainer := []byte("PK\x03\x04 and no more")
	for name, tt := range map[string]struct {
		data []byte
		typ  registry.PayloadType
		more bool
	}{
		"a small tar":                {small, registry.AutoType, false},
		"a damaged one":              {noContainer, registry.ContainerType, false},
		"nothing":                    {nil, registry.AutoType, false},
		"a bomb that is small":       {bomb, registry.AutoType, true},
		"a bomb behind many faults":  {gzipOf(t, bad.tar(t)), registry.AutoType, true},
		"a large tar":                {tree{"a": strings.Repeat("a", 2*most)}.tar(t), registry.AutoType, true},
		"a large file":               {bytes.Repeat([]byte("x"), 2*most), registry.AutoType, false},
		"a large file said to be so": {bytes.Repeat([]byte("PK\x03\x04"), most), registry.FileType, false},
		"a large manifest":           {append([]byte(objectHead), bytes.Repeat([]byte("x\n"), most)...), registry.AutoType, true},
	} {
		in := unpack.FromReaderAt(bytes.NewReader(tt.data), int64(len(tt.data)))
		a, err := intake.JudgeWithin(t.Context(), in, tt.typ, intake.Options{}, most)
		if err != nil || a.Done == tt.more || (a.Memory > 0) != tt.more {
			t.Errorf("%s: %t, memory %d, %v; want more: %t", name, a.Done, a.Memory, err, tt.more)
			continue
		}
		v := a.Verdict
		if want := judge(t, tt.data, tt.typ, intake.Options{}); !tt.more && (v.Type != want.Type || v.Valid != want.Valid || v.Errors != want.Errors || v.Files != want.Files) {
			t.Errorf("%s: %+v, want what Judge says: %+v", name, v, want)
		}
	}
	if gz, zst := (unpack.Limits{}).Memory(bomb), (unpack.Limits{}).Memory([]byte("\x28\xb5\x2f\xfd")); zst-gz != unpack.DefaultWindow {
		t.Errorf("gzip takes %d and Zstandard %d bytes, want the window between them", gz, zst)
	}
}
