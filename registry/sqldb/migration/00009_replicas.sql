-- +goose Up
-- The optional steps of its route that an item takes, each between commas; a batch notes them for its jobs. Items that are
-- under way take none.
ALTER TABLE work_item ADD COLUMN optional TEXT NOT NULL DEFAULT '';

-- The storages after the first, which is volume, that an item's version goes to, each between commas.
ALTER TABLE work_item ADD COLUMN other_storages TEXT NOT NULL DEFAULT '';

-- A replica is known by the name of its storage, of which there was one until now.
UPDATE replica SET storage = 'storage';

-- +goose Down
ALTER TABLE work_item DROP COLUMN other_storages;
ALTER TABLE work_item DROP COLUMN optional;
