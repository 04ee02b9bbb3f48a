package checkm_test

import (
	"errors"
	"io"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/holdfast/holdfast/internal/cputest"

	"github.com/holdfast/holdfast/checkm"
)

// flood is an object manifest of any number of rows, made as it is read; each row has a URL, a
// digest, a size, a date, a name and a type. Making a row costs little beside reading it.
type flood struct {
	rows, made int
	row        []byte // the last one that was made
	numbers    []int  // where in it the row's own number stands
	rest       []byte // of what was made, not yet read
	peak       uint64 // the most memory in use that was seen
}

// number stands in a row where each has a number of its own.
const number = "NNNNNNNN"

const floodRow = "https://data.example.org/collection/2026/NNNNNNNN.tif | sha256 | " +
	"00000000000000000000000000000000000000000000000000000000NNNNNNNN | 1024 | 2026-11-21T06:58:27Z | NAME | image/tiff\n"

// newFlood returns a manifest of rows whose names are name, with the row's number in it.
func newFlood(rows int, name string) *flood {
	row := strings.ReplaceAll(floodRow, "NAME", name)
	f := &flood{rows: rows, rest: []byte(objectHead), row: []byte(strings.ReplaceAll(row, number, "00000000"))}
	for i := range row {
		if strings.HasPrefix(row[i:], number) {
			f.numbers = append(f.numbers, i)
		}
	}
	return f
}

// Read implements io.Reader.
func (f *flood) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(f.rest) == 0 && !f.next() {
			break
		}
		c := copy(p[n:], f.rest)
		f.rest = f.rest[c:]
		n += c
	}
	if n == 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (f *flood) next() bool {
	const look = 5_000 // rows from one look at the memory to the next
	switch {
	case f.made < f.rows:
		f.rest = f.row
		for _, at := range f.numbers {
			count(f.row[at : at+len(number)])
		}
	case f.made == f.rows:
		f.rest = []byte(eof)
	default:
		return false
	}
	if f.made++; f.made%look == 0 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		f.peak = max(f.peak, s.HeapInuse+s.StackInuse)
	}
	return true
}

// count adds one to a number in digits.
func count(digits []byte) {
	for d := len(digits) - 1; d >= 0; d-- {
		if digits[d]++; digits[d] <= '9' {
			return
		}
		digits[d] = '0'
	}
}

// readFlood reads all rows, as expand does.
func readFlood(f *flood) (int64, error) {
	r := checkm.NewReader(f, checkm.Options{})
	for rows := int64(0); ; rows++ {
		_, faults, err := r.Next()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err == nil && len(faults) > 0 {
			err = faults[0]
		}
		if err != nil {
			return rows, err
		}
	}
}

// checkFlood judges the whole, as intake does.
func checkFlood(f *flood) (int64, error) {
	rep, err := checkm.Check(f, checkm.Options{})
	if err == nil && len(rep.Faults) > 0 {
		err = rep.Faults[0]
	}
	return rep.Rows, err
}

// floods are the two ways to go through a manifest. Names with capitals are the dearer ones to
// judge.
var floods = []struct {
	name  string
	names string
	read  func(*flood) (int64, error)
}{
	{"Reader", "Box/FNNNNNNNN.TIF", readFlood},
	{"Check", "Box/FNNNNNNNN.TIF", checkFlood},
}

const million = 1_000_000

// TestMillionRowsInMemory checks that a million rows are read and judged in less than 64 MiB.
func TestMillionRowsInMemory(t *testing.T) {
	if underRace {
		t.Skip("the race detector has memory of its own")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // as in production; scripts/test.sh collects more seldom
	for _, tt := range floods {
		t.Run(tt.name, func(t *testing.T) {
			runtime.GC()
			f := newFlood(million, tt.names)
			if rows, err := tt.read(f); err != nil || rows != million {
				t.Fatalf("%d rows, %v", rows, err)
			}
			if f.peak == 0 || f.peak >= 64<<20 {
				t.Errorf("%.1f MiB in use, want less than 64", float64(f.peak)/(1<<20))
			}
		})
	}
}

// BenchmarkMillionRows reports the rows read in a second, the rows read in a second of processor
// time (which depends less on other work on the machine) and the peak of the memory.
func BenchmarkMillionRows(b *testing.B) {
	for _, bb := range floods {
		b.Run(bb.name, func(b *testing.B) {
			var peak uint64
			var rows int64
			began := cputest.Used(b)
			for b.Loop() {
				f := newFlood(million, bb.names)
				n, err := bb.read(f)
				if err != nil || n != million {
					b.Fatal(n, err)
				}
				rows, peak = rows+n, max(peak, f.peak)
			}
			b.ReportMetric(float64(rows)/b.Elapsed().Seconds(), "rows/s")
			b.ReportMetric(float64(rows)/(cputest.Used(b)-began).Seconds(), "rows/cpu-s")
			b.ReportMetric(float64(peak)/(1<<20), "peak-MiB")
		})
	}
}

// BenchmarkWriter writes rows.
func BenchmarkWriter(b *testing.B) {
	r := checkm.NewReader(newFlood(1, "fNNNNNNNN.tif"), checkm.Options{})
	row, _, err := r.Next()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	w := checkm.NewWriter(io.Discard, checkm.Object)
	for b.Loop() {
		if err := w.Write(row); err != nil {
			b.Fatal(err)
		}
	}
}
