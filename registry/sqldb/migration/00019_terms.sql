-- Terms in force of an object: rights, preservation level and embargo, as JSON; '' for none.

-- +goose Up
ALTER TABLE object ADD COLUMN terms TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE object DROP COLUMN terms;
