-- +goose Up
-- Up to which event an object's chain lies in a storage outside of receipts, and in how many files. A
-- row is there before the first file is.
CREATE TABLE evidence (
  object_id TEXT NOT NULL,
  storage   TEXT NOT NULL,
  seq       BIGINT NOT NULL,
  segments  BIGINT NOT NULL,
  PRIMARY KEY (object_id, storage)
);

-- Objects with events that no receipt has and that not all storages have.
CREATE TABLE evidence_wait (
  object_id TEXT PRIMARY KEY,
  -- When the oldest was recorded; 0: they shall be written at once.
  since     BIGINT NOT NULL,
  events    BIGINT NOT NULL
);
CREATE INDEX evidence_wait_since ON evidence_wait (since, object_id);

-- What is left of a deleted object in its storages, as it was signed; '' for one of an earlier program.
ALTER TABLE deletion ADD COLUMN tombstone TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE deletion DROP COLUMN tombstone;
DROP TABLE evidence_wait;
DROP TABLE evidence;
