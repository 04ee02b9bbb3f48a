package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/web/wire"
)

// The lines that --json prints while something is submitted or followed. Readers must tolerate fields that they do not
// know (docs/commands.md, basics).

type submittedLine struct {
	MessageType string `json:"message_type"` // submitted
	Payload     string `json:"payload"`
	BatchID     string `json:"batch_id"`
	Duplicate   bool   `json:"duplicate"`
	NoMail      bool   `json:"no_mail,omitempty"` // nobody is told by mail: the service has no mail server
}

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

type errorLine struct {
	MessageType string       `json:"message_type"` // error
	Payload     string       `json:"payload,omitempty"`
	Error       string       `json:"error"`
	ExitCode    int          `json:"exit_code"`
	Faults      []wire.Fault `json:"faults,omitempty"`
	FaultsTotal int64        `json:"faults_total,omitempty"` // when not all are listed
}

// summaryHead is a summary line without its jobs, which follow it (there may be a million).
type summaryHead struct {
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

// stateRefused stands in summaries of what was not accepted, and so never was a batch.
const stateRefused registry.State = "Refused"

// printJSON writes one object on a line of its own.
func (a *app) printJSON(v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode output: %w", err)
	}
	_, err = a.out.Write(append(raw, '\n'))
	return err
}

// status prints how far a batch is.
func (a *app) status(p registry.BatchProgress) error {
	line := statusLine{
		MessageType: "status", BatchID: p.BatchID, State: p.State, Jobs: p.Jobs, Completed: p.Completed, Preserved: p.Preserved, Failed: p.Failed,
		TotalFiles: p.Files, FilesDone: p.DoneFiles, TotalBytes: p.Bytes, BytesDone: p.DoneBytes, SizeKnown: p.SizeKnown,
		Held: p.Held, Current: p.Current,
	}
	v := view{known: p.SizeKnown, bytes: p.Bytes, doneBytes: p.DoneBytes, jobs: p.Jobs, settled: p.Jobs - p.Open}
	if percent, ok := v.percent(); ok {
		line.PercentDone = &percent
	}
	return a.printJSON(line)
}

// writeSummary writes a summary line; jobs calls its argument with every job.
func writeSummary(w io.Writer, head summaryHead, jobs func(yield func(registry.JobResult) error) error) error {
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
