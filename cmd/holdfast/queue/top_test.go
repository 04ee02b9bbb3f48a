package queue

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/holdfast/holdfast/cmd/holdfast/terminal"
	"github.com/holdfast/holdfast/internal/generatedtest"
	"github.com/holdfast/holdfast/registry"
)

//go:generate go test . -run TestTop_Golden -update

// sample is a busy moment.
func sample() moment {
	at := time.Date(2026, 11, 28, 12, 0, 0, 0, time.Local)
	oldest := at.Add(-75 * time.Second)
	m := moment{At: at, Queue: registry.QueueStatus{Accepting: registry.Accepting{On: true}, Running: 7, Damaged: 1}}
	for _, s := range registry.Stages() {
		q := registry.StageQueue{Stage: s, Capacity: 32, Free: 32}
		switch s {
		case registry.Download:
			q.Ready, q.Waiting, q.Running, q.Free, q.OldestReady = 12345, 20, 7, 25, &oldest
		case registry.Process:
			q.Failed, q.Held = 3, 2
		case registry.Record:
			q.Ready, q.Capacity, q.Free = 4, 0, 0
		}
		m.Queue.Stages = append(m.Queue.Stages, q)
	}
	for i := range 6 {
		m.Workers = append(m.Workers, registry.WorkerInfo{
			ID: fmt.Sprintf("ip-10-0-0-%d.eu-central-1.compute.internal-4711-zbpnf%d", i, i), Version: "1.4.2", Draining: i == 5, SeenAt: at.Add(-time.Duration(i) * time.Second),
			Capacity: map[registry.Stage]int{registry.Download: 32}, Free: map[registry.Stage]int{registry.Download: 25},
		})
	}
	for i := range 8 {
		m.Failures = append(m.Failures, registry.WorkItem{
			ID: fmt.Sprintf("01a21fa4-d7dc-798d-82a%d-5c81d97c095%d", i, i), Stage: registry.Process, ErrorClass: registry.ContentFault, UpdatedAt: at.Add(-time.Duration(i) * time.Minute),
			Name: fmt.Sprintf("psalter-%d \x1b[31m図書館.tar.gz", i), Note: "the digest of image-0001.tiff differs from the manifest: expected 5c81…, found 99ab…; correct the manifest, which is https://example.org/manifests/" + strings.Repeat("psalter-", 12),
		})
	}
	return m
}

func TestTop_Golden(t *testing.T) {
	for name, size := range map[string][2]int{"top-80x24.txt": {80, 24}, "top-140x40.txt": {140, 40}} {
		lines := sample().lines(size[0], size[1], false, "")
		fits(t, name, lines, size[0], size[1])
		generatedtest.File(t, "cmd/holdfast/queue/testdata/"+name, strings.Join(lines, "\n")+"\n")
	}
}

var code = regexp.MustCompile(`\x1b\[[0-9;]*m`)

func fits(t *testing.T, name string, lines []string, columns, rows int) {
	t.Helper()
	if len(lines) > rows {
		t.Errorf("%s: %d lines in %d", name, len(lines), rows)
	}
	for _, l := range lines {
		plain := code.ReplaceAllString(l, "")
		if n := terminal.Cells(plain); n > columns || strings.ContainsAny(plain, "\x1b\n\r") {
			t.Errorf("%s: %d columns: %q", name, n, l)
		}
	}
}

// Whatever the size, nothing is wider or higher, and colours change no text.
func TestTop_Fits(t *testing.T) {
	for _, m := range []moment{sample(), {Queue: registry.QueueStatus{Paused: &registry.Hold{Reason: strings.Repeat("migration ", 30), Actor: "ann"}}}} {
		for _, columns := range []int{80, 100, 200} {
			for _, rows := range []int{8, 24, 60} {
				name := fmt.Sprintf("%dx%d", columns, rows)
				plain, coloured := m.lines(columns, rows, false, "no answer"), m.lines(columns, rows, true, "no answer")
				fits(t, name, plain, columns, rows)
				fits(t, name, coloured, columns, rows)
				if got := code.ReplaceAllString(strings.Join(coloured, "\n"), ""); got != strings.Join(plain, "\n") {
					t.Errorf("%s: colours change the text", name)
				}
			}
		}
	}
	all := strings.Join(sample().lines(140, 40, true, ""), "\n")
	for _, want := range []string{"\x1b[1;31mNO WORKER\x1b[0m", "\x1b[1;31mcontent\x1b[0m", "\x1b[34m7\x1b[0m"} {
		if !strings.Contains(all, want) {
			t.Errorf("lacks %q", want)
		}
	}
}
