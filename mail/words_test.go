package mail_test

import (
	"strings"
	"testing"

	"github.com/holdfast/holdfast/mail"
)

// TestRender_PreservedNotDelivered checks the mail about jobs whose objects are preserved although
// notifying their receiver failed. It says so, and never asks to submit them again.
func TestRender_PreservedNotDelivered(t *testing.T) {
	t.Parallel()
	templates, err := mail.LoadTemplates("")
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		report mail.Report
		says   []string
		not    []string
	}{
		"all are preserved": {
			mail.Report{Outcome: "FAILED", Number: 1, Jobs: 3, Completed: 1, Preserved: 2},
			[]string{"All of this batch is preserved.", "1 completed, 0 failed, 2 preserved but not completed", "2 objects are preserved although a later step failed", "you need not submit anything again"},
			[]string{"Not all of"},
		},
		"one failed": {
			mail.Report{Outcome: "FAILED", Number: 1, Jobs: 3, Completed: 1, Preserved: 1, Failed: 1},
			[]string{"Not all of this batch is preserved: 1 job has not completed.", "1 object is preserved although"},
			[]string{"All of this batch is preserved"},
		},
		"an update": {
			mail.Report{Outcome: "UPDATED", Number: 2, Jobs: 3, Completed: 1, Preserved: 2, Changes: &mail.Changes{Since: 1}},
			[]string{"All of it is preserved now.", "2 objects are preserved although"},
			[]string{"Not all of"},
		},
		"none": {
			mail.Report{Outcome: "OK", Number: 1, Jobs: 3, Completed: 3},
			[]string{"All of this batch is preserved."},
			[]string{"although", "preserved but"},
		},
	} {
		c, err := templates.Render(mail.KindReport, tt.report)
		if err != nil {
			t.Fatal(err)
		}
		for form, text := range map[string]string{"text": c.Text, "HTML": c.HTML} {
			text = strings.Join(strings.Fields(text), " ")
			for _, part := range tt.says {
				if !strings.Contains(text, part) {
					t.Errorf("%s, %s: without %q:\n%s", name, form, part, text)
				}
			}
			for _, part := range tt.not {
				if strings.Contains(text, part) {
					t.Errorf("%s, %s: with %q:\n%s", name, form, part, text)
				}
			}
		}
	}
}
