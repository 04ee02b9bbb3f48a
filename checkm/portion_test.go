package checkm

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/pathset"
)

// plainCheck is Check by its definition: each row is judged when it is read, against all names
// before it.
func plainCheck(r io.Reader, opts Options) Report {
	reader := NewReader(r, opts)
	reader.list = newFaultList(opts.MaxFaults)
	index := pathset.NewSet()
	var rep Report
	for {
		row, faults, err := reader.Next()
		if err != nil {
			rep.finish(reader)
			rep.Sound = errors.Is(err, io.EOF)
			return rep
		}
		if reader.Kind().Listing() && named(&row, faults) {
			if f, ok := beside(pathset.File{Name: row.Name, At: row.Line, Clash: index.Add(row.Name, row.Line)}, reader); ok {
				faults = append(faults, f)
			}
		}
		rep.count(row.Size, faults)
		for _, f := range faults {
			reader.list.add(f)
		}
	}
}

// TestCheck_Portions checks that judging names in portions changes no report, not even which faults
// are kept when there are too many. The expected report judges each row when it is read.
func TestCheck_Portions(t *testing.T) {
	t.Parallel()
	lines := []string{
		"%s\n", "%s\n", "%s\n", "%s\r\n", "/%s\n", "%s | image/tiff\n", "%s | tiff\n", "%s | a/b | more\n", "%s\xff\n", "../%s\n", "%s%%7C\n",
	}
	clashes := map[Rule]int{}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 2))
		kind := []Kind{Object, Object, Add, FileBatch}[r.IntN(4)]
		var b strings.Builder
		fmt.Fprintf(&b, "#%%checkm_0.7\n#%%profile | %s\n", kind.ProfileURI())
		warnings := seed%2 == 0 // only, so that they are not crowded out
		for i := range r.IntN(400) {
			if warnings && r.IntN(10) > 0 {
				fmt.Fprintf(&b, "https://h.test/x | | | 7 | | f%d | %s\n", i, []string{"tiff", "image/tiff"}[r.IntN(2)])
				continue
			}
			what := r.IntN(25)
			if warnings {
				what = 0
			}
			switch what {
			case 0:
				b.WriteString("#%profile | x\n") // late
			case 1:
				b.WriteString("# \xff\n") // condemns the manifest
			case 2:
				b.WriteString("https://h.test/x | | | -1\n")
			default:
				name := string(rune('a' + r.IntN(26)))
				for range r.IntN(3) {
					name += []string{"/", "", "É", "\u00e9"}[r.IntN(4)] + string("abAB"[r.IntN(4)])
				}
				fmt.Fprintf(&b, "https://h.test/x | | | 7 | | "+lines[r.IntN(len(lines))], name)
			}
		}
		if r.IntN(3) > 0 {
			b.WriteString("#%eof\n")
		}
		opts := Options{MaxFaults: []int{3, 50, 10_000}[r.IntN(3)]}
		want := plainCheck(strings.NewReader(b.String()), opts)
		got, err := Check(strings.NewReader(b.String()), opts)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %+v, %v\nwant %+v\nof %s", seed, got, err, want, b.String())
		}
		for _, f := range got.Faults {
			if f.Rule == RuleNameDuplicate || f.Rule == RuleFileAndFolder || f.Rule == RuleNameCase {
				clashes[f.Rule]++
			}
		}
	}
	if len(clashes) != 3 {
		t.Errorf("names clashed in %d ways, want all three", len(clashes))
	}
}
