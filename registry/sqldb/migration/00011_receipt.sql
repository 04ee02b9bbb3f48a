-- +goose Up
-- An object's preservation events are chained: seq counts them from 1 on, hash is of the event and of the hash before it. Those
-- that are there already, and those that programs of the schema before write, have 0 and are in no chain.
ALTER TABLE premis_event ADD COLUMN seq BIGINT NOT NULL DEFAULT 0;
ALTER TABLE premis_event ADD COLUMN hash TEXT NOT NULL DEFAULT '';
CREATE INDEX premis_event_chain ON premis_event (object_id, seq, at, id);
-- What is signed of a version's receipt. Its lines of files and events are those of the inventory.
CREATE TABLE receipt (
  object_id   TEXT NOT NULL,
  version     BIGINT NOT NULL,
  key_id      TEXT NOT NULL,
  head        TEXT NOT NULL,
  signature   TEXT NOT NULL,   -- base64
  first_event BIGINT NOT NULL, -- seq of the first event that it holds
  last_event  BIGINT NOT NULL, -- and of the last
  last_hash   TEXT NOT NULL,   -- hash of the last
  PRIMARY KEY (object_id, version)
);
-- The public keys of all receipts, for ever.
CREATE TABLE receipt_key (
  id            TEXT PRIMARY KEY,
  public_key    TEXT NOT NULL, -- hex
  first_used_at BIGINT NOT NULL
);

-- +goose Down
DROP TABLE receipt_key;
DROP TABLE receipt;
DROP INDEX premis_event_chain;
ALTER TABLE premis_event DROP COLUMN hash;
ALTER TABLE premis_event DROP COLUMN seq;
