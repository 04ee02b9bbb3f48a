-- +goose Up
-- When it was decided that the bytes of an upload go: it can be submitted no more.
ALTER TABLE upload ADD COLUMN retired_at BIGINT;

-- +goose Down
ALTER TABLE upload DROP COLUMN retired_at;
