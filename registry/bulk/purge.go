package bulk

import (
	"fmt"

	"github.com/holdfast/holdfast/registry"
	"github.com/holdfast/holdfast/registry/sqldb"
)

// purgeRest ends a purge in portions: it deletes the batch after the last of its jobs.
func (t *tx) purgeRest(spec registry.BulkSpec, actor string, p *applied) error {
	batch, err := t.Item(spec.Parent)
	if err != nil {
		return err
	}
	refused, err := t.Try(func() error {
		return t.Purge(batch, registry.Command{ItemID: batch.ID, Act: spec.Act, Reason: spec.Reason, Actor: actor})
	})
	if refused != nil {
		p.Refusals = append(p.Refusals, sqldb.Clean(fmt.Sprintf("%s: %v", batch.ID, refused)))
	}
	return err
}
