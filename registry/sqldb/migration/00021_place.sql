-- +goose Up
-- How an object lies in its storages, if others made it there and it was adopted: its id there ('': its
-- ARK), how many of its versions it had, and to how many digits the numbers of its version folders are
-- padded.
ALTER TABLE object ADD COLUMN ocfl_id TEXT NOT NULL DEFAULT '';
ALTER TABLE object ADD COLUMN adopted BIGINT NOT NULL DEFAULT 0;
ALTER TABLE object ADD COLUMN padding BIGINT NOT NULL DEFAULT 0;
CREATE UNIQUE INDEX object_ocfl_id ON object (ocfl_id) WHERE ocfl_id <> '';

-- +goose Down
DROP INDEX object_ocfl_id;
ALTER TABLE object DROP COLUMN padding;
ALTER TABLE object DROP COLUMN adopted;
ALTER TABLE object DROP COLUMN ocfl_id;
