package progress

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/cmd/holdfast/cli"
	"github.com/holdfast/holdfast/registry"
)

// The messages of --json while submitting or following. Readers must ignore unknown fields
// (docs/commands.md, basics).

type statusLine struct {
	MessageType string         `json:"message_type"` // status
	BatchID     string         `json:"batch_id"`
	State       registry.State `json:"state"`
	PercentDone *float64       `json:"percent_done,omitempty"` // 0 to 100, once the total is known
	Jobs        int64          `json:"jobs"`
	Completed   int64          `json:"completed"`
	Preserved   int64          `json:"preserved,omitempty"` // not completed, although the object is preserved
	Failed      int64          `json:"failed"`
	TotalFiles  int64          `json:"total_files"`
	FilesDone   int64          `json:"files_done"`
	TotalBytes  int64          `json:"total_bytes"`
	BytesDone   int64          `json:"bytes_done"`
	SizeKnown   bool           `json:"size_known"` // the totals are final
	Held        bool           `json:"held"`
	Current     []string       `json:"current,omitempty"`
}

// SummaryHead is a summary without its jobs. These follow as a stream, because there may be a
// million.
type SummaryHead struct {
	MessageType string              `json:"message_type"` // summary
	Payload     string              `json:"payload,omitempty"`
	BatchID     string              `json:"batch_id"`
	State       registry.State      `json:"state"`
	Duplicate   bool                `json:"duplicate"`
	DuplicateOf string              `json:"duplicate_of,omitempty"`
	Completed   int64               `json:"completed"`
	Preserved   int64               `json:"preserved,omitempty"` // not completed, although the object is preserved
	Failed      int64               `json:"failed"`
	Error       string              `json:"error,omitempty"`
	ErrorClass  registry.ErrorClass `json:"error_class,omitempty"`
	ExitCode    int                 `json:"exit_code"`
}

// status prints a batch's progress.
func status(a *cli.App, p registry.BatchProgress) error {
	line := statusLine{
		MessageType: "status", BatchID: p.BatchID, State: p.State, Jobs: p.Jobs, Completed: p.Completed, Preserved: p.Preserved, Failed: p.Failed,
		TotalFiles: p.Files, FilesDone: p.DoneFiles, TotalBytes: p.Bytes, BytesDone: p.DoneBytes, SizeKnown: p.SizeKnown,
		Held: p.Held, Current: p.Current,
	}
	v := view{known: p.SizeKnown, bytes: p.Bytes, doneBytes: p.DoneBytes, jobs: p.Jobs, settled: p.Jobs - p.Open}
	if percent, ok := v.percent(); ok {
		line.PercentDone = &percent
	}
	return a.PrintJSON(line)
}

// WriteSummary writes a summary line. jobs must call yield with each job.
func WriteSummary(w io.Writer, head SummaryHead, jobs func(yield func(registry.JobResult) error) error) error {
	head.MessageType = "summary"
	raw, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("encode summary: %w", err)
	}
	if _, err := fmt.Fprintf(w, `%s,"jobs":[`, raw[:len(raw)-1]); err != nil {
		return err
	}
	comma := ""
	err = jobs(func(j registry.JobResult) error {
		raw, err := json.Marshal(j)
		if err != nil {
			return fmt.Errorf("encode job: %w", err)
		}
		_, err = fmt.Fprintf(w, "%s%s", comma, raw)
		comma = ","
		return err
	})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "]}\n")
	return err
}
