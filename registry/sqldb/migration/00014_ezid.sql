-- +goose Up
-- Names that EZID knows, by the item that each was chosen for; '' for the others.
ALTER TABLE object ADD COLUMN ezid_item TEXT NOT NULL DEFAULT '';

-- What lets an item go on, as its worker knew.
ALTER TABLE attempt ADD COLUMN remedy TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE attempt DROP COLUMN remedy;
ALTER TABLE object DROP COLUMN ezid_item;
