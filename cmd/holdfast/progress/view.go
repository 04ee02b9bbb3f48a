package progress

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/registry"
)

// rateWindow is the time over which a rate is measured.
const rateWindow = 10 * time.Second

// meter measures the rate of a growing value. The zero value is ready.
type meter struct {
	samples []sample // oldest first; the first one may be just older than the window
}

type sample struct {
	at    time.Time
	value int64
}

// add records the value and returns its rate per second over the window, 0 if unknown. A smaller
// value than before, as of a restarted file, restarts the measurement.
func (m *meter) add(at time.Time, value int64) float64 {
	if n := len(m.samples); n > 0 && value < m.samples[n-1].value {
		m.samples = nil
	}
	m.samples = append(m.samples, sample{at, value})
	for len(m.samples) > 2 && at.Sub(m.samples[1].at) >= rateWindow {
		m.samples = m.samples[1:]
	}
	first := m.samples[0]
	span := at.Sub(first.at)
	if span <= 0 {
		return 0
	}
	return float64(value-first.value) / span.Seconds()
}

// view is the content of the display, for one or several batches.
type view struct {
	elapsed time.Duration
	rate    float64 // bytes a second
	known   bool    // the totals of files and bytes are final
	all     bool    // the total of jobs is final
	batches int

	jobs, settled, failed int64
	files, doneFiles      int64
	bytes, doneBytes      int64
	current               []string
	tasks                 []string // each one's state and progress, if all are tasks
	waiting               string   // why nothing has started, or ""
	cause                 string   // what failed before, if it waits for the next try
}

// viewOf sums up batches.
func viewOf(batches []registry.BatchProgress, elapsed time.Duration, m *meter, now time.Time) view {
	v := view{elapsed: elapsed, known: true, all: true, batches: len(batches)}
	for _, b := range batches {
		v.jobs += b.Jobs
		v.settled += b.Jobs - b.Open
		v.failed += b.Failed
		v.files += max(b.Files, 0)
		v.doneFiles += b.DoneFiles
		v.bytes += max(b.Bytes, 0)
		v.doneBytes += b.DoneBytes
		v.known = v.known && b.SizeKnown
		v.all = v.all && b.Expanded
		v.current = append(v.current, b.Current...)
		switch {
		case b.Settled:
		case b.Held:
			v.waiting, v.cause = "held", ""
		case b.Error != "" && len(b.Current) == 0 && b.Completed+b.Preserved+b.Failed == 0 && v.waiting == "":
			v.waiting, v.cause = "waiting for a retry", b.Error
		}
	}
	v.rate = m.add(now, v.doneBytes)
	return v
}

// percent returns the share that is done, 0 to 100; false if the total is unknown.
func (v view) percent() (p float64, ok bool) {
	switch {
	case !v.known:
		return 0, false
	case v.bytes > 0:
		p = 100 * float64(v.doneBytes) / float64(v.bytes)
	case v.jobs > 0:
		p = 100 * float64(v.settled) / float64(v.jobs)
	default:
		return 0, false
	}
	// More may come than was expected.
	return min(max(p, 0), 100), true
}

// remaining returns the time left at the present rate; false if unknown.
func (v view) remaining() (d time.Duration, ok bool) {
	left := v.bytes - v.doneBytes
	if !v.known || v.rate <= 0 || left <= 0 {
		return 0, false
	}
	seconds := float64(left) / v.rate
	if seconds > 1e6 { // days: too uncertain
		return 0, false
	}
	return time.Duration(seconds * float64(time.Second)), true
}

// picture returns the view as a terminal.Picture.
func (v view) picture() terminal.Picture {
	line := v.line()
	_, same, _ := strings.Cut(line, "]") // without the elapsed time
	p := terminal.Picture{Line: line, Below: v.current, Same: same}
	if v.cause != "" {
		p.Cause = "after: " + v.cause
	}
	return p
}

// line returns the view as one line.
func (v view) line() string {
	if len(v.tasks) > 0 {
		return v.taskLine()
	}
	parts := []string{v.head()}
	if v.batches > 1 {
		parts = append(parts, terminal.Plural(int64(v.batches), "batch", "batches"))
	}
	jobs := "jobs " + DoneOf(v.settled, v.jobs, v.all, registry.CountText)
	if v.failed > 0 {
		jobs += " (" + registry.CountText(v.failed) + " failed)"
	}
	parts = append(parts, jobs, "files "+DoneOf(v.doneFiles, v.files, v.known, registry.CountText))
	parts = append(parts, v.transfer()...)
	if v.waiting != "" {
		parts = append(parts, v.waiting)
	}
	return strings.Join(parts, "  ")
}

// taskLine returns the view of tasks as one line: they have no files.
func (v view) taskLine() string {
	parts := []string{v.head()}
	if len(v.tasks) == 1 {
		parts = append(parts, v.tasks[0])
	} else {
		parts = append(parts, "tasks "+DoneOf(v.settled, v.jobs, v.all, registry.CountText))
		if v.failed > 0 {
			parts = append(parts, registry.CountText(v.failed)+" failed")
		}
	}
	if v.waiting != "" {
		parts = append(parts, v.waiting)
	}
	return strings.Join(parts, "  ")
}

// sendLine returns the view of an upload as one line.
func (v view) sendLine(name string) string {
	return strings.Join(append([]string{v.head(), "sending " + terminal.Clean(name)}, v.transfer()...), "  ")
}

func (v view) head() string {
	head := "[" + terminal.SpanText(v.elapsed) + "]"
	if p, ok := v.percent(); ok {
		head += fmt.Sprintf(" %.1f %%", p)
	}
	return head
}

func (v view) transfer() []string {
	parts := []string{DoneOf(v.doneBytes, v.bytes, v.known, terminal.SizeText)}
	if v.rate > 0 {
		parts = append(parts, terminal.SizeText(int64(v.rate))+"/s")
	}
	if left, ok := v.remaining(); ok {
		parts = append(parts, "ETA "+terminal.SpanText(left))
	}
	return parts
}

// DoneOf formats "done of total". It omits a total that is not final, and never shows a total below
// done.
func DoneOf(done, total int64, final bool, text func(int64) string) string {
	if !final {
		return text(done)
	}
	return text(done) + "/" + text(max(done, total))
}
