package object

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"github.com/holdfast/holdfast/evidence"
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
	return evidence.WriteReceipt(ctx, w, wholeRecord{Registry: s.Registry, all: s.All}, kept)
}

// wholeRecord shows all events of an object that the asker may see. No hashed event may be left out
// of a receipt, which names no item of an event.
type wholeRecord struct {
	Registry
	all evidence.Events
}

// PremisEvents implements evidence.Events.
func (r wholeRecord) PremisEvents(ctx context.Context, objectID, after string, limit int) (registry.Page[registry.Premis], error) {
	return r.all.PremisEvents(ctx, objectID, after, limit)
}

func (s *Service) receiptKeys(ctx context.Context, _ *struct{}) (*endpoint.Output[registry.Page[wire.ReceiptKey]], error) {
	rows, err := s.Registry.ReceiptKeys(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := receipt.RecordedKeys(rows)
	if err != nil {
		return nil, err
	}
	out := make([]wire.ReceiptKey, len(rows))
	for i, k := range rows {
		out[i] = wire.ReceiptKey{ID: k.ID, PublicKey: k.PublicKey, PEM: keys[i].PEM(), FirstUsedAt: k.FirstUsedAt}
	}
	return endpoint.Listed(out), nil
}
