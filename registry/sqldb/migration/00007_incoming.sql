-- +goose Up
-- Uploads that are on their way. One that has ended is a row of upload instead; one that was given up stays until nobody can
-- write its bytes any more. n is the fencing token of who takes it forward.
CREATE TABLE incoming (
  id         TEXT PRIMARY KEY,
  filename   TEXT NOT NULL,
  size_bytes BIGINT NOT NULL,              -- -1: not known yet
  acked      BIGINT NOT NULL DEFAULT 0,    -- bytes that are durable
  digest     TEXT NOT NULL,
  metadata   TEXT NOT NULL,
  state      TEXT NOT NULL DEFAULT 'null',
  n          BIGINT NOT NULL DEFAULT 0,
  created_by TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  dropped_at BIGINT
);
CREATE INDEX incoming_of ON incoming (created_by, created_at) WHERE dropped_at IS NULL;
CREATE INDEX incoming_expiring ON incoming (expires_at) WHERE dropped_at IS NULL;
CREATE INDEX incoming_dropped ON incoming (dropped_at) WHERE dropped_at IS NOT NULL;

-- +goose Down
DROP TABLE incoming;
