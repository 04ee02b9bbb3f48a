package object

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
)

// receiptsRoute adds GET /batches/{id}/receipts.
func (s *Service) receiptsRoute() {
	s.Stream(endpoint.Operation{
		ID: "batch-receipts", Method: http.MethodGet, Path: "/batches/{id}/receipts",
		Summary: "Download the signed deposit receipts of all objects of a batch, as a tar",
	}, []*huma.Param{
		{Name: "id", In: "path", Required: true, Description: "The batch", Schema: &huma.Schema{Type: "string"}},
	}, "application/x-tar", func(r *http.Request) (*endpoint.Streamed, error) {
		ctx := r.Context()
		batch, err := lookup.Batch(ctx, s.Registry, r.PathValue("id"))
		if err != nil {
			return nil, err
		}
		counts, err := s.Registry.CountItems(ctx, registry.ItemQuery{ParentID: batch.ID, Status: registry.Completed})
		if err != nil {
			return nil, err
		}
		if len(counts) == 0 {
			return nil, endpoint.NotFound("batch %s has no receipts yet: none of its jobs is completed", batch.ID)
		}
		return &endpoint.Streamed{
			ContentType: "application/x-tar", Filename: "receipts-" + batch.ID + ".tar",
			Write: func(w io.Writer) error { return s.writeReceipts(ctx, w, batch) },
		}, nil
	})
}

// writeReceipts writes the receipts of a batch's jobs in row order, each as a file. A version without a
// receipt has a file that says so. A tar gives the size of a file first: so a receipt that is too large
// for memory is read twice. Memory grows neither with the number of files nor with that of jobs.
func (s *Service) writeReceipts(ctx context.Context, w io.Writer, batch registry.WorkItem) error {
	out := tar.NewWriter(w)
	for after := ""; ; {
		jobs, err := s.Registry.Items(ctx, registry.ItemQuery{ParentID: batch.ID, After: after, Limit: endpoint.StreamRows})
		if err != nil {
			return err
		}
		for _, it := range jobs.Rows {
			job, err := registry.JobResultOf(it)
			if err != nil {
				return err
			}
			if job.ObjectID == "" || job.Version < 1 || job.State != registry.StateCompleted && !job.Preserved {
				continue
			}
			if err := s.addReceipt(ctx, out, job, batch.CreatedAt); err != nil {
				return err
			}
		}
		if after = jobs.Next; after == "" {
			return out.Close()
		}
	}
}

// addReceipt adds the receipt of a job's version to a tar.
func (s *Service) addReceipt(ctx context.Context, out *tar.Writer, job registry.JobResult, at time.Time) error {
	name := fmt.Sprintf("%06d-%s.v%d", job.Row, strings.NewReplacer(":", "_", "/", "_").Replace(job.ObjectID), job.Version)
	kept, err := s.receiptOf(ctx, job)
	if errors.Is(err, registry.ErrNotFound) {
		text := fmt.Sprintf("Version %d of %s has no receipt: Holdfast did not sign receipts when it recorded this version, or the object is not yours to see.\n", job.Version, job.ObjectID)
		if err := out.WriteHeader(&tar.Header{Name: name + ".missing.txt", Mode: 0o644, Size: int64(len(text)), ModTime: at}); err != nil {
			return err
		}
		_, err := io.WriteString(out, text)
		return err
	} else if err != nil {
		return err
	}
	var measured beginning
	if err := s.writeReceipt(ctx, &measured, kept); err != nil {
		return err
	}
	head, err := receipt.ParseHeader(kept.Head)
	if err != nil {
		return fmt.Errorf("read receipt of version %d of %s: %w", kept.Version, kept.ObjectID, err)
	}
	if err := out.WriteHeader(&tar.Header{Name: name + ".jsonl", Mode: 0o644, Size: measured.size, ModTime: head.Recorded}); err != nil {
		return err
	}
	if measured.size == int64(len(measured.kept)) {
		_, err := out.Write(measured.kept)
		return err
	}
	return s.writeReceipt(ctx, out, kept)
}

// receiptOf returns the receipt of a job's version, or ErrNotFound.
func (s *Service) receiptOf(ctx context.Context, job registry.JobResult) (registry.DepositReceipt, error) {
	o, err := lookup.Version(ctx, s.Registry, job.ObjectID, job.Version)
	if err != nil {
		return registry.DepositReceipt{}, err
	}
	kept, err := s.signedReceipt(ctx, o.ID, job.Version)
	if err != nil {
		return kept, err
	}
	return kept, s.chainReaches(ctx, kept)
}

// keepReceipt is how much of a receipt is kept in memory, in bytes: a thousand files.
const keepReceipt = 256 << 10

// beginning counts what is written, and keeps the beginning of it.
type beginning struct {
	kept []byte
	size int64
}

// Write implements io.Writer.
func (b *beginning) Write(p []byte) (int, error) {
	if b.size += int64(len(p)); b.size <= keepReceipt {
		b.kept = append(b.kept, p...)
	}
	return len(p), nil
}
