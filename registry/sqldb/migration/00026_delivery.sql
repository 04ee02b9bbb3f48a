-- +goose Up
-- Since when nobody goes on with a message, whether it was delivered or not. It only adds: programs of the version before, which do
-- not write it, go on working, and what they leave open counts as not delivered.
ALTER TABLE delivery ADD COLUMN closed_at BIGINT;
-- Mails of items that were purged: nothing removed them any more.
DELETE FROM delivery WHERE kind <> 'callback' AND NOT EXISTS (SELECT 1 FROM work_item i WHERE i.id = delivery.subject);
-- Every mail has an item; that of one without was done, and is purged.
UPDATE delivery SET closed_at = COALESCE(tried_at, created_at) WHERE item_id = '' AND kind <> 'callback'
  OR EXISTS (SELECT 1 FROM work_item c WHERE c.id = delivery.item_id AND c.status IN ('completed', 'aborted', 'deleted'));
DROP INDEX delivery_untold;
CREATE INDEX delivery_untold ON delivery (tried_at) WHERE sent_at IS NULL AND closed_at IS NULL AND tries > 0;

-- +goose Down
DROP INDEX delivery_untold;
CREATE INDEX delivery_untold ON delivery (tried_at) WHERE sent_at IS NULL AND tries > 0;
ALTER TABLE delivery DROP COLUMN closed_at;
