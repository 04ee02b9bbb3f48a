-- +goose Up
-- When a file was last changed by its producer, as its source told; NULL when nobody knows.
ALTER TABLE file ADD COLUMN modified_at BIGINT;

-- +goose Down
ALTER TABLE file DROP COLUMN modified_at;
