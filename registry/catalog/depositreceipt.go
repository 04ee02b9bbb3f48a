package catalog

import (
	"context"
	"database/sql"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/receipt"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// manifest sums up the files of a version before it is recorded. It returns nil if the item has not
// announced it. All rows are there by then, and only the live attempt could add more. It reads them in
// portions, so no snapshot stays open for long (R25).
func (s *Catalog) manifest(ctx context.Context, l registry.Lease, v registry.VersionRecord) (*receipt.Manifest, error) {
	var open bool
	err := s.db.Read.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM object_version
		WHERE object_id = $1 AND version = $2 AND item_id = $3 AND status = 'intended')`, v.ObjectID, v.Version, l.ItemID).Scan(&open)
	if err != nil || !open { // the transaction will refuse it, or has nothing left to do
		return nil, err //nolint:nilnil // nil is no manifest
	}
	m, err := s.sumFiles(ctx, v.ObjectID, v.Version)
	if err != nil {
		return nil, err
	}
	if m.Files != v.Files || m.Bytes != v.SizeBytes {
		return nil, fmt.Errorf("the inventory holds %d files of %d bytes, and the version has %d of %d: requeue the item at record, and if it fails again report it",
			m.Files, m.Bytes, v.Files, v.SizeBytes)
	}
	return m, nil
}

// rowsAtOnce is how many rows of the inventory one statement reads for a receipt (R25).
const rowsAtOnce = 1000

// sumFiles sums up the files of a version, recorded or not, by path. That is the order of the rows,
// so the database reads each row once and sorts none. A path's newest row up to the version counts.
func (s *Catalog) sumFiles(ctx context.Context, objectID string, version int) (*receipt.Manifest, error) {
	m := &receipt.Manifest{}
	var last registry.File
	add := func(f registry.File) {
		if f.Version > 0 && !f.Deleted {
			m.Add(receipt.FileOf(f, receipt.Format))
		}
	}
	for {
		n, err := s.addPortion(ctx, objectID, version, &last, add)
		if err != nil {
			return nil, fmt.Errorf("sum up the files of %s: %w", objectID, err)
		}
		if n < rowsAtOnce {
			add(last)
			return m, nil
		}
	}
}

// addPortion reads the rows after last, and calls add with the newest row of each path. The newest
// row read stays in last, since the next portion may continue its path.
func (s *Catalog) addPortion(ctx context.Context, objectID string, version int, last *registry.File, add func(registry.File)) (n int, err error) {
	rows, err := s.db.Read.QueryContext(ctx, `SELECT path, version, content_path, size_bytes, digests, mime_type, format, deleted, modified_at FROM file
		WHERE object_id = $1 AND (path, version) > ($2, $3) AND version <= $4 ORDER BY path, version`+sqldb.Limit(rowsAtOnce),
		objectID, []byte(last.Path), last.Version, version)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var path, content, digests, format sql.RawBytes
	for ; rows.Next(); n++ {
		var next registry.File
		var modified sql.NullInt64
		if err := rows.Scan(&path, &next.Version, &content, &next.SizeBytes, &digests, &next.MIMEType, &format, &next.Deleted, &modified); err != nil {
			return n, err
		}
		if modified.Valid {
			next.Modified = sqldb.FromMicros(modified.Int64)
		}
		next.Path, next.ContentPath = string(path), string(content)
		if next.Digests, err = decodeDigests(string(digests)); err != nil {
			return n, fmt.Errorf("file %q: %w", next.Path, err)
		}
		if next.Format, err = decodeFormat(string(format)); err != nil {
			return n, fmt.Errorf("file %q: %w", next.Path, err)
		}
		if next.Path != last.Path {
			add(*last)
		}
		*last = next
	}
	return n, rows.Err()
}

// signReceipt signs and stores the version's receipt. It covers all events of the object's chain
// since the previous receipt, up to end. No item made a version that others stored. Without a key the receipt is not signed: it is not shown,
// but lies beside the bytes all the same.
func (t *tx) signReceipt(itemID string, profileVersion int, v registry.VersionRecord, m *receipt.Manifest, end chainEnd) error {
	before := chainEnd{hash: receipt.Zero}
	err := t.Get(`SELECT last_event, last_hash FROM receipt WHERE object_id = $1 ORDER BY version DESC LIMIT 1`,
		[]any{v.ObjectID}, &before.seq, &before.hash)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("find the previous receipt: %w", err)
	}
	replicas := make([]receipt.Replica, len(v.Replicas))
	for i, r := range v.Replicas {
		replicas[i] = receipt.Replica{Storage: r.Storage, Verified: r.VerifiedAt, Inventory: v.Inventory}
	}
	h := receipt.Header{
		Object: v.ObjectID, Version: v.Version, Owner: v.Owner,
		Title: sqldb.Clean(v.Title), Creator: sqldb.Clean(v.Creator), Date: sqldb.Clean(v.Date),
		Collection: v.Collection, Item: itemID, ProfileVersion: profileVersion,
		Created: v.CreatedAt, Recorded: sqldb.FromMicros(t.Now), Files: m.Files, Bytes: m.Bytes, Manifest: m.Digest(),
		Events:   receipt.Span{First: before.seq + 1, Count: end.seq - before.seq, Before: before.hash, After: end.hash},
		Replicas: replicas,
	}
	if err := t.identity(&h); err != nil {
		return fmt.Errorf("sign the receipt: %w", err)
	}
	keyID, err := t.noteReceiptKey()
	if err != nil {
		return err
	}
	head, signature := t.store.receiptKey.Sign(h)
	if len(head) > receipt.MaxLine {
		return fmt.Errorf("sign the receipt: its header would have %d bytes: %w", len(head), registry.ErrInvalid)
	}
	err = t.Do(`INSERT INTO receipt (object_id, version, key_id, head, signature, first_event, last_event, last_hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`, v.ObjectID, v.Version, keyID, head,
		base64.StdEncoding.EncodeToString(signature), before.seq+1, end.seq, end.hash)
	if err != nil {
		return fmt.Errorf("store the receipt: %w", err)
	}
	return nil
}

// identity fills in what only the Registry knows of the object.
func (t *tx) identity(h *receipt.Header) error {
	var named int64
	var text string
	if err := t.Get(`SELECT created_at, ezid_item, terms FROM object WHERE id = $1`, []any{h.Object}, &named, &h.EZIDItem, &text); err != nil {
		return fmt.Errorf("look up %s: %w", h.Object, err)
	}
	terms, err := decodeTerms(text)
	if err != nil {
		return err
	}
	h.Named, h.Terms = sqldb.FromMicros(named), receipt.TermsOf(terms)
	h.LocalIDs, err = t.localIDs(h.Object, h.Owner)
	return err
}

// localIDs returns all local ids by which an owner knows an object, also those of a job that failed
// after it was named.
func (t *tx) localIDs(objectID, owner string) (ids []string, err error) {
	// The query does not name the owner: SQLite would then read all local ids of that owner, in their
	// order, in place of the object's.
	err = sqldb.Each(t.Ask(`SELECT owner, local_id FROM identifier WHERE ark = $1`, objectID), "look up local ids", func(row sqldb.Scanner) error {
		var of, id string
		err := row.Scan(&of, &id)
		if of == owner {
			ids = append(ids, id)
		}
		return err
	})
	slices.Sort(ids)
	return ids, err
}

// DepositReceipt implements registry.Evidencing.
func (s *Catalog) DepositReceipt(ctx context.Context, objectID string, version int) (registry.DepositReceipt, error) {
	r := registry.DepositReceipt{ObjectID: objectID, Version: version}
	var signature string
	err := s.db.Read.QueryRowContext(ctx, `SELECT key_id, head, signature, first_event, last_event FROM receipt
		WHERE object_id = $1 AND version = $2`, objectID, version).Scan(&r.KeyID, &r.Head, &signature, &r.FirstEvent, &r.LastEvent)
	if errors.Is(err, sql.ErrNoRows) {
		return r, fmt.Errorf("receipt of version %d of %s: %w", version, objectID, registry.ErrNotFound)
	} else if err != nil {
		return r, fmt.Errorf("read receipt of version %d of %s: %w", version, objectID, err)
	}
	if r.Signature, err = base64.StdEncoding.DecodeString(signature); err != nil {
		return r, fmt.Errorf("decode receipt of version %d of %s: %w", version, objectID, err)
	}
	return r, nil
}

// Tombstone implements registry.Attesting.
func (s *Catalog) Tombstone(ctx context.Context, objectID string) (text string, err error) {
	err = s.db.Read.QueryRowContext(ctx, `SELECT d.tombstone FROM object o JOIN deletion d ON d.object_id = o.id AND d.status = o.gone
		WHERE o.id = $1 AND o.gone = $2`, objectID, registry.DeletionDeleted).Scan(&text)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return "", fmt.Errorf("look up the tombstone of %s: %w", objectID, err)
	}
	return text, nil
}

// ReceiptKeys implements registry.Attesting.
func (s *Catalog) ReceiptKeys(ctx context.Context) (out []registry.ReceiptKey, err error) {
	ask := s.db.Read.Ask(ctx, `SELECT id, public_key, first_used_at FROM receipt_key ORDER BY first_used_at, id`)
	return sqldb.Collect(ask, "list receipt keys", func(row sqldb.Scanner) (registry.ReceiptKey, error) {
		var k registry.ReceiptKey
		var at int64
		if err := row.Scan(&k.ID, &k.PublicKey, &at); err != nil {
			return k, err
		}
		k.FirstUsedAt = sqldb.FromMicros(at)
		return k, nil
	})
}
