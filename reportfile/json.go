package reportfile

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"

	"github.com/holdfast/holdfast/registry"
)

// JSON writes a report as one object: its figures, then failed_jobs and completed_jobs with one job
// per line. q selects jobs as for [Jobs]. If q.List is set, the other list is left out.
func JSON(ctx context.Context, w io.Writer, s Source, r registry.BatchReport, q registry.ReportQuery) error {
	out := bufio.NewWriter(w)
	head, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	_, _ = out.Write(head[:len(head)-1]) // Flush returns the error
	q.BatchID, q.Closing = r.BatchID, r.Closing
	only := q.List
	for _, list := range registry.ReportLists() {
		if only != "" && list != only {
			continue
		}
		q.List = list
		_, _ = fmt.Fprintf(out, ",\n%q:[", string(list)+"_jobs")
		if err := jsonJobs(out, Jobs(ctx, s, q)); err != nil {
			return err
		}
		_, _ = out.WriteString("]")
	}
	_, _ = out.WriteString("}\n")
	return out.Flush()
}

func jsonJobs(out *bufio.Writer, jobs iter.Seq2[registry.JobResult, error]) error {
	separator := "\n"
	for j, err := range jobs {
		if err != nil {
			return err
		}
		raw, err := json.Marshal(j)
		if err != nil {
			return fmt.Errorf("encode job %s: %w", j.ItemID, err)
		}
		_, _ = out.WriteString(separator)
		if _, err := out.Write(raw); err != nil {
			return err
		}
		separator = ",\n"
	}
	return nil
}
