-- +goose Up
-- When a token was last used, to within an hour; NULL: not since this is noted.
ALTER TABLE token ADD COLUMN used_at BIGINT;

-- +goose Down
ALTER TABLE token DROP COLUMN used_at;
