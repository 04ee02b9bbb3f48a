-- +goose Up
-- For how long a worker's leases are, in microseconds: its slots count no longer. It only adds: programs of the version before say nothing, and
-- their workers count for a minute.
ALTER TABLE worker_stage ADD COLUMN lease BIGINT NOT NULL DEFAULT 60000000;

-- +goose Down
ALTER TABLE worker_stage DROP COLUMN lease;
