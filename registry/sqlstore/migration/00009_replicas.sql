-- +goose Up
-- The optional steps of its route that an item takes, each between commas; a batch notes them for its jobs. Items that are
-- under way take none.
ALTER TABLE work_item ADD COLUMN optional TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE work_item DROP COLUMN optional;
