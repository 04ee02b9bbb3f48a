-- +goose Up
-- Restores: versions of objects that were brought, or are being brought, to where they are fetched. A row outlives its item and its file.
CREATE TABLE restore (
  item_id    TEXT PRIMARY KEY,
  object_id  TEXT NOT NULL,
  n          BIGINT NOT NULL,             -- its number among the object's, from 1 on
  version    BIGINT NOT NULL,
  reason     TEXT NOT NULL,
  asked_by   TEXT NOT NULL,
  asked_at   BIGINT NOT NULL,
  name       TEXT NOT NULL DEFAULT '',    -- of the file, for people
  place      TEXT NOT NULL DEFAULT '',    -- its key on the staging volume
  size_bytes BIGINT NOT NULL DEFAULT 0,
  sha256     TEXT NOT NULL DEFAULT '',
  files      BIGINT NOT NULL DEFAULT 0,
  ready_at   BIGINT NOT NULL DEFAULT 0,   -- 0: it is not, or not yet
  expires_at BIGINT NOT NULL DEFAULT 0
);
CREATE UNIQUE INDEX restore_of ON restore (object_id, n);

-- +goose Down
DROP TABLE restore;
