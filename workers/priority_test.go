package workers_test

import (
	"fmt"
	"testing"

	"github.com/holdfast/holdfast/checkm"
	"github.com/holdfast/holdfast/registry"
)

// A batch's size determines its jobs' priority, as in Merritt, unless the submission sets one, even
// the default one.
func TestExpand_Priority(t *testing.T) {
	five, zero := registry.DefaultPriority, 0
	tests := []struct {
		name       string
		rows       int
		profile    *int
		submission *int
		command    *int
		want       int
	}{
		{"1 job", 1, nil, nil, nil, 5},
		{"2 jobs", 2, nil, nil, nil, 11},
		{"10 jobs", 10, nil, nil, nil, 28},
		{"100 jobs", 100, nil, nil, nil, 51},
		{"1000 jobs", 1000, nil, nil, nil, 74},
		{"profile", 10, &zero, nil, nil, 0},
		{"profile with the default", 10, &five, nil, nil, 5},
		{"submission with the default", 10, nil, &five, nil, 5},
		{"submission before profile", 10, &five, &zero, nil, 0},
		{"operator", 10, nil, nil, &zero, 0},
		{"operator before all", 10, &five, &five, &zero, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.profile("p", registry.Profile{Owner: "ark:/99999/owner", Collections: []string{"ark:/99999/test"}, Priority: tt.profile})
			rows := make([]checkm.Row, tt.rows)
			for i := range rows {
				rows[i] = checkm.Row{URL: fmt.Sprintf("%sf%d", r.site.url, i), Name: fmt.Sprintf("f%d", i)}
			}
			receipt, err := r.registry.Submit(t.Context(), registry.Submission{
				Collection: "p", Priority: tt.submission, Actor: "tester",
				Spec: registry.Spec{Type: registry.SingleFileBatch, Mode: registry.Add, SizeBytes: -1, URL: r.site.manifest("m", checkm.FileBatch, rows...)},
			})
			must(t, err)
			if tt.command != nil {
				_, err := r.registry.Command(t.Context(), registry.Command{
					ItemID: receipt.BatchID, Act: registry.ActPriority, Priority: tt.command, Actor: "tester",
				})
				must(t, err)
			}
			jobs := r.expand(receipt.BatchID)
			for _, job := range jobs {
				if job.Priority != tt.want {
					t.Fatalf("priority=%d, want %d", job.Priority, tt.want)
				}
			}
			if want := min(tt.rows, 500); len(jobs) != want { // a page of them
				t.Errorf("%d jobs, want %d", len(jobs), want)
			}
		})
	}
}
