-- +goose Up
-- When a worker was first seen; 0: before this was noted.
ALTER TABLE worker ADD COLUMN since BIGINT NOT NULL DEFAULT 0;

-- +goose Down
ALTER TABLE worker DROP COLUMN since;
