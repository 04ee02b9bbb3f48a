-- +goose Up
-- The batches that an upload was submitted as: only one that nobody needs any more may go.
-- +dialect sqlite
CREATE INDEX work_item_payload ON work_item (json_extract(spec, '$.url')) WHERE action = 'batch';
-- +dialect postgres
CREATE INDEX work_item_payload ON work_item ((spec::json ->> 'url')) WHERE action = 'batch';
-- +dialect all
CREATE INDEX delivery_item ON delivery (item_id) WHERE item_id <> '';
-- What is purged by itself, and when.
CREATE INDEX work_item_purge ON work_item (purge_at) WHERE purge_at IS NOT NULL;

-- +goose Down
DROP INDEX work_item_purge;
DROP INDEX delivery_item;
DROP INDEX work_item_payload;
