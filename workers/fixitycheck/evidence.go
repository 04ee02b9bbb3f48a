package fixitycheck

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/holdfast/holdfast/base"
	"github.com/holdfast/holdfast/evidence"
	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/workers/pace"
)

// wrongEvidence is what is wrong with the object's evidence in one storage.
type wrongEvidence struct {
	*evidence.Judgement
	storage string
}

// checkEvidence judges the evidence beside the object's bytes, in all storages that have any of its versions.
// It goes with the inventory of the newest version, under the object's lock, so no version is recorded
// meanwhile.
func (c *check) checkEvidence(ctx context.Context) error {
	all, err := c.Registry.EvidencePlaces(ctx, c.file.ObjectID)
	if err != nil {
		return err
	}
	progress := c.item.Progress("bytes of evidence read", "bytes") // a receipt of many files takes long
	c.judge = &evidence.Judge{From: c.Registry, Known: all, Through: func(r io.Reader) io.Reader {
		return pace.Reader(ctx, r, c.Limiter, progress.Add)
	}}
	for _, p := range all.Places {
		root, err := c.root(p.Storage)
		if err != nil {
			return err
		}
		in, err := evidence.In(root, c.file.ObjectID, c.file.Place)
		if err != nil {
			return err
		}
		found, err := c.judge.Of(ctx, evidence.Place{Object: in, Head: p.Version, Kept: p.Seq})
		if errors.Is(err, evidence.ErrChanged) {
			return base.Fatal(fmt.Errorf("the record does not agree with its own receipts, so nothing is mended by it: run holdfast object audit %s: %w", c.file.ObjectID, err))
		} else if err != nil {
			return fmt.Errorf("read the evidence in storage %s: %w", p.Storage, err)
		}
		if !found.Right() || len(found.Early) > 0 {
			c.evidence = append(c.evidence, wrongEvidence{found, p.Storage})
		}
	}
	return nil
}

// evidenceText names what is wrong with the evidence in a storage; "" if nothing is.
func (c *check) evidenceText(storage string) string {
	for _, e := range c.evidence {
		if e.storage == storage {
			return e.String()
		}
	}
	return ""
}

// evidenceRight says whether the evidence is right everywhere.
func (c *check) evidenceRight() bool {
	for _, e := range c.evidence {
		if !e.Right() {
			return false
		}
	}
	return true
}

// mendEvidence writes wrong and missing evidence anew from the Registry. What says something else than
// the Registry is left to a person.
func (c *check) mendEvidence(ctx context.Context) error {
	left := c.evidence[:0]
	for _, e := range c.evidence {
		if err := c.item.Writable(ctx); err != nil {
			return err
		}
		if err := c.judge.Mend(ctx, e.Judgement, c.Registry.SignEvents); err != nil {
			return fmt.Errorf("write evidence anew in storage %s: %w", e.storage, err)
		}
		if len(e.Damaged)+len(e.Missing) > 0 {
			c.mended = true
			if i := c.place(e.storage); i >= 0 {
				c.found[i].Outcome = registry.CheckRepaired
			} else {
				c.elsewhere = append(c.elsewhere, registry.ReplicaCheck{Storage: e.storage, Outcome: registry.CheckRepaired})
			}
		}
		e.Damaged, e.Missing, e.Early = nil, nil, nil
		if len(e.Other) > 0 {
			left = append(left, e)
		}
	}
	c.evidence = left
	return nil
}

// otherEvidence is the error for evidence that only a person can judge; nil if there is none.
func (c *check) otherEvidence() error {
	var parts []string
	for _, e := range c.evidence {
		parts = append(parts, fmt.Sprintf("%s in storage %s", e.String(), e.storage))
	}
	if len(parts) == 0 {
		return nil
	}
	return base.Fatal(fmt.Errorf("evidence of %s says something else than the record: %s; compare both (docs/evidence.md), move away what is wrong, then requeue this check",
		c.file.ObjectID, strings.Join(parts, ", ")))
}
