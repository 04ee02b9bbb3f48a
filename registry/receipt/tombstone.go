package receipt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// TombstoneFormat is the version of the format of tombstones.
const TombstoneFormat = 1

// TombstoneMagic begins every tombstone that has a format. Earlier ones are indented JSON without a
// signature.
const TombstoneMagic = `{"holdfast_tombstone":`

// Tombstone is the signed first line of what is left of a deleted object in its storages. Its names are
// those of earlier tombstones, which had no signature, owner, collection, local ids and events.
type Tombstone struct {
	Object     string    `json:"object_id"` // its ARK
	Owner      string    `json:"owner"`
	LocalIDs   []string  `json:"local_ids"` // all under which its owner knows it
	Collection string    `json:"collection"`
	Reason     string    `json:"reason"`
	AskedBy    string    `json:"asked_by"`
	AskedAt    time.Time `json:"asked_at"`
	ApprovedBy string    `json:"approved_by"`
	ApprovedAt time.Time `json:"approved_at"`
	Item       string    `json:"item_id"` // that carries the deletion out
	Last       Remains   `json:"last"`
	LastEvent  int64     `json:"last_event"` // number of the last event of its chain before the deletion; 0: none
	LastHash   string    `json:"last_hash"`  // of that event, or Zero
	Key        string    `json:"key"`        // PublicKey.ID of the key that signed; "": nobody did
	PublicKey  string    `json:"public_key"`
}

// Remains identifies the last version of a deleted object: digests as ALGORITHM:HEX.
type Remains struct {
	Version   int    `json:"version"`
	Inventory string `json:"inventory"`
	Files     string `json:"files"`
}

func (w *line) tombstone(t Tombstone) {
	w.text(TombstoneMagic)
	w.number(TombstoneFormat)
	w.field("object_id", t.Object)
	w.field("owner", t.Owner)
	w.text(`,"local_ids":`)
	w.strings(t.LocalIDs)
	w.field("collection", t.Collection)
	w.field("reason", t.Reason)
	w.field("asked_by", t.AskedBy)
	w.timeField("asked_at", t.AskedAt)
	w.field("approved_by", t.ApprovedBy)
	w.timeField("approved_at", t.ApprovedAt)
	w.field("item_id", t.Item)
	w.text(`,"last":{"version":`)
	w.number(int64(t.Last.Version))
	w.field("inventory", t.Last.Inventory)
	w.field("files", t.Last.Files)
	w.text("}")
	w.numberField("last_event", t.LastEvent)
	w.field("last_hash", t.LastHash)
	w.field("key", t.Key)
	w.field("public_key", t.PublicKey)
	w.text("}\n")
}

// SignTombstone fills in the key, and returns the whole text: the signed line and the signature's line.
// Without a key it returns the line alone.
func (k *Key) SignTombstone(t Tombstone) []byte {
	return Head(k.sign(&t.Key, &t.PublicKey, func(w *line) { w.tombstone(t) }))
}

// ErrTombstone says that a text is no tombstone, or was changed after it was signed.
var ErrTombstone = errors.New("the tombstone is not valid")

// ReadTombstone reads a tombstone and verifies its signature. trusted says whether one of the keys
// signed it; one that nobody signed, or that has no format, has no Key. Its error is ErrTombstone; the
// tombstone then has what could be decoded, to name it by.
func ReadTombstone(text []byte, keys []PublicKey) (t Tombstone, trusted bool, err error) {
	if !bytes.HasPrefix(text, []byte(TombstoneMagic)) {
		t, err = earlierTombstone(text)
		return t, false, err
	}
	end := bytes.IndexByte(text, '\n') + 1
	head, rest := text[:end], text[end:]
	var in struct {
		Format int `json:"holdfast_tombstone"`
		Tombstone
	}
	err = readHead(head, &in, &in.Format, TombstoneFormat, func(w *line) { w.tombstone(in.Tombstone) })
	if err == nil && in.Object == "" {
		err = errForm
	}
	if err == nil {
		trusted, err = verifyHead(in.Key, in.PublicKey, head, rest, keys)
	}
	if err != nil {
		return in.Tombstone, false, fmt.Errorf("%w: %w", ErrTombstone, err)
	}
	return in.Tombstone, trusted, nil
}

// earlierTombstone reads one of a program before tombstones were signed.
func earlierTombstone(text []byte) (t Tombstone, err error) {
	err = json.Unmarshal(text, &t)
	if err == nil && (t.Object == "" || t.AskedAt.IsZero() || t.ApprovedAt.IsZero()) {
		err = errForm
	}
	if err != nil {
		return t, fmt.Errorf("%w: %w", ErrTombstone, err)
	}
	t.Key, t.PublicKey = "", ""
	return t, nil
}
