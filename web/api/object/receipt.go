package object

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/web/api/endpoint"
	"github.com/holdfast/holdfast/web/api/lookup"
	"github.com/holdfast/holdfast/web/wire"
)

// receiptRoute adds GET /objects/{id}/versions/{version}/receipt.
func (s *Service) receiptRoute() {
	s.Stream(endpoint.Operation{
		ID: "object-receipt", Method: http.MethodGet, Path: "/objects/{id}/versions/{version}/receipt",
		Summary: "Download the signed deposit receipt of a version",
	}, []*huma.Param{
		objectParam(),
		{Name: "version", In: "path", Required: true, Description: "The version's number; 0: the newest", Schema: &huma.Schema{Type: "integer"}},
	}, "application/jsonl", func(r *http.Request) (*endpoint.Streamed, error) {
		ctx := r.Context()
		version, err := strconv.Atoi(r.PathValue("version"))
		if err != nil || version < 0 {
			return nil, endpoint.Invalid("the receipt was not sent", wire.Fault{Location: "path.version", Message: "not the number of a version", Found: r.PathValue("version")})
		}
		o, err := lookup.Version(ctx, s.Registry, r.PathValue("id"), version)
		if err != nil {
			return nil, err
		}
		kept, err := s.signedReceipt(ctx, o.ID, o.Head)
		if errors.Is(err, registry.ErrNotFound) {
			return nil, endpoint.NotFound("version %d of %s has no receipt: Holdfast did not sign receipts when it recorded this version, and cannot do so later", o.Head, o.ID)
		} else if err != nil {
			return nil, err
		}
		if err := s.chainReaches(ctx, kept); err != nil {
			return nil, err
		}
		return &endpoint.Streamed{
			ContentType: "application/jsonl", Filename: fmt.Sprintf("receipt-v%d.jsonl", o.Head),
			Write: func(w io.Writer) error { return s.writeReceipt(ctx, w, kept) },
		}, nil
	})
}

// signedReceipt returns the stored part of a version's receipt. ErrNotFound: there is none, or
// nobody signed it, so that it proves nothing.
func (s *Service) signedReceipt(ctx context.Context, objectID string, version int) (registry.DepositReceipt, error) {
	kept, err := s.Registry.DepositReceipt(ctx, objectID, version)
	if err == nil && kept.KeyID == "" {
		err = fmt.Errorf("the receipt of version %d of %s is not signed: %w", version, objectID, registry.ErrNotFound)
	}
	return kept, err
}

// chainReaches refuses a receipt whose last event is missing. Otherwise the client would see a
// broken connection, and would retry in vain.
func (s *Service) chainReaches(ctx context.Context, kept registry.DepositReceipt) error {
	if kept.LastEvent < kept.FirstEvent {
		return nil // the receipt has no events
	}
	page, err := s.All.PremisEvents(ctx, kept.ObjectID, registry.AfterSeq(kept.LastEvent-1), 1)
	if err != nil || len(page.Rows) > 0 && page.Rows[0].Seq == kept.LastEvent {
		return err
	}
	s.Log.ErrorContext(ctx, "a chain of events was truncated", "object", kept.ObjectID, "event", kept.LastEvent)
	return wire.NewProblem(http.StatusInternalServerError, wire.CodeDamaged, fmt.Sprintf(
		"event %d of %s is missing, but the receipt of version %d covers it: the chain of events was truncated; ask an operator to run `holdfast object audit %s`",
		kept.LastEvent, kept.ObjectID, kept.Version, kept.ObjectID))
}

// writeReceipt sends the signed head and the lines that it covers. If the lines have changed since,
// it sends all of them, so that a verifier finds the changes, and then aborts the connection.
func (s *Service) writeReceipt(ctx context.Context, w io.Writer, kept registry.DepositReceipt) error {
	head, err := receipt.ParseHeader(kept.Head)
	if err != nil {
		return fmt.Errorf("read receipt of version %d of %s: %w", kept.Version, kept.ObjectID, err)
	}
	out := bufio.NewWriterSize(w, 64<<10)
	if _, err := out.Write(receipt.Head(kept.Head, kept.Signature)); err != nil {
		return err
	}
	manifest, err := s.writeFiles(ctx, out, kept, head.Format)
	if err != nil {
		return err
	}
	end, err := s.writeEvents(ctx, out, kept, head.Events.Before)
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if manifest.Digest() != head.Manifest || end != head.Events.After {
		return fmt.Errorf("the inventory of version %d of %s has changed since its receipt was signed", kept.Version, kept.ObjectID)
	}
	return nil
}

func (s *Service) writeFiles(ctx context.Context, w io.Writer, kept registry.DepositReceipt, format int) (m receipt.Manifest, err error) {
	for after := ""; ; {
		files, err := s.Registry.Files(ctx, kept.ObjectID, kept.Version, after, endpoint.StreamRows)
		if err != nil {
			return m, err
		}
		for _, f := range files {
			if _, err := w.Write(m.Add(receipt.FileOf(f, format))); err != nil {
				return m, err
			}
			after = f.Path
		}
		if len(files) < endpoint.StreamRows {
			return m, nil
		}
	}
}

// writeEvents writes the events and returns the hash of the chain's end.
func (s *Service) writeEvents(ctx context.Context, w io.Writer, kept registry.DepositReceipt, hash string) (string, error) {
	for after := kept.FirstEvent - 1; after < kept.LastEvent; {
		// No hashed event may be left out. Whoever may see the object may see its receipt, which
		// names no item.
		page, err := s.All.PremisEvents(ctx, kept.ObjectID, registry.AfterSeq(after), endpoint.StreamRows)
		if err != nil || len(page.Rows) == 0 {
			return hash, err
		}
		for _, row := range page.Rows {
			if row.Seq > kept.LastEvent {
				return hash, nil
			}
			e := receipt.EventOf(row)
			if _, err := w.Write(e.Line(row.Hash)); err != nil {
				return hash, err
			}
			after, hash = e.Seq, e.Hash(hash)
		}
	}
	return hash, nil
}

func (s *Service) receiptKeys(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[wire.ReceiptKey]], error) {
	keys, err := s.Registry.ReceiptKeys(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]wire.ReceiptKey, len(keys))
	for i, k := range keys {
		public, err := receipt.ParsePublicKey(k.PublicKey)
		if err != nil {
			return nil, fmt.Errorf("read receipt key %s: %w", k.ID, err)
		}
		out[i] = wire.ReceiptKey{ID: k.ID, PublicKey: k.PublicKey, PEM: public.PEM(), FirstUsedAt: k.FirstUsedAt}
	}
	return endpoint.Listed(out), nil
}
